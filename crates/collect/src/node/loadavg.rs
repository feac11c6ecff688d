//! `/proc/loadavg`.

use std::path::PathBuf;

use model::{Family, Millis};

use super::{gauge, numbers};
use crate::source::Reader;
use crate::{Collector, Error, Paths, Readings};

/// Collects `node_load*`.
pub struct Loadavg {
    path: PathBuf,
    reader: Reader,
}

impl Loadavg {
    /// Reads below procfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            path: paths.proc("loadavg"),
            reader: Reader::default(),
        }
    }

    fn read(&mut self) -> Result<Vec<Family>, Error> {
        let text = self.reader.text(&self.path)?;
        let [one, five, fifteen] = numbers(&mut text.split_ascii_whitespace())
            .ok_or_else(|| Error::form(&self.path, 1, "three load averages", text))?;
        Ok(vec![
            gauge("node_load1", "1m load average.", one),
            gauge("node_load5", "5m load average.", five),
            gauge("node_load15", "15m load average.", fifteen),
        ])
    }
}

impl Collector for Loadavg {
    fn name(&self) -> &'static str {
        "loadavg"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        self.read().into()
    }
}
