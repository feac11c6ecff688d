//! `/proc/net/dev`: bytes, packets and errors of each interface.

use std::path::PathBuf;

use model::{Family, Kind, Millis};

use super::label;
use crate::source::Reader;
use crate::{Collector, Error, Paths, Readings};

/// Columns after the interface's name.
const COLUMNS: [&str; 16] = [
    "receive_bytes",
    "receive_packets",
    "receive_errs",
    "receive_drop",
    "receive_fifo",
    "receive_frame",
    "receive_compressed",
    "receive_multicast",
    "transmit_bytes",
    "transmit_packets",
    "transmit_errs",
    "transmit_drop",
    "transmit_fifo",
    "transmit_colls",
    "transmit_carrier",
    "transmit_compressed",
];

/// Collects `node_network_receive_*` and `node_network_transmit_*`.
pub struct Netdev {
    path: PathBuf,
    class: PathBuf,
    reader: Reader,
}

impl Netdev {
    /// Reads below procfs, and one counter that procfs lacks below sysfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            path: paths.proc("net/dev"),
            class: paths.sys("class/net"),
            reader: Reader::default(),
        }
    }

    fn read(&mut self) -> Result<Vec<Family>, Error> {
        let mut families: Vec<Family> = COLUMNS.iter().map(|column| family(column)).collect();
        let mut devices = Vec::new();
        let text = self.reader.text(&self.path)?;
        // Two lines of headings come first.
        for (i, line) in text.lines().enumerate().skip(2) {
            let form = || Error::form(&self.path, i + 1, "an interface and sixteen counts", line);
            let (device, counts) = line.rsplit_once(':').ok_or_else(form)?;
            let device = device.trim();
            let mut counts = counts.split_ascii_whitespace();
            for family in &mut families {
                let count = counts.next().and_then(|c| c.parse().ok()).ok_or_else(form)?;
                family.push(vec![label("device", device)], count);
            }
            devices.push(device.to_owned());
        }
        let mut no_handler = family("receive_nohandler");
        for device in devices {
            let path = self.class.join(&device).join("statistics/rx_nohandler");
            no_handler.push_some(|| vec![label("device", &device)], self.reader.number(&path));
        }
        families.push(no_handler);
        Ok(families)
    }
}

fn family(statistic: &str) -> Family {
    let help = format!("Network device statistic {statistic}.");
    Family::new(format!("node_network_{statistic}_total"), Kind::Counter, help)
}

impl Collector for Netdev {
    fn name(&self) -> &'static str {
        "netdev"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        self.read().into()
    }
}
