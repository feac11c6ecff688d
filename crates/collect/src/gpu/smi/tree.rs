//! `nvidia-smi -q`, as XML and as text: the same tree in two spellings.

use quick_xml::Reader as XmlReader;
use quick_xml::events::Event;

use super::Report;
use super::dialect::{Dialect, Draft, Sum, bus_id};
use super::value::{Measure, Missing, missing, number};
use crate::gpu::reading::{Absence, GpuProcess, Instance, ProcessKind};

/// Deeper nesting is not nvidia-smi's.
const DEPTH_MAX: usize = 32;

/// Nodes of one output; an eight-GPU server with all its supported clocks has some 60,000.
const NODES_MAX: usize = 1_000_000;

/// GPUs beyond this many are not read.
const GPUS_MAX: usize = 256;

/// A value, a section, or both.
#[derive(Debug, Default)]
pub struct Node {
    name: String,
    text: String,
    children: Vec<Node>,
}

impl Node {
    fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name.eq_ignore_ascii_case(name))
    }

    fn at(&self, names: &[&str]) -> Option<&Self> {
        names.iter().try_fold(self, |node, name| node.child(name))
    }

    fn text_at(&self, names: &[&str]) -> &str {
        self.at(names).map_or("", |node| node.text.trim())
    }

    /// The text at a path. Where a section is a value (`Remapped Rows : N/A`) it stands for all that is below it; what newer
    /// drivers moved deeper into the section is found by its name.
    fn find(&self, path: &[String]) -> Option<&str> {
        let mut node = self;
        for (depth, name) in path.iter().enumerate() {
            match node.child(name) {
                Some(child) => node = child,
                None if depth == 0 => return None,
                None if node.children.is_empty() => break,
                None => {
                    node = node.below(path.last()?, 0)?;
                    break;
                }
            }
        }
        let text = node.text.trim();
        (!text.is_empty() || node.children.is_empty()).then_some(text)
    }

    fn below(&self, name: &str, depth: usize) -> Option<&Self> {
        if depth > DEPTH_MAX {
            return None;
        }
        let deeper = |child: &'_ Self| child.name.eq_ignore_ascii_case(name);
        self.children
            .iter()
            .find(|child| deeper(child))
            .or_else(|| self.children.iter().find_map(|child| child.below(name, depth + 1)))
    }

    /// A sum of paths: known if every part is.
    fn sum(&self, paths: &Sum, measure: Measure) -> Option<Result<f64, Missing>> {
        let parts: Option<Vec<_>> = paths.iter().map(|path| self.find(path)).collect();
        let parts = parts?.into_iter().map(|text| number(text, "", measure));
        Some(parts.sum())
    }
}

/// Reads XML as far as it is whole: a GPU that is cut off in the middle has what stands before the cut.
pub fn read_xml(dialect: &Dialect, text: &str) -> Report {
    let end = text
        .find("</nvidia_smi_log>")
        .map_or(text.len(), |at| at + "</nvidia_smi_log>".len());
    let root = xml(&text[..end]);
    let Some(log) = root.child("nvidia_smi_log") else {
        return Report::default();
    };
    let mut report = Report {
        driver_version: version(log.text_at(&["driver_version"])),
        cuda_version: version(log.text_at(&["cuda_version"])),
        ..Report::default()
    };
    if report.driver_version.is_empty() {
        report.driver_version = version(log.text_at(&["kmd_version"]));
    }
    if report.cuda_version.is_empty() {
        report.cuda_version = version(log.text_at(&["cuda_umd_version"]));
    }
    let gpus = log.children.iter().filter(|node| node.name == "gpu");
    for (index, gpu) in (0..).zip(gpus.take(GPUS_MAX)) {
        let mut draft = Draft::new(index);
        // The attribute `id` of the element stands as its own text.
        draft.text("pci_bus_id", &gpu.text);
        for word in &dialect.words {
            draft.number(word.word, word.xml.iter().filter_map(|sum| gpu.sum(sum, word.measure)));
        }
        for text in &dialect.texts {
            if let Some(value) = gpu.find(&text.xml) {
                draft.text(text.word, value);
            }
        }
        let reasons = dialect.reasons.iter().map(|reason| {
            let value = ["clocks_event_reasons", "clocks_throttle_reasons"]
                .iter()
                .find_map(|section| {
                    let prefix = section.trim_end_matches('s');
                    gpu.at(&[section, &format!("{prefix}_{}", reason.name)])
                });
            (reason.mask, value.map(|node| node.text.trim()))
        });
        draft.reasons(reasons);
        if let Some(processes) = gpu.child("processes") {
            let all = processes.children.iter().filter(|node| node.name == "process_info");
            draft.reading.processes = Some(all.filter_map(xml_process).collect());
        }
        if let Some(devices) = gpu.child("mig_devices") {
            let all = devices.children.iter().filter(|node| node.name == "mig_device");
            draft.reading.instances = all.filter_map(xml_instance).collect();
        }
        report.readings.push(draft.finish());
    }
    report
}

/// The first word of a version; drivers of 2026 add that the field is deprecated.
fn version(text: &str) -> String {
    let word = text.split_whitespace().next().unwrap_or("");
    if word.starts_with(|c: char| c.is_ascii_digit()) {
        word.to_owned()
    } else {
        String::new()
    }
}

fn id(text: &str) -> Option<u32> {
    text.trim().parse().ok()
}

fn bytes(text: &str) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole, and in the range of bytes"
    )]
    number(text, "", Measure::Bytes).ok().map(|n| n as u64)
}

/// `C`, `G`, `C+G`, `M+C`.
pub fn process_kind(text: &str) -> ProcessKind {
    match text.trim() {
        "G" => ProcessKind::Graphics,
        "C+G" => ProcessKind::Both,
        "M+C" | "M+C+G" => ProcessKind::Mps,
        _ => ProcessKind::Compute,
    }
}

fn name_of(text: &str) -> String {
    let text = text.trim();
    if missing(text).is_some() {
        return String::new();
    }
    // Command lines of browsers have hundreds of letters; the program is their first word.
    let short = if text.chars().count() > 128 {
        text.split_once(' ').map_or(text, |(first, _)| first)
    } else {
        text
    };
    short.chars().take(128).collect()
}

fn xml_process(node: &Node) -> Option<GpuProcess> {
    Some(GpuProcess {
        pid: id(node.text_at(&["pid"]))?,
        kind: process_kind(node.text_at(&["type"])),
        name: name_of(node.text_at(&["process_name"])),
        memory_bytes: bytes(node.text_at(&["used_memory"])),
        gpu_instance: id(node.text_at(&["gpu_instance_id"])),
        ..GpuProcess::default()
    })
}

fn xml_instance(node: &Node) -> Option<Instance> {
    let memory = |part: &str| bytes(node.text_at(&["fb_memory_usage", part]));
    Some(Instance {
        gpu_instance: id(node.text_at(&["gpu_instance_id"]))?,
        compute_instance: id(node.text_at(&["compute_instance_id"])),
        multiprocessors: id(node.text_at(&["device_attributes", "shared", "multiprocessor_count"])),
        memory_total: memory("total"),
        memory_used: memory("used"),
        memory_free: memory("free"),
        memory_reserved: memory("reserved"),
        ecc_uncorrected_volatile: node
            .text_at(&["ecc_error_count", "volatile_count", "sram_uncorrectable"])
            .parse()
            .ok(),
        ..Instance::default()
    })
}

/// The tree of an XML text, up to where it ends or stops being XML.
fn xml(text: &str) -> Node {
    let mut reader = XmlReader::from_str(text);
    reader.config_mut().check_end_names = false;
    let mut open = vec![Node::default()];
    let mut nodes = 0;
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) if open.len() < DEPTH_MAX => {
                nodes += 1;
                let id = start.try_get_attribute("id").ok().flatten();
                let text = id.and_then(|id| id.unescape_value().ok().map(std::borrow::Cow::into_owned));
                open.push(Node {
                    name: String::from_utf8_lossy(start.name().as_ref()).into_owned(),
                    text: text.unwrap_or_default(),
                    children: Vec::new(),
                });
            }
            Ok(Event::Text(part)) => {
                if let Some(node) = open.last_mut()
                    && let Ok(part) = part.decode()
                {
                    node.text.push_str(part.trim());
                }
            }
            Ok(Event::GeneralRef(reference)) => {
                if let Some(node) = open.last_mut() {
                    node.text.push_str(match reference.as_ref() {
                        b"amp" => "&",
                        b"lt" => "<",
                        b"gt" => ">",
                        b"quot" => "\"",
                        b"apos" => "'",
                        _ => "?",
                    });
                }
            }
            Ok(Event::CData(part)) => {
                if let Some(node) = open.last_mut() {
                    node.text.push_str(&String::from_utf8_lossy(&part));
                }
            }
            Ok(Event::End(_)) => close(&mut open),
            Ok(Event::Eof | Event::Start(_)) | Err(_) => break,
            Ok(_) => {}
        }
        if nodes >= NODES_MAX {
            break;
        }
    }
    while open.len() > 1 {
        close(&mut open);
    }
    open.pop().unwrap_or_default()
}

fn close(open: &mut Vec<Node>) {
    if open.len() > 1
        && let Some(node) = open.pop()
        && let Some(parent) = open.last_mut()
    {
        parent.children.push(node);
    }
}

/// Reads the text of `-q`. A GPU whose lines stop in the middle has what stands before.
pub fn read_text(dialect: &Dialect, text: &str) -> Report {
    let root = outline(text);
    let mut report = Report {
        driver_version: version(root.text_at(&["Driver Version"])),
        cuda_version: version(root.text_at(&["CUDA Version"])),
        ..Report::default()
    };
    if report.driver_version.is_empty() {
        report.driver_version = version(root.text_at(&["KMD Version"]));
    }
    if report.cuda_version.is_empty() {
        report.cuda_version = version(root.text_at(&["CUDA UMD Version"]));
    }
    let gpus = root
        .children
        .iter()
        .filter_map(|node| Some((node.name.strip_prefix("GPU ")?, node)));
    for (index, (address, gpu)) in (0..).zip(gpus.take(GPUS_MAX)) {
        let mut draft = Draft::new(index);
        draft.reading.identity.pci_bus_id = bus_id(address);
        for word in &dialect.words {
            draft.number(word.word, word.text.iter().filter_map(|sum| gpu.sum(sum, word.measure)));
        }
        for text in &dialect.texts {
            if let Some(value) = gpu.find(&text.text) {
                draft.text(text.word, value);
            }
        }
        let section = gpu
            .child("Clocks Event Reasons")
            .or_else(|| gpu.child("Clocks Throttle Reasons"));
        let reasons = dialect.reasons.iter().map(|reason| {
            let node = section.and_then(|section| section.below(&reason.text, 0));
            (reason.mask, node.map(|node| node.text.trim()))
        });
        draft.reasons(reasons);
        if let Some(processes) = gpu.child("Processes") {
            draft.reading.processes = Some(text_processes(processes));
        }
        let devices = gpu.children.iter().filter(|node| node.name == "MIG Device");
        draft.reading.instances = devices.filter_map(text_instance).collect();
        // Drivers say so of a GPU that is gone in the place of its sections.
        if missing(&gpu.text).is_some_and(|missing| missing != Missing::Absent(Absence::Unreadable))
            && let Some(Missing::Gone(state)) = missing(&gpu.text)
        {
            draft.gone(state);
        }
        report.readings.push(draft.finish());
    }
    report
}

/// Processes stand one after the other; the instance that a process is in stands before it.
fn text_processes(section: &Node) -> Vec<GpuProcess> {
    let mut all = Vec::new();
    let mut instance = None;
    for node in &section.children {
        match node.name.as_str() {
            "GPU instance ID" => instance = id(&node.text),
            "Process ID" => {
                let Some(pid) = id(&node.text) else { continue };
                all.push(GpuProcess {
                    pid,
                    kind: process_kind(node.text_at(&["Type"])),
                    name: name_of(node.text_at(&["Name"])),
                    memory_bytes: bytes(node.text_at(&["Used GPU Memory"])),
                    gpu_instance: instance.take(),
                    ..GpuProcess::default()
                });
            }
            _ => {}
        }
    }
    all
}

fn text_instance(node: &Node) -> Option<Instance> {
    let memory = |part: &str| {
        let of = |section: &str| bytes(node.text_at(&[section, part]));
        of("Shared FB Memory Usage").or_else(|| of("FB Memory Usage"))
    };
    Some(Instance {
        gpu_instance: id(node.text_at(&["GPU Instance ID"]))?,
        compute_instance: id(node.text_at(&["Compute Instance ID"])),
        multiprocessors: id(node.text_at(&["Device Attributes", "Shared", "Multiprocessor count"])),
        memory_total: memory("Total"),
        memory_used: memory("Used"),
        memory_free: memory("Free"),
        memory_reserved: memory("Reserved"),
        ecc_uncorrected_volatile: node
            .text_at(&["ECC Errors", "Volatile", "SRAM Uncorrectable"])
            .parse()
            .ok(),
        ..Instance::default()
    })
}

/// The tree of a text by its indentation.
fn outline(text: &str) -> Node {
    let mut open: Vec<(i64, Node)> = vec![(-1, Node::default())];
    for line in text.lines().skip(1).take(NODES_MAX) {
        let trimmed = line.trim_end();
        let content = trimmed.trim_start();
        if content.is_empty() {
            continue;
        }
        let indent = i64::try_from(trimmed.len() - content.len()).unwrap_or(i64::MAX);
        while open.len() > 1 && open.last().is_some_and(|(at, _)| *at >= indent) {
            shut(&mut open);
        }
        let (name, value) = match content.split_once(" : ") {
            Some((name, value)) => (name.trim(), value.trim()),
            None => (content.strip_suffix(" :").unwrap_or(content).trim(), ""),
        };
        let node = Node {
            name: name.to_owned(),
            text: value.to_owned(),
            children: Vec::new(),
        };
        if open.len() < DEPTH_MAX {
            open.push((indent, node));
        }
    }
    while open.len() > 1 {
        shut(&mut open);
    }
    open.pop().map(|(_, node)| node).unwrap_or_default()
}

fn shut(open: &mut Vec<(i64, Node)>) {
    if let Some((_, node)) = open.pop()
        && let Some((_, parent)) = open.last_mut()
    {
        parent.children.push(node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::reading::GpuState;

    fn dialect() -> Dialect {
        Dialect::embedded().expect("our own table")
    }

    #[test]
    fn xml_that_stops_in_the_middle_has_what_stands_before() {
        let text = "<nvidia_smi_log><driver_version>550.90.07</driver_version><gpu id=\"00000000:3B:00.0\">\
                    <product_name>A &amp; B</product_name><temperature><gpu_temp>51 C</gpu_temp><memory_te";
        let report = read_xml(&dialect(), text);
        assert_eq!(report.driver_version, "550.90.07");
        let gpu = &report.readings[0];
        assert_eq!(
            (gpu.identity.model.as_str(), gpu.identity.pci_bus_id.as_str()),
            ("A&B", "00000000:3B:00.0")
        );
        assert_eq!(gpu.number("temperature"), Some(51.0));
    }

    #[test]
    fn a_section_that_is_a_value_stands_for_all_below_it() {
        let text = "==NVSMI LOG==\nGPU 00000000:53:00.0\n    Remapped Rows      : N/A\n    ECC Errors\n        Volatile\n            SRAM Correctable : 3\n            DRAM Correctable : 4\n";
        let report = read_text(&dialect(), text);
        let gpu = &report.readings[0];
        assert_eq!(gpu.state, GpuState::Ok);
        assert!(
            gpu.absent.contains(&("remapped_failure", Absence::Unsupported)),
            "{:?}",
            gpu.absent
        );
        assert_eq!(gpu.number("ecc_corrected_volatile"), Some(7.0));
        assert_eq!(gpu.number("ecc_uncorrected_volatile"), None);
    }

    #[test]
    fn reasons_become_bits_and_an_unknown_name_none() {
        let text = "==NVSMI LOG==\nGPU 00000000:53:00.0\n    Clocks Event Reasons\n        Idle : Active\n        Invalid HW Slowdown : Not Active\n        SW Power Cap : Active\n";
        let report = read_text(&dialect(), text);
        assert_eq!(report.readings[0].number("clock_reasons"), Some(5.0));
    }

    #[test]
    fn nesting_without_end_is_no_harm() {
        let deep = format!("<nvidia_smi_log>{}", "<a>".repeat(10_000));
        assert!(read_xml(&dialect(), &deep).readings.is_empty());
        let deep: String = (0..2_000).map(|n| format!("{}x\n", " ".repeat(n))).collect();
        assert!(
            read_text(&dialect(), &format!("==NVSMI LOG==\n{deep}"))
                .readings
                .is_empty()
        );
    }
}
