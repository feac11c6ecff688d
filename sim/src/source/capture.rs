//! A capture of `nvidia-smi -q -x`: boards that tell what they told then, for ever.

use std::sync::Arc;

use super::xml::{self, Element};
use super::{architecture, server};
use crate::error::Error;
use crate::mig::{MigInstance, Profile};
use crate::offset::Offset;
use crate::scenario::{Board, BoardKind, ClocksKind, Driver, PciAddress, PowerKind, Scenario, Still, TemperatureKind};
use crate::state::{ProcessState, reason};

const MIB: u64 = 1 << 20;

pub(super) fn parse(text: &str) -> Result<Arc<Scenario>, Error> {
    let document = xml::parse(text)?;
    let log = document
        .find("nvidia_smi_log")
        .ok_or_else(|| Error::invalid("no nvidia_smi_log in the capture"))?;
    let version = log.text("driver_version").unwrap_or("0").to_owned();
    let (major, minor) = log
        .text("cuda_version")
        .and_then(|cuda| cuda.split_once('.'))
        .unwrap_or(("0", "0"));
    let driver = Driver {
        nvml: format!("{major}.{version}"),
        version,
        cuda: major.parse().unwrap_or(0) * 1000 + minor.parse().unwrap_or(0) * 10,
        loaded: Offset(-86_400_000),
        init_error: None,
    };
    let boards = log.all("gpu").enumerate().map(|(index, gpu)| board(index, gpu));
    server("capture", driver, boards.collect::<Result<_, _>>()?)
}

fn board(index: usize, gpu: &Element) -> Result<(Board, BoardKind), Error> {
    let named = |what: &str| Error::invalid(format!("GPU {index} of the capture has no {what}"));
    let pci = gpu.text("pci/pci_bus_id").ok_or_else(|| named("PCI address"))?;
    let pci = PciAddress::parse(pci).ok_or_else(|| named("PCI address"))?;
    let uuid = gpu.text("uuid").ok_or_else(|| named("UUID"))?.to_owned();
    let still = still(gpu, &uuid);
    let kind = kind(gpu, &still);
    let board = Board {
        serial: gpu.text("serial").unwrap_or("").to_owned(),
        uuid,
        pci,
        warmer: 0.0,
        hungry: 1.0,
        mig: Vec::new(),
        still: Some(Arc::new(still)),
    };
    Ok((board, kind))
}

/// What the board is; numbers here only carry what the library computes with.
fn kind(gpu: &Element, still: &Still) -> BoardKind {
    let text = |path: &str| gpu.text(path).unwrap_or("").to_owned();
    let hex = |path: &str| {
        gpu.text(path)
            .and_then(|id| u32::from_str_radix(id.trim_start_matches("0x"), 16).ok())
    };
    let mib = |bytes: Option<u64>| bytes.unwrap_or(0) / MIB;
    let watts = |milliwatts: Option<u32>| f64::from(milliwatts.unwrap_or(0)) / 1000.0;
    let links = |path: &str| number(gpu, path).unwrap_or(0);
    BoardKind {
        model: text("product_name"),
        architecture: architecture(&text("product_architecture")),
        compute_capability: (0, 0),
        cores: 0,
        part_number: text("board_part_number"),
        vbios: text("vbios_version"),
        inforom: text("inforom_version/img_version"),
        pci_device_id: hex("pci/pci_device_id").unwrap_or(0),
        pci_subsystem_id: hex("pci/pci_sub_system_id").unwrap_or(0),
        memory_mib: mib(still.memory[0]),
        reserved_mib: mib(still.memory[1]),
        bar1_mib: mib(still.bar1.map(|(total, _)| total)),
        pcie_generation: links("pci/pci_gpu_link_info/pcie_gen/max_link_gen"),
        pcie_width: links("pci/pci_gpu_link_info/link_widths/max_link_width"),
        nvlinks: 0,
        nvlink_mbps: 0,
        // What the board lacks it does not tell one by one.
        datacenter: true,
        fans: u32::from(still.fan_speed.is_some()),
        power: PowerKind {
            idle: watts(still.power_mw),
            peak: watts(still.limits_mw[0]),
            limit: watts(still.limits_mw[0]),
            limit_min: watts(still.limits_mw[3]),
            limit_max: watts(still.limits_mw[4]),
        },
        clocks: ClocksKind {
            sm_idle: still.clocks[1].unwrap_or(0),
            sm_max: still.clocks_max[1].unwrap_or(0),
            memory: still.clocks[2].unwrap_or(0),
            video_idle: still.clocks[3].unwrap_or(0),
            video_max: still.clocks_max[3].unwrap_or(0),
        },
        temperature: TemperatureKind {
            ambient: f64::from(still.temperature.unwrap_or(0)),
            per_watt: 0.0,
            time_constant: 1.0,
            shutdown: still.thresholds[0].unwrap_or(0),
            slowdown: still.thresholds[1].unwrap_or(0),
            gpu_max: still.thresholds[3].unwrap_or(0),
            memory_max: still.thresholds[2].unwrap_or(0),
        },
    }
}

fn still(gpu: &Element, uuid: &str) -> Still {
    let utilization = |engine: &str| number(gpu, &format!("utilization/{engine}_util"));
    let celsius = |name: &str| number(gpu, &format!("temperature/{name}"));
    let bytes = |path: &str| number::<u64>(gpu, path).map(|mib| mib * MIB);
    let clocks =
        |group: &str| ["graphics", "sm", "mem", "video"].map(|clock| number(gpu, &format!("{group}/{clock}_clock")));
    let ecc = |span: &str| {
        ["sram", "dram"].map(|place| {
            let sram_sum = || {
                let part = |kind: &str| number::<u64>(gpu, &format!("ecc_errors/{span}/sram_uncorrectable_{kind}"));
                Some(part("parity")? + part("secded")?)
            };
            let corrected = number(gpu, &format!("ecc_errors/{span}/{place}_correctable"));
            let uncorrected = number(gpu, &format!("ecc_errors/{span}/{place}_uncorrectable"));
            [
                corrected,
                uncorrected.or_else(|| if place == "sram" { sram_sum() } else { None }),
            ]
        })
    };
    // Older and newer drivers have different names for the same group.
    let power = |name: &str| {
        ["gpu_power_readings", "power_readings"]
            .into_iter()
            .find_map(|group| milliwatts(gpu, &format!("{group}/{name}")))
    };
    Still {
        minor: number(gpu, "minor_number"),
        persistence: on(gpu, "persistence_mode"),
        compute_mode: gpu.text("compute_mode").and_then(|mode| match mode {
            "Default" => Some(0),
            "Prohibited" => Some(2),
            "Exclusive_Process" | "E. Process" => Some(3),
            _ => None,
        }),
        gpu_util: utilization("gpu"),
        memory_util: utilization("memory"),
        encoder_util: utilization("encoder"),
        decoder_util: utilization("decoder"),
        jpeg_util: utilization("jpeg"),
        optical_flow_util: utilization("ofa"),
        temperature: celsius("gpu_temp"),
        memory_temperature: celsius("memory_temp"),
        margin: celsius("gpu_temp_tlimit"),
        thresholds: [
            celsius("gpu_temp_max_threshold"),
            celsius("gpu_temp_slow_threshold"),
            celsius("gpu_temp_max_mem_threshold"),
            celsius("gpu_temp_max_gpu_threshold"),
        ],
        margin_thresholds: [
            celsius("gpu_temp_max_tlimit_threshold"),
            celsius("gpu_temp_slow_tlimit_threshold"),
            celsius("gpu_temp_max_mem_tlimit_threshold"),
            celsius("gpu_temp_max_gpu_tlimit_threshold"),
        ],
        power_mw: power("power_draw")
            .or_else(|| power("average_power_draw"))
            .or_else(|| power("instant_power_draw")),
        power_instant_mw: power("instant_power_draw"),
        limits_mw: [
            power("enforced_power_limit")
                .or_else(|| power("current_power_limit"))
                .or_else(|| power("power_limit")),
            power("requested_power_limit")
                .or_else(|| power("current_power_limit"))
                .or_else(|| power("power_limit")),
            power("default_power_limit"),
            power("min_power_limit"),
            power("max_power_limit"),
        ],
        module_power_mw: milliwatts(gpu, "module_power_readings/power_draw")
            .or_else(|| milliwatts(gpu, "module_power_readings/average_power_draw")),
        module_limit_mw: milliwatts(gpu, "module_power_readings/current_power_limit"),
        energy_mj: None,
        clocks: clocks("clocks"),
        clocks_max: clocks("max_clocks"),
        pstate: gpu
            .text("performance_state")
            .and_then(|state| state.strip_prefix('P')?.parse().ok()),
        fan_speed: number(gpu, "fan_speed"),
        reasons: reasons(gpu),
        memory: [
            bytes("fb_memory_usage/total"),
            bytes("fb_memory_usage/reserved"),
            bytes("fb_memory_usage/used"),
            bytes("fb_memory_usage/free"),
        ],
        bar1: bytes("bar1_memory_usage/total").zip(bytes("bar1_memory_usage/used")),
        pcie_generation: number(gpu, "pci/pci_gpu_link_info/pcie_gen/current_link_gen"),
        pcie_width: number(gpu, "pci/pci_gpu_link_info/link_widths/current_link_width"),
        pcie_replays: number(gpu, "pci/replay_counter"),
        pcie_kib: [number(gpu, "pci/tx_util"), number(gpu, "pci/rx_util")],
        ecc_mode: on(gpu, "ecc_mode/current_ecc").zip(on(gpu, "ecc_mode/pending_ecc")),
        ecc_volatile: ecc("volatile"),
        ecc_aggregate: ecc("aggregate"),
        retired: retired(gpu),
        remapped: remapped(gpu),
        histogram: histogram(gpu),
        mig_mode: on(gpu, "mig_mode/current_mig").zip(on(gpu, "mig_mode/pending_mig")),
        mig: instances(gpu, uuid),
        fabric: gpu.text("fabric/state").and_then(|state| {
            let state = match state {
                "Not Started" => 1,
                "In Progress" => 2,
                "Completed" => 3,
                _ => return None,
            };
            Some((
                state,
                u32::from(gpu.text("fabric/status").is_some_and(|status| status != "Success")),
            ))
        }),
        recovery_action: gpu.text("gpu_recovery_action").and_then(|action| match action {
            "None" => Some(0),
            "Reset" => Some(1),
            "Reboot" => Some(2),
            "Drain P2P" => Some(3),
            "Drain and Reset" => Some(4),
            _ => None,
        }),
        processes: processes(gpu),
    }
}

/// The number at the beginning of a text, whatever unit follows it.
fn number<T: std::str::FromStr>(gpu: &Element, path: &str) -> Option<T> {
    let text = gpu.text(path)?;
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '-')
        .unwrap_or(text.len());
    text[..end].parse().ok()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within the range of a board's power"
)]
fn milliwatts(gpu: &Element, path: &str) -> Option<u32> {
    let watts: f64 = gpu.text(path)?.strip_suffix('W')?.trim().parse().ok()?;
    (0.0..100_000.0)
        .contains(&watts)
        .then(|| (watts * 1000.0).round() as u32)
}

fn on(gpu: &Element, path: &str) -> Option<bool> {
    match gpu.text(path)? {
        "Enabled" | "Yes" => Some(true),
        "Disabled" | "No" => Some(false),
        _ => None,
    }
}

fn reasons(gpu: &Element) -> Option<u64> {
    let names = [
        ("gpu_idle", reason::GPU_IDLE),
        ("applications_clocks_setting", 0x2),
        ("sw_power_cap", reason::SW_POWER_CAP),
        ("hw_slowdown", reason::HW_SLOWDOWN),
        ("sync_boost", 0x10),
        ("sw_thermal_slowdown", reason::SW_THERMAL),
        ("hw_thermal_slowdown", reason::HW_THERMAL),
        ("hw_power_brake_slowdown", 0x80),
        ("display_clocks_setting", 0x100),
    ];
    // Before driver 535 they were called throttle reasons.
    let groups = [
        ("clocks_event_reasons", "clocks_event_reason"),
        ("clocks_throttle_reasons", "clocks_throttle_reason"),
    ];
    let (group, prefix) = groups.into_iter().find(|(group, _)| gpu.find(group).is_some())?;
    let mut told = None;
    for (name, bit) in names {
        if let Some(active) = gpu.text(&format!("{group}/{prefix}_{name}")) {
            *told.get_or_insert(0) |= if active == "Active" { bit } else { 0 };
        }
    }
    told
}

fn retired(gpu: &Element) -> Option<(u32, u32, bool)> {
    Some((
        number(gpu, "retired_pages/multiple_single_bit_retirement/retired_count")?,
        number(gpu, "retired_pages/double_bit_retirement/retired_count")?,
        on(gpu, "retired_pages/pending_retirement")
            .or_else(|| on(gpu, "retired_pages/pending_blacklist"))
            .unwrap_or(false),
    ))
}

fn remapped(gpu: &Element) -> Option<(u32, u32, bool, bool)> {
    Some((
        number(gpu, "remapped_rows/remapped_row_corr")?,
        number(gpu, "remapped_rows/remapped_row_unc")?,
        on(gpu, "remapped_rows/remapped_row_pending")?,
        on(gpu, "remapped_rows/remapped_row_failure")?,
    ))
}

fn histogram(gpu: &Element) -> Option<[u32; 5]> {
    let banks = ["max", "high", "partial", "low", "none"].map(|level| {
        number(
            gpu,
            &format!("remapped_rows/row_remapper_histogram/row_remapper_histogram_{level}"),
        )
    });
    let [max, high, partial, low, none] = banks;
    Some([max?, high?, partial?, low?, none?])
}

fn instances(gpu: &Element, uuid: &str) -> Vec<(MigInstance, u64, u64)> {
    let Some(list) = gpu.find("mig_devices") else {
        return Vec::new();
    };
    let board_gb = number::<u64>(gpu, "fb_memory_usage/total").unwrap_or(0).div_ceil(1024);
    let instance = |(slot, mig): (usize, &Element)| {
        let bytes = |name: &str| number::<u64>(mig, &format!("fb_memory_usage/{name}")).map(|mib| mib * MIB);
        let (gpu_instance, compute_instance) = (number(mig, "gpu_instance_id")?, number(mig, "compute_instance_id")?);
        let multiprocessors: u32 = number(mig, "device_attributes/shared/multiprocessor_count").unwrap_or(14);
        let total = bytes("total")?;
        // The capture does not say the profile: it follows from multiprocessors and memory.
        let slices = (multiprocessors / 14).clamp(1, 7);
        let eighths = (total / MIB * 8).div_ceil((board_gb * 1024).max(1)).min(8);
        let name = format!("{slices}g.{}gb", (board_gb * eighths).div_ceil(8));
        let instance = MigInstance {
            slot,
            gpu_instance,
            compute_instance,
            uuid: crate::mig::uuid(uuid, gpu_instance, compute_instance),
            profile: Profile::parse(&name)?,
            memory: total,
            multiprocessors,
        };
        Some((instance, bytes("used")?, bytes("reserved").unwrap_or(0)))
    };
    list.all("mig_device").enumerate().filter_map(instance).collect()
}

fn processes(gpu: &Element) -> Vec<ProcessState> {
    let Some(list) = gpu.find("processes") else {
        return Vec::new();
    };
    let process = |process: &Element| {
        Some(ProcessState {
            pid: number(process, "pid")?,
            name: process.text("process_name").unwrap_or("").to_owned(),
            cgroup: "/".into(),
            memory: number::<u64>(process, "used_memory").map_or(u64::MAX, |mib| mib * MIB),
            sm_util: 0,
            memory_util: 0,
            instance: number(process, "gpu_instance_id").zip(number(process, "compute_instance_id")),
            graphics: process.text("type") == Some("G"),
            alive: true,
        })
    };
    list.all("process_info").filter_map(process).collect()
}
