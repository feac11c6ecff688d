//! The GPUs, in dcgm-exporter's words and our own.
//!
//! `data/gpu_fields.yml` says what is shown, [`question`] asks the driver, a [`watcher`] thread stands by each GPU, and
//! [`driver`] holds the library and finds it again after it was absent. [`collector`] puts the answers on the page.
//!
//! Absent for now: driver calls in a process of their own (a thread that the driver never lets go stays until the end),
//! MIG instances, DCGM, per-process figures.
//!
//! Invariant: one GPU that is lost or hangs takes away nothing from the others, and one field that a board lacks nothing
//! from the other fields. A lost GPU has no readings, and `watchfire_gpu_up` 0 with the labels it had, which an
//! [`inventory`] keeps over restarts.

mod asker;
mod boards;
mod collector;
mod driver;
mod events;
mod fault;
mod field;
mod health;
#[allow(dead_code, reason = "the supervisor that uses it comes next")]
mod helper;
mod identity;
mod inventory;
mod names;
mod occupants;
mod owner;
mod page;
mod pci;
mod process;
mod question;
mod reading;
#[allow(dead_code, reason = "the supervisor that uses it comes next")]
pub mod ring;
#[allow(dead_code, reason = "the supervisor that uses it comes next")]
mod sample;
mod selection;
mod smi;
mod throttle;
mod watcher;
#[allow(dead_code, reason = "the supervisor that uses it comes next")]
mod word;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::Clock;

use crate::kernel::{XidCatalog, XidCounts};
use crate::page::Page;
use crate::{Error, Paths, State, Worker};

pub use collector::GpuCollector;
pub use fault::{Fault, FaultKind};
pub use field::{FIELDS, Field, FieldTable, LabelField, Meaning, Show};
pub use names::{Generation, HostLabel, Names};
pub use process::PROCESSES_MAX;
pub use selection::{Column, Selection};

/// What the GPU collector needs to know.
pub struct Options {
    /// The driver's library; by default the system's.
    pub library: Option<PathBuf>,
    /// The label `Hostname`.
    pub hostname: String,
    /// What is shown, and how.
    pub shown: Shown,
    /// How long a GPU may take to answer; the collector as a whole takes a second longer at most.
    pub deadline: Duration,
    /// How often the clock-event reasons are looked at between collections.
    pub tick: Duration,
    /// The time for readings between collections.
    pub clock: Arc<dyn Clock>,
    /// Where XIDs are counted.
    pub xids: XidCounts,
    /// What XIDs mean.
    pub catalog: XidCatalog,
    /// The file that keeps which GPUs there are, so that one that is lost still has its name after a restart; without
    /// it that is known until the end of the process. Deleting the file forgets GPUs taken out on purpose.
    pub inventory: Option<PathBuf>,
}

/// How long a GPU may take by default: nvidia-smi on a busy eight-GPU server takes less.
pub const DEADLINE: Duration = Duration::from_secs(3);

/// How often the reasons are looked at by default.
pub const TICK: Duration = Duration::from_secs(1);

/// What the GPU page shows, and how.
#[derive(Debug, Clone)]
pub struct Shown {
    /// The metrics.
    pub selection: Selection,
    /// What the host's name is called on the lines of DCGM.
    pub host_label: HostLabel,
    /// The program that is asked where the library cannot be loaded; `None` for nobody.
    pub nvidia_smi: Option<PathBuf>,
    /// Processes of one GPU that have lines of their own.
    pub processes_max: usize,
}

impl Shown {
    /// The usual fields under the names up to 4.8, from NVML alone.
    ///
    /// # Errors
    ///
    /// [`Error::Data`]; the table is tested.
    pub fn usual() -> Result<Self, Error> {
        Ok(Self {
            selection: Selection::usual(&FieldTable::new(FIELDS)?, Names::default()),
            host_label: HostLabel::default(),
            nvidia_smi: None,
            processes_max: PROCESSES_MAX,
        })
    }
}

/// A capture of what `nvidia-smi` said, and how it is to be shown.
pub struct CaptureOptions<'a> {
    /// What it said: `-q -x`, `-q`, `--query-gpu`, the table, several of these under headings, or a complaint.
    pub capture: &'a [u8],
    /// Which of a capture's moments; the last by default.
    pub moment: Option<&'a str>,
    /// The host's name.
    pub hostname: String,
    /// Which metrics are shown.
    pub selection: Selection,
    /// What the host's name is called on the lines of DCGM.
    pub host_label: HostLabel,
}

/// The GPU collector over a capture: one round, which shows it.
///
/// # Errors
///
/// [`Error::Data`]; the tables are tested. What cannot be read in the capture is a state on the page.
pub fn capture_workers(options: CaptureOptions<'_>) -> Result<Vec<Worker>, Error> {
    Ok(vec![Worker {
        page: Page::Gpu,
        deadline: Duration::from_secs(60),
        collectors: vec![Box::new(collector::CaptureCollector::new(options)?)],
    }])
}

/// The GPU collector, ready to run.
///
/// # Errors
///
/// [`Error::Data`]; the tables are tested.
pub fn workers(paths: &Paths, options: Options) -> Result<Vec<Worker>, Error> {
    // The library itself may hang when it is loaded, and then nothing but this deadline ends the wait.
    let deadline = options.deadline + Duration::from_secs(1);
    Ok(vec![Worker {
        page: Page::Gpu,
        deadline,
        collectors: vec![Box::new(GpuCollector::new(paths, options)?)],
    }])
}

/// What a driver's error says of the collector as a whole.
pub(crate) const fn state_of(fault: &Fault) -> State {
    match fault.kind {
        FaultKind::NoLibrary | FaultKind::NotLoaded | FaultKind::NoSuchDevice => State::Absent,
        FaultKind::Denied => State::Denied,
        FaultKind::Timeout => State::Hung,
        _ => State::Unsupported,
    }
}

/// An error of the driver, with what was asked.
fn driver_error(what: impl Into<String>, source: nvml::Error) -> Error {
    Error::Driver {
        what: what.into(),
        source: source.into(),
    }
}
