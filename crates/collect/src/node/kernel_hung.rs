//! Tasks that the kernel found hanging.

use std::path::PathBuf;

use model::Millis;

use super::counter;
use crate::source::Reader;
use crate::{Collector, Error, Paths, Readings};

/// Collects `node_kernel_hung_tasks_total`.
pub struct KernelHung {
    path: PathBuf,
    reader: Reader,
}

impl KernelHung {
    /// Reads below procfs; the file is there since Linux 6.13.
    pub fn new(paths: &Paths) -> Self {
        Self {
            path: paths.proc("sys/kernel/hung_task_detect_count"),
            reader: Reader::default(),
        }
    }
}

impl Collector for KernelHung {
    fn name(&self) -> &'static str {
        "kernel_hung"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        let number = self.reader.text(&self.path).and_then(|text| {
            let number = text.trim().parse();
            number.map_err(|_| Error::form(&self.path, 1, "a count", text))
        });
        let help = "Total number of tasks that have been detected as hung since the system booted.";
        number
            .map(|n| vec![counter("node_kernel_hung_tasks_total", help, n)])
            .into()
    }
}
