//! A board as it was captured: numbers that stand still, and the ones that it did not tell.

use crate::mig::MigInstance;
use crate::state::ProcessState;

/// What a captured board told. `None` is what it has not: the driver then says "not supported".
///
/// Units are those of [`BoardState`](crate::BoardState).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Still {
    /// The number in `/dev/nvidia<number>`.
    pub minor: Option<u32>,
    /// Whether the driver stays loaded without clients.
    pub persistence: Option<bool>,
    /// The header's compute mode.
    pub compute_mode: Option<u32>,
    /// Utilisation of cores, memory, encoder, decoder, JPEG engines and optical flow engine.
    pub gpu_util: Option<u32>,
    /// As above.
    pub memory_util: Option<u32>,
    /// As above.
    pub encoder_util: Option<u32>,
    /// As above.
    pub decoder_util: Option<u32>,
    /// As above.
    pub jpeg_util: Option<u32>,
    /// As above.
    pub optical_flow_util: Option<u32>,
    /// Core temperature.
    pub temperature: Option<i32>,
    /// Memory temperature.
    pub memory_temperature: Option<i32>,
    /// Degrees below the limit.
    pub margin: Option<i32>,
    /// Shutdown, slowdown, highest of the core, highest of the memory.
    pub thresholds: [Option<i32>; 4],
    /// The same as margins.
    pub margin_thresholds: [Option<i32>; 4],
    /// Power draw averaged, and of the moment.
    pub power_mw: Option<u32>,
    /// As above.
    pub power_instant_mw: Option<u32>,
    /// Limits: in force, set, default, lowest, highest.
    pub limits_mw: [Option<u32>; 5],
    /// Draw of the module, averaged, and its limit in force.
    pub module_power_mw: Option<u32>,
    /// As above.
    pub module_limit_mw: Option<u32>,
    /// Energy.
    pub energy_mj: Option<u64>,
    /// Clocks: graphics, multiprocessors, memory, video.
    pub clocks: [Option<u32>; 4],
    /// The highest of each.
    pub clocks_max: [Option<u32>; 4],
    /// The performance state.
    pub pstate: Option<u32>,
    /// Fan speed, percent.
    pub fan_speed: Option<u32>,
    /// Clock event reasons.
    pub reasons: Option<u64>,
    /// Memory: total, reserved, used, free.
    pub memory: [Option<u64>; 4],
    /// BAR1: total, used.
    pub bar1: Option<(u64, u64)>,
    /// PCIe generation now.
    pub pcie_generation: Option<u32>,
    /// PCIe lanes now.
    pub pcie_width: Option<u32>,
    /// PCIe packets sent again.
    pub pcie_replays: Option<u32>,
    /// PCIe traffic, KiB per second: sent, received.
    pub pcie_kib: [Option<u32>; 2],
    /// ECC now and after the next reset.
    pub ecc_mode: Option<(bool, bool)>,
    /// Since the driver was loaded and over the board's life: [SRAM, DRAM] × [corrected, uncorrected].
    pub ecc_volatile: [[Option<u64>; 2]; 2],
    /// As above.
    pub ecc_aggregate: [[Option<u64>; 2]; 2],
    /// Pages retired for single-bit and for double-bit errors, and whether some wait.
    pub retired: Option<(u32, u32, bool)>,
    /// Rows replaced for correctable and uncorrectable errors, and whether some wait or failed.
    pub remapped: Option<(u32, u32, bool, bool)>,
    /// Banks by spare rows left, from all to none.
    pub histogram: Option<[u32; 5]>,
    /// MIG now and after the next reset.
    pub mig_mode: Option<(bool, bool)>,
    /// The MIG devices, with used and reserved memory.
    pub mig: Vec<(MigInstance, u64, u64)>,
    /// The fabric: the header's state, the code that joining ended with.
    pub fabric: Option<(u8, u32)>,
    /// The header's recovery action.
    pub recovery_action: Option<u32>,
    /// Processes.
    pub processes: Vec<ProcessState>,
}
