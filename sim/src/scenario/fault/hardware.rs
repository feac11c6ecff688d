//! Faults of boards and hosts: what of them goes wrong.

use serde::Deserialize;

use crate::offset::Offset;
use crate::scenario::board::PciAddress;

/// How hot, how fast.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThermalThrottle {
    /// The temperature it reaches, in degrees Celsius.
    pub temperature: f64,
    /// How long it takes to get there.
    pub over: Offset,
    /// The clock it falls to, in MHz.
    pub clock: u32,
}

/// How a hung GPU looks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hang {
    /// Its power, in watts.
    pub power: f64,
}

/// Whom the kernel kills.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OomKill {
    /// The process' name.
    pub process: String,
    /// Its id.
    pub pid: u32,
    /// Its control group.
    pub cgroup: String,
    /// Its memory, in GiB.
    pub rss_gib: u64,
    /// How long it grew before.
    pub grew_for: Offset,
    /// Whether its control group's limit was hit, and not the whole machine's memory.
    #[serde(default)]
    pub memcg: bool,
}

/// How many memory errors.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ecc {
    /// Corrected.
    #[serde(default)]
    pub corrected: u64,
    /// Not corrected.
    #[serde(default)]
    pub uncorrected: u64,
    /// Where.
    #[serde(default)]
    pub location: Location,
}

/// Where memory errors are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Location {
    /// In device memory.
    #[default]
    Dram,
    /// In the L2 cache, which is SRAM.
    L2Cache,
    /// In the multiprocessors: register file and L1, which are SRAM.
    Sm,
}

/// How many rows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remap {
    /// For correctable errors.
    #[serde(default)]
    pub correctable: u32,
    /// For uncorrectable errors.
    #[serde(default)]
    pub uncorrectable: u32,
    /// Whether rows wait for a reset.
    #[serde(default)]
    pub pending: bool,
    /// Whether a replacement failed.
    #[serde(default)]
    pub failure: bool,
}

/// Memory that nobody seems to own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrphanMemory {
    /// How much, in MiB.
    pub mib: u64,
    /// The process that the driver still lists for it, although there is none of that id any more.
    #[serde(default)]
    pub pid: Option<u32>,
}

/// A process that has the GPU open beside the job.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessPlan {
    /// Its id.
    pub pid: u32,
    /// Its name.
    #[serde(default = "python")]
    pub name: String,
    /// Its control group.
    #[serde(default = "root_cgroup")]
    pub cgroup: String,
    /// Its device memory, in MiB.
    pub memory_mib: u64,
    /// What it does with the multiprocessors, in percent.
    #[serde(default)]
    pub sm_util: u32,
    /// Which of the MIG instances it runs in, in order of their ids from 0.
    #[serde(default)]
    pub instance: usize,
    /// Whether its context is one for graphics.
    #[serde(default)]
    pub graphics: bool,
}

/// A link that fails.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NvLinkFault {
    /// Which one.
    pub link: u32,
    /// Whether it is down.
    #[serde(default)]
    pub down: bool,
    /// CRC errors.
    #[serde(default)]
    pub crc: u64,
    /// Packets sent again.
    #[serde(default)]
    pub replay: u64,
    /// Times it was brought up again.
    #[serde(default)]
    pub recovery: u64,
}

/// A fabric that is not as it should be.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FabricFault {
    /// How far the GPU has come.
    #[serde(default)]
    pub state: FabricStep,
    /// The code that joining ended with.
    #[serde(default)]
    pub status: u32,
    /// Bandwidth is missing.
    #[serde(default)]
    pub degraded_bandwidth: bool,
    /// Routes are being mended.
    #[serde(default)]
    pub route_recovery: bool,
    /// Routes are broken.
    #[serde(default)]
    pub route_unhealthy: bool,
    /// An access timed out.
    #[serde(default)]
    pub access_timeout: bool,
    /// The header's number of what is wrong with the set-up: 2 to 5.
    #[serde(default)]
    pub misconfiguration: Option<u32>,
}

/// How far a GPU has come into the fabric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FabricStep {
    /// Nobody has begun.
    NotStarted,
    /// Somebody has.
    InProgress,
    /// It has ended.
    #[default]
    Completed,
}

/// An error that a switch reports.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sxid {
    /// Its number.
    pub code: u32,
    /// The switch.
    pub switch: PciAddress,
    /// The link, where it is one's.
    #[serde(default)]
    pub link: Option<u32>,
    /// Whether it is fatal.
    #[serde(default)]
    pub fatal: bool,
    /// The words after the number.
    #[serde(default)]
    pub text: Option<String>,
}

fn python() -> String {
    "python3".into()
}

fn root_cgroup() -> String {
    "/".into()
}
