//! `/proc/vmstat`: paging, swapping, faults and OOM kills.

use std::path::PathBuf;

use model::{Family, Kind, Millis};

use super::single;
use crate::source::Reader;
use crate::{Collector, Error, Paths, Readings};

/// Collects `node_vmstat_*`.
pub struct Vmstat {
    path: PathBuf,
    reader: Reader,
}

impl Vmstat {
    /// Reads below procfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            path: paths.proc("vmstat"),
            reader: Reader::default(),
        }
    }

    fn read(&mut self) -> Result<Vec<Family>, Error> {
        let text = self.reader.text(&self.path)?;
        let mut families = Vec::new();
        for (i, line) in text.lines().enumerate() {
            let mut words = line.split_ascii_whitespace();
            let Some(name) = words.next().filter(|name| is_wanted(name)) else {
                continue;
            };
            let value = words.next().and_then(|w| w.parse().ok());
            let value = value.ok_or_else(|| Error::form(&self.path, i + 1, "a count", line))?;
            let help = format!("/proc/vmstat information field {name}.");
            families.push(single(format!("node_vmstat_{name}"), Kind::Unknown, help, value));
        }
        Ok(families)
    }
}

/// node_exporter's default filter: `^(oom_kill|pgpg|pswp|pg.*fault).*`.
fn is_wanted(name: &str) -> bool {
    let paging = name.strip_prefix("pg").is_some_and(|rest| rest.contains("fault"));
    name.starts_with("oom_kill") || name.starts_with("pgpg") || name.starts_with("pswp") || paging
}

impl Collector for Vmstat {
    fn name(&self) -> &'static str {
        "vmstat"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        self.read().into()
    }
}
