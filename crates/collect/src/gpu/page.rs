//! Readings as metric families: dcgm-exporter's, in its order and with its labels, then our own.

use std::collections::HashMap;

use model::{Family, Kind, Millis};

use super::boards::Boards;
use super::health::{Health, Versions};
use super::identity::Identity;
use super::names::HostLabel;
use super::process::{self, Tenants};
use super::question::{CUDA_VERSION, GPU_COUNT, INDEX, MEMORY_USED_RATIO, VGPU_LICENSE, XID_LAST};
use super::reading::{GpuState, Instance, Reading};
use super::selection::{Column, Selection};
use crate::kernel::{GpuIdentity, XidCatalog, XidCounts};
use crate::runner::seconds;
use crate::source::to_f64;
use crate::{Error, State};

/// Counters whose rate is remembered; far more than GPUs have links.
const RATES_MAX: usize = 65_536;

/// Letters of a reason on the page.
const REASON_LETTERS: usize = 200;

/// Numbers that an instance has of its own.
const OF_INSTANCE: [&str; 4] = ["memory_total", "memory_free", "memory_used", "memory_reserved"];

/// What the driver tells of itself; empty where it does not.
#[derive(Debug, Clone, Default)]
pub struct Software {
    pub driver_version: String,
    pub cuda_version: String,
    pub nvml_version: String,
}

/// XIDs, where the page is that of a live machine.
pub struct Xids {
    pub counts: XidCounts,
    pub catalog: XidCatalog,
}

/// Makes pages of readings.
pub struct PageMaker {
    pub selection: Selection,
    pub host_label: HostLabel,
    pub hostname: String,
    /// `None` for a capture: nobody counted.
    pub xids: Option<Xids>,
    pub boards: Boards,
    /// `None` for a capture: its processes are not here.
    pub tenants: Option<Tenants>,
    health: Health,
    rates: Rates,
}

impl PageMaker {
    pub fn new(
        selection: Selection,
        host_label: HostLabel,
        hostname: String,
        xids: Option<Xids>,
        tenants: Option<Tenants>,
    ) -> Result<Self, Error> {
        Ok(Self {
            selection,
            host_label,
            hostname,
            xids,
            boards: Boards::embedded()?,
            tenants,
            health: Health::default(),
            rates: Rates::default(),
        })
    }

    /// All families of the readings; `slots` are the addresses of GPUs on the bus.
    pub fn families(
        &mut self,
        now: Millis,
        software: &Software,
        mut readings: Vec<Reading>,
        slots: &[String],
    ) -> (Vec<Family>, Vec<Reading>) {
        for reading in &mut readings {
            name_instances(&self.boards, reading);
        }
        let rates = self.rates.see(now, &self.selection, &readings);
        let mut families = self.dcgm(software, &readings, &rates);
        let versions = Versions {
            driver: &software.driver_version,
            cuda: &software.cuda_version,
        };
        families.extend(
            self.health
                .families(&versions, &self.boards, &self.selection, &readings, slots),
        );
        families.extend(match &mut self.tenants {
            Some(tenants) => tenants.families(now, &self.boards, &readings),
            None => process::told(&readings),
        });
        (families, readings)
    }

    fn dcgm(&self, software: &Software, readings: &[Reading], rates: &RatesNow) -> Vec<Family> {
        let mut families = Vec::with_capacity(self.selection.columns.len());
        for column in &self.selection.columns {
            let mut family = Family::new(column.name.clone(), column.kind, column.help.clone());
            let word = column.field.source.as_str();
            for reading in readings.iter().filter(|r| r.state == GpuState::Ok) {
                let number = if column.field.is_rate {
                    rates
                        .get(&(reading.identity.index, column.field.source.clone()))
                        .copied()
                } else {
                    self.number(software, readings, reading, word)
                };
                let value = |number: f64| column.field.value(number, column.generation);
                family.push_some(|| self.labels(software, column, reading, None), number.map(value));
                if OF_INSTANCE.contains(&word) {
                    for instance in first_of_each(&reading.instances) {
                        let number = of_instance(instance, word).map(to_f64);
                        let labels = || self.labels(software, column, reading, Some(instance));
                        family.push_some(labels, number.map(value));
                    }
                }
            }
            families.push(family);
        }
        families
    }

    fn number(&self, software: &Software, readings: &[Reading], reading: &Reading, word: &str) -> Option<f64> {
        match word {
            XID_LAST => self.xid(&reading.identity).map(f64::from),
            // A whole GPU needs no license, and says so as the exporter does.
            VGPU_LICENSE => {
                let known = !reading.identity.model.is_empty();
                (known && !reading.identity.is_vgpu()).then_some(0.0)
            }
            GPU_COUNT => u32::try_from(readings.len()).ok().map(f64::from),
            INDEX => Some(reading.identity.index.into()),
            CUDA_VERSION => {
                let (major, minor) = software.cuda_version.split_once('.')?;
                Some(major.parse::<f64>().ok()? * 1000.0 + minor.parse::<f64>().ok()? * 10.0)
            }
            MEMORY_USED_RATIO => {
                let of = |word: &str| reading.number(word);
                let usable = of("memory_total")? - of("memory_reserved").unwrap_or(0.0);
                (usable > 0.0).then_some(of("memory_used")? / usable)
            }
            word => reading.number(word),
        }
    }

    fn xid(&self, gpu: &Identity) -> Option<u32> {
        self.xids.as_ref().map(|xids| xids.counts.last(&gpu.pci_bus_id))
    }

    /// The exporter's labels in the exporter's order: the GPU, the instance, the host, then the fields that are labels.
    fn labels(
        &self,
        software: &Software,
        column: &Column,
        reading: &Reading,
        instance: Option<&Instance>,
    ) -> Vec<(&'static str, String)> {
        let gpu = &reading.identity;
        let mut labels = vec![
            ("gpu", gpu.index.to_string()),
            ("UUID", gpu.uuid.clone()),
            ("pci_bus_id", gpu.pci_bus_id.clone()),
            ("device", format!("nvidia{}", gpu.index)),
            ("modelName", gpu.model.clone()),
        ];
        if let Some(instance) = instance {
            labels.push(("GPU_I_PROFILE", instance.profile.clone()));
            labels.push(("GPU_I_ID", instance.gpu_instance.to_string()));
        }
        labels.push((self.host_label.name(column.generation), self.hostname.clone()));
        let mut fields: Vec<(&'static str, String)> = Vec::new();
        if self.selection.has_driver_label {
            fields.push((column.generation.driver_label(), software.driver_version.clone()));
        }
        let asked = self.selection.labels.iter();
        fields.extend(asked.filter_map(|(name, word)| Some((*name, text_of(software, reading, word)?))));
        if column.field.source == XID_LAST
            && let Some(code) = self.xid(gpu)
        {
            fields.push(("err_code", code.to_string()));
            fields.push(("err_msg", self.xid_message(code)));
        }
        fields.sort_by_key(|(name, _)| *name);
        labels.extend(fields);
        labels
    }

    fn xid_message(&self, code: u32) -> String {
        let entry = self.xids.as_ref().and_then(|xids| xids.catalog.get(code));
        match entry {
            _ if code == 0 => "No Error".to_owned(),
            Some(entry) => entry.name.clone(),
            None => "Unknown Error".to_owned(),
        }
    }

    /// Tells the XID counters whose slots these are.
    pub fn know(&self, readings: &[Reading]) {
        let Some(xids) = &self.xids else { return };
        for (i, identity) in readings.iter().map(|r| &r.identity).enumerate() {
            // A missing GPU stands last: its slot may be another's by now.
            let is_taken = readings[..i]
                .iter()
                .any(|r| r.identity.pci_bus_id == identity.pci_bus_id);
            if !identity.uuid.is_empty() && !is_taken {
                xids.counts.know(GpuIdentity {
                    gpu: identity.index.to_string(),
                    uuid: identity.uuid.clone(),
                    pci_bus_id: identity.pci_bus_id.clone(),
                });
            }
        }
    }
}

/// How it stands with the driver, in a word, and why.
pub fn driver_state(state: &str, reason: &str) -> Family {
    let mut family = Family::new(
        "watchfire_gpu_driver_state",
        Kind::Gauge,
        "How it stands with the GPU driver, and why; the value is always 1.",
    );
    let reason: String = reason.chars().take(REASON_LETTERS).collect();
    family.push(vec![("state", state.to_owned()), ("reason", reason)], 1.0);
    family
}

/// How many GPUs answer, and how many should; nothing on a machine without GPUs.
pub fn counts(answering: u32, expected: u32) -> Vec<Family> {
    if expected == 0 {
        return Vec::new();
    }
    let gauge = |name: &str, help: &str, value: u32| {
        let mut family = Family::new(name, Kind::Gauge, help);
        family.push(Vec::new(), value.into());
        family
    };
    vec![
        gauge("watchfire_gpus_present", "GPUs that answer.", answering),
        gauge(
            "watchfire_gpus_expected",
            "GPUs that should answer: those seen before, those the driver shows, those that sit on the bus; the most of these.",
            expected,
        ),
    ]
}

/// The error of a source that said something of its own.
pub fn source_error(state: State, reason: &str) -> Error {
    Error::Source {
        what: "nvidia-smi",
        state,
        reason: reason.to_owned(),
    }
}

fn text_of(software: &Software, reading: &Reading, word: &str) -> Option<String> {
    let gpu = &reading.identity;
    let text = match word {
        "driver_version" => software.driver_version.clone(),
        "nvml_version" => software.nvml_version.clone(),
        "model" => gpu.model.clone(),
        "uuid" => gpu.uuid.clone(),
        "pci_bus_id" => gpu.pci_bus_id.clone(),
        "serial" => gpu.serial.clone(),
        "vbios_version" => gpu.vbios.clone(),
        word => match reading.texts.get(word) {
            Some(text) => text.clone(),
            None => reading.number(word)?.to_string(),
        },
    };
    (!text.is_empty()).then_some(text)
}

fn of_instance(instance: &Instance, word: &str) -> Option<u64> {
    match word {
        "memory_total" => instance.memory_total,
        "memory_free" => instance.memory_free,
        "memory_used" => instance.memory_used,
        "memory_reserved" => instance.memory_reserved,
        _ => None,
    }
}

/// Compute instances of one GPU instance share its memory: it counts once.
fn first_of_each(instances: &[Instance]) -> impl Iterator<Item = &Instance> {
    let is_first = |(i, one): &(usize, &Instance)| !instances[..*i].iter().any(|o| o.gpu_instance == one.gpu_instance);
    instances
        .iter()
        .enumerate()
        .filter(is_first)
        .map(|(_, instance)| instance)
}

fn name_instances(boards: &Boards, reading: &mut Reading) {
    for i in 0..reading.instances.len() {
        if reading.instances[i].profile.is_empty() {
            reading.instances[i].profile = boards.profile(reading, &reading.instances[i]);
        }
    }
}

/// What counters grew by in a second, by GPU and word.
type RatesNow = HashMap<(u32, String), f64>;

/// Counters as they were seen last.
#[derive(Debug, Default)]
struct Rates {
    last: HashMap<(u32, String), (Millis, f64)>,
}

impl Rates {
    fn see(&mut self, now: Millis, selection: &Selection, readings: &[Reading]) -> RatesNow {
        let mut rates = RatesNow::new();
        if self.last.len() > RATES_MAX {
            self.last.clear();
        }
        for column in selection.columns.iter().filter(|column| column.field.is_rate) {
            for reading in readings {
                let Some(count) = reading.number(&column.field.source) else {
                    continue;
                };
                let key = (reading.identity.index, column.field.source.clone());
                if rates.contains_key(&key) {
                    continue;
                }
                let before = self.last.insert(key.clone(), (now, count));
                if let Some((at, before)) = before
                    && now > at
                    && count >= before
                {
                    rates.insert(key, (count - before) / seconds(now - at));
                }
            }
        }
        rates
    }
}
