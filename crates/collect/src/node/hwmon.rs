//! `/sys/class/hwmon`: temperatures, fans, voltages and power of boards and chips.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use model::{Family, Kind, Millis};

use super::label;
use crate::source::{Reader, entries};
use crate::{Collector, Error, Paths, Readings};

/// Sensor types of the kernel's interface (Documentation/hwmon/sysfs-interface).
const TYPES: [&str; 14] = [
    "vrm",
    "beep_enable",
    "update_interval",
    "in",
    "cpu",
    "fan",
    "pwm",
    "temp",
    "curr",
    "power",
    "energy",
    "humidity",
    "intrusion",
    "freq",
];

/// Collects `node_hwmon_*`.
pub struct Hwmon {
    class: PathBuf,
    reader: Reader,
}

/// Properties by sensor: `temp1` has `input`, `max`, `label` and so on.
type Sensors = BTreeMap<String, BTreeMap<String, String>>;

impl Hwmon {
    /// Reads below sysfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            class: paths.sys("class/hwmon"),
            reader: Reader::default(),
        }
    }

    /// Each chip's folder with its name for people and the one in labels.
    fn chips(&mut self) -> Vec<(PathBuf, Option<String>, String)> {
        let mut chips = Vec::new();
        let mut uses: HashMap<String, usize> = HashMap::new();
        for (entry, folder) in entries(&self.class) {
            let name = self.reader.word(&folder.join("name")).map(clean);
            let chip = device_name(&folder).or_else(|| name.clone()).unwrap_or(entry);
            *uses.entry(chip.clone()).or_default() += 1;
            chips.push((folder, name, chip));
        }
        // Several chips of one device need their own names besides.
        for (_, name, chip) in &mut chips {
            if let (Some(name), Some(2..)) = (name.as_ref(), uses.get(chip.as_str())) {
                *chip = format!("{chip}_{name}");
            }
        }
        chips
    }

    /// The sensors of a folder, and of the device folder where older drivers keep them.
    fn sensors(&mut self, folder: &Path) -> Sensors {
        let mut sensors = Sensors::new();
        for folder in [folder.to_owned(), folder.join("device")] {
            for (file, path) in entries(&folder) {
                let Some((sensor, property)) = explode(&file) else {
                    continue;
                };
                if let Some(word) = self.reader.word(&path) {
                    let properties = sensors.entry(sensor.to_owned()).or_default();
                    properties.insert(property.to_owned(), word.to_owned());
                }
            }
        }
        sensors
    }
}

impl Collector for Hwmon {
    fn name(&self) -> &'static str {
        "hwmon"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        let mut page = Page::default();
        let chips = self.chips();
        if chips.is_empty() {
            return Readings::failed(Error::Nothing {
                what: "hardware sensor",
            });
        }
        for (folder, name, chip) in chips {
            if let Some(name) = name {
                let help = "Annotation metric for human-readable chip names";
                let labels = vec![label("chip", &chip), ("chip_name", name)];
                page.push("node_hwmon_chip_names", Kind::Gauge, help, labels, 1.0);
            }
            for (sensor, properties) in self.sensors(&folder) {
                page.sensor(&chip, &sensor, &properties);
            }
        }
        Readings::of(page.families.into_values().collect())
    }
}

/// Families by name: sensors of many chips share them.
#[derive(Default)]
struct Page {
    families: BTreeMap<String, Family>,
}

impl Page {
    fn push(&mut self, name: &str, kind: Kind, help: &str, labels: Vec<(&'static str, String)>, value: f64) {
        let family = self.families.entry(name.to_owned());
        family
            .or_insert_with(|| Family::new(name, kind, help))
            .push(labels, value);
    }

    fn sensor(&mut self, chip: &str, sensor: &str, properties: &BTreeMap<String, String>) {
        let kind = sensor.trim_end_matches(|c: char| c.is_ascii_digit());
        let labels = || vec![label("chip", chip), label("sensor", sensor)];
        if let Some(text) = properties.get("label") {
            let labels = vec![label("chip", chip), label("label", text), label("sensor", sensor)];
            self.push(
                "node_hwmon_sensor_label",
                Kind::Gauge,
                "Label for given chip and sensor",
                labels,
                1.0,
            );
        }
        for (property, text) in properties {
            let Ok(value) = text.parse::<f64>() else { continue };
            let mut labels = labels();
            if kind == "freq" {
                // A frequency goes by its label; one without is not shown.
                let Some(name) = properties.get("label").filter(|_| property == "input") else {
                    continue;
                };
                labels[1].1 = clean(name);
            }
            let has_plain = properties.contains_key("");
            if let Some(reading) = Reading::of(kind, property, has_plain) {
                let kind = if reading.is_counter { Kind::Counter } else { Kind::Gauge };
                self.push(&reading.name, kind, &reading.help, labels, value * reading.factor);
            }
        }
    }
}

/// How a property is shown.
struct Reading {
    name: String,
    help: String,
    factor: f64,
    is_counter: bool,
}

impl Reading {
    fn of(kind: &str, property: &str, has_plain: bool) -> Option<Self> {
        if property == "label" {
            return None;
        }
        let base = match property {
            "input" if has_plain => format!("node_hwmon_{kind}_input"),
            "input" | "" => format!("node_hwmon_{kind}"),
            _ => format!("node_hwmon_{kind}_{}", clean(property)),
        };
        let shown = |suffix: &str, help: String, factor: f64| Self {
            name: format!("{base}{suffix}"),
            help,
            factor,
            is_counter: kind == "energy",
        };
        let p = property;
        Some(match (kind, property) {
            ("beep_enable", _) => named("node_hwmon_beep_enabled", "Hardware beep enabled", 1.0),
            ("vrm", _) => named(
                "node_hwmon_voltage_regulator_version",
                "Hardware voltage regulator",
                1.0,
            ),
            ("update_interval", _) => named(
                "node_hwmon_update_interval_seconds",
                "Hardware monitor update interval",
                0.001,
            ),
            (_, "fault" | "alarm") => Self {
                is_counter: false,
                ..shown("", format!("Hardware sensor {p} status ({kind})"), 1.0)
            },
            (_, "beep") => Self {
                is_counter: false,
                ..shown("_enabled", "Hardware monitor sensor has beeping enabled".into(), 1.0)
            },
            ("in" | "cpu", _) => shown("_volts", format!("Hardware monitor for voltage ({p})"), 0.001),
            ("temp", "type") => shown("", "Hardware monitor temp element type".into(), 1.0),
            ("temp", _) => {
                let element = if p.is_empty() { "input" } else { p };
                shown(
                    "_celsius",
                    format!("Hardware monitor for temperature ({element})"),
                    0.001,
                )
            }
            ("curr", _) => shown("_amps", format!("Hardware monitor for current ({p})"), 0.001),
            ("energy", _) => shown(
                "_joule_total",
                format!("Hardware monitor for joules used so far ({p})"),
                1e-6,
            ),
            ("power", "accuracy") => shown("", "Hardware monitor power meter accuracy, as a ratio".into(), 1e-6),
            ("power", "average_interval" | "average_interval_min" | "average_interval_max") => shown(
                "_seconds",
                format!("Hardware monitor power usage update interval ({p})"),
                0.001,
            ),
            ("power", _) => shown(
                "_watt",
                format!("Hardware monitor for power usage in watts ({p})"),
                1e-6,
            ),
            ("humidity", _) => shown(
                "",
                format!(
                    "Hardware monitor for humidity, as a ratio (multiply with 100.0 to get the humidity as a \
                     percentage) ({p})"
                ),
                1e-6,
            ),
            ("fan", "input" | "min" | "max" | "target") => shown(
                "_rpm",
                format!("Hardware monitor for fan revolutions per minute ({p})"),
                1.0,
            ),
            ("freq", _) => shown("_freq_mhz", "Hardware monitor for GPU frequency in MHz".into(), 1e-6),
            _ => shown("", format!("Hardware monitor {kind} element {p}"), 1.0),
        })
    }
}

fn named(name: &str, help: &str, factor: f64) -> Reading {
    Reading {
        name: name.to_owned(),
        help: help.to_owned(),
        factor,
        is_counter: false,
    }
}

/// `temp1_crit_alarm` as `temp1` and `crit_alarm`; `None` for a file that is no sensor's.
fn explode(file: &str) -> Option<(&str, &str)> {
    let digits_at = file.find(|c: char| c.is_ascii_digit());
    let (kind, after) = match digits_at {
        Some(at) => {
            let digits = file[at..].bytes().take_while(u8::is_ascii_digit).count();
            (&file[..at], at + digits)
        }
        None => {
            let kind = TYPES.into_iter().find(|kind| *kind == file)?;
            (kind, kind.len())
        }
    };
    if !TYPES.contains(&kind) {
        return None;
    }
    let rest = &file[after..];
    match rest.strip_prefix('_') {
        Some(property) if !property.is_empty() => Some((&file[..after], property)),
        None if rest.is_empty() => Some((&file[..after], "")),
        _ => None,
    }
}

/// `platform_coretemp_0`: the kind of bus and the device behind the chip, where there is one.
fn device_name(folder: &Path) -> Option<String> {
    let device = fs::canonicalize(folder.join("device")).ok()?;
    let name = clean(device.file_name()?.to_str()?);
    let bus = clean(device.parent()?.file_name()?.to_str()?);
    (!name.is_empty() && !bus.is_empty()).then(|| format!("{bus}_{name}"))
}

/// A text as a part of a metric's name.
fn clean(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == ':' || c == '_';
    let out: String = text
        .chars()
        .map(|c| c.to_ascii_lowercase())
        .map(|c| if allowed(c) { c } else { '_' })
        .collect();
    out.trim_matches('_').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_fall_into_sensor_and_property() {
        assert_eq!(explode("temp1_crit_alarm"), Some(("temp1", "crit_alarm")));
        assert_eq!(explode("pwm1"), Some(("pwm1", "")));
        assert_eq!(explode("beep_enable"), Some(("beep_enable", "")));
        for file in ["name", "uevent", "temp", "bogus1_input", "temp1x", "device", "1_input"] {
            assert!(
                explode(file).is_none_or(|(_, p)| p.is_empty() && file == "temp"),
                "{file}"
            );
        }
    }

    #[test]
    fn names_become_parts_of_metric_names() {
        assert_eq!(clean("asus-nb-wmi"), "asus_nb_wmi");
        assert_eq!(clean("_Phy0.1_"), "phy0_1");
    }
}
