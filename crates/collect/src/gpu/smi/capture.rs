//! A whole capture: the outputs of several commands under headings, for one moment or for several (`idle`, `load`).
//!
//! A heading is a rule of `#`, a line `# MOMENT :: WHAT` and mostly a line `# $ nvidia-smi …`. Outputs of one moment complete
//! each other: what exporters read from (`--query-gpu`) goes first, then `-q`, then the table.

use super::dialect::Dialect;
use super::{NamedDevice, Report, complaint, query, read_plain, summary, tree};
use crate::gpu::identity::Identity;
use crate::gpu::occupants::profile_of;
use crate::gpu::reading::{GpuState, Reading};

/// Sections that are read.
const SECTIONS_MAX: usize = 1024;

/// A section of a capture.
#[derive(Debug)]
pub struct Section<'a> {
    moment: &'a str,
    title: &'a str,
    command: &'a str,
    body: &'a str,
}

/// The sections of a capture; `None` for a text that is none.
pub fn split(text: &str) -> Option<Vec<Section<'_>>> {
    let is_rule = |line: &str| line.len() >= 20 && line.trim_end().bytes().all(|b| b == b'#');
    let mut starts = Vec::new();
    let mut lines: Vec<(usize, &str)> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        lines.push((at, line));
        at += line.len();
    }
    let mut n = 0;
    while n + 1 < lines.len() && starts.len() < SECTIONS_MAX {
        let title = lines[n + 1].1.trim_start_matches('#').trim();
        if !is_rule(lines[n].1.trim_end()) || !lines[n + 1].1.starts_with('#') {
            n += 1;
            continue;
        }
        let end = (n + 2..lines.len().min(n + 40)).find(|at| is_rule(lines[*at].1.trim_end()));
        let Some(end) = end else { break };
        let mut commands = lines[n + 2..end]
            .iter()
            .filter_map(|(_, line)| line.trim().strip_prefix("# $ "));
        let body = lines.get(end + 1).map_or(text.len(), |(at, _)| *at);
        starts.push((lines[n].0, title, commands.next_back().unwrap_or(""), body));
        n = end + 1;
    }
    let ends = starts.iter().skip(1).map(|(at, ..)| *at).chain([text.len()]);
    let sections: Vec<Section<'_>> = starts
        .iter()
        .zip(ends)
        .filter_map(|((_, title, command, body), end)| {
            let (moment, title) = title.split_once(" :: ")?;
            Some(Section {
                moment: moment.trim(),
                title: title.trim(),
                command,
                body: text.get(*body..end)?,
            })
        })
        .collect();
    (!sections.is_empty()).then_some(sections)
}

/// Reads the outputs of one moment, and what holds for all (`-L`, versions).
pub fn read(dialect: &Dialect, sections: &[Section<'_>], moment: Option<&str>) -> Report {
    let moments = sections.iter().filter(|section| section.moment != "capabilities");
    let wanted = moment.or_else(|| moments.map(|section| section.moment).next_back());
    let mut report = Report::default();
    let of_moment = || sections.iter().filter(|section| Some(section.moment) == wanted);
    let is = |section: &Section<'_>, word: &str| section.command.contains(word) || section.title.contains(word);
    for section in of_moment().filter(|section| is(section, "--query-gpu")) {
        if let Some(table) = query::find(section.body) {
            report.complete(query::read(dialect, table));
        }
    }
    for section in of_moment().filter(|s| !is(s, "--query-") && !is(s, "mon ") && !is(s, "mon -")) {
        let body = section.body;
        if let Some(at) = body.find("<nvidia_smi_log") {
            report.complete(tree::read_xml(dialect, &body[at..]));
        } else if let Some(at) = body.find("==NVSMI LOG==") {
            report.complete(tree::read_text(dialect, &body[at..]));
        } else if summary::is_here(body) {
            report.complete(summary::read(body));
        } else {
            report.complete(read_plain(dialect, body));
        }
    }
    for section in of_moment().filter(|section| is(section, "--query-compute-apps")) {
        if let Some(table) = query::find(section.body) {
            report.complete(query::read(dialect, table));
        }
    }
    for section in of_moment().filter(|section| is(section, "pmon")) {
        add_shares(&mut report, section.body);
    }
    for section in sections {
        if is(section, "-L") || is(section, "--list-gpus") {
            report.complete(read_list(section.body));
        }
        if is(section, "--version") {
            report.nvml_version = line_after(section.body, "NVML version");
        }
    }
    let said = of_moment().flat_map(|section| complaint::find(dialect, section.body));
    for complaint in said.collect::<Vec<_>>() {
        if !report.complaints.contains(&complaint) {
            report.complaints.push(complaint);
        }
    }
    report
}

fn line_after(text: &str, title: &str) -> String {
    let line = text
        .lines()
        .find(|line| line.to_ascii_lowercase().starts_with(&title.to_ascii_lowercase()));
    let value = line
        .and_then(|line| line.split_once(':'))
        .map_or("", |(_, value)| value.trim());
    value.to_owned()
}

/// `GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-…)`, and below it `MIG 3g.40gb     Device  0: (UUID: MIG-…)`.
///
/// The list does not tell the id of an instance, only its place among the devices: it names instances that are known
/// already, and makes none.
pub fn read_list(text: &str) -> Report {
    let mut report = Report::default();
    for line in text.lines() {
        let Some((head, uuid)) = line.trim().split_once("(UUID: ") else {
            continue;
        };
        let uuid = uuid.trim_end_matches(')').to_owned();
        if let Some((index, model)) = head.strip_prefix("GPU ").and_then(|rest| rest.split_once(": ")) {
            let Ok(index) = index.trim().parse() else { continue };
            let who = Identity {
                uuid,
                model: model.trim().to_owned(),
                ..Identity::unknown(index)
            };
            report.readings.push(Reading::without(who, GpuState::Ok));
        } else if head.trim_start().starts_with("MIG ")
            && let Some(reading) = report.readings.last()
        {
            let gpu = reading.identity.index;
            report.named.push(NamedDevice {
                gpu,
                place: report.named.iter().filter(|device| device.gpu == gpu).count(),
                profile: profile_of(head.split("Device").next().unwrap_or("")),
                uuid,
            });
        }
    }
    report
}

/// Shares of the processes from `pmon`, the last of each.
fn add_shares(report: &mut Report, text: &str) {
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [gpu, pid, _, sm, memory, ..] = words.as_slice() else {
            continue;
        };
        let (Ok(gpu), Ok(pid)) = (gpu.parse::<u32>(), pid.parse::<u32>()) else {
            continue;
        };
        let of_gpu = report.readings.iter_mut().filter(|r| r.identity.index == gpu);
        for process in of_gpu
            .flat_map(|r| r.processes.iter_mut().flatten())
            .filter(|p| p.pid == pid)
        {
            let share = |text: &str| text.parse().ok().filter(|share: &u32| *share <= 100);
            process.sm_percent = share(sm).or(process.sm_percent);
            process.memory_percent = share(memory).or(process.memory_percent);
        }
    }
}
