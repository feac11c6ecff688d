//! What the work asks of a GPU at a time, and what the GPU makes of it.

use crate::noise::smooth;
use crate::scenario::{Fault, FaultKind, Job, JobKind, Scenario};

/// Channels of chance, so that no two numbers move together by accident.
mod channel {
    pub(super) const STEP: u64 = 1;
    pub(super) const SLOW: u64 = 2;
    pub(super) const DEMAND: u64 = 3;
    pub(super) const OWN: u64 = 100;
    pub(super) const POWER: u64 = 200;
    pub(super) const CLOCK: u64 = 300;
    pub(super) const TRAFFIC: u64 = 400;
    pub(super) const HOT: u64 = 500;
}

/// What goes on in one GPU. Shares are between 0 and 1, traffic is in bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Whether any process has the GPU open.
    pub busy: bool,
    /// Time with a kernel running.
    pub util: f64,
    /// How hard it works: what becomes power.
    pub intensity: f64,
    /// Time with memory traffic.
    pub memory_util: f64,
    /// Device memory of processes, in MiB.
    pub memory_mib: f64,
    /// Multiprocessors with a warp.
    pub sm: f64,
    /// Warps of all that fit.
    pub occupancy: f64,
    /// Tensor pipe.
    pub tensor: f64,
    /// Memory bandwidth.
    pub dram: f64,
    /// Single-precision pipe.
    pub fp32: f64,
    /// Half-precision pipe.
    pub fp16: f64,
    /// NVLink, sent.
    pub nvlink_tx: f64,
    /// NVLink, received.
    pub nvlink_rx: f64,
    /// PCIe, sent to the host.
    pub pcie_tx: f64,
    /// PCIe, received from the host.
    pub pcie_rx: f64,
}

impl Load {
    fn add(&mut self, other: &Self, weight: f64) {
        self.busy |= other.busy;
        self.util += other.util * weight;
        self.intensity += other.intensity * weight;
        self.memory_util += other.memory_util * weight;
        self.memory_mib += other.memory_mib * weight;
        self.sm += other.sm * weight;
        self.occupancy += other.occupancy * weight;
        self.tensor += other.tensor * weight;
        self.dram += other.dram * weight;
        self.fp32 += other.fp32 * weight;
        self.fp16 += other.fp16 * weight;
        self.nvlink_tx += other.nvlink_tx * weight;
        self.nvlink_rx += other.nvlink_rx * weight;
        self.pcie_tx += other.pcie_tx * weight;
        self.pcie_rx += other.pcie_rx * weight;
    }
}

/// A checkpoint is written every so often, and takes so long.
const CHECKPOINT_EVERY_MS: i64 = 30 * 60_000;
const CHECKPOINT_MS: i64 = 45_000;
/// A job loads its data and fills the memory for so long.
const START_UP_MS: i64 = 90_000;

impl Scenario {
    /// The job on a GPU at a time.
    #[must_use]
    pub fn job_on(&self, gpu: usize, t_ms: i64) -> Option<&Job> {
        self.jobs()
            .iter()
            .find(|job| job.runs_at(t_ms) && job.pid_on(gpu).is_some_and(|pid| !self.is_killed(pid, t_ms)))
    }

    fn is_killed(&self, pid: u32, t_ms: i64) -> bool {
        self.faults()
            .iter()
            .any(|fault| fault.begun_by(t_ms) && matches!(&fault.kind, FaultKind::OomKill(kill) if kill.pid == pid))
    }

    /// What goes on in a GPU at a time, a hang included.
    #[must_use]
    pub fn load(&self, gpu: usize, t_ms: i64) -> Load {
        let Some(job) = self.job_on(gpu, t_ms) else {
            return Load::default();
        };
        let mut load = match job.kind {
            JobKind::Training => self.training(job, gpu, t_ms),
            JobKind::Inference => self.inference(job, gpu, t_ms),
        };
        if self.hang(gpu, t_ms).is_some() {
            load = hung(&load);
        }
        if let Some(width) = self.pcie_width(gpu, t_ms) {
            let share = f64::from(width) / f64::from(self.kind_of(gpu).pcie_width);
            load.pcie_tx *= share;
            load.pcie_rx *= share;
        }
        load
    }

    /// What goes on in a GPU on average between two times, as far as sixteen looks tell.
    #[must_use]
    pub fn mean_load(&self, gpu: usize, from_ms: i64, to_ms: i64) -> Load {
        const LOOKS: u32 = 16;
        let span = to_ms.saturating_sub(from_ms).max(0);
        if span == 0 {
            return self.load(gpu, to_ms);
        }
        let mut mean = Load::default();
        for look in 0..LOOKS {
            let at = from_ms + span * i64::from(2 * look + 1) / i64::from(2 * LOOKS);
            mean.add(&self.load(gpu, at), 1.0 / f64::from(LOOKS));
        }
        mean
    }

    /// The same of one GPU instance under MIG, as shares of the instance: they do not all work alike.
    #[must_use]
    pub fn mean_load_of(&self, gpu: usize, gpu_instance: u32, from_ms: i64, to_ms: i64) -> Load {
        let mut load = Load::default();
        load.add(
            &self.mean_load(gpu, from_ms, to_ms),
            1.0 - 0.03 * f64::from(gpu_instance.min(20)),
        );
        load
    }

    /// All GPUs of a job move in step: one channel for the job, a little of their own.
    fn training(&self, job: &Job, gpu: usize, t_ms: i64) -> Load {
        let since = t_ms - job.from.ms();
        let seed = self.seed();
        let own = smooth(seed, channel::OWN + channel_of(gpu), t_ms, 3_000);
        let step = smooth(seed, channel::STEP, t_ms, 8_000);
        let slow = smooth(seed, channel::SLOW, t_ms, 420_000);
        let memory_mib = memory(job, since);
        if since < START_UP_MS {
            return start_up(memory_mib, own);
        }
        if since >= CHECKPOINT_EVERY_MS && since % CHECKPOINT_EVERY_MS < CHECKPOINT_MS {
            return checkpoint(memory_mib, own);
        }
        let intensity = 0.90 + 0.045 * step + 0.015 * own + 0.02 * slow;
        let traffic = smooth(seed, channel::TRAFFIC + channel_of(gpu), t_ms, 5_000);
        Load {
            busy: true,
            util: 0.985 + 0.015 * own,
            intensity,
            memory_util: 0.52 + 0.05 * step + 0.02 * own,
            memory_mib,
            sm: 0.86 + 0.05 * step + 0.01 * own,
            occupancy: 0.31 + 0.02 * step,
            tensor: 0.47 + 0.06 * step + 0.01 * own,
            dram: 0.54 + 0.06 * step + 0.02 * own,
            fp32: 0.08 + 0.01 * own,
            fp16: 0.03 + 0.005 * own,
            nvlink_tx: 96e9 * (intensity + 0.05 * traffic),
            nvlink_rx: 95e9 * (intensity + 0.05 * traffic),
            pcie_tx: 0.9e9 * (1.0 + 0.25 * traffic),
            pcie_rx: 2.4e9 * (1.0 + 0.25 * traffic),
        }
    }

    /// Load follows the requests, which come in waves of some 25 minutes.
    fn inference(&self, job: &Job, gpu: usize, t_ms: i64) -> Load {
        let since = t_ms - job.from.ms();
        let seed = self.seed();
        let own = smooth(seed, channel::OWN + channel_of(gpu), t_ms, 12_000);
        let wave = smooth(seed, channel::DEMAND, t_ms, 1_500_000);
        let memory_mib = memory(job, since);
        if since < START_UP_MS {
            return start_up(memory_mib, own);
        }
        let demand = (0.52 + 0.33 * wave + 0.14 * own).clamp(0.04, 0.98);
        Load {
            busy: true,
            util: demand,
            intensity: 0.10 + 0.58 * demand,
            memory_util: 0.75 * demand,
            memory_mib,
            sm: 0.8 * demand,
            occupancy: 0.24 * demand,
            tensor: 0.22 * demand,
            dram: 0.72 * demand,
            fp32: 0.06 * demand,
            fp16: 0.04 * demand,
            nvlink_tx: 21e9 * demand,
            nvlink_rx: 21e9 * demand,
            pcie_tx: 0.12e9 * demand,
            pcie_rx: 0.2e9 * demand,
        }
    }

    /// The board's power, in watts, and whether the limit holds it down.
    ///
    /// It does not depend on the temperature; heat acts through the fault that brings it.
    #[must_use]
    pub fn power(&self, gpu: usize, t_ms: i64) -> (f64, bool) {
        let load = self.load(gpu, t_ms);
        self.power_of(gpu, t_ms, &load)
    }

    pub(crate) fn power_of(&self, gpu: usize, t_ms: i64, load: &Load) -> (f64, bool) {
        let power = &self.kind_of(gpu).power;
        let noise = smooth(self.seed(), channel::POWER + channel_of(gpu), t_ms, 2_000);
        if load.busy
            && let Some(watts) = self.hang(gpu, t_ms)
        {
            return (watts + 0.8 * noise, false);
        }
        let hungry = self.boards().get(gpu).map_or(1.0, |board| board.hungry);
        let open = if load.busy { 35.0 } else { 0.0 };
        let idle = power.idle + 1.2 * noise + (hungry - 1.0) * power.idle;
        let asked = idle + open + (power.peak - power.idle - open) * load.intensity * hungry;
        let allowed = asked * (1.0 - 0.38 * self.throttle(gpu, t_ms).level);
        let limit = self.power_limit(gpu, t_ms);
        (allowed.min(limit), allowed > limit)
    }

    /// The power limit in force, in watts.
    pub(crate) fn power_limit(&self, gpu: usize, t_ms: i64) -> f64 {
        let lowered = self.faults_of(gpu).filter(|fault| fault.active_at(t_ms));
        lowered
            .filter_map(|fault| match fault.kind {
                FaultKind::PowerLimit(watts) => Some(watts),
                _ => None,
            })
            .fold(self.kind_of(gpu).power.limit, f64::min)
    }

    /// The multiprocessors' clock, in MHz.
    pub(crate) fn sm_clock(&self, gpu: usize, t_ms: i64, load: &Load) -> u32 {
        let clocks = &self.kind_of(gpu).clocks;
        if !load.busy {
            return clocks.sm_idle;
        }
        let max = f64::from(clocks.sm_max);
        let noise = smooth(self.seed(), channel::CLOCK + channel_of(gpu), t_ms, 4_000);
        // Near the power limit the clock breathes, in the hardware's steps of 15 MHz.
        let strain = ((load.intensity - 0.78) / 0.2).clamp(0.0, 1.0);
        let breathing = max - 15.0 * (strain * (4.0 + 4.0 * noise)).round();
        let throttle = self.throttle(gpu, t_ms);
        let throttled = breathing + (throttle.clock - breathing) * throttle.level;
        round_u32((throttled / 15.0).round() * 15.0)
    }

    /// The core temperature, in degrees Celsius: ambient, and the power of the last minutes
    /// through the heat sink; a lost cooling pulls it to its own value.
    #[must_use]
    pub fn temperature(&self, gpu: usize, t_ms: i64) -> f64 {
        let kind = &self.kind_of(gpu).temperature;
        let warmer = self.boards().get(gpu).map_or(0.0, |board| board.warmer);
        // The hall breathes with the day and the neighbours.
        let ambient = kind.ambient + warmer + 0.8 * smooth(self.seed(), channel::SLOW, t_ms, 7_200_000);
        let natural = ambient + kind.per_watt * self.power_lately(gpu, t_ms);
        let throttle = self.throttle(gpu, t_ms);
        let wobble = 0.4 * smooth(self.seed(), channel::HOT, t_ms, 3_000);
        natural + (throttle.temperature + wobble - natural) * throttle.level
    }

    /// The power as the heat sink feels it: weighted by age, with the board's time constant.
    pub(crate) fn power_lately(&self, gpu: usize, t_ms: i64) -> f64 {
        let tau = (self.kind_of(gpu).temperature.time_constant * 1000.0).max(1.0);
        let (mut sum, mut weights) = (0.0, 0.0);
        for step in 0..20 {
            let age = (f64::from(step) + 0.5) * tau / 5.0;
            let weight = (-age / tau).exp();
            sum += weight * self.power(gpu, t_ms - round_i64(age)).0;
            weights += weight;
        }
        sum / weights
    }

    /// How far heat has taken over.
    pub(crate) fn throttle(&self, gpu: usize, t_ms: i64) -> Throttle {
        for fault in self.faults_of(gpu).filter(|fault| fault.begun_by(t_ms)) {
            if let FaultKind::ThermalThrottle(heat) = &fault.kind {
                let level = ramp(fault, heat.over.seconds(), t_ms);
                if level > 0.0 {
                    return Throttle {
                        level,
                        temperature: heat.temperature,
                        clock: f64::from(heat.clock),
                    };
                }
            }
        }
        Throttle::default()
    }

    fn hang(&self, gpu: usize, t_ms: i64) -> Option<f64> {
        self.faults_of(gpu)
            .filter(|fault| fault.active_at(t_ms))
            .find_map(|fault| match &fault.kind {
                FaultKind::Hang(hang) => Some(hang.power),
                _ => None,
            })
    }

    /// The lanes a riser has left; `None` if all.
    pub(crate) fn pcie_width(&self, gpu: usize, t_ms: i64) -> Option<u32> {
        self.faults_of(gpu)
            .filter(|fault| fault.active_at(t_ms))
            .find_map(|fault| match fault.kind {
                FaultKind::PcieWidth(width) => Some(width),
                _ => None,
            })
    }
}

/// How far heat has taken over: 0 not at all, 1 wholly.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Throttle {
    pub(crate) level: f64,
    pub(crate) temperature: f64,
    pub(crate) clock: f64,
}

impl Throttle {
    /// Whether the software cuts the clocks.
    pub(crate) fn software(self) -> bool {
        self.level > 0.85
    }

    /// Whether the hardware does.
    pub(crate) fn hardware(self, slowdown: i32) -> bool {
        self.level > 0.95 && self.temperature >= f64::from(slowdown)
    }
}

/// Rises from 0 to 1 over some seconds from the fault's begin, and falls after its end.
fn ramp(fault: &Fault, over: f64, t_ms: i64) -> f64 {
    let smoothstep = |since_ms: i64| {
        let x = (crate::Offset(since_ms).seconds() / over.max(0.001)).clamp(0.0, 1.0);
        x * x * (3.0 - 2.0 * x)
    };
    let rise = smoothstep(t_ms - fault.at.ms());
    match fault.until {
        Some(until) if t_ms > until.ms() => rise * (1.0 - smoothstep(t_ms - until.ms())),
        _ => rise,
    }
}

fn memory(job: &Job, since_ms: i64) -> f64 {
    let filled = (crate::Offset(since_ms).seconds() / 60.0).clamp(0.02, 1.0);
    #[expect(clippy::cast_precision_loss, reason = "MiB of one board")]
    let all = job.memory_mib as f64;
    (all * filled).round()
}

fn start_up(memory_mib: f64, own: f64) -> Load {
    let util = 0.12 + 0.1 * own;
    Load {
        busy: true,
        util,
        intensity: 0.06 + 0.03 * own,
        memory_util: 0.05 + 0.03 * own,
        memory_mib,
        sm: 0.6 * util,
        occupancy: 0.1 * util,
        dram: 0.05,
        pcie_tx: 0.05e9,
        pcie_rx: 6.0e9 * (1.0 + 0.2 * own),
        ..Load::default()
    }
}

fn checkpoint(memory_mib: f64, own: f64) -> Load {
    Load {
        busy: true,
        util: 0.04 + 0.03 * own,
        intensity: 0.03 + 0.01 * own,
        memory_util: 0.02 + 0.01 * own,
        memory_mib,
        sm: 0.02,
        occupancy: 0.01,
        dram: 0.03,
        pcie_tx: 7.0e9 * (1.0 + 0.1 * own),
        pcie_rx: 0.1e9,
        ..Load::default()
    }
}

/// One kernel spins and waits for a peer that never comes: all busy, nothing done.
fn hung(before: &Load) -> Load {
    Load {
        busy: true,
        util: 1.0,
        intensity: 0.0,
        memory_mib: before.memory_mib,
        sm: 0.12,
        occupancy: 0.01,
        ..Load::default()
    }
}

fn channel_of(gpu: usize) -> u64 {
    u64::try_from(gpu).unwrap_or(0)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to the range"
)]
pub(crate) fn round_u32(value: f64) -> u32 {
    value.round().clamp(0.0, f64::from(u32::MAX)) as u32
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counters stay far below 2^63"
)]
pub(crate) fn round_u64(value: f64) -> u64 {
    value.max(0.0).floor() as u64
}

#[expect(clippy::cast_possible_truncation, reason = "ages are minutes")]
fn round_i64(value: f64) -> i64 {
    value.round() as i64
}

#[expect(clippy::cast_precision_loss, reason = "simulated numbers need no more than 53 bits")]
pub(crate) fn float(value: u64) -> f64 {
    value as f64
}
