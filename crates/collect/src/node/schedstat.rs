//! `/proc/schedstat`: how long tasks ran and waited on each processor.

use std::path::PathBuf;

use model::{Family, Kind, Millis};

use super::{label, numbers};
use crate::source::Reader;
use crate::{Collector, Error, Paths, Readings};

/// The kernel counts nanoseconds.
const PER_SECOND: f64 = 1e9;

/// Collects `node_schedstat_*`.
pub struct Schedstat {
    path: PathBuf,
    reader: Reader,
}

impl Schedstat {
    /// Reads below procfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            path: paths.proc("schedstat"),
            reader: Reader::default(),
        }
    }

    fn read(&mut self) -> Result<Vec<Family>, Error> {
        let counter = |name: &str, help: &str| Family::new(name, Kind::Counter, help);
        let mut running = counter(
            "node_schedstat_running_seconds_total",
            "Number of seconds CPU spent running a process.",
        );
        let mut waiting = counter(
            "node_schedstat_waiting_seconds_total",
            "Number of seconds spent by processing waiting for this CPU.",
        );
        let mut slices = counter(
            "node_schedstat_timeslices_total",
            "Number of timeslices executed by CPU.",
        );
        let text = self.reader.text(&self.path)?;
        for (i, line) in text.lines().enumerate() {
            let mut fields = line.split_ascii_whitespace();
            let Some(cpu) = fields.next().and_then(|word| word.strip_prefix("cpu")) else {
                continue;
            };
            let [.., ran, waited, count]: [f64; 9] =
                numbers(&mut fields).ok_or_else(|| Error::form(&self.path, i + 1, "nine counts", line))?;
            running.push(vec![label("cpu", cpu)], ran / PER_SECOND);
            waiting.push(vec![label("cpu", cpu)], waited / PER_SECOND);
            slices.push(vec![label("cpu", cpu)], count);
        }
        Ok(vec![running, waiting, slices])
    }
}

impl Collector for Schedstat {
    fn name(&self) -> &'static str {
        "schedstat"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        self.read().into()
    }
}
