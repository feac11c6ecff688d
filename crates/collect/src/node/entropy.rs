//! The kernel's pool of randomness.

use model::{Family, Millis};

use super::gauge;
use crate::source::Reader;
use crate::{Collector, Error, Paths, Readings};

/// Collects `node_entropy_*`.
pub struct Entropy {
    paths: Paths,
    reader: Reader,
}

impl Entropy {
    /// Reads below procfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            paths: paths.clone(),
            reader: Reader::default(),
        }
    }

    fn read(&mut self) -> Result<Vec<Family>, Error> {
        let (available, size) = (self.number("entropy_avail")?, self.number("poolsize")?);
        Ok(vec![
            gauge("node_entropy_available_bits", "Bits of available entropy.", available),
            gauge("node_entropy_pool_size_bits", "Bits of entropy pool.", size),
        ])
    }

    fn number(&mut self, file: &str) -> Result<f64, Error> {
        let path = self.paths.proc("sys/kernel/random").join(file);
        let text = self.reader.text(&path)?;
        text.trim()
            .parse()
            .map_err(|_| Error::form(&path, 1, "a number of bits", text))
    }
}

impl Collector for Entropy {
    fn name(&self) -> &'static str {
        "entropy"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        self.read().into()
    }
}
