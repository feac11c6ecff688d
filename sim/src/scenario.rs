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
mod fault;
mod job;

pub use board::{Board, BoardKind, ClocksKind, PciAddress, PowerKind, TemperatureKind};
pub use fault::{Ecc, Fault, FaultKind, Hang, OomKill, Remap, SlowCall, ThermalThrottle};
pub use job::{Job, JobKind};

/// A simulated server.
#[derive(Debug)]
pub struct Scenario {
    plan: Plan,
    boards: Vec<Board>,
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
struct Plan {
    name: String,
    seed: u64,
    driver: Driver,
    board: BoardKind,
    boards: Vec<Board>,
    host: Host,
    #[serde(default)]
    jobs: Vec<Job>,
    #[serde(default)]
    faults: Vec<fault::Written>,
}

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
        let boards = plan.boards.clone();
        check_boards(&boards)?;
        for job in &plan.jobs {
            job.check(boards.len())?;
        }
        let mut faults: Vec<Fault> = plan
            .faults
            .iter()
            .map(|written| written.resolve(boards.len()))
            .collect::<Result<_, _>>()?;
        faults.sort_by_key(|fault| fault.at);
        // One table of sums for each board and one for the host.
        let prefixes = (0..=boards.len()).map(|_| Mutex::default()).collect();
        Ok(Arc::new(Self {
            plan,
            boards,
            faults,
            prefixes,
        }))
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
        Self::parse(&text)
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

    /// What all boards have in common.
    #[must_use]
    pub fn kind(&self) -> &BoardKind {
        &self.plan.board
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

fn check_boards(boards: &[Board]) -> Result<(), Error> {
    if boards.is_empty() {
        return Err(Error::invalid("no boards"));
    }
    for (index, board) in boards.iter().enumerate() {
        if boards[..index]
            .iter()
            .any(|other| other.uuid == board.uuid || other.pci == board.pci)
        {
            return Err(Error::invalid(format!(
                "board {index}: UUID or PCI address is used twice"
            )));
        }
    }
    Ok(())
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
