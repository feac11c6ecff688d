//! `/proc/net/arp`: neighbours by interface.

use std::collections::BTreeMap;
use std::path::PathBuf;

use model::{Family, Kind, Millis};

use super::label;
use crate::source::Reader;
use crate::{Collector, Error, Paths, Readings};

/// Collects `node_arp_entries`.
pub struct Arp {
    path: PathBuf,
    reader: Reader,
}

impl Arp {
    /// Reads below procfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            path: paths.proc("net/arp"),
            reader: Reader::default(),
        }
    }

    fn read(&mut self) -> Result<Vec<Family>, Error> {
        let text = self.reader.text(&self.path)?;
        let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
        for line in text.lines().skip(1) {
            if let Some(device) = line.split_ascii_whitespace().nth(5) {
                *counts.entry(device).or_default() += 1.0;
            }
        }
        let mut family = Family::new("node_arp_entries", Kind::Gauge, "ARP entries by device");
        for (device, count) in counts {
            family.push(vec![label("device", device)], count);
        }
        Ok(vec![family])
    }
}

impl Collector for Arp {
    fn name(&self) -> &'static str {
        "arp"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        self.read().into()
    }
}
