//! All that one board would tell at a time.

use crate::counter::{Counts, Rates};
use crate::load::{Load, round_u32, round_u64};
use crate::mig::MigInstance;
use crate::scenario::{FabricStep, FaultKind, Location, Scenario, Still};

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
    /// Of these two, those in SRAM: [L2 cache, multiprocessors] × [corrected, uncorrected].
    pub ecc_sram: [[u64; 2]; 2],
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
    /// What the driver asks for to recover, as the header numbers it.
    pub recovery_action: u32,
    /// The power limit in force.
    pub power_limit_mw: u32,
    /// The links, in order.
    pub links: Vec<LinkState>,
    /// The place in the fabric; `None` where there is none.
    pub fabric: Option<FabricState>,
    /// Whether it is cut into instances; `None` where it cannot be.
    pub mig_mode: Option<bool>,
    /// The instances; empty where MIG is off.
    pub mig: Vec<MigState>,
    /// Processes with a context; under MIG those of all instances.
    pub processes: Vec<ProcessState>,
}

/// One NVLink: counters since the driver was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkState {
    /// Whether it is down.
    pub down: bool,
    /// CRC errors.
    pub crc: u64,
    /// Packets sent again.
    pub replay: u64,
    /// Times it was brought up again.
    pub recovery: u64,
}

/// A place in the fabric, as the header numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricState {
    /// How far it has come: 1 not started, 2 in progress, 3 completed.
    pub state: u8,
    /// The code that joining ended with.
    pub status: u32,
    /// The health mask.
    pub health: u32,
}

/// One MIG instance at a moment. Memory is in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct MigState {
    /// What it is.
    pub instance: MigInstance,
    /// Memory of its processes.
    pub memory_used: u64,
    /// Memory held by the driver.
    pub memory_reserved: u64,
}

impl MigState {
    /// Memory that is left.
    #[must_use]
    pub fn memory_free(&self) -> u64 {
        self.instance.memory - self.memory_used - self.memory_reserved
    }
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
    /// The GPU and compute instance it runs in, under MIG.
    pub instance: Option<(u32, u32)>,
    /// Whether its context is one for graphics.
    pub graphics: bool,
    /// Whether there is such a process: the driver may list one that has gone.
    pub alive: bool,
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
        let kind = self.kind_of(gpu);
        let load = self.load(gpu, t_ms);
        let (watts, capped) = self.power_of(gpu, t_ms, &load);
        let celsius = self.temperature(gpu, t_ms);
        let temperature = round_i32(celsius);
        let counters = self.counters(gpu, t_ms);
        let errors = self.errors(gpu, t_ms);
        let total = kind.memory_mib * MIB;
        let reserved = kind.reserved_mib * MIB;
        let room = total.saturating_sub(reserved);
        let processes = self.processes(gpu, t_ms, &load);
        let ghost = self.is(gpu, t_ms, |kind| matches!(kind, FaultKind::Ghost));
        let orphan = self.orphan_mib(gpu, t_ms, |orphan| orphan.pid.is_none());
        let held: u64 = processes.iter().map(|process| process.memory).sum();
        let mig = self.mig_states(gpu, t_ms, &processes);
        let used = held
            .max(round_u64(MEMORY_IDLE_MIB) * MIB)
            .saturating_add(orphan * MIB)
            .min(room);
        let others = processes.iter().map(|process| process.sm_util).max().unwrap_or(0);
        let state = BoardState {
            lost: gpu >= self.gpu_count() || self.is_lost(gpu, t_ms),
            calls_hang: self.is(
                gpu,
                t_ms,
                |kind| matches!(kind, FaultKind::HangCall(calls) if *calls == Default::default()),
            ),
            call_ms: self.call_ms(gpu, t_ms),
            load,
            gpu_util: if ghost { 100 } else { percent(load.util).max(others) },
            memory_util: percent(load.memory_util),
            memory_used: used,
            memory_free: room - used,
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
            ecc_sram: errors.sram,
            remapped_correctable: errors.remapped_correctable,
            remapped_uncorrectable: errors.remapped_uncorrectable,
            remapped_pending: errors.pending,
            remapped_failure: errors.failure,
            pcie_generation: self.pcie_generation(gpu, t_ms).unwrap_or(kind.pcie_generation),
            pcie_width: self.pcie_width(gpu, t_ms).unwrap_or(kind.pcie_width),
            pcie_replays: self.pcie_replays(gpu, t_ms),
            pcie_tx: counters[4] * KIB,
            pcie_rx: counters[5] * KIB,
            nvlink_tx: counters[6] * KIB,
            nvlink_rx: counters[7] * KIB,
            recovery_action: self.recovery_action(gpu, t_ms, errors.pending),
            power_limit_mw: round_u32(self.power_limit(gpu, t_ms) * 1000.0),
            links: self.links(gpu, t_ms),
            fabric: self.fabric(gpu, t_ms),
            mig_mode: self.mig_mode(gpu, t_ms),
            mig,
            processes,
        };
        match self.boards().get(gpu).and_then(|board| board.still.as_deref()) {
            Some(still) => stood_still(state, still),
            None => state,
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
                FaultKind::SlowCall(slow) if slow.function.is_none() => u64::try_from(slow.takes.ms()).ok(),
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
            held(throttle.hardware(self.kind_of(gpu).temperature.slowdown)),
            load.pcie_tx / 1024.0,
            load.pcie_rx / 1024.0,
            load.nvlink_tx / 1024.0,
            load.nvlink_rx / 1024.0,
        ]
    }

    fn reasons(&self, gpu: usize, t_ms: i64, load: &Load, capped: bool) -> u64 {
        let injected = self.injected_reasons(gpu, t_ms);
        if !load.busy {
            return reason::GPU_IDLE | injected;
        }
        let throttle = self.throttle(gpu, t_ms);
        let mut bits = injected;
        if capped {
            bits |= reason::SW_POWER_CAP;
        }
        if throttle.software() {
            bits |= reason::SW_THERMAL;
        }
        if throttle.hardware(self.kind_of(gpu).temperature.slowdown) {
            bits |= reason::HW_SLOWDOWN | reason::HW_THERMAL;
        }
        bits
    }

    fn injected_reasons(&self, gpu: usize, t_ms: i64) -> u64 {
        let active = self.faults_of(gpu).filter(|fault| fault.active_at(t_ms));
        active.fold(0, |bits, fault| match fault.kind {
            FaultKind::Reasons(more) => bits | more,
            _ => bits,
        })
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
                    let place = match ecc.location {
                        Location::Dram => None,
                        Location::L2Cache => Some(0),
                        Location::Sm => Some(1),
                    };
                    if let Some(place) = place {
                        errors.sram[place][0] += ecc.corrected;
                        errors.sram[place][1] += ecc.uncorrected;
                    }
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

    /// The job's process, under MIG one in each instance; then the others.
    fn processes(&self, gpu: usize, t_ms: i64, load: &Load) -> Vec<ProcessState> {
        let instances = self.mig_instances(gpu, t_ms);
        let mut processes = Vec::new();
        let ghost = self.is(gpu, t_ms, |kind| matches!(kind, FaultKind::Ghost));
        if let Some((job, pid)) = self.job_on(gpu, t_ms).and_then(|job| Some((job, job.pid_on(gpu)?)))
            && !ghost
        {
            let memory = round_u64(load.memory_mib) * MIB;
            let process = |pid: u32, memory: u64, instance| ProcessState {
                pid,
                name: job.process.clone(),
                cgroup: job.cgroup.clone(),
                memory,
                sm_util: percent(load.util),
                memory_util: percent(load.memory_util),
                instance,
                graphics: false,
                alive: true,
            };
            if instances.is_empty() {
                processes.push(process(pid, memory, None));
            }
            for (slot, instance) in (0..).zip(&instances) {
                // Instances of one GPU instance share its memory.
                let share =
                    instance.memory * u64::from(instance.profile.compute_slices) / u64::from(instance.profile.slices);
                let room = share.saturating_sub(MIG_RESERVED_MIB * MIB) / 100 * 90;
                processes.push(process(
                    pid + slot * PIDS_BETWEEN_INSTANCES,
                    memory.min(room),
                    Some(ids(instance)),
                ));
            }
        }
        for fault in self.faults_of(gpu).filter(|fault| fault.active_at(t_ms)) {
            match &fault.kind {
                FaultKind::Process(plan) => processes.push(ProcessState {
                    pid: plan.pid,
                    name: plan.name.clone(),
                    cgroup: plan.cgroup.clone(),
                    memory: plan.memory_mib * MIB,
                    sm_util: plan.sm_util.min(100),
                    memory_util: 0,
                    instance: instances.get(plan.instance).or(instances.first()).map(ids),
                    graphics: plan.graphics,
                    alive: true,
                }),
                FaultKind::OrphanMemory(orphan) => processes.extend(orphan.pid.map(|pid| ProcessState {
                    pid,
                    name: String::new(),
                    cgroup: "/".into(),
                    memory: orphan.mib * MIB,
                    sm_util: 0,
                    memory_util: 0,
                    instance: instances.first().map(ids),
                    graphics: false,
                    alive: false,
                })),
                _ => {}
            }
        }
        processes
    }

    fn orphan_mib(&self, gpu: usize, t_ms: i64, which: impl Fn(&crate::scenario::OrphanMemory) -> bool) -> u64 {
        self.faults_of(gpu)
            .filter(|fault| fault.active_at(t_ms))
            .filter_map(|fault| match &fault.kind {
                FaultKind::OrphanMemory(orphan) if which(orphan) => Some(orphan.mib),
                _ => None,
            })
            .sum()
    }

    fn mig_states(&self, gpu: usize, t_ms: i64, processes: &[ProcessState]) -> Vec<MigState> {
        let state = |instance: MigInstance| {
            let reserved = (MIG_RESERVED_MIB * MIB).min(instance.memory);
            let here = processes
                .iter()
                .filter(|process| process.instance.is_some_and(|(id, _)| id == instance.gpu_instance));
            let used: u64 = here.map(|process| process.memory).sum();
            MigState {
                memory_used: used.min(instance.memory - reserved),
                memory_reserved: reserved,
                instance,
            }
        };
        self.mig_instances(gpu, t_ms).into_iter().map(state).collect()
    }

    fn links(&self, gpu: usize, t_ms: i64) -> Vec<LinkState> {
        let mut links = vec![LinkState::default(); self.kind_of(gpu).nvlinks.min(LINKS_MAX) as usize];
        for fault in self.faults_of(gpu).filter(|fault| fault.begun_by(t_ms)) {
            if let FaultKind::NvLink(errors) = &fault.kind
                && let Some(link) = links.get_mut(errors.link as usize)
            {
                link.down |= errors.down && fault.active_at(t_ms);
                link.crc += errors.crc;
                link.replay += errors.replay;
                link.recovery += errors.recovery;
            }
        }
        links
    }

    fn fabric(&self, gpu: usize, t_ms: i64) -> Option<FabricState> {
        // Two bits for each question, 2 is no; the set-up's 1 is "nothing wrong".
        const HEALTHY: u32 = 0b10_10_10_10 | 1 << 8;
        if !self.kind_of(gpu).has_fabric() {
            return None;
        }
        let fault = self.faults_of(gpu).filter(|fault| fault.active_at(t_ms));
        let fault = fault
            .filter_map(|fault| match &fault.kind {
                FaultKind::Fabric(fabric) => Some(fabric),
                _ => None,
            })
            .last();
        let Some(fault) = fault else {
            return Some(FabricState {
                state: 3,
                status: 0,
                health: HEALTHY,
            });
        };
        let told = |yes: bool, shift: u32| if yes { 1 << shift } else { 2 << shift };
        Some(FabricState {
            state: match fault.state {
                FabricStep::NotStarted => 1,
                FabricStep::InProgress => 2,
                FabricStep::Completed => 3,
            },
            status: fault.status,
            health: told(fault.degraded_bandwidth, 0)
                | told(fault.route_recovery, 2)
                | told(fault.route_unhealthy, 4)
                | told(fault.access_timeout, 6)
                | fault.misconfiguration.unwrap_or(1).min(15) << 8,
        })
    }

    fn recovery_action(&self, gpu: usize, t_ms: i64, rows_wait: bool) -> u32 {
        let asked = self.faults_of(gpu).filter(|fault| fault.active_at(t_ms));
        asked
            .filter_map(|fault| match fault.kind {
                FaultKind::RecoveryAction(action) => Some(action),
                _ => None,
            })
            .last()
            .unwrap_or(u32::from(rows_wait))
    }

    fn pcie_generation(&self, gpu: usize, t_ms: i64) -> Option<u32> {
        self.faults_of(gpu)
            .filter(|fault| fault.active_at(t_ms))
            .find_map(|fault| match fault.kind {
                FaultKind::PcieGeneration(generation) => Some(generation),
                _ => None,
            })
    }
}

/// What the driver keeps of each instance.
const MIG_RESERVED_MIB: u64 = 64;
/// A job's processes in further instances have ids so far apart.
const PIDS_BETWEEN_INSTANCES: u32 = 100;
/// More than any board has.
const LINKS_MAX: u32 = 64;

fn ids(instance: &MigInstance) -> (u32, u32) {
    (instance.gpu_instance, instance.compute_instance)
}

/// The numbers of the capture in place of those that are played; what it does not tell stays, and the library refuses it.
fn stood_still(mut state: BoardState, still: &Still) -> BoardState {
    fn take<T: Copy>(slot: &mut T, told: Option<T>) {
        if let Some(told) = told {
            *slot = told;
        }
    }
    take(&mut state.gpu_util, still.gpu_util);
    take(&mut state.memory_util, still.memory_util);
    take(&mut state.temperature, still.temperature);
    take(&mut state.memory_temperature, still.memory_temperature);
    take(&mut state.margin, still.margin);
    take(&mut state.power_mw, still.power_mw);
    take(&mut state.power_limit_mw, still.limits_mw[0]);
    take(&mut state.energy_mj, still.energy_mj);
    take(&mut state.sm_clock, still.clocks[1]);
    take(&mut state.memory_clock, still.clocks[2]);
    take(&mut state.video_clock, still.clocks[3]);
    take(&mut state.reasons, still.reasons);
    take(&mut state.memory_total, still.memory[0]);
    take(&mut state.memory_reserved, still.memory[1]);
    take(&mut state.memory_used, still.memory[2]);
    take(&mut state.memory_free, still.memory[3]);
    take(&mut state.pcie_generation, still.pcie_generation);
    take(&mut state.pcie_width, still.pcie_width);
    take(&mut state.pcie_replays, still.pcie_replays);
    state.mig_mode = still.mig_mode.map(|(current, _)| current);
    state.mig = still
        .mig
        .iter()
        .map(|(instance, used, reserved)| MigState {
            instance: instance.clone(),
            memory_used: *used,
            memory_reserved: *reserved,
        })
        .collect();
    state.processes.extend(still.processes.iter().cloned());
    state
}

#[derive(Default)]
struct Errors {
    corrected: u64,
    uncorrected: u64,
    sram: [[u64; 2]; 2],
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
