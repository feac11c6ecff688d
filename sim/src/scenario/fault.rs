//! What goes wrong, and when.

use serde::Deserialize;

use crate::error::Error;
use crate::offset::Offset;

/// One fault on the timeline.
#[derive(Clone, Debug)]
pub struct Fault {
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
    /// The driver reports an error; 79 also takes the GPU off the bus.
    Xid(u32),
    /// The GPU is off the bus without a word.
    Lost,
    /// The work hangs: 100 % utilisation, low power, clocks up, flat memory.
    Hang(Hang),
    /// The kernel kills a process for memory.
    OomKill(OomKill),
    /// Memory errors.
    Ecc(Ecc),
    /// Rows replaced.
    Remap(Remap),
    /// Each driver call takes this long.
    SlowCall(SlowCall),
    /// Driver calls do not return.
    HangCall,
}

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

/// How slow.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowCall {
    /// How long each call takes.
    pub takes: Offset,
}

/// A fault as written: `at`, where, and exactly one kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    at: Offset,
    #[serde(default)]
    until: Option<Offset>,
    #[serde(default)]
    gpu: Option<usize>,
    #[serde(default)]
    thermal_throttle: Option<ThermalThrottle>,
    #[serde(default)]
    pcie_width: Option<u32>,
    #[serde(default)]
    xid: Option<u32>,
    #[serde(default)]
    lost: Option<bool>,
    #[serde(default)]
    hang: Option<Hang>,
    #[serde(default)]
    oom_kill: Option<OomKill>,
    #[serde(default)]
    ecc: Option<Ecc>,
    #[serde(default)]
    remap: Option<Remap>,
    #[serde(default)]
    slow_call: Option<SlowCall>,
    #[serde(default)]
    hang_call: Option<bool>,
}

impl Written {
    pub(super) fn resolve(&self, gpu_count: usize) -> Result<Fault, Error> {
        let fail = |what: &str| Err(Error::invalid(format!("fault at {} ms: {what}", self.at.ms())));
        let mut kinds = self.kinds();
        let Some(kind) = kinds.pop() else {
            return fail("says no kind of fault");
        };
        if !kinds.is_empty() {
            return fail("says more than one kind of fault");
        }
        match (self.gpu, &kind) {
            (Some(gpu), _) if gpu >= gpu_count => return fail(&format!("there is no GPU {gpu}")),
            (None, FaultKind::OomKill(_)) | (Some(_), _) => {}
            (None, _) => return fail("says no gpu"),
        }
        if self.until.is_some_and(|until| until <= self.at) {
            return fail("ends before it begins");
        }
        Ok(Fault {
            at: self.at,
            until: self.until,
            gpu: self.gpu,
            kind,
        })
    }

    fn kinds(&self) -> Vec<FaultKind> {
        [
            self.thermal_throttle.clone().map(FaultKind::ThermalThrottle),
            self.pcie_width.map(FaultKind::PcieWidth),
            self.xid.map(FaultKind::Xid),
            self.lost.filter(|on| *on).map(|_| FaultKind::Lost),
            self.hang.clone().map(FaultKind::Hang),
            self.oom_kill.clone().map(FaultKind::OomKill),
            self.ecc.clone().map(FaultKind::Ecc),
            self.remap.clone().map(FaultKind::Remap),
            self.slow_call.clone().map(FaultKind::SlowCall),
            self.hang_call.filter(|on| *on).map(|_| FaultKind::HangCall),
        ]
        .into_iter()
        .flatten()
        .collect()
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
        matches!(self.kind, FaultKind::Lost | FaultKind::Xid(79))
    }
}
