//! `/proc/pressure`: time lost waiting for processors, memory, disks and interrupts.

use std::path::PathBuf;

use model::{Family, Millis};

use super::counter;
use crate::source::Reader;
use crate::{Collector, Error, Paths, Readings, State};

/// File, line, metric, help. The kernel's `full` line for processors is always zero and left out.
const LINES: [(&str, &str, &str, &str); 6] = [
    (
        "cpu",
        "some",
        "node_pressure_cpu_waiting_seconds_total",
        "Total time in seconds that processes have waited for CPU time",
    ),
    (
        "io",
        "some",
        "node_pressure_io_waiting_seconds_total",
        "Total time in seconds that processes have waited due to IO congestion",
    ),
    (
        "io",
        "full",
        "node_pressure_io_stalled_seconds_total",
        "Total time in seconds no process could make progress due to IO congestion",
    ),
    (
        "memory",
        "some",
        "node_pressure_memory_waiting_seconds_total",
        "Total time in seconds that processes have waited for memory",
    ),
    (
        "memory",
        "full",
        "node_pressure_memory_stalled_seconds_total",
        "Total time in seconds no process could make progress due to memory congestion",
    ),
    (
        "irq",
        "full",
        "node_pressure_irq_stalled_seconds_total",
        "Total time in seconds no process could make progress due to IRQ congestion",
    ),
];

/// The kernel counts microseconds.
const PER_SECOND: f64 = 1e6;

/// Collects `node_pressure_*`.
pub struct Pressure {
    folder: PathBuf,
    reader: Reader,
}

impl Pressure {
    /// Reads below procfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            folder: paths.proc("pressure"),
            reader: Reader::default(),
        }
    }

    fn read(&mut self, file: &str) -> Result<Vec<Family>, Error> {
        let path = self.folder.join(file);
        let text = self.reader.text(&path)?;
        let wanted = LINES.iter().filter(|line| line.0 == file);
        let value = |name: &str| {
            let line = text.lines().find(|line| line.split(' ').next() == Some(name))?;
            let total = line.split(' ').find_map(|word| word.strip_prefix("total="))?;
            total.parse::<f64>().ok()
        };
        wanted
            .map(|(_, line, name, help)| {
                let total = value(line).ok_or_else(|| Error::form(&path, 0, "a line with total=", text))?;
                Ok(counter(*name, *help, total / PER_SECOND))
            })
            .collect()
    }
}

impl Collector for Pressure {
    fn name(&self) -> &'static str {
        "pressure"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        let mut readings = Readings::of(Vec::new());
        for file in ["cpu", "io", "memory", "irq"] {
            match self.read(file) {
                Ok(families) => readings.families.extend(families),
                // Kernels before 6.1, and those without interrupt accounting, have no irq file.
                Err(error) if file == "irq" && error.state() == State::Absent => {}
                Err(error) => readings.errors.push(error),
            }
        }
        if let (true, Some(error)) = (readings.families.is_empty(), readings.errors.first()) {
            // Without PSI in the kernel there is no folder, or reading says "not supported".
            readings.state = error.state();
        }
        readings
    }
}
