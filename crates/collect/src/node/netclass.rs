//! `/sys/class/net`: what an interface is, and whether its link is up.

use std::path::{Path, PathBuf};

use model::{Family, Kind, Millis};

use super::label;
use crate::source::{Reader, entries, parse_number};
use crate::{Collector, Error, Paths, Readings};

/// File and property; both as in sysfs and in node_exporter.
const PROPERTIES: [(&str, &str, Kind); 16] = [
    ("addr_assign_type", "address_assign_type", Kind::Gauge),
    ("carrier", "carrier", Kind::Gauge),
    ("carrier_changes", "carrier_changes_total", Kind::Counter),
    ("carrier_up_count", "carrier_up_changes_total", Kind::Counter),
    ("carrier_down_count", "carrier_down_changes_total", Kind::Counter),
    ("dev_id", "device_id", Kind::Gauge),
    ("dormant", "dormant", Kind::Gauge),
    ("flags", "flags", Kind::Gauge),
    ("ifindex", "iface_id", Kind::Gauge),
    ("iflink", "iface_link", Kind::Gauge),
    ("link_mode", "iface_link_mode", Kind::Gauge),
    ("mtu", "mtu_bytes", Kind::Gauge),
    ("name_assign_type", "name_assign_type", Kind::Gauge),
    ("netdev_group", "net_dev_group", Kind::Gauge),
    ("tx_queue_len", "transmit_queue_length", Kind::Gauge),
    ("type", "protocol_type", Kind::Gauge),
];

/// Megabits a second, as sysfs tells it, in bytes a second.
const BYTES_PER_MEGABIT: f64 = 1e6 / 8.0;

/// `IFF_UP` of `linux/if.h`.
const FLAG_UP: u64 = 1;

/// Collects `node_network_*` without the traffic.
pub struct Netclass {
    class: PathBuf,
    reader: Reader,
}

impl Netclass {
    /// Reads below sysfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            class: paths.sys("class/net"),
            reader: Reader::default(),
        }
    }

    fn text(&mut self, folder: &Path, file: &str) -> String {
        self.reader.word(&folder.join(file)).unwrap_or("").to_owned()
    }
}

impl Collector for Netclass {
    fn name(&self) -> &'static str {
        "netclass"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        let gauge = |name: &str, help: &str| Family::new(name, Kind::Gauge, help);
        let property = |name: &str, kind| {
            let help = format!("Network device property: {name}");
            Family::new(format!("node_network_{name}"), kind, help)
        };
        let mut up = gauge("node_network_up", "Value is 1 if operstate is 'up', 0 otherwise.");
        let mut info = gauge(
            "node_network_info",
            "Non-numeric data from /sys/class/net/<iface>, value is always 1.",
        );
        let mut speed = property("speed_bytes", Kind::Gauge);
        let mut properties = PROPERTIES.map(|(_, name, kind)| property(name, kind));
        for (device, folder) in entries(&self.class) {
            if !folder.is_dir() {
                // `bonding_masters` is a file among the interfaces.
                continue;
            }
            let labels = || vec![label("device", &device)];
            let operstate = self.text(&folder, "operstate");
            up.push(labels(), f64::from(u8::from(operstate == "up")));
            let flags = self.text(&folder, "flags");
            let flags = u64::from_str_radix(flags.trim_start_matches("0x"), 16).unwrap_or(0);
            let admin = if flags & FLAG_UP == 1 { "up" } else { "down" };
            info.push(
                vec![
                    ("address", self.text(&folder, "address")),
                    label("adminstate", admin),
                    ("broadcast", self.text(&folder, "broadcast")),
                    label("device", &device),
                    ("duplex", self.text(&folder, "duplex")),
                    ("ifalias", self.text(&folder, "ifalias")),
                    ("operstate", operstate),
                ],
                1.0,
            );
            for (family, (file, ..)) in properties.iter_mut().zip(PROPERTIES) {
                let word = self.reader.word(&folder.join(file));
                family.push_some(labels, word.and_then(parse_number));
            }
            // -1 says that the link's speed is not known.
            let megabits = self.reader.number(&folder.join("speed")).filter(|s| *s >= 0.0);
            speed.push_some(labels, megabits.map(|s| s * BYTES_PER_MEGABIT));
        }
        if up.metrics.is_empty() {
            return Readings::failed(Error::Nothing {
                what: "network interface",
            });
        }
        Readings::of([up, info, speed].into_iter().chain(properties).collect())
    }
}
