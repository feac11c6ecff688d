//! `/sys/class/dmi/id`: board, chassis and firmware.

use std::path::PathBuf;

use model::{Family, Kind, Millis};

use crate::source::Reader;
use crate::{Collector, Error, Paths, Readings};

/// File and label.
const FACTS: [(&str, &str); 20] = [
    ("bios_date", "bios_date"),
    ("bios_release", "bios_release"),
    ("bios_vendor", "bios_vendor"),
    ("bios_version", "bios_version"),
    ("board_asset_tag", "board_asset_tag"),
    ("board_name", "board_name"),
    ("board_serial", "board_serial"),
    ("board_vendor", "board_vendor"),
    ("board_version", "board_version"),
    ("chassis_asset_tag", "chassis_asset_tag"),
    ("chassis_serial", "chassis_serial"),
    ("chassis_vendor", "chassis_vendor"),
    ("chassis_version", "chassis_version"),
    ("product_family", "product_family"),
    ("product_name", "product_name"),
    ("product_serial", "product_serial"),
    ("product_sku", "product_sku"),
    ("product_uuid", "product_uuid"),
    ("product_version", "product_version"),
    ("sys_vendor", "system_vendor"),
];

/// Collects `node_dmi_info`.
pub struct Dmi {
    folder: PathBuf,
    /// Firmware tells this once a boot, and so do we ask.
    family: Option<Family>,
}

impl Dmi {
    /// Reads below sysfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            folder: paths.sys("class/dmi/id"),
            family: None,
        }
    }

    fn read(&self) -> Option<Family> {
        let mut reader = Reader::default();
        // A file that only root may read leaves its label out.
        let mut fact = |file: &str| Some(reader.text(&self.folder.join(file)).ok()?.trim().to_owned());
        let labels: Vec<_> = FACTS
            .iter()
            .filter_map(|(file, label)| Some((*label, fact(file)?)))
            .collect();
        let mut family = Family::new(
            "node_dmi_info",
            Kind::Gauge,
            "A metric with a constant '1' value labeled by bios_date, bios_release, bios_vendor, bios_version, \
             board_asset_tag, board_name, board_serial, board_vendor, board_version, chassis_asset_tag, \
             chassis_serial, chassis_vendor, chassis_version, product_family, product_name, product_serial, \
             product_sku, product_uuid, product_version, system_vendor if provided by DMI.",
        );
        if labels.is_empty() {
            return None;
        }
        family.push(labels, 1.0);
        Some(family)
    }
}

impl Collector for Dmi {
    fn name(&self) -> &'static str {
        "dmi"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        if self.family.is_none() {
            self.family = self.read();
        }
        match &self.family {
            Some(family) => Readings::of(vec![family.clone()]),
            None => Readings::failed(Error::Nothing { what: "DMI table" }),
        }
    }
}
