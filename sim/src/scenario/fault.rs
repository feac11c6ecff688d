//! What goes wrong, and when.

use serde::Deserialize;

use crate::error::Error;
use crate::mig::Profile;
use crate::offset::Offset;

mod driver;
mod hardware;

pub use driver::{BadValue, CallError, Calls, DriverUnload, NoNumber, SeenBy, SlowCall, Xid};
pub use hardware::{
    Ecc, FabricFault, FabricStep, Hang, Location, NvLinkFault, OomKill, OrphanMemory, ProcessPlan, Remap, Sxid,
    ThermalThrottle,
};

/// One fault on the timeline.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Its number: faults that were injected later have higher ones.
    pub id: u64,
    /// When it begins.
    pub at: Offset,
    /// When it ends; never, if `None`. Events (XID, OOM kill) have no end.
    pub until: Option<Offset>,
    /// The GPU; `None` for faults of the host.
    pub gpu: Option<usize>,
    /// What it is.
    pub kind: FaultKind,
}

/// The kinds of fault.
#[derive(Clone, Debug)]
pub enum FaultKind {
    /// Heat: the core runs into its limit, clocks fall, the thermal counter grows.
    ThermalThrottle(ThermalThrottle),
    /// The PCIe link has fewer lanes, and packets are sent again.
    PcieWidth(u32),
    /// The PCIe link runs at a lower generation.
    PcieGeneration(u32),
    /// The driver reports an error; 79 also takes the GPU off the bus.
    Xid(Xid),
    /// The switch between the GPUs reports an error, in the kernel log only.
    Sxid(Sxid),
    /// The GPU is off the bus without a word.
    Lost,
    /// The GPU is not counted any more from the next `nvmlInit` on, as after a reboot without it.
    Missing,
    /// The work hangs: 100 % utilisation, low power, clocks up, flat memory.
    Hang(Hang),
    /// 100 % utilisation, and nobody there: no process is listed, its memory is free.
    Ghost,
    /// Memory that no living process owns.
    OrphanMemory(OrphanMemory),
    /// One more process.
    Process(ProcessPlan),
    /// The kernel kills a process for memory.
    OomKill(OomKill),
    /// Memory errors.
    Ecc(Ecc),
    /// Rows replaced.
    Remap(Remap),
    /// A link is down or has errors.
    NvLink(NvLinkFault),
    /// The fabric is not as it should be.
    Fabric(FabricFault),
    /// The GPU is cut into these instances; without any, MIG is off.
    Mig(Vec<Profile>),
    /// The driver asks for this to recover: 1 reset, 2 reboot, 3 drain peer-to-peer, 4 drain and reset.
    RecoveryAction(u32),
    /// More clock event reasons, as bits of the header.
    Reasons(u64),
    /// A power limit, in watts.
    PowerLimit(f64),
    /// Each driver call takes this long.
    SlowCall(SlowCall),
    /// Driver calls do not return.
    HangCall(Calls),
    /// Driver calls fail with a code.
    CallError(CallError),
    /// Driver calls succeed with a number that means none.
    BadValue(BadValue),
    /// A driver call kills the process with a segmentation fault.
    Crash(Calls),
    /// `nvmlInit` fails with a code; who has begun already goes on.
    InitError(u32),
    /// The driver is gone; afterwards it may be there in another version.
    DriverUnload(DriverUnload),
}

/// A fault as written: `at`, where, and exactly one kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Written {
    #[serde(default)]
    pub(crate) at: Option<Offset>,
    #[serde(default)]
    pub(crate) until: Option<Offset>,
    #[serde(default)]
    gpu: Option<usize>,
    #[serde(default)]
    thermal_throttle: Option<ThermalThrottle>,
    #[serde(default)]
    pcie_width: Option<u32>,
    #[serde(default)]
    pcie_generation: Option<u32>,
    #[serde(default)]
    xid: Option<Xid>,
    #[serde(default)]
    sxid: Option<Sxid>,
    #[serde(default)]
    lost: Option<bool>,
    #[serde(default)]
    missing: Option<bool>,
    #[serde(default)]
    hang: Option<Hang>,
    #[serde(default)]
    ghost: Option<bool>,
    #[serde(default)]
    orphan_memory: Option<OrphanMemory>,
    #[serde(default)]
    process: Option<ProcessPlan>,
    #[serde(default)]
    oom_kill: Option<OomKill>,
    #[serde(default)]
    ecc: Option<Ecc>,
    #[serde(default)]
    remap: Option<Remap>,
    #[serde(default)]
    nvlink: Option<NvLinkFault>,
    #[serde(default)]
    fabric: Option<FabricFault>,
    #[serde(default)]
    mig: Option<Vec<Profile>>,
    #[serde(default)]
    recovery_action: Option<u32>,
    #[serde(default)]
    reasons: Option<u64>,
    #[serde(default)]
    power_limit: Option<f64>,
    #[serde(default)]
    slow_call: Option<SlowCall>,
    #[serde(default, deserialize_with = "driver::calls")]
    hang_call: Option<Calls>,
    #[serde(default)]
    call_error: Option<CallError>,
    #[serde(default)]
    bad_value: Option<BadValue>,
    #[serde(default, deserialize_with = "driver::calls")]
    crash: Option<Calls>,
    #[serde(default)]
    init_error: Option<u32>,
    #[serde(default)]
    driver_unload: Option<DriverUnload>,
}

impl Written {
    pub(crate) fn resolve(&self, id: u64, gpu_count: usize) -> Result<Fault, Error> {
        let Some(at) = self.at else {
            return Err(Error::invalid("a fault says no time: at"));
        };
        let fail = |what: &str| Err(Error::invalid(format!("fault at {} ms: {what}", at.ms())));
        let mut kinds = self.kinds();
        let Some(kind) = kinds.pop() else {
            return fail("says no kind of fault");
        };
        if !kinds.is_empty() {
            return fail("says more than one kind of fault");
        }
        match self.gpu {
            Some(gpu) if gpu >= gpu_count => return fail(&format!("there is no GPU {gpu}")),
            None if kind.needs_gpu() => return fail("says no gpu"),
            _ => {}
        }
        if self.until.is_some_and(|until| until <= at) {
            return fail("ends before it begins");
        }
        Ok(Fault {
            id,
            at,
            until: self.until,
            gpu: self.gpu,
            kind,
        })
    }

    fn kinds(&self) -> Vec<FaultKind> {
        let on = |flag: Option<bool>, kind: FaultKind| flag.filter(|on| *on).map(|_| kind);
        [
            self.thermal_throttle.clone().map(FaultKind::ThermalThrottle),
            self.pcie_width.map(FaultKind::PcieWidth),
            self.pcie_generation.map(FaultKind::PcieGeneration),
            self.xid.clone().map(FaultKind::Xid),
            self.sxid.clone().map(FaultKind::Sxid),
            on(self.lost, FaultKind::Lost),
            on(self.missing, FaultKind::Missing),
            self.hang.clone().map(FaultKind::Hang),
            on(self.ghost, FaultKind::Ghost),
            self.orphan_memory.clone().map(FaultKind::OrphanMemory),
            self.process.clone().map(FaultKind::Process),
            self.oom_kill.clone().map(FaultKind::OomKill),
            self.ecc.clone().map(FaultKind::Ecc),
            self.remap.clone().map(FaultKind::Remap),
            self.nvlink.clone().map(FaultKind::NvLink),
            self.fabric.clone().map(FaultKind::Fabric),
            self.mig.clone().map(FaultKind::Mig),
            self.recovery_action.map(FaultKind::RecoveryAction),
            self.reasons.map(FaultKind::Reasons),
            self.power_limit.map(FaultKind::PowerLimit),
            self.slow_call.clone().map(FaultKind::SlowCall),
            self.hang_call.clone().map(FaultKind::HangCall),
            self.call_error.clone().map(FaultKind::CallError),
            self.bad_value.clone().map(FaultKind::BadValue),
            self.crash.clone().map(FaultKind::Crash),
            self.init_error.map(FaultKind::InitError),
            self.driver_unload.clone().map(FaultKind::DriverUnload),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl FaultKind {
    /// Faults of calls may be of all GPUs, faults of host, switch and driver are of none.
    fn needs_gpu(&self) -> bool {
        !matches!(
            self,
            Self::OomKill(_)
                | Self::Sxid(_)
                | Self::InitError(_)
                | Self::DriverUnload(_)
                | Self::SlowCall(_)
                | Self::HangCall(_)
                | Self::CallError(_)
                | Self::BadValue(_)
                | Self::Crash(_)
        )
    }
}

impl Fault {
    /// Whether it has begun and not ended.
    #[must_use]
    pub fn active_at(&self, t_ms: i64) -> bool {
        t_ms >= self.at.ms() && self.until.is_none_or(|until| t_ms < until.ms())
    }

    /// Whether it has begun.
    #[must_use]
    pub fn begun_by(&self, t_ms: i64) -> bool {
        t_ms >= self.at.ms()
    }

    /// Whether it takes the GPU off the bus.
    #[must_use]
    pub fn loses_gpu(&self) -> bool {
        match &self.kind {
            FaultKind::Lost => true,
            FaultKind::Xid(xid) => xid.code == 79,
            _ => false,
        }
    }

    /// From when on it changes what was: an out-of-memory kill is announced by growth.
    pub(crate) fn effect_begins_ms(&self) -> i64 {
        match &self.kind {
            FaultKind::OomKill(kill) => self.at.ms().saturating_sub(kill.grew_for.ms().max(0)),
            _ => self.at.ms(),
        }
    }
}
