//! Reads a window of the ring, also while it is written and after its writer died.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use model::Millis;
use serde::Serialize;

use super::record::{Record, Uuid, uuid_name};
use super::writer::{RingError, each_record, slots_of};

/// What is wanted of the ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The first moment.
    pub from: Millis,
    /// The last moment.
    pub to: Millis,
    /// Only these GPUs, by the driver's index; `None` for all.
    pub gpus: Option<Vec<u16>>,
    /// At most so many samples; more are an answer too long ([`History::is_cut`]).
    pub max: usize,
}

/// A window of the ring, a column set for each GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct History {
    /// By index, then by name.
    pub gpus: Vec<Column>,
    /// Whether there was more than was wanted at most; then nothing is here.
    #[serde(skip)]
    pub is_cut: bool,
}

/// The samples of one GPU, by time. All lists are of one length; what the board did not tell is null.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Column {
    /// The driver's index at the time.
    pub gpu: u16,
    /// `GPU-…`; empty where not known.
    pub uuid: String,
    /// Seconds since 1970.
    pub time: Vec<f64>,
    /// Watts.
    pub power_watts: Vec<Option<f64>>,
    /// Degrees Celsius.
    pub temperature_celsius: Vec<Option<i16>>,
    /// Percent of time with work.
    pub utilization_percent: Vec<Option<u8>>,
    /// Percent of time with memory traffic.
    pub memory_utilization_percent: Vec<Option<u8>>,
    /// MHz.
    pub sm_clock_mhz: Vec<Option<u16>>,
    /// MHz.
    pub memory_clock_mhz: Vec<Option<u16>>,
    /// The driver's bits.
    pub throttle_reasons: Vec<Option<u64>>,
}

/// The file, to be read.
#[derive(Debug, Clone)]
pub struct RingReader {
    path: PathBuf,
}

impl RingReader {
    /// Of the ring at this path, which need not be there yet.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// The window. A ring that is not there yet has nothing in it.
    ///
    /// # Errors
    ///
    /// [`RingError::File`].
    pub fn read(&self, wanted: &Wanted) -> Result<History, RingError> {
        let read = || -> io::Result<(Vec<Record>, bool)> {
            let file = match File::open(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), false)),
                file => file?,
            };
            let (mut found, mut is_cut) = (Vec::new(), false);
            each_record(&file, slots_of(&file).unwrap_or(0), |record| {
                let sample = &record.sample;
                let is_wanted = wanted.gpus.as_ref().is_none_or(|gpus| gpus.contains(&sample.gpu));
                if is_wanted && (wanted.from..=wanted.to).contains(&sample.time) {
                    is_cut |= found.len() == wanted.max;
                    if !is_cut {
                        found.push(record);
                    }
                }
            })?;
            Ok((found, is_cut))
        };
        let (mut found, is_cut) = read().map_err(|source| RingError::File {
            path: self.path.clone(),
            source,
        })?;
        if is_cut {
            found = Vec::new();
        }
        found.sort_unstable_by_key(|record| record.sequence);
        Ok(History {
            gpus: columns(&found),
            is_cut,
        })
    }
}

fn columns(records: &[Record]) -> Vec<Column> {
    let mut by_gpu: BTreeMap<(u16, Uuid), Column> = BTreeMap::new();
    for record in records {
        let sample = &record.sample;
        let column = by_gpu.entry((sample.gpu, record.uuid)).or_insert_with(|| Column {
            gpu: sample.gpu,
            uuid: uuid_name(&record.uuid),
            ..Column::default()
        });
        column.time.push(crate::runner::seconds(sample.time));
        column
            .power_watts
            .push(sample.power_mw.map(|mw| f64::from(mw) / 1000.0));
        column.temperature_celsius.push(sample.temperature);
        column.utilization_percent.push(sample.utilization);
        column.memory_utilization_percent.push(sample.memory_utilization);
        column.sm_clock_mhz.push(sample.sm_clock);
        column.memory_clock_mhz.push(sample.memory_clock);
        column.throttle_reasons.push(sample.reasons);
    }
    by_gpu.into_values().collect()
}
