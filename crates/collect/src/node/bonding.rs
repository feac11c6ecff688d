//! `/sys/class/net/*/bonding`: interfaces made of several links, and how many of those are up.

use std::path::PathBuf;

use model::{Family, Kind, Millis};

use super::label;
use crate::source::{Reader, to_f64};
use crate::{Collector, Error, Paths, Readings};

/// Collects `node_bonding_*`.
pub struct Bonding {
    class: PathBuf,
    reader: Reader,
}

impl Bonding {
    /// Reads below sysfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            class: paths.sys("class/net"),
            reader: Reader::default(),
        }
    }

    fn read(&mut self) -> Result<Vec<Family>, Error> {
        let gauge = |name: &str, help: &str| Family::new(name, Kind::Gauge, help);
        let mut slaves = gauge(
            "node_bonding_slaves",
            "Number of configured slaves per bonding interface.",
        );
        let mut active = gauge("node_bonding_active", "Number of active slaves per bonding interface.");
        let masters = self.reader.text(&self.class.join("bonding_masters"))?.to_owned();
        for master in masters.split_ascii_whitespace() {
            let folder = self.class.join(master);
            let links = self.reader.text(&folder.join("bonding/slaves"))?.to_owned();
            let (mut configured, mut up) = (0, 0);
            for link in links.split_ascii_whitespace() {
                configured += 1;
                // Newer kernels name the links `lower_`, older ones `slave_`.
                let status = ["lower_", "slave_"].iter().find_map(|prefix| {
                    let path = folder.join(format!("{prefix}{link}/bonding_slave/mii_status"));
                    self.reader.word(&path).map(str::to_owned)
                });
                up += u64::from(status.as_deref() == Some("up"));
            }
            slaves.push(vec![label("master", master)], to_f64(configured));
            active.push(vec![label("master", master)], to_f64(up));
        }
        Ok(vec![active, slaves])
    }
}

impl Collector for Bonding {
    fn name(&self) -> &'static str {
        "bonding"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        self.read().into()
    }
}
