//! `/proc/sys/fs/file-nr`: open files.

use std::path::PathBuf;

use model::{Family, Millis};

use super::{gauge, numbers};
use crate::source::Reader;
use crate::{Collector, Error, Paths, Readings};

/// Collects `node_filefd_*`.
pub struct Filefd {
    path: PathBuf,
    reader: Reader,
}

impl Filefd {
    /// Reads below procfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            path: paths.proc("sys/fs/file-nr"),
            reader: Reader::default(),
        }
    }

    fn read(&mut self) -> Result<Vec<Family>, Error> {
        let text = self.reader.text(&self.path)?;
        let [allocated, _free, maximum] = numbers(&mut text.split_ascii_whitespace())
            .ok_or_else(|| Error::form(&self.path, 1, "three counts", text))?;
        Ok(vec![
            gauge(
                "node_filefd_allocated",
                "File descriptor statistics: allocated.",
                allocated,
            ),
            gauge("node_filefd_maximum", "File descriptor statistics: maximum.", maximum),
        ])
    }
}

impl Collector for Filefd {
    fn name(&self) -> &'static str {
        "filefd"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        self.read().into()
    }
}
