//! A machine profile: the facts of a model in YAML, from which a server is played at idle.
//!
//! Only what a board is made of is taken; keys that say more are passed over.

use std::sync::Arc;

use serde::Deserialize;

use super::{architecture, server};
use crate::error::Error;
use crate::offset::Offset;
use crate::scenario::{Board, BoardKind, ClocksKind, Driver, PciAddress, PowerKind, Scenario, TemperatureKind};

#[derive(Deserialize)]
struct Profile {
    system: System,
    device_defaults: Device,
    devices: Vec<Place>,
    #[serde(default)]
    nvlink: Option<NvLink>,
}

#[derive(Deserialize)]
struct System {
    driver_version: String,
    nvml_version: String,
    cuda_version_major: i32,
    cuda_version_minor: i32,
}

#[derive(Deserialize)]
struct Device {
    name: String,
    board_part_number: String,
    vbios_version: String,
    architecture: String,
    compute_capability: Capability,
    num_gpu_cores: u32,
    inforom: Inforom,
    memory: Memory,
    bar1_memory: Bar1,
    pci: PciIds,
    pcie: Pcie,
    power: Power,
    thermal: Thermal,
    fan: Fan,
    clocks: Clocks,
}

#[derive(Deserialize)]
struct Capability {
    major: i32,
    minor: i32,
}

#[derive(Deserialize)]
struct Inforom {
    image_version: String,
}

#[derive(Deserialize)]
struct Memory {
    total_bytes: u64,
    reserved_bytes: u64,
}

#[derive(Deserialize)]
struct Bar1 {
    total_bytes: u64,
}

#[derive(Deserialize)]
struct PciIds {
    device_id: u32,
    subsystem_id: u32,
}

#[derive(Deserialize)]
struct Pcie {
    max_link_gen: u32,
    max_link_width: u32,
}

#[derive(Deserialize)]
struct Power {
    default_limit_mw: f64,
    min_limit_mw: f64,
    max_limit_mw: f64,
    current_draw_mw: f64,
}

#[derive(Deserialize)]
struct Thermal {
    temperature_gpu_c: f64,
    shutdown_threshold_c: i32,
    slowdown_threshold_c: i32,
    max_operating_c: i32,
}

#[derive(Deserialize)]
struct Fan {
    count: u32,
}

#[derive(Deserialize)]
struct Clocks {
    sm_current: u32,
    sm_max: u32,
    memory_max: u32,
    video_current: u32,
    video_max: u32,
}

#[derive(Deserialize)]
struct Place {
    uuid: String,
    #[serde(default)]
    serial: String,
    pci: BusId,
}

#[derive(Deserialize)]
struct BusId {
    bus_id: PciAddress,
}

#[derive(Deserialize)]
struct NvLink {
    #[serde(default)]
    links_per_gpu: u32,
    #[serde(default)]
    bandwidth_per_link_mbps: u32,
}

pub(super) fn parse(text: &str) -> Result<Arc<Scenario>, Error> {
    let profile: Profile = serde_saphyr::from_str(text).map_err(|err| Error::Parse {
        message: err.to_string(),
    })?;
    let kind = kind(&profile.device_defaults, profile.nvlink.as_ref());
    let driver = Driver {
        version: profile.system.driver_version,
        nvml: profile.system.nvml_version,
        cuda: profile.system.cuda_version_major * 1000 + profile.system.cuda_version_minor * 10,
        loaded: Offset(-86_400_000),
        init_error: None,
    };
    let boards = profile.devices.into_iter().map(|place| {
        let board = Board {
            uuid: place.uuid,
            serial: place.serial,
            pci: place.pci.bus_id,
            warmer: 0.0,
            hungry: 1.0,
            mig: Vec::new(),
            still: None,
        };
        (board, kind.clone())
    });
    server(&profile.device_defaults.name, driver, boards.collect())
}

fn kind(device: &Device, nvlink: Option<&NvLink>) -> BoardKind {
    const MIB: u64 = 1 << 20;
    let watts = |milliwatts: f64| milliwatts / 1000.0;
    let (idle, limit) = (
        watts(device.power.current_draw_mw),
        watts(device.power.default_limit_mw),
    );
    // Idle as the profile says it, and some degrees below the highest operating temperature at full power.
    let hottest = f64::from(device.thermal.max_operating_c) - 8.0;
    let per_watt = (hottest - device.thermal.temperature_gpu_c) / (limit - idle).max(1.0);
    BoardKind {
        model: device.name.clone(),
        architecture: architecture(&device.architecture),
        compute_capability: (device.compute_capability.major, device.compute_capability.minor),
        cores: device.num_gpu_cores,
        part_number: device.board_part_number.clone(),
        vbios: device.vbios_version.clone(),
        inforom: device.inforom.image_version.clone(),
        pci_device_id: device.pci.device_id,
        pci_subsystem_id: device.pci.subsystem_id,
        memory_mib: device.memory.total_bytes / MIB,
        reserved_mib: device.memory.reserved_bytes / MIB,
        bar1_mib: device.bar1_memory.total_bytes / MIB,
        pcie_generation: device.pcie.max_link_gen,
        pcie_width: device.pcie.max_link_width,
        nvlinks: nvlink.map_or(0, |nvlink| nvlink.links_per_gpu),
        nvlink_mbps: nvlink.map_or(0, |nvlink| nvlink.bandwidth_per_link_mbps),
        datacenter: true,
        fans: device.fan.count,
        power: PowerKind {
            idle,
            peak: limit,
            limit,
            limit_min: watts(device.power.min_limit_mw),
            limit_max: watts(device.power.max_limit_mw),
        },
        clocks: ClocksKind {
            sm_idle: device.clocks.sm_current,
            sm_max: device.clocks.sm_max,
            memory: device.clocks.memory_max,
            video_idle: device.clocks.video_current,
            video_max: device.clocks.video_max,
        },
        temperature: TemperatureKind {
            ambient: device.thermal.temperature_gpu_c - per_watt * idle,
            per_watt,
            time_constant: 25.0,
            shutdown: device.thermal.shutdown_threshold_c,
            slowdown: device.thermal.slowdown_threshold_c,
            gpu_max: device.thermal.max_operating_c,
            memory_max: 95,
        },
    }
}
