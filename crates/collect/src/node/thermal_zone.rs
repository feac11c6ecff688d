//! `/sys/class/thermal`: zones and cooling devices.

use std::path::PathBuf;

use model::{Family, Kind, Millis};

use super::label;
use crate::source::{Reader, entries};
use crate::{Collector, Error, Paths, Readings};

/// sysfs tells thousandths of a degree.
const MILLI: f64 = 1000.0;

/// Collects `node_thermal_zone_*` and `node_cooling_device_*`.
pub struct ThermalZone {
    class: PathBuf,
    reader: Reader,
}

impl ThermalZone {
    /// Reads below sysfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            class: paths.sys("class/thermal"),
            reader: Reader::default(),
        }
    }
}

impl Collector for ThermalZone {
    fn name(&self) -> &'static str {
        "thermal_zone"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        let gauge = |name: &str, help: &str| Family::new(name, Kind::Gauge, help);
        let mut zones = gauge("node_thermal_zone_temp", "Zone temperature in Celsius");
        let mut current = gauge(
            "node_cooling_device_cur_state",
            "Current throttle state of the cooling device",
        );
        let mut highest = gauge(
            "node_cooling_device_max_state",
            "Maximum throttle state of the cooling device",
        );
        for (name, folder) in entries(&self.class) {
            let kind = self.reader.word(&folder.join("type")).unwrap_or("").to_owned();
            let mut number = |file: &str| self.reader.number(&folder.join(file));
            if let Some(zone) = name.strip_prefix("thermal_zone") {
                let labels = || vec![label("type", &kind), label("zone", zone)];
                zones.push_some(labels, number("temp").map(|t| t / MILLI));
            } else if let Some(device) = name.strip_prefix("cooling_device") {
                let labels = || vec![label("name", device), label("type", &kind)];
                current.push_some(labels, number("cur_state"));
                highest.push_some(labels, number("max_state"));
            }
        }
        if zones.metrics.is_empty() && current.metrics.is_empty() {
            return Readings::failed(Error::Nothing { what: "thermal zone" });
        }
        Readings::of(vec![zones, current, highest])
    }
}
