//! `--query-gpu … --format=csv`, and the lists of processes in the same form.

use super::Report;
use super::dialect::{Dialect, Draft};
use super::value::{Measure, number};
use crate::gpu::reading::{GpuProcess, Reading};
use crate::source::to_f64;

/// Rows that are read.
const ROWS_MAX: usize = 4096;

/// Columns that are read; drivers of 2026 have some 240.
const COLUMNS_MAX: usize = 1024;

/// Names that begin the header of a query; a line with two of them, or one of them alone, is a header.
const HEADERS: [&str; 16] = [
    "timestamp",
    "index",
    "name",
    "uuid",
    "gpu_name",
    "gpu_uuid",
    "gpu_bus_id",
    "pci.bus_id",
    "driver_version",
    "count",
    "serial",
    "temperature.gpu",
    "utilization.gpu",
    "memory.used",
    "power.draw",
    "pid",
];

/// The part of a text that is a table: from its header to the first line that is none of its rows.
pub fn find(text: &str) -> Option<&str> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if is_header(line) {
            return Some(&text[at..]);
        }
        at += line.len();
    }
    None
}

fn is_header(line: &str) -> bool {
    let names: Vec<String> = columns(line).into_iter().map(|(name, _)| name).collect();
    let known = names.iter().filter(|name| HEADERS.contains(&name.as_str())).count();
    let plausible = names
        .iter()
        .all(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._".contains(&b)));
    plausible && (known >= 2 || (known == 1 && names.len() <= 2))
}

/// Names of columns with their units: `memory.used [MiB]`.
fn columns(line: &str) -> Vec<(String, String)> {
    let parts = line.trim().split(',').take(COLUMNS_MAX);
    let each = parts.map(|part| {
        let part = part.trim();
        match part.split_once(" [") {
            Some((name, unit)) => (name.trim().to_owned(), unit.trim_end_matches(']').to_owned()),
            None => (part.to_owned(), String::new()),
        }
    });
    each.collect()
}

/// Reads a table of GPUs or of processes.
pub fn read(dialect: &Dialect, table: &str) -> Report {
    let mut lines = table.lines();
    let header = columns(lines.next().unwrap_or(""));
    let mut report = Report::default();
    let rows = lines
        .map(str::trim)
        .take_while(|line| !line.is_empty() && line.contains(',') || header.len() == 1);
    for (row, line) in rows.take(ROWS_MAX).enumerate() {
        let Some(values) = split(line, &header) else { continue };
        let get = |names: &[String]| names.iter().find_map(|name| value(&header, &values, name));
        if header.iter().any(|(name, _)| name == "pid") {
            add_process(&mut report, &header, &values);
            continue;
        }
        let index = value(&header, &values, "index").and_then(|text| text.0.parse().ok());
        let mut draft = Draft::new(index.unwrap_or_else(|| u32::try_from(row).unwrap_or(u32::MAX)));
        for text in &dialect.texts {
            if let Some((value, _)) = get(&text.query) {
                draft.text(text.word, value);
            }
        }
        for word in &dialect.words {
            let alternatives = word.query.iter().filter_map(|name| value(&header, &values, name));
            draft.number(
                word.word,
                alternatives.map(|(text, unit)| number(text, unit, word.measure)),
            );
        }
        let reasons = dialect.reasons.iter().map(|reason| {
            let told = ["clocks_event_reasons", "clocks_throttle_reasons"]
                .iter()
                .find_map(|section| {
                    value(&header, &values, &format!("{section}.{}", reason.name)).map(|(text, _)| text)
                });
            (reason.mask, told)
        });
        draft.reasons(reasons);
        if let Some((version, _)) =
            value(&header, &values, "driver_version").or_else(|| value(&header, &values, "kmd_version"))
            && version.starts_with(|c: char| c.is_ascii_digit())
        {
            version.clone_into(&mut report.driver_version);
        }
        report.readings.push(draft.finish());
    }
    report
}

/// The values of a row. A process's command line may hold commas: what is too much belongs to the column of the name.
fn split<'a>(line: &'a str, header: &[(String, String)]) -> Option<Vec<&'a str>> {
    let mut values: Vec<&str> = line.split(',').map(str::trim).collect();
    let too_much = values.len().checked_sub(header.len())?;
    if too_much > 0 {
        let at = header
            .iter()
            .position(|(name, _)| name == "process_name" || name == "name")?;
        let first = values.get(at)?;
        let last = values.get(at + too_much)?;
        let begin = first.as_ptr() as usize - line.as_ptr() as usize;
        let end = last.as_ptr() as usize - line.as_ptr() as usize + last.len();
        values.splice(at..=at + too_much, [line.get(begin..end)?]);
    }
    Some(values)
}

fn value<'a>(header: &'a [(String, String)], values: &[&'a str], name: &str) -> Option<(&'a str, &'a str)> {
    let at = header.iter().position(|(column, _)| column == name)?;
    Some((values.get(at)?, &header[at].1))
}

fn add_process(report: &mut Report, header: &[(String, String)], values: &[&str]) {
    let get = |names: &[&str]| names.iter().find_map(|name| value(header, values, name));
    let Some(pid) = get(&["pid"]).and_then(|(text, _)| text.parse().ok()) else {
        return;
    };
    let mut draft = Draft::new(0);
    for (word, names) in [
        ("uuid", ["gpu_uuid", "uuid"]),
        ("pci_bus_id", ["gpu_bus_id", "pci.bus_id"]),
        ("model", ["gpu_name", "gpu_name"]),
        ("serial", ["gpu_serial", "serial"]),
    ] {
        if let Some((text, _)) = get(&names) {
            draft.text(word, text);
        }
    }
    let memory = get(&["used_gpu_memory", "used_memory"]).map(|(text, unit)| number(text, unit, Measure::Bytes));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole, and in the range of bytes"
    )]
    let memory_bytes = memory.and_then(Result::ok).map(|n| n as u64);
    debug_assert!(memory_bytes.is_none_or(|n| to_f64(n) >= 0.0));
    let process = GpuProcess {
        pid,
        name: get(&["process_name", "name"])
            .map(|(text, _)| text.chars().take(128).collect())
            .unwrap_or_default(),
        memory_bytes,
        ..GpuProcess::default()
    };
    let mut reading: Reading = draft.finish();
    let is_same = |known: &&mut Reading| {
        known.identity.uuid == reading.identity.uuid && known.identity.pci_bus_id == reading.identity.pci_bus_id
    };
    match report.readings.iter_mut().find(is_same) {
        Some(known) => known.processes.get_or_insert_default().push(process),
        None => {
            reading.identity.index = u32::try_from(report.readings.len()).unwrap_or(u32::MAX);
            reading.processes = Some(vec![process]);
            report.readings.push(reading);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::reading::{Absence, GpuState};

    fn dialect() -> Dialect {
        Dialect::embedded().expect("our own table")
    }

    #[test]
    fn values_have_their_own_unit_or_that_of_the_column() {
        for table in [
            "index, name, power.draw [W], memory.used [MiB]\n3, A, 61.37 W, 7 MiB\n",
            "index, name, power.draw [W], memory.used [MiB]\n3, A, 61.37, 7\n",
        ] {
            let report = read(&dialect(), find(table).expect("a table"));
            let gpu = &report.readings[0];
            assert_eq!(gpu.identity.index, 3);
            assert_eq!(gpu.number("power_usage"), Some(61_370.0));
            assert_eq!(gpu.number("memory_used"), Some(7_340_032.0));
        }
    }

    #[test]
    fn one_bad_cell_takes_nothing_from_the_others_and_a_lost_gpu_has_no_numbers() {
        let table = "index, name, uuid, temperature.gpu, power.draw [W]\n0, A, GPU-1, 34, [Unknown Error]\n1, [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost]\n";
        let report = read(&dialect(), table);
        let (first, second) = (&report.readings[0], &report.readings[1]);
        assert_eq!(first.number("temperature"), Some(34.0));
        assert!(first.absent.contains(&("power_usage", Absence::Failed)));
        assert_eq!((second.state, second.identity.index), (GpuState::Lost, 1));
    }

    #[test]
    fn a_command_line_may_hold_commas() {
        let table = "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\nGPU-1, 7, python -c a, b, 12 MiB\n";
        let report = read(&dialect(), table);
        let process = &report.readings[0].processes.as_ref().expect("a list")[0];
        assert_eq!(
            (process.name.as_str(), process.memory_bytes),
            ("python -c a, b", Some(12 << 20))
        );
    }

    #[test]
    fn prose_is_no_header() {
        for text in [
            "No devices were found\n",
            "a, b, c\n",
            "Field \"x\" is not a valid field to query.\n",
            "",
        ] {
            assert!(find(text).is_none(), "{text}");
        }
    }
}
