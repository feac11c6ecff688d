//! `/sys/class/net`: what an interface is, and whether its link is up.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use model::{Family, Kind, Millis};

use super::label;
use crate::source::{Reader, entries, parse_number};
use crate::{Collector, Error, Paths, Readings};

/// File and property; both as in sysfs and in node_exporter. The first eight change only by hand.
const PROPERTIES: [(&str, &str, Kind); 16] = [
    ("addr_assign_type", "address_assign_type", Kind::Gauge),
    ("dev_id", "device_id", Kind::Gauge),
    ("ifindex", "iface_id", Kind::Gauge),
    ("iflink", "iface_link", Kind::Gauge),
    ("name_assign_type", "name_assign_type", Kind::Gauge),
    ("netdev_group", "net_dev_group", Kind::Gauge),
    ("tx_queue_len", "transmit_queue_length", Kind::Gauge),
    ("type", "protocol_type", Kind::Gauge),
    ("carrier", "carrier", Kind::Gauge),
    ("carrier_changes", "carrier_changes_total", Kind::Counter),
    ("carrier_up_count", "carrier_up_changes_total", Kind::Counter),
    ("carrier_down_count", "carrier_down_changes_total", Kind::Counter),
    ("dormant", "dormant", Kind::Gauge),
    ("flags", "flags", Kind::Gauge),
    ("link_mode", "iface_link_mode", Kind::Gauge),
    ("mtu", "mtu_bytes", Kind::Gauge),
];

/// How many of the properties change only by hand.
const FIXED: usize = 8;

/// What changes only by hand is read again after so long, in milliseconds.
const FIXED_FOR_MS: Millis = 60_000;

/// Megabits a second, as sysfs tells it, in bytes a second.
const BYTES_PER_MEGABIT: f64 = 1e6 / 8.0;

/// `IFF_UP` of `linux/if.h`.
const FLAG_UP: u64 = 1;

/// Collects `node_network_*` without the traffic.
pub struct Netclass {
    class: PathBuf,
    reader: Reader,
    /// What changes only by hand, by interface.
    fixed: HashMap<String, Fixed>,
    fixed_at: Option<Millis>,
}

struct Fixed {
    numbers: [Option<f64>; FIXED],
    address: String,
    broadcast: String,
    ifalias: String,
}

impl Netclass {
    /// Reads below sysfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            class: paths.sys("class/net"),
            reader: Reader::default(),
            fixed: HashMap::new(),
            fixed_at: None,
        }
    }

    fn read_fixed(&mut self, folder: &Path) -> Fixed {
        let mut number = |at: usize| {
            let word = self.reader.word(&folder.join(PROPERTIES[at].0));
            word.and_then(parse_number)
        };
        Fixed {
            numbers: std::array::from_fn(&mut number),
            address: self.text(folder, "address"),
            broadcast: self.text(folder, "broadcast"),
            ifalias: self.text(folder, "ifalias"),
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

    fn collect(&mut self, now: Millis) -> Readings {
        if self.fixed_at.is_none_or(|at| (now - at).abs() >= FIXED_FOR_MS) {
            self.fixed.clear();
            self.fixed_at = Some(now);
        }
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
        let mut seen = HashMap::new();
        for (device, folder) in entries(&self.class) {
            if !folder.is_dir() {
                // `bonding_masters` is a file among the interfaces.
                continue;
            }
            let labels = || vec![label("device", &device)];
            let fixed = match self.fixed.remove(&device) {
                Some(fixed) => fixed,
                None => self.read_fixed(&folder),
            };
            let operstate = self.text(&folder, "operstate");
            up.push(labels(), f64::from(u8::from(operstate == "up")));
            let flags = self.text(&folder, "flags");
            let flags = u64::from_str_radix(flags.trim_start_matches("0x"), 16).unwrap_or(0);
            let admin = if flags & FLAG_UP == 1 { "up" } else { "down" };
            info.push(
                vec![
                    ("address", fixed.address.clone()),
                    label("adminstate", admin),
                    ("broadcast", fixed.broadcast.clone()),
                    label("device", &device),
                    ("duplex", self.text(&folder, "duplex")),
                    ("ifalias", fixed.ifalias.clone()),
                    ("operstate", operstate),
                ],
                1.0,
            );
            for (at, (family, (file, ..))) in properties.iter_mut().zip(PROPERTIES).enumerate() {
                let number = match fixed.numbers.get(at) {
                    Some(number) => *number,
                    None => self.reader.word(&folder.join(file)).and_then(parse_number),
                };
                family.push_some(labels, number);
            }
            // -1 says that the link's speed is not known.
            let megabits = self.reader.number(&folder.join("speed")).filter(|s| *s >= 0.0);
            speed.push_some(labels, megabits.map(|s| s * BYTES_PER_MEGABIT));
            seen.insert(device, fixed);
        }
        self.fixed = seen;
        if up.metrics.is_empty() {
            return Readings::failed(Error::Nothing {
                what: "network interface",
            });
        }
        Readings::of([up, info, speed].into_iter().chain(properties).collect())
    }
}
