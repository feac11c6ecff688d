//! All that one board would tell at a time.

use crate::counter::{Counts, Rates};
use crate::load::{Load, round_u32, round_u64};
use crate::scenario::{FaultKind, Scenario};

/// The clock event reasons, bits as in the vendor's header.
pub mod reason {
    /// Nothing runs.
    pub const GPU_IDLE: u64 = 0x1;
    /// The power limit.
    pub const SW_POWER_CAP: u64 = 0x4;
    /// The hardware cut the clocks.
    pub const HW_SLOWDOWN: u64 = 0x8;
    /// Above the highest operating temperature.
    pub const SW_THERMAL: u64 = 0x20;
    /// The hardware cut the clocks because of heat.
    pub const HW_THERMAL: u64 = 0x40;
    /// All that this board can give.
    pub const SUPPORTED: u64 = 0x1ff;
}

/// A board at a moment. Memory is in bytes, clocks in MHz, power in milliwatts, temperatures
/// in degrees Celsius, times in nanoseconds, traffic in bytes, counters since the driver was loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct BoardState {
    /// Off the bus: nothing else is true any more.
    pub lost: bool,
    /// Driver calls do not return.
    pub calls_hang: bool,
    /// Driver calls take this long, in milliseconds.
    pub call_ms: u64,
    /// What goes on inside.
    pub load: Load,
    /// Utilisation, percent.
    pub gpu_util: u32,
    /// Memory utilisation, percent.
    pub memory_util: u32,
    /// Memory of processes.
    pub memory_used: u64,
    /// Free memory.
    pub memory_free: u64,
    /// Memory held by the driver.
    pub memory_reserved: u64,
    /// All memory.
    pub memory_total: u64,
    /// Core temperature.
    pub temperature: i32,
    /// Memory temperature.
    pub memory_temperature: i32,
    /// Degrees below the core's highest operating temperature.
    pub margin: i32,
    /// Multiprocessor clock.
    pub sm_clock: u32,
    /// Memory clock.
    pub memory_clock: u32,
    /// Video clock.
    pub video_clock: u32,
    /// Power draw.
    pub power_mw: u32,
    /// Energy, in millijoules.
    pub energy_mj: u64,
    /// Clock event reasons.
    pub reasons: u64,
    /// Time under the power limit.
    pub power_violation_ns: u64,
    /// Time under the thermal limit.
    pub thermal_violation_ns: u64,
    /// Time in hardware thermal slowdown.
    pub hw_thermal_ns: u64,
    /// Corrected memory errors since the driver was loaded.
    pub ecc_corrected: u64,
    /// Uncorrected memory errors since the driver was loaded.
    pub ecc_uncorrected: u64,
    /// Rows replaced for correctable errors.
    pub remapped_correctable: u32,
    /// Rows replaced for uncorrectable errors.
    pub remapped_uncorrectable: u32,
    /// Rows wait for a reset.
    pub remapped_pending: bool,
    /// A replacement failed.
    pub remapped_failure: bool,
    /// PCIe generation.
    pub pcie_generation: u32,
    /// PCIe lanes.
    pub pcie_width: u32,
    /// PCIe packets sent again.
    pub pcie_replays: u32,
    /// Bytes to the host.
    pub pcie_tx: u64,
    /// Bytes from the host.
    pub pcie_rx: u64,
    /// Bytes over all NVLinks, sent.
    pub nvlink_tx: u64,
    /// Bytes over all NVLinks, received.
    pub nvlink_rx: u64,
    /// Processes with a context.
    pub processes: Vec<ProcessState>,
}

/// A process on a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessState {
    /// Its id.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its control group.
    pub cgroup: String,
    /// Its device memory, in bytes.
    pub memory: u64,
    /// Multiprocessors, percent.
    pub sm_util: u32,
    /// Memory, percent.
    pub memory_util: u32,
}

const MIB: u64 = 1024 * 1024;
/// The driver keeps a little memory even when nobody uses the GPU.
const MEMORY_IDLE_MIB: f64 = 4.0;
const KIB: u64 = 1024;
/// What a board does on average before the history begins: the same slots as [`Scenario::rates`].
const EVEN: Rates = [405_000.0, 20.0, 0.0, 0.0, 0.6e6, 1.5e6, 61e6, 60e6];

impl Scenario {
    /// A board at a time.
    ///
    /// Pure: the same scenario, GPU and time give the same state, whatever was asked before.
    /// A GPU that is not there is a lost one.
    #[must_use]
    pub fn state(&self, gpu: usize, t_ms: i64) -> BoardState {
        let kind = self.kind();
        let load = self.load(gpu, t_ms);
        let (watts, capped) = self.power_of(gpu, t_ms, &load);
        let celsius = self.temperature(gpu, t_ms);
        let temperature = round_i32(celsius);
        let counters = self.counters(gpu, t_ms);
        let errors = self.errors(gpu, t_ms);
        let total = kind.memory_mib * MIB;
        let reserved = kind.reserved_mib * MIB;
        let used = (round_u64(load.memory_mib.max(MEMORY_IDLE_MIB)) * MIB).min(total - reserved);
        BoardState {
            lost: gpu >= self.gpu_count() || self.is_lost(gpu, t_ms),
            calls_hang: self.is(gpu, t_ms, |kind| matches!(kind, FaultKind::HangCall)),
            call_ms: self.call_ms(gpu, t_ms),
            load,
            gpu_util: percent(load.util),
            memory_util: percent(load.memory_util),
            memory_used: used,
            memory_free: total - reserved - used,
            memory_reserved: reserved,
            memory_total: total,
            temperature,
            memory_temperature: round_i32(celsius + 1.0 + 0.006 * watts),
            margin: kind.temperature.gpu_max - temperature,
            sm_clock: self.sm_clock(gpu, t_ms, &load),
            memory_clock: kind.clocks.memory,
            video_clock: if load.busy {
                kind.clocks.video_max
            } else {
                kind.clocks.video_idle
            },
            power_mw: round_u32(watts * 1000.0),
            energy_mj: counters[0],
            reasons: self.reasons(gpu, t_ms, &load, capped),
            power_violation_ns: counters[1] * 1000,
            thermal_violation_ns: counters[2] * 1000,
            hw_thermal_ns: counters[3] * 1000,
            ecc_corrected: errors.corrected,
            ecc_uncorrected: errors.uncorrected,
            remapped_correctable: errors.remapped_correctable,
            remapped_uncorrectable: errors.remapped_uncorrectable,
            remapped_pending: errors.pending,
            remapped_failure: errors.failure,
            pcie_generation: kind.pcie_generation,
            pcie_width: self.pcie_width(gpu, t_ms).unwrap_or(kind.pcie_width),
            pcie_replays: self.pcie_replays(gpu, t_ms),
            pcie_tx: counters[4] * KIB,
            pcie_rx: counters[5] * KIB,
            nvlink_tx: counters[6] * KIB,
            nvlink_rx: counters[7] * KIB,
            processes: self.processes(gpu, t_ms, &load, used),
        }
    }

    /// Whether a GPU is off the bus.
    #[must_use]
    pub fn is_lost(&self, gpu: usize, t_ms: i64) -> bool {
        self.faults_of(gpu)
            .any(|fault| fault.loses_gpu() && fault.active_at(t_ms))
    }

    fn is(&self, gpu: usize, t_ms: i64, kind: impl Fn(&FaultKind) -> bool) -> bool {
        self.faults_of(gpu)
            .any(|fault| fault.active_at(t_ms) && kind(&fault.kind))
    }

    fn call_ms(&self, gpu: usize, t_ms: i64) -> u64 {
        self.faults_of(gpu)
            .filter(|fault| fault.active_at(t_ms))
            .filter_map(|fault| match &fault.kind {
                FaultKind::SlowCall(slow) => u64::try_from(slow.takes.ms()).ok(),
                _ => None,
            })
            .max()
            .unwrap_or(0)
    }

    /// Energy (mJ), power, thermal and hardware thermal time (microseconds), PCIe sent and
    /// received, NVLink sent and received (KiB).
    fn counters(&self, gpu: usize, t_ms: i64) -> Counts {
        let Some(prefix) = self.prefixes.get(gpu) else {
            return Counts::default();
        };
        // A poisoned lock only means that a reader died; the sums are valid at every moment.
        let mut prefix = prefix.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        prefix.integral(self.driver().loaded.ms(), t_ms, &EVEN, |t| self.rates(gpu, t))
    }

    /// What [`counters`](Self::counters) adds up, per second.
    fn rates(&self, gpu: usize, t_ms: i64) -> Rates {
        let load = self.load(gpu, t_ms);
        let (watts, capped) = self.power_of(gpu, t_ms, &load);
        let throttle = self.throttle(gpu, t_ms);
        let held = |held: bool| if held && load.busy { 1e6 } else { 0.0 };
        [
            watts * 1000.0,
            held(capped),
            held(throttle.software()),
            held(throttle.hardware(self.kind().temperature.slowdown)),
            load.pcie_tx / 1024.0,
            load.pcie_rx / 1024.0,
            load.nvlink_tx / 1024.0,
            load.nvlink_rx / 1024.0,
        ]
    }

    fn reasons(&self, gpu: usize, t_ms: i64, load: &Load, capped: bool) -> u64 {
        if !load.busy {
            return reason::GPU_IDLE;
        }
        let throttle = self.throttle(gpu, t_ms);
        let mut bits = 0;
        if capped {
            bits |= reason::SW_POWER_CAP;
        }
        if throttle.software() {
            bits |= reason::SW_THERMAL;
        }
        if throttle.hardware(self.kind().temperature.slowdown) {
            bits |= reason::HW_SLOWDOWN | reason::HW_THERMAL;
        }
        bits
    }

    /// A bad riser sends again some packets every second, ever more of them.
    fn pcie_replays(&self, gpu: usize, t_ms: i64) -> u32 {
        let bad = self
            .faults_of(gpu)
            .find(|fault| matches!(fault.kind, FaultKind::PcieWidth(_)) && fault.begun_by(t_ms));
        bad.map_or(0, |fault| {
            let end = fault.until.map_or(t_ms, |until| until.ms().min(t_ms));
            let seconds = crate::Offset(end - fault.at.ms()).seconds();
            round_u32(4.0 + 3.0 * seconds + 0.15 * seconds.min(600.0) * seconds.min(600.0))
        })
    }

    fn errors(&self, gpu: usize, t_ms: i64) -> Errors {
        let mut errors = Errors::default();
        for fault in self.faults_of(gpu).filter(|fault| fault.begun_by(t_ms)) {
            match &fault.kind {
                FaultKind::Ecc(ecc) => {
                    errors.corrected += ecc.corrected;
                    errors.uncorrected += ecc.uncorrected;
                }
                FaultKind::Remap(remap) => {
                    errors.remapped_correctable += remap.correctable;
                    errors.remapped_uncorrectable += remap.uncorrectable;
                    errors.pending |= remap.pending;
                    errors.failure |= remap.failure;
                }
                _ => {}
            }
        }
        errors
    }

    fn processes(&self, gpu: usize, t_ms: i64, load: &Load, used: u64) -> Vec<ProcessState> {
        let job = self.job_on(gpu, t_ms);
        job.and_then(|job| {
            Some(ProcessState {
                pid: job.pid_on(gpu)?,
                name: job.process.clone(),
                cgroup: job.cgroup.clone(),
                memory: used,
                sm_util: percent(load.util),
                memory_util: percent(load.memory_util),
            })
        })
        .into_iter()
        .collect()
    }
}

#[derive(Default)]
struct Errors {
    corrected: u64,
    uncorrected: u64,
    remapped_correctable: u32,
    remapped_uncorrectable: u32,
    pending: bool,
    failure: bool,
}

pub(crate) fn percent(share: f64) -> u32 {
    round_u32(share.clamp(0.0, 1.0) * 100.0)
}

#[expect(clippy::cast_possible_truncation, reason = "temperatures")]
fn round_i32(value: f64) -> i32 {
    value.round().clamp(-100.0, 300.0) as i32
}

#[cfg(test)]
mod tests;
