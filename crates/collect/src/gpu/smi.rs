//! What `nvidia-smi` says, read as readings: the way in where NVML cannot be loaded, and for captures of other machines.
//!
//! All its ways of speaking end in the same words ([`dialect`], from `data/nvidia_smi.yml`): the XML of `-q -x` and the text
//! of `-q` are [`tree`]s, `--query-gpu` is a table ([`query`]), the table without arguments a picture ([`summary`]), and a
//! [`capture`] holds several of them. What it prints instead of an answer is a [`complaint`]. [`run`] runs the program.
//!
//! Invariant: no input panics, and what is no number (`N/A`, `ERR!`, `[Unknown Error]`) is absent with its reason, never zero.

mod capture;
mod complaint;
mod dialect;
mod query;
pub mod run;
mod summary;
mod tree;
mod value;

use super::identity::Identity;
use super::question;
use super::reading::{Absence, GpuState, Reading};
use crate::State;

pub use complaint::Complaint;
pub use dialect::Dialect;

/// What nvidia-smi said.
#[derive(Debug, Default)]
pub struct Report {
    /// The driver's version; empty where it was not told.
    pub driver_version: String,
    /// The newest CUDA version of the driver; empty where it was not told.
    pub cuda_version: String,
    /// The management library's version; empty where it was not told.
    pub nvml_version: String,
    /// Each GPU.
    pub readings: Vec<Reading>,
    /// What it complained of.
    pub complaints: Vec<Complaint>,
    /// Instances by their place among the devices of a GPU.
    named: Vec<NamedDevice>,
}

/// What the list of devices tells of an instance: its place, not its id.
#[derive(Debug)]
struct NamedDevice {
    gpu: u32,
    place: usize,
    profile: String,
    uuid: String,
}

impl Report {
    /// How it stands with the source as a whole, in a word for `watchfire_gpu_driver_state`, and why.
    #[must_use]
    pub fn verdict(&self) -> (State, &str, &str) {
        let answers = self.readings.iter().any(|r| r.state == GpuState::Ok);
        match self.complaints.first() {
            Some(first) if answers => (State::Present, &first.state, &first.reason),
            Some(first) => (first.collector, &first.state, &first.reason),
            None if self.readings.is_empty() => (State::Absent, "no_devices", "no GPU in what nvidia-smi said"),
            None if answers => (State::Present, "ok", ""),
            None => {
                let is_lost = self.readings.iter().any(|r| r.state == GpuState::Lost);
                let word = if is_lost { "gpu_lost" } else { "driver_failed" };
                (State::Unsupported, word, "no GPU answers")
            }
        }
    }

    /// Takes over what this report lacks from another of the same moment.
    fn complete(&mut self, other: Self) {
        let fill = |own: &mut String, other: String| {
            if own.is_empty() {
                *own = other;
            }
        };
        fill(&mut self.driver_version, other.driver_version);
        fill(&mut self.cuda_version, other.cuda_version);
        fill(&mut self.nvml_version, other.nvml_version);
        let alone = self.readings.is_empty();
        for reading in other.readings {
            match self
                .readings
                .iter_mut()
                .find(|own| is_same(&own.identity, &reading.identity))
            {
                Some(own) => complete(own, reading),
                None if alone || own_name(&reading) => self.readings.push(reading),
                None => {}
            }
        }
        self.named.extend(other.named);
        for complaint in other.complaints {
            if !self.complaints.contains(&complaint) {
                self.complaints.push(complaint);
            }
        }
    }
}

/// Whether a reading can stand by itself beside others: it knows more than its index.
fn own_name(reading: &Reading) -> bool {
    !reading.identity.uuid.is_empty() || !reading.identity.pci_bus_id.is_empty()
}

/// Whether two readings are of one GPU. Masked captures give all GPUs one UUID, so the index counts too.
fn is_same(a: &Identity, b: &Identity) -> bool {
    let differ = |a: &str, b: &str| !a.is_empty() && !b.is_empty() && !a.eq_ignore_ascii_case(b);
    if differ(&a.uuid, &b.uuid) || differ(&a.pci_bus_id, &b.pci_bus_id) {
        return false;
    }
    let equal = |a: &str, b: &str| !a.is_empty() && a.eq_ignore_ascii_case(b);
    a.index == b.index || equal(&a.pci_bus_id, &b.pci_bus_id)
}

/// Takes over what `own` lacks: numbers, names, processes, instances. What `own` has stays.
fn complete(own: &mut Reading, other: Reading) {
    let identity = &mut own.identity;
    let fill = |own: &mut String, other: String| {
        if own.is_empty() || (own.contains("...") && !other.is_empty()) {
            *own = other;
        }
    };
    fill(&mut identity.uuid, other.identity.uuid);
    fill(&mut identity.pci_bus_id, other.identity.pci_bus_id);
    fill(&mut identity.model, other.identity.model);
    fill(&mut identity.serial, other.identity.serial);
    fill(&mut identity.vbios, other.identity.vbios);
    if own.state != GpuState::Ok {
        return;
    }
    if other.state != GpuState::Ok {
        own.state = other.state;
        own.numbers.clear();
        return;
    }
    for (word, number) in other.numbers {
        if !own.numbers.contains_key(word) {
            own.absent.retain(|(absent, _)| *absent != word);
            own.numbers.insert(word, number);
        }
    }
    for (word, why) in other.absent {
        if !own.numbers.contains_key(word) && own.absent.iter().all(|(absent, _)| *absent != word) {
            own.absent.push((word, why));
        }
    }
    for (word, text) in other.texts {
        own.texts.entry(word).or_insert(text);
    }
    match (&mut own.processes, other.processes) {
        (Some(own), Some(other)) => complete_processes(own, &other),
        (own @ None, other) => *own = other,
        (Some(_), None) => {}
    }
    if own.instances.is_empty() {
        own.instances = other.instances;
    }
}

fn complete_processes(own: &mut [super::reading::GpuProcess], other: &[super::reading::GpuProcess]) {
    for process in own {
        if let Some(more) = other.iter().find(|p| p.pid == process.pid) {
            process.memory_bytes = process.memory_bytes.or(more.memory_bytes);
            process.sm_percent = process.sm_percent.or(more.sm_percent);
            process.memory_percent = process.memory_percent.or(more.memory_percent);
            process.gpu_instance = process.gpu_instance.or(more.gpu_instance);
            if process.name.is_empty() {
                process.name.clone_from(&more.name);
            }
        }
    }
}

/// Reads whatever nvidia-smi printed: one of its outputs, several one after the other, a capture with headings, or a
/// complaint. `moment` picks one of a capture's (`idle`, `load`); the last by default.
#[must_use]
pub fn read(dialect: &Dialect, bytes: &[u8], moment: Option<&str>) -> Report {
    let text = decode(bytes).replace("\r\n", "\n");
    let mut report = match capture::split(&text) {
        Some(sections) => capture::read(dialect, &sections, moment),
        None => read_plain(dialect, &text),
    };
    for device in std::mem::take(&mut report.named) {
        let of_gpu = report.readings.iter_mut().find(|r| r.identity.index == device.gpu);
        if let Some(instance) = of_gpu.and_then(|r| r.instances.get_mut(device.place)) {
            instance.profile = device.profile;
            instance.uuid = device.uuid;
        }
    }
    for reading in &mut report.readings {
        reading.derive();
        reading.name_the_silent();
    }
    complaint::apply(&mut report);
    if report.complaints.is_empty() && report.readings.is_empty() {
        report.complaints.push(complaint::of_nothing(&text));
    }
    report
}

/// The text; a shell of Windows writes UTF-16.
fn decode(bytes: &[u8]) -> String {
    let Some(rest) = bytes.strip_prefix(&[0xff, 0xfe]) else {
        return String::from_utf8_lossy(bytes).into_owned();
    };
    let units: Vec<u16> = rest
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
        .collect();
    String::from_utf16_lossy(&units)
}

/// Reads outputs that stand one after the other without headings.
fn read_plain(dialect: &Dialect, text: &str) -> Report {
    let mut report = Report::default();
    if let Some(table) = query::find(text) {
        report.complete(query::read(dialect, table));
    }
    // Of several, as `-l` prints them, the last that is whole.
    let end = text.rfind("</nvidia_smi_log>").unwrap_or(text.len());
    if let Some(at) = text[..end].rfind("<nvidia_smi_log") {
        report.complete(tree::read_xml(dialect, &text[at..]));
    }
    if let Some(at) = text.rfind("==NVSMI LOG==") {
        report.complete(tree::read_text(dialect, &text[at..]));
    }
    if summary::is_here(text) {
        report.complete(summary::read(text));
    }
    report.complete(capture::read_list(text));
    report.complaints = complaint::find(dialect, text);
    report
}

impl Reading {
    /// Names what was not told: a text never speaks of everything that NVML knows.
    fn name_the_silent(&mut self) {
        if self.state != GpuState::Ok {
            return;
        }
        for word in question::numbers() {
            if !self.numbers.contains_key(word) && self.absent.iter().all(|(absent, _)| *absent != word) {
                self.absent.push((word, Absence::NotTold));
            }
        }
    }

    /// What follows from what was told.
    fn derive(&mut self) {
        let told = |numbers: &std::collections::HashMap<&'static str, f64>, word: &str| numbers.get(word).copied();
        let (total, used) = (told(&self.numbers, "memory_total"), told(&self.numbers, "memory_used"));
        let reserved = told(&self.numbers, "memory_reserved").unwrap_or(0.0);
        if let Some((total, used)) = total.zip(used)
            && total > reserved
        {
            self.numbers
                .insert(question::MEMORY_USED_RATIO, used / (total - reserved));
        }
    }
}
