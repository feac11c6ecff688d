//! Versions of the driver, why a GPU does not answer, and what was seen between two pages.

use model::{Family, Kind};

use super::driver::Round;
use super::reading::{GpuState, Reading};
use super::ring::{Spread, Spreads};
use crate::Paths;
use crate::source::Reader;

/// Longer reasons are cut: they are labels.
const REASON_CHARS_MAX: usize = 160;

/// What is told of the driver and its helpers besides the GPUs' own readings.
pub struct Standing {
    /// Where the kernel module tells its version.
    module: std::path::PathBuf,
}

impl Standing {
    pub fn new(paths: &Paths) -> Self {
        Self {
            module: paths.proc("driver/nvidia/version"),
        }
    }

    /// Families of a driver that answers.
    pub fn families(&self, round: &Round) -> Vec<Family> {
        let facts = &round.facts;
        let mut info = Family::new(
            "watchfire_gpu_driver_info",
            Kind::Gauge,
            "Versions of the driver's library and of what it speaks to; the value is always 1.",
        );
        info.push(
            vec![
                ("driver_version", facts.driver_version.clone()),
                ("module_version", self.module_version()),
                ("nvml_version", facts.nvml_version.clone()),
                ("cuda_version", facts.cuda_version.clone()),
            ],
            1.0,
        );
        let mut families = vec![info];
        families.extend(between(&round.readings, &round.spreads));
        if let Some(helpers) = round.helpers {
            families.push(single(
                "watchfire_gpu_helper_processes",
                Kind::Gauge,
                "Processes that speak to the driver, those included that are about to leave.",
                helpers.processes.into(),
            ));
            families.push(single(
                "watchfire_gpu_helper_starts_total",
                Kind::Counter,
                "Processes that were started to speak to the driver.",
                helpers.started.into(),
            ));
        }
        families
    }

    /// The version of the kernel module that is loaded; empty where none tells.
    fn module_version(&self) -> String {
        let mut reader = Reader::default();
        let text = reader.text(&self.module).unwrap_or_default();
        version_in(text).to_owned()
    }
}

fn single(name: &str, kind: Kind, help: &str, value: f64) -> Family {
    let mut family = Family::new(name, kind, help);
    family.push(Vec::new(), value);
    family
}

/// `570.133.20` of `NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.133.20  Release Build …`.
fn version_in(text: &str) -> &str {
    let line = text
        .lines()
        .find(|line| line.starts_with("NVRM version:"))
        .unwrap_or("");
    let is_version = |word: &&str| word.contains('.') && word.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    line.split_ascii_whitespace().find(is_version).unwrap_or("")
}

/// Why each GPU that does not answer does not.
pub fn reasons(readings: &[Reading]) -> Family {
    let mut family = Family::new(
        "watchfire_gpu_trouble",
        Kind::Gauge,
        "GPUs that do not answer, with the state and the reason; the value is always 1.",
    );
    for reading in readings.iter().filter(|reading| reading.state != GpuState::Ok) {
        let mut labels = reading.identity.labels();
        labels.push(("state", reading.state.as_str().to_owned()));
        labels.push(("reason", reason(reading)));
        family.push(labels, 1.0);
    }
    family
}

fn reason(reading: &Reading) -> String {
    let Some(error) = reading.errors.first() else {
        return match reading.state {
            GpuState::Missing => "the driver does not count it any more".to_owned(),
            _ => String::new(),
        };
    };
    // Who it is stands in the other labels.
    let text = error.chain();
    let who = format!("GPU {} ({})", reading.identity.index, reading.identity.uuid);
    let rest = text.strip_prefix(&who).unwrap_or(&text);
    cut(rest.trim_start_matches([',', ':', ' ']))
}

fn cut(text: &str) -> String {
    text.chars().take(REASON_CHARS_MAX).collect()
}

/// Least, mean and most between two pages.
fn between(readings: &[Reading], spreads: &[Spreads]) -> Vec<Family> {
    type Of = fn(&Spreads) -> Option<Spread>;
    type Way = fn(Spread) -> f64;
    let figures: [(&str, &str, Of); 2] = [
        ("watchfire_gpu_power_watts", "power, in watts,", |s| s.power),
        (
            "watchfire_gpu_utilization_ratio",
            "share of time with work, of 1,",
            |s| s.utilization,
        ),
    ];
    let ways: [(&str, &str, Way); 3] = [
        ("min", "least", |s| s.min),
        ("mean", "mean", |s| s.mean),
        ("max", "most", |s| s.max),
    ];
    let mut families = Vec::new();
    for (name, what, of) in figures {
        for (ending, word, way) in ways {
            let mut family = Family::new(
                format!("{name}_{ending}"),
                Kind::Gauge,
                format!("The GPU's {word} {what} of the samples since the page before, ten seconds at least."),
            );
            for (reading, spread) in readings.iter().zip(spreads) {
                family.push_some(|| reading.identity.labels(), of(spread).map(way));
            }
            families.push(family);
        }
    }
    families
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_tells_its_version_in_every_generation() {
        for (text, want) in [
            (
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023\nGCC version:  gcc 12.2.0",
                "535.54.03",
            ),
            (
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.133.20  Release Build  (builder@host)",
                "570.133.20",
            ),
            ("", ""),
        ] {
            assert_eq!(version_in(text), want);
        }
    }
}
