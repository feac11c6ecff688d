//! `/sys/devices/system/cpu/cpu*/cpufreq`: clocks of the processors.

use std::path::PathBuf;

use model::{Family, Kind, Millis};

use super::label;
use crate::source::{Reader, entries};
use crate::{Collector, Error, Paths, Readings};

/// Limits and governors change by hand only: they are read again after so long, in milliseconds.
const LIMITS_FOR_MS: Millis = 300_000;

/// sysfs tells kilohertz.
const HERTZ: f64 = 1000.0;

/// File, metric, help of what rarely changes.
const LIMITS: [(&str, &str, &str); 4] = [
    (
        "cpuinfo_min_freq",
        "node_cpu_frequency_min_hertz",
        "Minimum CPU thread frequency in hertz.",
    ),
    (
        "cpuinfo_max_freq",
        "node_cpu_frequency_max_hertz",
        "Maximum CPU thread frequency in hertz.",
    ),
    (
        "scaling_min_freq",
        "node_cpu_scaling_frequency_min_hertz",
        "Minimum scaled CPU thread frequency in hertz.",
    ),
    (
        "scaling_max_freq",
        "node_cpu_scaling_frequency_max_hertz",
        "Maximum scaled CPU thread frequency in hertz.",
    ),
];

/// Collects `node_cpu_scaling_*` and `node_cpu_frequency_*`.
pub struct Cpufreq {
    devices: PathBuf,
    reader: Reader,
    cpus: Vec<(String, PathBuf)>,
    limits: Vec<Family>,
    limits_at: Option<Millis>,
}

impl Cpufreq {
    /// Reads below sysfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            devices: paths.sys("devices/system/cpu"),
            reader: Reader::default(),
            cpus: Vec::new(),
            limits: Vec::new(),
            limits_at: None,
        }
    }

    fn learn(&mut self) {
        self.cpus = entries(&self.devices)
            .into_iter()
            .filter_map(|(name, folder)| {
                let number = name.strip_prefix("cpu")?.parse::<u32>().ok()?;
                let folder = folder.join("cpufreq");
                folder.is_dir().then(|| (number.to_string(), folder))
            })
            .collect();
        let mut limits: Vec<Family> = LIMITS
            .iter()
            .map(|(_, n, help)| Family::new(*n, Kind::Gauge, *help))
            .collect();
        let help = "Current enabled CPU frequency governor.";
        let mut governors = Family::new("node_cpu_scaling_governor", Kind::Gauge, help);
        for (cpu, folder) in &self.cpus {
            for (family, (file, ..)) in limits.iter_mut().zip(&LIMITS) {
                let kilohertz = self.reader.number(&folder.join(file));
                family.push_some(|| vec![label("cpu", cpu)], kilohertz.map(|k| k * HERTZ));
            }
            let mut word = |file: &str| self.reader.word(&folder.join(file)).unwrap_or("").to_owned();
            let (current, available) = (word("scaling_governor"), word("scaling_available_governors"));
            for governor in available.split_ascii_whitespace() {
                let is_current = f64::from(u8::from(governor == current));
                governors.push(vec![label("cpu", cpu), label("governor", governor)], is_current);
            }
        }
        limits.push(governors);
        self.limits = limits;
    }
}

impl Collector for Cpufreq {
    fn name(&self) -> &'static str {
        "cpufreq"
    }

    fn collect(&mut self, now: Millis) -> Readings {
        if self.limits_at.is_none_or(|at| (now - at).abs() >= LIMITS_FOR_MS) {
            self.learn();
            self.limits_at = Some(now);
        }
        if self.cpus.is_empty() {
            return Readings::failed(Error::Nothing {
                what: "processor with a clock that can be read",
            });
        }
        let help = "Current scaled CPU thread frequency in hertz.";
        let mut current = Family::new("node_cpu_scaling_frequency_hertz", Kind::Gauge, help);
        for (cpu, folder) in &self.cpus {
            let kilohertz = self.reader.number(&folder.join("scaling_cur_freq"));
            current.push_some(|| vec![label("cpu", cpu)], kilohertz.map(|k| k * HERTZ));
        }
        let mut families = self.limits.clone();
        families.push(current);
        Readings::of(families)
    }
}
