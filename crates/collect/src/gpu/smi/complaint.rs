//! What nvidia-smi prints instead of an answer, or beside it: a state with a name, and the line as the reason.

use super::Report;
use super::dialect::{Dialect, bus_id};
use crate::State;
use crate::gpu::identity::Identity;
use crate::gpu::reading::{GpuState, Reading};
use crate::kernel::PciAddress;

/// Complaints kept of one output.
const COMPLAINTS_MAX: usize = 64;

/// Letters of a reason that are shown.
const REASON_LETTERS: usize = 200;

/// Lines longer than this are data.
const LINE_BYTES_MAX: usize = 1024;

/// Something that nvidia-smi complained of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// The word in `watchfire_gpu_driver_state`.
    pub state: String,
    /// How it stands with the collector, if no GPU answers.
    pub collector: State,
    /// The line.
    pub reason: String,
    /// The GPU whose address the line tells, and how it stands with it.
    pub gpu: Option<(String, GpuState)>,
}

/// The complaints in a text.
pub fn find(dialect: &Dialect, text: &str) -> Vec<Complaint> {
    let mut found: Vec<Complaint> = Vec::new();
    for line in text
        .lines()
        .filter(|line| line.len() <= LINE_BYTES_MAX && !is_data(line))
    {
        let says = |part: &String| line.contains(part.as_str());
        let Some(row) = dialect.complaints.iter().find(|row| row.says.iter().all(says)) else {
            continue;
        };
        let gpu = row.gpu.zip(address(line));
        let complaint = Complaint {
            state: row.state.clone(),
            collector: row.collector.into(),
            reason: shorten(line),
            gpu: gpu.map(|(state, address)| (address, state.into())),
        };
        // "No devices were found" after a GPU's own complaint is its echo.
        let is_echo = complaint.state == "no_devices" && !found.is_empty();
        if !is_echo && !found.contains(&complaint) && found.len() < COMPLAINTS_MAX {
            found.push(complaint);
        }
    }
    found
}

/// Rows of tables, elements, `key : value`: a value that says `Unknown Error` is one absent value.
fn is_data(line: &str) -> bool {
    let trimmed = line.trim_start();
    trimmed.starts_with(['|', '<', '+']) || line.contains(" : ") || line.contains(", [")
}

fn shorten(line: &str) -> String {
    line.trim().chars().take(REASON_LETTERS).collect()
}

/// The address of a GPU in a line: `GPU 0000:3B:00.0:`, since driver 580 `GPU0000:3B:00.0:`.
fn address(line: &str) -> Option<String> {
    let words = line
        .split_whitespace()
        .map(|word| word.trim_start_matches("GPU").trim_end_matches([':', '.', ',']));
    let mut addresses = words.filter(|word| word.matches(':').count() == 2 && PciAddress::parse(word).is_some());
    addresses.next().map(bus_id)
}

/// Puts the complaints on the GPUs they are about; a GPU that only its complaint tells of is one of them.
pub fn apply(report: &mut Report) {
    for complaint in &report.complaints {
        let Some((address, state)) = &complaint.gpu else {
            continue;
        };
        let slot = PciAddress::parse(address);
        let known = report
            .readings
            .iter_mut()
            .find(|r| PciAddress::parse(&r.identity.pci_bus_id) == slot);
        match known {
            Some(reading) if *state != GpuState::Ok => {
                *reading = Reading::without(reading.identity.clone(), *state);
            }
            None if *state != GpuState::Ok => {
                let who = Identity {
                    pci_bus_id: address.clone(),
                    ..Identity::unknown(u32::try_from(report.readings.len()).unwrap_or(u32::MAX))
                };
                report.readings.push(Reading::without(who, *state));
            }
            _ => {}
        }
    }
}

/// What it means that nothing was understood.
pub fn of_nothing(text: &str) -> Complaint {
    let line = text.lines().find(|line| !line.trim().is_empty());
    let (state, collector, reason) = match line {
        None => ("no_output", State::Absent, "nvidia-smi printed nothing".to_owned()),
        Some(line) => (
            "unreadable",
            State::Unsupported,
            format!("not understood: {}", shorten(line)),
        ),
    };
    Complaint {
        state: state.to_owned(),
        collector,
        reason,
        gpu: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &[(&str, State)]) {
        let dialect = Dialect::embedded().expect("our own table");
        let report = super::super::read(&dialect, text.as_bytes(), None);
        let got: Vec<(&str, State)> = report
            .complaints
            .iter()
            .map(|c| (c.state.as_str(), c.collector))
            .collect();
        assert_eq!(got, want);
    }

    #[test]
    fn each_complaint_is_a_state_with_a_name() {
        check("No devices were found\n", &[("no_devices", State::Absent)]);
        check(
            "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.90\n",
            &[("version_mismatch", State::Unsupported)],
        );
        check(
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that it runs.\n",
            &[("driver_not_loaded", State::Absent)],
        );
        check(
            "Failed to initialize NVML: Unknown Error\n",
            &[("driver_failed", State::Unsupported)],
        );
        check(
            "bash: line 1: nvidia-smi: command not found\n",
            &[("command_not_found", State::Absent)],
        );
        check(
            "sh: 1: nvidia-smi: not found\n",
            &[("command_not_found", State::Absent)],
        );
        check("", &[("no_output", State::Absent)]);
        check("Segmentation fault\n", &[("unreadable", State::Unsupported)]);
    }

    #[test]
    fn a_gpu_that_only_its_complaint_tells_of_is_down() {
        let dialect = Dialect::embedded().expect("our own table");
        for (text, state) in [
            (
                "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the system\n",
                GpuState::Lost,
            ),
            (
                "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error\nNo devices were found\n",
                GpuState::Failed,
            ),
        ] {
            let report = super::super::read(&dialect, text.as_bytes(), None);
            assert_eq!(report.readings.len(), 1);
            assert_eq!(
                (
                    report.readings[0].state,
                    report.readings[0].identity.pci_bus_id.as_str()
                ),
                (state, "00000000:3B:00.0")
            );
            assert_eq!(report.complaints.len(), 1);
        }
    }
}
