//! `/proc/net/softnet_stat`: packets that each processor took from its backlog.

use std::path::PathBuf;

use model::{Family, Kind, Millis};

use crate::source::{Reader, to_f64};
use crate::{Collector, Error, Paths, Readings};

/// Column, metric, type, help.
const COLUMNS: [(usize, &str, Kind, &str); 7] = [
    (
        0,
        "node_softnet_processed_total",
        Kind::Counter,
        "Number of processed packets",
    ),
    (
        1,
        "node_softnet_dropped_total",
        Kind::Counter,
        "Number of dropped packets",
    ),
    (
        2,
        "node_softnet_times_squeezed_total",
        Kind::Counter,
        "Number of times processing packets ran out of quota",
    ),
    (
        8,
        "node_softnet_cpu_collision_total",
        Kind::Counter,
        "Number of collision occur while obtaining device lock while transmitting",
    ),
    (
        9,
        "node_softnet_received_rps_total",
        Kind::Counter,
        "Number of times cpu woken up received_rps",
    ),
    (
        10,
        "node_softnet_flow_limit_count_total",
        Kind::Counter,
        "Number of times flow limit has been reached",
    ),
    (11, "node_softnet_backlog_len", Kind::Gauge, "Softnet backlog status"),
];

/// The processor's number, on kernels that tell it; rows skip processors that are off.
const CPU_COLUMN: usize = 12;

/// Collects `node_softnet_*`.
pub struct Softnet {
    path: PathBuf,
    reader: Reader,
}

impl Softnet {
    /// Reads below procfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            path: paths.proc("net/softnet_stat"),
            reader: Reader::default(),
        }
    }

    fn read(&mut self) -> Result<Vec<Family>, Error> {
        let mut families: Vec<Family> = COLUMNS
            .iter()
            .map(|(_, n, kind, help)| Family::new(*n, *kind, *help))
            .collect();
        let text = self.reader.text(&self.path)?;
        for (row, line) in text.lines().enumerate() {
            let fields = line.split_ascii_whitespace().map(|f| u64::from_str_radix(f, 16));
            let fields: Vec<u64> = fields
                .collect::<Result<_, _>>()
                .map_err(|_| Error::form(&self.path, row + 1, "hexadecimal counts", line))?;
            let cpu = fields.get(CPU_COLUMN).map_or_else(|| row.to_string(), u64::to_string);
            for (family, (column, ..)) in families.iter_mut().zip(&COLUMNS) {
                // Older kernels have fewer columns; node_exporter shows a zero there.
                let count = fields.get(*column).copied().unwrap_or(0);
                family.push(vec![("cpu", cpu.clone())], to_f64(count));
            }
        }
        Ok(families)
    }
}

impl Collector for Softnet {
    fn name(&self) -> &'static str {
        "softnet"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        self.read().into()
    }
}
