//! A scenario: the boards, the work, the host, and what goes wrong when.
//!
//! The text is YAML (`docs/simulator.md` describes it, `data/sim/` holds examples). What is
//! parsed is what is played: every value the simulator gives is a function of the scenario,
//! the GPU and the time.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde::Deserialize;

use crate::counter::Prefix;
use crate::error::Error;
use crate::offset::Offset;

mod board;
mod boards;
mod driver;
mod fault;
mod job;
mod still;

pub use board::{Board, BoardKind, ClocksKind, PciAddress, PowerKind, TemperatureKind};
pub(crate) use boards::GPUS_MAX;
pub(crate) use fault::Written;
pub use fault::{
    BadValue, CallError, Calls, DriverUnload, Ecc, FabricFault, FabricStep, Fault, FaultKind, Hang, Location, NoNumber,
    NvLinkFault, OomKill, OrphanMemory, ProcessPlan, Remap, SeenBy, SlowCall, Sxid, ThermalThrottle, Xid,
};
pub use job::{Job, JobKind};
pub use still::Still;

/// A simulated server.
#[derive(Debug)]
pub struct Scenario {
    plan: Arc<Plan>,
    boards: Arc<[Board]>,
    kinds: Arc<[Arc<BoardKind>]>,
    /// Those of the plan, and those that were injected; in order of time.
    faults: Vec<Fault>,
    pub(crate) prefixes: Vec<Mutex<Prefix>>,
}

/// The driver of the simulated server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Driver {
    /// The kernel driver's version.
    pub version: String,
    /// The library's version.
    pub nvml: String,
    /// The newest CUDA version served, as NVML writes it: 12040 is 12.4.
    pub cuda: i32,
    /// When it was loaded: volatile counters start there.
    pub loaded: Offset,
    /// The code that `nvmlInit` fails with: 9 driver not loaded, 18 versions differ, 4 no permission.
    #[serde(default)]
    pub init_error: Option<u32>,
}

/// The host of the simulated server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Logical processors.
    pub cpus: u32,
    /// Sockets.
    pub sockets: u32,
    /// Memory, in GiB.
    pub memory_gib: u64,
    /// When it was booted.
    pub booted: Offset,
    /// NVMe drives.
    pub drives: u32,
    /// The kernel's release.
    pub kernel: String,
}

/// A scenario as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    pub(crate) name: String,
    pub(crate) seed: u64,
    pub(crate) driver: Driver,
    pub(crate) board: BoardKind,
    pub(crate) boards: Vec<Board>,
    pub(crate) host: Host,
    #[serde(default)]
    pub(crate) jobs: Vec<Job>,
    #[serde(default)]
    pub(crate) faults: Vec<Written>,
    /// Only so many boards, or more of the same make.
    #[serde(default)]
    pub(crate) gpus: Option<usize>,
}

/// Faults with this number and above were injected.
pub(crate) const INJECTED: u64 = 1 << 32;

impl Scenario {
    /// The scenario that is played when none is named: eight H100, all faults within a minute.
    pub const DEFAULT: &'static str = include_str!("../../data/sim/demo-h100x8.yml");

    /// Parses a scenario.
    ///
    /// # Errors
    ///
    /// [`Error::Parse`] with line and column; [`Error::Invalid`] for a fault without kind, a GPU
    /// that is not there, a job that ends before it starts.
    pub fn parse(text: &str) -> Result<Arc<Self>, Error> {
        let plan: Plan = serde_saphyr::from_str(text).map_err(|err| Error::Parse {
            message: err.to_string(),
        })?;
        let boards = boards::resized(plan.boards.clone(), plan.gpus)?;
        let kind = Arc::new(plan.board.clone());
        let kinds = boards.iter().map(|_| Arc::clone(&kind)).collect();
        Self::of(plan, boards, kinds)
    }

    /// A server of boards that each have a kind of their own.
    pub(crate) fn of(plan: Plan, boards: Vec<Board>, kinds: Vec<Arc<BoardKind>>) -> Result<Arc<Self>, Error> {
        boards::check(&boards)?;
        for job in &plan.jobs {
            job.check(boards.len())?;
        }
        let mut faults: Vec<Fault> = (0..)
            .zip(&plan.faults)
            .map(|(id, written)| written.resolve(id, boards.len()))
            .collect::<Result<_, _>>()?;
        faults.sort_by_key(|fault| fault.at);
        // One table of sums for each board and one for the host.
        let prefixes = (0..=boards.len()).map(|_| Mutex::default()).collect();
        Ok(Arc::new(Self {
            plan: Arc::new(plan),
            boards: boards.into(),
            kinds: kinds.into(),
            faults,
            prefixes,
        }))
    }

    /// The same server, with these faults beside those of the plan.
    ///
    /// Sums made so far stay valid up to the first difference, and are kept.
    #[must_use]
    pub fn with_faults(&self, injected: &[Fault]) -> Arc<Self> {
        let is_new = |fault: &&Fault| fault.id >= INJECTED;
        let mut faults: Vec<Fault> = self.faults.iter().filter(|fault| !is_new(fault)).cloned().collect();
        faults.extend(injected.iter().cloned());
        faults.sort_by_key(|fault| fault.at);
        let before = self.faults.iter().filter(is_new);
        let changed_ms = before.chain(injected).map(Fault::effect_begins_ms).min();
        let kept = |prefix: &Mutex<Prefix>| {
            // A poisoned lock only means that a reader died; the sums are valid at every moment.
            let prefix = prefix.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            Mutex::new(prefix.until(changed_ms.unwrap_or(i64::MAX)))
        };
        Arc::new(Self {
            plan: Arc::clone(&self.plan),
            boards: Arc::clone(&self.boards),
            kinds: Arc::clone(&self.kinds),
            faults,
            prefixes: self.prefixes.iter().map(kept).collect(),
        })
    }

    /// Reads a scenario from a file.
    ///
    /// # Errors
    ///
    /// [`Error::Read`], or as [`parse`](Self::parse).
    pub fn read(path: &Path) -> Result<Arc<Self>, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse_any(&text)
    }

    /// Parses a scenario, a machine profile, or a capture of `nvidia-smi -q -x`: which it is, is seen.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn parse_any(text: &str) -> Result<Arc<Self>, Error> {
        crate::source::parse(text)
    }

    /// The scenario's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.plan.name
    }

    /// How many GPUs it has.
    #[must_use]
    pub fn gpu_count(&self) -> usize {
        self.boards.len()
    }

    /// The boards in NVML order.
    #[must_use]
    pub fn boards(&self) -> &[Board] {
        &self.boards
    }

    /// What all boards have in common; where they differ, the first one's.
    #[must_use]
    pub fn kind(&self) -> &BoardKind {
        self.kinds.first().map_or(&self.plan.board, Arc::as_ref)
    }

    /// What kind of board a GPU is; of one that is not there, what all have in common.
    #[must_use]
    pub fn kind_of(&self, gpu: usize) -> &BoardKind {
        self.kinds.get(gpu).map_or(&self.plan.board, Arc::as_ref)
    }

    /// The driver.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        &self.plan.driver
    }

    /// The host.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.plan.host
    }

    /// The work, as written.
    #[must_use]
    pub fn jobs(&self) -> &[Job] {
        &self.plan.jobs
    }

    /// What goes wrong, in order of time.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// The seed of all chance.
    pub(crate) fn seed(&self) -> u64 {
        self.plan.seed
    }

    /// The faults of one GPU, in order of time.
    pub(crate) fn faults_of(&self, gpu: usize) -> impl Iterator<Item = &Fault> {
        self.faults.iter().filter(move |fault| fault.gpu == Some(gpu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_scenario_is_valid() {
        let scenario = Scenario::parse(Scenario::DEFAULT).unwrap();
        assert_eq!(scenario.gpu_count(), 8);
        assert!(
            scenario
                .faults()
                .iter()
                .all(|fault| (0..60_000).contains(&fault.at.ms()))
        );
    }

    #[test]
    fn every_shipped_scenario_is_valid_and_says_its_name() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/sim");
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let scenario = Scenario::read(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
            assert_eq!(path.file_stem().unwrap(), scenario.name());
            names.push(scenario.name().to_owned());
        }
        names.sort();
        assert_eq!(names, ["demo-h100x8", "healthy-h100x8", "sick-driver-h100x8"]);
    }

    #[test]
    fn an_unknown_key_is_an_error_with_its_line() {
        let err = Scenario::parse(&Scenario::DEFAULT.replace("\nseed:", "\nsead: 1\nseed:")).unwrap_err();
        assert!(err.to_string().contains("sead"), "{err}");
        assert!(err.to_string().contains("line"), "{err}");
    }

    #[test]
    fn a_fault_of_a_gpu_that_is_not_there_is_an_error() {
        let text = format!("{}\n  - {{ at: 1s, gpu: 8, xid: 79 }}\n", Scenario::DEFAULT.trim_end());
        let err = Scenario::parse(&text).unwrap_err();
        assert!(err.to_string().contains("GPU 8"), "{err}");
    }
}
