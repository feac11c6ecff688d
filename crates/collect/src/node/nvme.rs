//! `/sys/class/nvme`: controllers and their namespaces.

use std::path::PathBuf;

use model::{Family, Kind, Millis};

use super::label;
use crate::source::{Reader, entries};
use crate::{Collector, Error, Paths, Readings};

/// Collects `node_nvme_*`.
pub struct Nvme {
    class: PathBuf,
    reader: Reader,
}

impl Nvme {
    /// Reads below sysfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            class: paths.sys("class/nvme"),
            reader: Reader::default(),
        }
    }
}

impl Collector for Nvme {
    fn name(&self) -> &'static str {
        "nvme"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        let gauge = |name: &str, help: &str| Family::new(name, Kind::Gauge, help);
        let mut info = gauge(
            "node_nvme_info",
            "Non-numeric data from /sys/class/nvme/<device>, value is always 1.",
        );
        let mut ns_info = gauge(
            "node_nvme_namespace_info",
            "Information about NVMe namespaces. Value is always 1",
        );
        let mut capacity = gauge(
            "node_nvme_namespace_capacity_bytes",
            "Capacity of the NVMe namespace in bytes. Computed as namespace_size * namespace_logical_block_size",
        );
        let mut size = gauge(
            "node_nvme_namespace_size_bytes",
            "Size of the NVMe namespace in bytes. Available in /sys/class/nvme/<device>/<namespace>/size",
        );
        let mut used = gauge(
            "node_nvme_namespace_used_bytes",
            "Used space of the NVMe namespace in bytes. Available in /sys/class/nvme/<device>/<namespace>/nuse",
        );
        let mut block = gauge(
            "node_nvme_namespace_logical_block_size_bytes",
            "Logical block size of the NVMe namespace in bytes. Usually 4Kb. Available in \
             /sys/class/nvme/<device>/<namespace>/queue/logical_block_size",
        );
        for (device, folder) in entries(&self.class) {
            let mut word = |file: &str| self.reader.word(&folder.join(file)).unwrap_or("").to_owned();
            info.push(
                vec![
                    ("cntlid", word("cntlid")),
                    label("device", &device),
                    ("firmware_revision", word("firmware_rev")),
                    ("model", word("model")),
                    ("serial", word("serial")),
                    ("state", word("state")),
                ],
                1.0,
            );
            for (name, folder) in entries(&folder) {
                let Some(nsid) = namespace_id(&name, &device) else {
                    continue;
                };
                let labels = || vec![label("device", &device), label("nsid", nsid)];
                let mut number = |file: &str| self.reader.number(&folder.join(file));
                let bytes = number("queue/logical_block_size");
                // As node_exporter computes it: right for 512-byte sectors only, for the kernel counts in those.
                let total = number("size").zip(bytes).map(|(blocks, bytes)| blocks * bytes);
                let in_use = number("nuse").zip(bytes).map(|(blocks, bytes)| blocks * bytes);
                capacity.push_some(labels, total);
                size.push_some(labels, total);
                used.push_some(labels, in_use);
                block.push_some(labels, bytes);
                let ana = self.reader.word(&folder.join("ana_state")).unwrap_or("unknown");
                let mut labels = labels();
                labels.insert(0, label("ana_state", ana));
                ns_info.push(labels, 1.0);
            }
        }
        if info.metrics.is_empty() {
            return Readings::failed(Error::Nothing {
                what: "NVMe controller",
            });
        }
        Readings::of(vec![info, ns_info, capacity, size, used, block])
    }
}

/// `nvme0n1` and `nvme0c0n1` as `1`.
fn namespace_id<'a>(name: &'a str, device: &str) -> Option<&'a str> {
    let (path, id) = name.strip_prefix(device)?.rsplit_once('n')?;
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let is_path = path.is_empty() || path.strip_prefix('c').is_some_and(digits);
    (is_path && !id.is_empty() && digits(id)).then_some(id)
}
