//! `/proc/diskstats`, and what udev knows of each disk.

use std::collections::HashMap;
use std::path::PathBuf;

use model::{Family, Kind, Millis};

use super::label;
use crate::source::{Reader, parse_number};
use crate::{Collector, Error, Paths, Readings};

/// `/proc/diskstats` counts sectors of this size, whatever the disk's own.
const SECTOR_BYTES: f64 = 512.0;

/// Columns after the device's name, in order: metric, type, help, factor.
const COLUMNS: [(&str, Kind, &str, f64); 17] = [
    (
        "node_disk_reads_completed_total",
        Kind::Counter,
        "The total number of reads completed successfully.",
        1.0,
    ),
    (
        "node_disk_reads_merged_total",
        Kind::Counter,
        "The total number of reads merged.",
        1.0,
    ),
    (
        "node_disk_read_bytes_total",
        Kind::Counter,
        "The total number of bytes read successfully.",
        SECTOR_BYTES,
    ),
    (
        "node_disk_read_time_seconds_total",
        Kind::Counter,
        "The total number of seconds spent by all reads.",
        1e-3,
    ),
    (
        "node_disk_writes_completed_total",
        Kind::Counter,
        "The total number of writes completed successfully.",
        1.0,
    ),
    (
        "node_disk_writes_merged_total",
        Kind::Counter,
        "The number of writes merged.",
        1.0,
    ),
    (
        "node_disk_written_bytes_total",
        Kind::Counter,
        "The total number of bytes written successfully.",
        SECTOR_BYTES,
    ),
    (
        "node_disk_write_time_seconds_total",
        Kind::Counter,
        "This is the total number of seconds spent by all writes.",
        1e-3,
    ),
    (
        "node_disk_io_now",
        Kind::Gauge,
        "The number of I/Os currently in progress.",
        1.0,
    ),
    (
        "node_disk_io_time_seconds_total",
        Kind::Counter,
        "Total seconds spent doing I/Os.",
        1e-3,
    ),
    (
        "node_disk_io_time_weighted_seconds_total",
        Kind::Counter,
        "The weighted # of seconds spent doing I/Os.",
        1e-3,
    ),
    (
        "node_disk_discards_completed_total",
        Kind::Counter,
        "The total number of discards completed successfully.",
        1.0,
    ),
    (
        "node_disk_discards_merged_total",
        Kind::Counter,
        "The total number of discards merged.",
        1.0,
    ),
    (
        "node_disk_discarded_sectors_total",
        Kind::Counter,
        "The total number of sectors discarded successfully.",
        1.0,
    ),
    (
        "node_disk_discard_time_seconds_total",
        Kind::Counter,
        "This is the total number of seconds spent by all discards.",
        1e-3,
    ),
    (
        "node_disk_flush_requests_total",
        Kind::Counter,
        "The total number of flush requests completed successfully",
        1.0,
    ),
    (
        "node_disk_flush_requests_time_seconds_total",
        Kind::Counter,
        "This is the total number of seconds spent by all flush requests.",
        1e-3,
    ),
];

/// Collects `node_disk_*`.
pub struct Diskstats {
    paths: Paths,
    path: PathBuf,
    reader: Reader,
}

/// A device that `/proc/diskstats` lists.
struct Device {
    name: String,
    major: String,
    minor: String,
}

impl Diskstats {
    /// Reads below procfs, sysfs and udev's folder.
    pub fn new(paths: &Paths) -> Self {
        Self {
            path: paths.proc("diskstats"),
            paths: paths.clone(),
            reader: Reader::default(),
        }
    }

    fn read(&mut self) -> Result<Vec<Family>, Error> {
        let mut families: Vec<Family> = COLUMNS
            .iter()
            .map(|(n, kind, help, _)| Family::new(*n, *kind, *help))
            .collect();
        let mut devices = Vec::new();
        let text = self.reader.text(&self.path)?;
        for (i, line) in text.lines().enumerate() {
            let mut fields = line.split_ascii_whitespace();
            let (Some(major), Some(minor), Some(name)) = (fields.next(), fields.next(), fields.next()) else {
                continue;
            };
            if is_ignored(name) {
                continue;
            }
            for ((family, column), field) in families.iter_mut().zip(&COLUMNS).zip(fields) {
                let count: f64 = field
                    .parse()
                    .map_err(|_| Error::form(&self.path, i + 1, "counts", line))?;
                // A division by a thousand is exact where a product with 0.001 is not.
                let value = if column.3 < 1.0 {
                    count / 1000.0
                } else {
                    count * column.3
                };
                family.push(vec![label("device", name)], value);
            }
            let (name, major, minor) = (name.to_owned(), major.to_owned(), minor.to_owned());
            devices.push(Device { name, major, minor });
        }
        families.extend(self.infos(&devices));
        Ok(families)
    }

    fn infos(&mut self, devices: &[Device]) -> Vec<Family> {
        let gauge = |name: &str, help: &str| Family::new(name, Kind::Gauge, help);
        let mut info = gauge("node_disk_info", "Info of /sys/block/<block_device>.");
        let mut filesystem = gauge("node_disk_filesystem_info", "Info about disk filesystem.");
        let mut mapper = gauge("node_disk_device_mapper_info", "Info about disk device mapper.");
        let mut ata = [
            (
                "ID_ATA_WRITE_CACHE",
                "node_disk_ata_write_cache",
                "ATA disk has a write cache.",
            ),
            (
                "ID_ATA_WRITE_CACHE_ENABLED",
                "node_disk_ata_write_cache_enabled",
                "ATA disk has its write cache enabled.",
            ),
            (
                "ID_ATA_ROTATION_RATE_RPM",
                "node_disk_ata_rotation_rate_rpm",
                "ATA disk rotation rate in RPMs (0 for SSDs).",
            ),
        ]
        .map(|(property, name, help)| (property, gauge(name, help)));
        for device in devices {
            let udev = self.udev(device);
            let of = |property: &str| udev.get(property).cloned().unwrap_or_default();
            let name = || label("device", &device.name);
            let rotational = self.paths.sys("block").join(&device.name).join("queue/rotational");
            let rotational = self.reader.word(&rotational).unwrap_or("0");
            let serial = ["SCSI_IDENT_SERIAL", "ID_SERIAL_SHORT", "ID_SERIAL"].map(of);
            let serial = serial.into_iter().find(|s| !s.is_empty());
            info.push(
                vec![
                    name(),
                    ("major", device.major.clone()),
                    ("minor", device.minor.clone()),
                    ("model", of("ID_MODEL")),
                    ("path", of("ID_PATH")),
                    ("revision", of("ID_REVISION")),
                    label("rotational", rotational),
                    ("serial", serial.unwrap_or_default()),
                    ("wwn", of("ID_WWN")),
                ],
                1.0,
            );
            if !of("ID_FS_TYPE").is_empty() {
                let labels = vec![
                    name(),
                    ("type", of("ID_FS_TYPE")),
                    ("usage", of("ID_FS_USAGE")),
                    ("uuid", of("ID_FS_UUID")),
                    ("version", of("ID_FS_VERSION")),
                ];
                filesystem.push(labels, 1.0);
            }
            if !of("DM_NAME").is_empty() {
                let labels = vec![
                    name(),
                    ("lv_layer", of("DM_LV_LAYER")),
                    ("lv_name", of("DM_LV_NAME")),
                    ("name", of("DM_NAME")),
                    ("uuid", of("DM_UUID")),
                    ("vg_name", of("DM_VG_NAME")),
                ];
                mapper.push(labels, 1.0);
            }
            for (property, family) in &mut ata {
                family.push_some(|| vec![name()], udev.get(*property).and_then(|v| parse_number(v)));
            }
        }
        let ata = ata.into_iter().map(|(_, family)| family);
        [info, filesystem, mapper].into_iter().chain(ata).collect()
    }

    /// What udev wrote down of a device; empty without udev.
    fn udev(&mut self, device: &Device) -> HashMap<String, String> {
        let path = self.paths.udev.join(format!("b{}:{}", device.major, device.minor));
        let text = self.reader.text(&path).unwrap_or("");
        text.lines()
            .filter_map(|line| line.strip_prefix("E:")?.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }
}

impl Collector for Diskstats {
    fn name(&self) -> &'static str {
        "diskstats"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        self.read().into()
    }
}

/// node_exporter's default filter: `^(z?ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\d+n\d+p)\d+$`, that is memory, floppies
/// and partitions.
fn is_ignored(name: &str) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.len() == name.len() {
        return false;
    }
    let lettered = |prefix: &str| {
        let letter = stem.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('d'));
        letter.is_some_and(|l| l.len() == 1 && l.bytes().all(|b| b.is_ascii_lowercase()))
    };
    let is_nvme_partition = || {
        let rest = stem.strip_prefix("nvme").and_then(|rest| rest.strip_suffix('p'));
        let parts = rest.and_then(|rest| rest.split_once('n'));
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        parts.is_some_and(|(controller, namespace)| number(controller) && number(namespace))
    };
    matches!(stem, "ram" | "zram" | "loop" | "fd")
        || ["h", "s", "v", "xv"].into_iter().any(lettered)
        || is_nvme_partition()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_floppies_and_partitions_are_left_out() {
        for name in [
            "ram0",
            "zram1",
            "loop7",
            "fd0",
            "sda1",
            "hdb2",
            "vdc3",
            "xvda1",
            "nvme0n1p1",
        ] {
            assert!(is_ignored(name), "{name}");
        }
        for name in [
            "sda",
            "sdaa1",
            "nvme0n1",
            "nvme0n1p",
            "dm-0",
            "md0",
            "sr0",
            "mmcblk0p1",
            "vda",
        ] {
            assert!(!is_ignored(name), "{name}");
        }
    }
}
