//! What ails a GPU, in our own series: state, margin to the slowdown, time held back, the link under load, repairs that
//! wait, what the driver asks for, the slots, and which fields are absent and why.

use std::collections::HashMap;

use model::{Family, Kind};

use super::boards::Boards;
use super::reading::{Absence, GpuState, Reading};
use super::selection::Selection;
use super::throttle::REASONS;
use crate::kernel::PciAddress;

/// GPUs whose link is remembered; sixteen is the most that a machine has.
const LINKS_MAX: usize = 256;

/// Counters of the driver for the reasons of [`REASONS`], in nanoseconds.
const COUNTERS: [(&str, &str); 5] = [
    ("sw_power_cap", "throttle_sw_power_cap"),
    ("sync_boost", "throttle_sync_boost"),
    ("sw_thermal_slowdown", "throttle_sw_thermal"),
    ("hw_thermal_slowdown", "throttle_hw_thermal"),
    ("hw_power_brake_slowdown", "throttle_hw_power_brake"),
];

/// What the driver asks for, by its number (`corpora/xid/recovery-actions.tsv`).
const ACTIONS: [&str; 5] = ["none", "gpu_reset", "node_reboot", "drain_p2p", "drain_and_reset"];

/// Payload of a lane in gigabits per second, by generation from 1: the link's rate less its encoding.
const LANE_GBPS: [f64; 6] = [2.0, 4.0, 7.877, 15.754, 31.508, 60.5];

const NS_PER_SECOND: f64 = 1e9;

/// What is remembered from round to round.
#[derive(Debug, Default)]
pub struct Health {
    /// The link's share of its maximum when the GPU was last loaded, by UUID.
    links: HashMap<String, f64>,
}

/// The versions that stand beside each GPU.
pub struct Versions<'a> {
    pub driver: &'a str,
    pub cuda: &'a str,
}

impl Health {
    /// The families of the readings; `slots` are the addresses of GPUs on the bus.
    pub fn families(
        &mut self,
        versions: &Versions<'_>,
        boards: &Boards,
        selection: &Selection,
        readings: &[Reading],
        slots: &[String],
    ) -> Vec<Family> {
        let ok = || readings.iter().filter(|r| r.state == GpuState::Ok);
        let mut families = vec![up(readings), info(versions, readings)];
        families.push(each(
            "watchfire_gpu_temperature_margin_celsius",
            "Degrees left before the hardware cuts the clocks.",
            ok(),
            |reading| boards.margin(reading),
        ));
        families.push(throttle(ok()));
        families.push(each(
            "watchfire_gpu_pcie_link_under_load_ratio",
            "Rate of the PCIe link as a share of the most that board and slot can, when the GPU last was loaded (0 to 1).",
            ok(),
            |reading| self.link(boards, reading),
        ));
        families.push(each(
            "watchfire_gpu_repair_pending",
            "Whether replaced memory rows or retired pages wait for a reset.",
            ok(),
            |reading| either(reading, "remapped_pending", "retired_pending"),
        ));
        families.push(each(
            "watchfire_gpu_repair_failed",
            "Whether a damaged memory row could not be replaced: the board is due for exchange.",
            ok(),
            |reading| reading.number("remapped_failure"),
        ));
        families.push(recovery(ok()));
        families.push(slot_lines(readings, slots));
        families.push(absent(selection, readings.iter()));
        families.extend(instances(ok()));
        families
    }

    /// The link's share of its maximum, as it was when the GPU last worked: at rest the link may sleep.
    fn link(&mut self, boards: &Boards, reading: &Reading) -> Option<f64> {
        let key = &reading.identity.uuid;
        if boards.is_loaded(reading) == Some(true)
            && let Some(share) = link_share(reading)
        {
            if self.links.len() >= LINKS_MAX {
                self.links.clear();
            }
            self.links.insert(key.clone(), share);
        }
        self.links.get(key).copied()
    }
}

fn link_share(reading: &Reading) -> Option<f64> {
    let rate = |generation: &str, width: &str| {
        let generation = reading.number(generation)?;
        let lane = (1..).map(f64::from).zip(LANE_GBPS).find(|(n, _)| *n == generation)?.1;
        Some(lane * reading.number(width)?)
    };
    let most = rate("pcie_generation_max", "pcie_width_max").filter(|most| *most > 0.0)?;
    Some((rate("pcie_generation", "pcie_width")? / most).min(1.0))
}

fn either(reading: &Reading, one: &str, other: &str) -> Option<f64> {
    match (reading.number(one), reading.number(other)) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}

fn gauge(name: &str, help: &str) -> Family {
    Family::new(name, Kind::Gauge, help)
}

/// A family with a line for each reading that has a value.
fn each<'a>(
    name: &str,
    help: &str,
    readings: impl Iterator<Item = &'a Reading>,
    mut value: impl FnMut(&Reading) -> Option<f64>,
) -> Family {
    let mut family = gauge(name, help);
    for reading in readings {
        family.push_some(|| reading.identity.labels(), value(reading));
    }
    family
}

fn up(readings: &[Reading]) -> Family {
    let help = "Whether the GPU answers; the state says how it stands with it (ok, lost, reset_required, hung, failed, missing).";
    let mut up = gauge("watchfire_gpu_up", help);
    for reading in readings {
        let mut labels = reading.identity.labels();
        labels.push(("state", reading.state.as_str().to_owned()));
        up.push(labels, f64::from(u8::from(reading.state == GpuState::Ok)));
    }
    up
}

fn info(versions: &Versions<'_>, readings: &[Reading]) -> Family {
    let mut info = gauge("watchfire_gpu_info", "What the GPU is; the value is always 1.");
    for reading in readings.iter().filter(|r| r.state == GpuState::Ok) {
        let identity = &reading.identity;
        let mut labels = identity.labels();
        labels.extend([
            ("modelName", identity.model.clone()),
            ("serial", identity.serial.clone()),
            ("vbios_version", identity.vbios.clone()),
            ("driver_version", versions.driver.to_owned()),
            ("cuda_version", versions.cuda.to_owned()),
        ]);
        info.push(labels, 1.0);
    }
    info
}

/// Seconds by reason: the driver's counters where it has them, else its bits as looked at every second.
fn throttle<'a>(readings: impl Iterator<Item = &'a Reading>) -> Family {
    let mut family = Family::new(
        "watchfire_gpu_throttle_seconds_total",
        Kind::Counter,
        "Seconds in which the GPU's clocks were held down, by reason: by the driver's counters, else as looked at every second.",
    );
    for reading in readings {
        for (_, reason) in REASONS {
            let word = COUNTERS.iter().find(|(name, _)| *name == reason).map(|(_, word)| *word);
            let counted = word.and_then(|word| reading.number(word)).map(|ns| ns / NS_PER_SECOND);
            // A counter that fails this once must not be replaced by another count of the same name.
            let failed = |word: &str| {
                reading
                    .absent
                    .iter()
                    .any(|(w, why)| *w == word && *why != Absence::Unsupported)
            };
            let looked = || {
                let seconds = reading.throttle.seconds().find(|(name, _)| *name == reason);
                seconds
                    .map(|(_, seconds)| seconds)
                    .filter(|_| !word.is_some_and(failed))
            };
            let labels = || {
                let mut labels = reading.identity.labels();
                labels.push(("reason", reason.to_owned()));
                labels
            };
            family.push_some(labels, counted.or_else(looked));
        }
    }
    family
}

/// What the driver asks for: 1 for one of the actions, 0 for the others.
fn recovery<'a>(readings: impl Iterator<Item = &'a Reading>) -> Family {
    let mut family = gauge(
        "watchfire_gpu_recovery_action",
        "Whether the driver asks for this action to make the GPU whole again.",
    );
    for reading in readings {
        let Some(asked) = reading.number("recovery_action") else {
            continue;
        };
        for (number, action) in (0..).map(f64::from).zip(ACTIONS) {
            let mut labels = reading.identity.labels();
            labels.push(("action", action.to_owned()));
            family.push(labels, f64::from(u8::from(number == asked)));
        }
    }
    family
}

/// One line for each slot that has, or had, a GPU.
fn slot_lines(readings: &[Reading], slots: &[String]) -> Family {
    let mut family = gauge(
        "watchfire_gpu_slot_present",
        "Whether a GPU answers in this slot: of those on the bus, those the driver shows and those seen before.",
    );
    let mut seen: Vec<(PciAddress, bool, String)> = Vec::new();
    let of_readings = readings
        .iter()
        .map(|r| (r.identity.pci_bus_id.as_str(), r.state == GpuState::Ok));
    for (address, answers) in of_readings.chain(slots.iter().map(|slot| (slot.as_str(), false))) {
        let Some(slot) = PciAddress::parse(address) else {
            continue;
        };
        match seen.iter_mut().find(|(known, ..)| *known == slot) {
            Some((_, any, _)) => *any |= answers,
            None => seen.push((slot, answers, long_form(address))),
        }
    }
    for (_, answers, address) in seen {
        family.push(vec![("pci_bus_id", address)], f64::from(u8::from(answers)));
    }
    family
}

/// `00000000:1B:00.0` for the kernel's `0000:1b:00.0`, as NVML writes it.
fn long_form(address: &str) -> String {
    match address.split_once(':') {
        Some((domain, rest)) if domain.len() < 8 => format!("{domain:0>8}:{rest}").to_uppercase(),
        _ => address.to_uppercase(),
    }
}

/// Which fields of the page a GPU has no value for, and why.
fn absent<'a>(selection: &Selection, readings: impl Iterator<Item = &'a Reading>) -> Family {
    let mut family = gauge(
        "watchfire_gpu_field_absent",
        "A field that this GPU has no value for, and why (unsupported, denied, failed, out_of_range, unreadable, not_told); the value is always 1.",
    );
    for reading in readings {
        for column in &selection.columns {
            let word = column.field.source.as_str();
            let Some((_, why)) = reading.absent.iter().find(|(absent, _)| *absent == word) else {
                continue;
            };
            if reading.numbers.contains_key(word) {
                continue;
            }
            let mut labels = reading.identity.labels();
            labels.push(("field", column.name.clone()));
            labels.push(("reason", why.as_str().to_owned()));
            family.push(labels, 1.0);
        }
    }
    family
}

/// The instances of GPUs under MIG.
fn instances<'a>(readings: impl Iterator<Item = &'a Reading>) -> Vec<Family> {
    let mut info = gauge(
        "watchfire_gpu_instance_info",
        "An instance of a GPU under MIG; the value is always 1.",
    );
    let mut processors = gauge(
        "watchfire_gpu_instance_multiprocessors",
        "Multiprocessors of the instance.",
    );
    let mut total = gauge(
        "watchfire_gpu_instance_memory_total_bytes",
        "Device memory of the instance.",
    );
    let mut used = gauge(
        "watchfire_gpu_instance_memory_used_bytes",
        "Device memory of the instance in use.",
    );
    let mut errors = Family::new(
        "watchfire_gpu_instance_ecc_uncorrected_total",
        Kind::Counter,
        "Uncorrected memory errors of the instance since the driver was loaded.",
    );
    let mut processes = gauge("watchfire_gpu_instance_processes", "Processes in the instance.");
    for reading in readings {
        for (i, instance) in reading.instances.iter().enumerate() {
            let labels = || {
                let mut labels = reading.identity.labels();
                labels.push(("GPU_I_PROFILE", instance.profile.clone()));
                labels.push(("GPU_I_ID", instance.gpu_instance.to_string()));
                labels
            };
            let mut named = labels();
            let compute = instance.compute_instance.map(|id| id.to_string());
            named.push(("compute_instance", compute.unwrap_or_default()));
            named.push(("instance_uuid", instance.uuid.clone()));
            info.push(named, 1.0);
            // Compute instances of one GPU instance share its memory.
            if reading.instances[..i]
                .iter()
                .any(|other| other.gpu_instance == instance.gpu_instance)
            {
                continue;
            }
            processors.push_some(labels, instance.multiprocessors.map(f64::from));
            total.push_some(labels, instance.memory_total.map(crate::source::to_f64));
            used.push_some(labels, instance.memory_used.map(crate::source::to_f64));
            errors.push_some(labels, instance.ecc_uncorrected_volatile.map(crate::source::to_f64));
            if let Some(all) = &reading.processes {
                let own = all
                    .iter()
                    .filter(|p| p.gpu_instance == Some(instance.gpu_instance))
                    .count();
                processes.push(labels(), u32::try_from(own).unwrap_or(u32::MAX).into());
            }
        }
    }
    vec![info, processors, total, used, errors, processes]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::field::{FIELDS, FieldTable};
    use crate::gpu::identity::Identity;
    use crate::gpu::names::Names;

    fn reading(numbers: &[(&'static str, f64)]) -> Reading {
        let who = Identity {
            uuid: "GPU-1".to_owned(),
            pci_bus_id: "00000000:3B:00.0".to_owned(),
            ..Identity::unknown(0)
        };
        Reading {
            numbers: numbers.iter().copied().collect(),
            ..Reading::without(who, GpuState::Ok)
        }
    }

    fn families(health: &mut Health, reading: Reading, slots: &[String]) -> Vec<Family> {
        let versions = Versions { driver: "1", cuda: "2" };
        let boards = Boards::embedded().expect("our own table");
        let selection = Selection::usual(&FieldTable::new(FIELDS).expect("our own table"), Names::Dcgm48);
        health.families(&versions, &boards, &selection, &[reading], slots)
    }

    fn value(families: &[Family], name: &str, label: &str) -> Option<f64> {
        let family = families.iter().find(|f| f.name == name)?;
        let is = |m: &&model::Metric| label.is_empty() || m.labels.iter().any(|(_, v)| v == label);
        family.metrics.iter().find(is).map(|m| m.value)
    }

    const LINK: &str = "watchfire_gpu_pcie_link_under_load_ratio";

    #[test]
    fn a_link_is_judged_under_load_and_the_verdict_stays_while_it_sleeps() {
        let mut health = Health::default();
        let link = |busy: f64, generation: f64, width: f64| {
            reading(&[
                ("utilization_gpu", busy),
                ("pcie_generation", generation),
                ("pcie_width", width),
                ("pcie_generation_max", 5.0),
                ("pcie_width_max", 16.0),
            ])
        };
        assert_eq!(
            value(&families(&mut health, link(0.0, 1.0, 16.0), &[]), LINK, ""),
            None,
            "idle says nothing"
        );
        assert_eq!(
            value(&families(&mut health, link(90.0, 5.0, 8.0), &[]), LINK, ""),
            Some(0.5)
        );
        assert_eq!(
            value(&families(&mut health, link(0.0, 1.0, 8.0), &[]), LINK, ""),
            Some(0.5)
        );
        assert_eq!(
            value(&families(&mut health, link(90.0, 5.0, 16.0), &[]), LINK, ""),
            Some(1.0)
        );
    }

    #[test]
    fn time_held_back_is_the_drivers_count_where_it_has_one() {
        let name = "watchfire_gpu_throttle_seconds_total";
        let mut counted = reading(&[("throttle_hw_thermal", 2.5e9)]);
        counted.throttle.see(0, nvml::ClockReasons::SW_POWER_CAP);
        counted.throttle.see(1_000, nvml::ClockReasons::SW_POWER_CAP);
        let all = families(&mut Health::default(), counted, &[]);
        assert_eq!(value(&all, name, "hw_thermal_slowdown"), Some(2.5));
        assert_eq!(value(&all, name, "sw_power_cap"), Some(1.0), "as looked at");

        let mut failed = reading(&[]);
        failed.throttle.see(0, nvml::ClockReasons::SW_POWER_CAP);
        failed.absent.push(("throttle_sw_power_cap", Absence::Failed));
        let all = families(&mut Health::default(), failed, &[]);
        assert_eq!(
            value(&all, name, "sw_power_cap"),
            None,
            "another count must not take its place"
        );
        assert_eq!(value(&all, name, "hw_slowdown"), Some(0.0));
    }

    #[test]
    fn each_slot_has_a_line_whether_its_gpu_answers_or_not() {
        let slots = ["0000:3b:00.0".to_owned(), "0000:86:00.0".to_owned()];
        let all = families(&mut Health::default(), reading(&[]), &slots);
        let name = "watchfire_gpu_slot_present";
        assert_eq!(value(&all, name, "00000000:3B:00.0"), Some(1.0));
        assert_eq!(value(&all, name, "00000000:86:00.0"), Some(0.0));
    }

    #[test]
    fn what_the_driver_asks_for_is_one_of_five() {
        let all = families(
            &mut Health::default(),
            reading(&[("recovery_action", 2.0), ("retired_pending", 1.0)]),
            &[],
        );
        assert_eq!(value(&all, "watchfire_gpu_recovery_action", "node_reboot"), Some(1.0));
        assert_eq!(value(&all, "watchfire_gpu_recovery_action", "none"), Some(0.0));
        assert_eq!(value(&all, "watchfire_gpu_repair_pending", ""), Some(1.0));
        assert_eq!(value(&all, "watchfire_gpu_repair_failed", ""), None);
    }

    #[test]
    fn an_absent_field_has_its_reason() {
        let mut reading = reading(&[("temperature", 40.0)]);
        reading.absent.push(("memory_temperature", Absence::Unsupported));
        reading.absent.push(("temperature", Absence::Failed));
        let all = families(&mut Health::default(), reading, &[]);
        let name = "watchfire_gpu_field_absent";
        assert_eq!(value(&all, name, "DCGM_FI_DEV_MEMORY_TEMP"), Some(1.0));
        assert_eq!(value(&all, name, "DCGM_FI_DEV_GPU_TEMP"), None, "it has a value");
    }
}
