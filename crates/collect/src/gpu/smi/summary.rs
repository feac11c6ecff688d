//! The table that nvidia-smi draws without arguments.
//!
//! Columns are bars and rows are rules, the same over the years but for their widths: cells are told apart by the bars and
//! values within a cell by what they look like.

use super::Report;
use super::dialect::Draft;
use super::tree::process_kind;
use super::value::{Measure, Missing, number};
use crate::gpu::reading::{GpuProcess, GpuState, Instance, Reading};

/// Lines that are read.
const LINES_MAX: usize = 65_536;

/// Whether such a table is in the text.
pub fn is_here(text: &str) -> bool {
    text.lines().any(is_title)
}

fn is_title(line: &str) -> bool {
    line.trim_start().starts_with('|') && line.contains("NVIDIA-SMI")
}

/// Which of its tables a line is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Head,
    Gpus,
    Instances,
    Processes,
}

/// Reads the table.
pub fn read(text: &str) -> Report {
    let mut report = Report::default();
    let mut part = Part::Head;
    let mut draft: Option<Draft> = None;
    let mut lines_of_gpu = 0;
    let begin = text.lines().skip_while(|line| !is_title(line)).take(LINES_MAX);
    for line in begin {
        let line = line.trim();
        if is_title(line) {
            report.driver_version = after(line, "Driver Version:")
                .or_else(|| after(line, "KMD Version:"))
                .unwrap_or_default();
            let cuda = after(line, "CUDA Version:").or_else(|| after(line, "CUDA UMD Version:"));
            report.cuda_version = cuda.unwrap_or_default();
        } else if line.contains("MIG devices:") {
            part = Part::Instances;
        } else if line.contains("Processes:") {
            part = Part::Processes;
            for reading in report.readings.iter_mut().filter(|r| r.state == GpuState::Ok) {
                reading.processes.get_or_insert_default();
            }
        } else if line.starts_with("|=") {
            if part == Part::Head {
                part = Part::Gpus;
            }
        } else if line.starts_with('+') {
            finish(&mut report, draft.take());
            lines_of_gpu = 0;
        } else if let Some(inner) = line.strip_prefix('|') {
            let cells: Vec<&str> = inner.strip_suffix('|').unwrap_or(inner).split('|').collect();
            match part {
                Part::Gpus => {
                    gpu_line(&mut draft, lines_of_gpu, &cells);
                    lines_of_gpu += 1;
                }
                Part::Instances => instance_line(&mut report, &cells),
                Part::Processes => process_line(&mut report, inner),
                Part::Head => {}
            }
        }
    }
    finish(&mut report, draft);
    report
}

fn finish(report: &mut Report, draft: Option<Draft>) {
    report.readings.extend(draft.map(Draft::finish));
}

fn after(line: &str, title: &str) -> Option<String> {
    let (_, rest) = line.split_once(title)?;
    let word = rest.split_whitespace().next()?;
    word.starts_with(|c: char| c.is_ascii_digit()).then(|| word.to_owned())
}

fn gpu_line(draft: &mut Option<Draft>, line: usize, cells: &[&str]) {
    match (line, cells) {
        (0, [name, bus, ecc, ..]) => {
            let mut words = name.split_whitespace();
            let Some(index) = words.next().and_then(|word| word.parse().ok()) else {
                return;
            };
            let words: Vec<&str> = words.collect();
            let mut new = Draft::new(index);
            if let Some((mode, model)) = words.split_last() {
                let mode = number(mode, "", Measure::Bool);
                new.number("persistence_mode", std::iter::once(mode).filter(Result::is_ok));
                new.text("model", &model.join(" "));
            }
            new.text("pci_bus_id", bus.split_whitespace().next().unwrap_or(""));
            // Under MIG, and where errors are counted for no one, a word stands in place of the count.
            let count = match ecc.trim() {
                "On" | "Off" => Err(Missing::Absent(crate::gpu::reading::Absence::Unsupported)),
                text => number(text, "", Measure::Count),
            };
            new.number("ecc_uncorrected_volatile", std::iter::once(count));
            *draft = Some(new);
        }
        (1, [state, memory, busy, ..]) => {
            let Some(draft) = draft else { return };
            if memory.contains("GPU is lost") {
                draft.gone(GpuState::Lost);
            }
            let mut words = state.split_whitespace();
            let mut next = |measure| words.next().map(|word| number(word, "", measure));
            let (fan, celsius, level) = (next(Measure::Fan), next(Measure::Celsius), next(Measure::State));
            draft.number("fan_speed", fan.into_iter());
            draft.number("temperature", celsius.into_iter());
            draft.number("performance_state", level.into_iter());
            let power: String = words.collect::<Vec<_>>().join(" ");
            let (used, cap) = power.split_once('/').unwrap_or((&power, ""));
            draft.number("power_usage", told(used, Measure::Milliwatts));
            draft.number("power_limit_enforced", told(cap, Measure::Milliwatts));
            if let Some((used, total)) = memory.split_once('/') {
                draft.number("memory_used", told(used, Measure::Bytes));
                draft.number("memory_total", told(total, Measure::Bytes));
            }
            let mut words = busy.split_whitespace();
            draft.number(
                "utilization_gpu",
                words.next().into_iter().map(|word| number(word, "", Measure::Percent)),
            );
            let mode = words.collect::<Vec<_>>().join(" ");
            draft.number("compute_mode", told(&mode, Measure::ComputeMode));
        }
        (2, [.., mig]) => {
            if let Some(draft) = draft {
                draft.number("mig_mode", told(mig, Measure::Bool));
            }
        }
        _ => {}
    }
}

fn told(text: &str, measure: Measure) -> impl Iterator<Item = Result<f64, Missing>> {
    let text = text.trim();
    (!text.is_empty()).then(|| number(text, "", measure)).into_iter()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole, and in the range of bytes"
)]
fn bytes(text: &str) -> Option<u64> {
    number(text, "", Measure::Bytes).ok().map(|n| n as u64)
}

fn of_index(report: &mut Report, index: u32) -> Option<&mut Reading> {
    report
        .readings
        .iter_mut()
        .find(|r| r.identity.index == index && r.state == GpuState::Ok)
}

fn instance_line(report: &mut Report, cells: &[&str]) {
    let [ids, memory, processors, ..] = cells else { return };
    let ids: Vec<u32> = ids.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [gpu, gpu_instance, compute_instance, ..] = ids[..] else {
        return;
    };
    let (used, total) = memory.split_once('/').unwrap_or((memory, ""));
    let instance = Instance {
        gpu_instance,
        compute_instance: Some(compute_instance),
        multiprocessors: processors.split_whitespace().next().and_then(|word| word.parse().ok()),
        memory_total: bytes(total),
        memory_used: bytes(used),
        ..Instance::default()
    };
    if let Some(reading) = of_index(report, gpu) {
        reading.instances.push(instance);
    }
}

/// `0   N/A  N/A    1234    C   python    100MiB`; before driver 450 without the two instances.
fn process_line(report: &mut Report, inner: &str) {
    let words: Vec<&str> = inner.trim_end_matches('|').split_whitespace().collect();
    let [gpu, rest @ ..] = words.as_slice() else { return };
    let Ok(gpu) = gpu.parse::<u32>() else { return };
    let is_type = |word: &str| matches!(word, "C" | "G" | "C+G" | "M+C" | "M+C+G");
    let Some(at) = rest.iter().position(|word| is_type(word)) else {
        return;
    };
    let Some(pid) = at.checked_sub(1).and_then(|at| rest[at].parse().ok()) else {
        return;
    };
    let [name @ .., memory] = &rest[at + 1..] else { return };
    let process = GpuProcess {
        pid,
        kind: process_kind(rest[at]),
        name: name.join(" "),
        memory_bytes: bytes(memory),
        gpu_instance: if at >= 3 { rest[0].parse().ok() } else { None },
        ..GpuProcess::default()
    };
    if let Some(reading) = of_index(report, gpu) {
        reading.processes.get_or_insert_default().push(process);
    }
}
