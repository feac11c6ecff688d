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
pub mod helper;
mod here;
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
pub mod ring;
mod sample;
mod selection;
mod smi;
mod standing;
mod throttle;
mod watcher;
mod word;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::Clock;

use self::driver::Driver;
use self::here::Here;

use crate::kernel::{XidCatalog, XidCounts};
use crate::page::Page;
use crate::{Error, Paths, State, Worker};

pub use collector::GpuCollector;
pub use fault::{Fault, FaultKind};
pub use field::{FIELDS, Field, FieldTable, LabelField, Meaning, Show};
pub use helper::HelperCommand;
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

/// Where the driver's library is loaded.
#[derive(Debug, Clone, Default)]
pub enum Place {
    /// In this process: only for a driver that is simulated, whose clock this process turns.
    #[default]
    Here,
    /// In helper processes, which also take the samples between pages.
    Helper(Sampling),
}

/// How a machine's GPUs are watched between pages.
#[derive(Debug, Clone)]
pub struct Sampling {
    /// How a helper is started.
    pub command: HelperCommand,
    /// How often samples are taken.
    pub interval: Duration,
    /// The file of the last half hour's samples ([`ring`]); without it they are not kept.
    pub ring: Option<PathBuf>,
}

/// The helper processes of one machine, as a handle to end them.
#[derive(Clone)]
pub struct Helpers(Arc<helper::Supervisor>);

impl Helpers {
    /// Lets the helpers shut the driver's library down in order and end; takes no longer than a few seconds. The GPU
    /// collector answers nothing afterwards.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// The process ids of the helpers at work.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        self.0.pids()
    }
}

/// The GPU collector, ready to run, with the driver's library in this process.
///
/// # Errors
///
/// [`Error::Data`]; the tables are tested.
pub fn workers(paths: &Paths, options: Options) -> Result<Vec<Worker>, Error> {
    let here = Here::new(
        options.library.clone(),
        options.shown.selection.words(),
        options.tick,
        Arc::clone(&options.clock),
        options.xids.clone(),
    );
    Ok(vec![worker(paths, Driver::Here(Box::new(here)), options)?])
}

/// The GPU collector, ready to run, and its helpers where the driver's library has such.
///
/// # Errors
///
/// [`Error::Thread`]; the tables are tested.
pub fn start(paths: &Paths, options: Options, place: Place) -> Result<(Vec<Worker>, Option<Helpers>), Error> {
    let Place::Helper(sampling) = place else {
        return Ok((workers(paths, options)?, None));
    };
    let interval_ms = u32::try_from(sampling.interval.as_millis()).unwrap_or(u32::MAX);
    let supervisor = helper::Supervisor::start(helper::Options {
        command: sampling.command,
        begin: helper::Begin {
            library: options.library.clone(),
            words: options.shown.selection.words(),
            serves: helper::Serves::AllBut(Vec::new()),
            sample_ms: interval_ms,
        },
        times: helper::Times::of(options.deadline, sampling.interval),
        xids: options.xids.clone(),
        ring: ring::RingKeeper::new(sampling.ring, interval_ms),
    });
    let supervisor = Arc::new(supervisor.map_err(Error::Thread)?);
    let driver = Driver::Helper(Arc::clone(&supervisor));
    Ok((vec![worker(paths, driver, options)?], Some(Helpers(supervisor))))
}

fn worker(paths: &Paths, driver: Driver, options: Options) -> Result<Worker, Error> {
    // The library itself may hang when it is loaded, and then nothing but this deadline ends the wait.
    let deadline = options.deadline + Duration::from_secs(1);
    Ok(Worker {
        page: Page::Gpu,
        deadline,
        collectors: vec![Box::new(GpuCollector::new(paths, driver, options)?)],
    })
}

/// What a driver's error says of the collector as a whole.
pub(crate) const fn state_of(fault: &Fault) -> State {
    match fault.kind {
        FaultKind::NoLibrary | FaultKind::NotLoaded | FaultKind::NoSuchDevice => State::Absent,
        FaultKind::Denied => State::Denied,
        FaultKind::Timeout | FaultKind::Starting => State::Hung,
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
