//! `/proc/stat`, the lines that are not of one processor.

use std::path::PathBuf;

use model::{Family, Millis};

use super::{counter, gauge};
use crate::source::Reader;
use crate::{Collector, Error, Paths, Readings};

/// Collects interrupts, context switches, forks, boot time and processes.
pub struct Stat {
    path: PathBuf,
    reader: Reader,
}

impl Stat {
    /// Reads below procfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            path: paths.proc("stat"),
            reader: Reader::default(),
        }
    }

    fn read(&mut self) -> Result<Vec<Family>, Error> {
        let text = self.reader.text(&self.path)?;
        let mut families = Vec::new();
        for (i, line) in text.lines().enumerate() {
            let mut words = line.split_ascii_whitespace();
            let (Some(name), Some(word)) = (words.next(), words.next()) else {
                continue;
            };
            let Some(family) = family_of(name) else { continue };
            let value = word
                .parse()
                .map_err(|_| Error::form(&self.path, i + 1, "a count", line))?;
            families.push(family(value));
        }
        Ok(families)
    }
}

/// How the value of this line is shown.
fn family_of(line: &str) -> Option<fn(f64) -> Family> {
    Some(match line {
        "intr" => |v| counter("node_intr_total", "Total number of interrupts serviced.", v),
        "ctxt" => |v| counter("node_context_switches_total", "Total number of context switches.", v),
        "processes" => |v| counter("node_forks_total", "Total number of forks.", v),
        "btime" => |v| gauge("node_boot_time_seconds", "Node boot time, in unixtime.", v),
        "procs_running" => |v| gauge("node_procs_running", "Number of processes in runnable state.", v),
        "procs_blocked" => |v| {
            gauge(
                "node_procs_blocked",
                "Number of processes blocked waiting for I/O to complete.",
                v,
            )
        },
        _ => return None,
    })
}

impl Collector for Stat {
    fn name(&self) -> &'static str {
        "stat"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        self.read().into()
    }
}
