//! The sources of one machine: collectors with their threads, the reader of kernel messages, and the pages they make.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use collect::gpu::{HelperCommand, Place, Sampling, Shown};
use collect::kernel::{Classifier, Kernel, PATTERNS};
use collect::page::Page;
use collect::{Machine, Paths, State};
use config::watchfire::GpuConfig;
use exposition::Format;
use model::{Clock, Family, Millis, SystemClock};
use tail::Stop;
use tail::kmsg::{Boot, Item, Kmsg, Start};

use super::gpu_page;
use crate::cli::PathArgs;

/// The local jobs: name, page, path on an agent.
pub const LOCAL_JOBS: [(&str, Page, &str); 2] = [
    ("dcgm", Page::Gpu, "/metrics/gpu"),
    ("node", Page::Node, "/metrics/node"),
];

/// Where a machine's inventory of GPUs is kept, in the folder for such things.
pub const GPU_INVENTORY: &str = "gpu-inventory.json";

/// Where the last half hour of GPU samples is kept, in the same folder.
pub const GPU_RING: &str = "gpu-ring";

/// How long the reader of kernel messages waits for the next one before it looks up.
const KMSG_PATIENCE: Duration = Duration::from_secs(60);

/// How long to wait before a source of kernel messages that failed is opened again.
const KMSG_RETRY: Duration = Duration::from_secs(30);

/// The collectors of one machine.
pub struct Sources {
    machine: Machine,
    stop: Stop,
}

impl Drop for Sources {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(helpers) = &self.machine.gpu_helpers {
            helpers.stop();
        }
    }
}

impl Sources {
    /// Starts the collectors' threads and the reader of kernel messages.
    ///
    /// `inventory` is the file that keeps which GPUs there are, over restarts.
    /// `booted` is when its kernel booted, of a machine that is not this one.
    /// `place` is where the GPU driver's library is loaded.
    ///
    /// # Errors
    ///
    /// The system refuses a thread, or a table of this program is wrong. A source that is not there is no error: its
    /// collector says so.
    pub fn start(
        paths: &Paths,
        host: &str,
        clock: &Arc<dyn Clock>,
        inventory: Option<&Path>,
        booted: Option<Millis>,
        shown: Shown,
        place: Place,
    ) -> anyhow::Result<Arc<Self>> {
        let machine = Machine::start_with(paths, host, Vec::new(), clock, inventory, shown, place)
            .context("cannot start the collectors")?;
        let stop = Stop::new().context("cannot make a stop handle")?;
        read_kernel(&paths.kmsg, booted, Arc::clone(&machine.kernel), stop.clone())?;
        Ok(Arc::new(Self { machine, stop }))
    }

    /// This machine's, sampled at this interval. `inventory` is as in [`Sources::start`]; `ring` is the file of samples.
    ///
    /// # Errors
    ///
    /// As [`Sources::start`].
    pub fn of_here(
        args: &PathArgs,
        inventory: Option<&Path>,
        ring: Option<&Path>,
        gpu: &GpuConfig,
    ) -> anyhow::Result<Arc<Self>> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let shown = gpu_page::shown(gpu, args.nvml_library.is_some())?;
        let place = Place::Helper(Sampling {
            command: HelperCommand::this_binary(["gpu-helper"]),
            interval: Duration::from_millis(gpu.sample_interval.unsigned_abs()),
            ring: ring.map(Path::to_owned),
        });
        Self::start(&paths(args), &host_name(), &clock, inventory, None, shown, place)
    }

    /// The counters of the kernel's and the driver's events.
    pub fn kernel(&self) -> Arc<Kernel> {
        Arc::clone(&self.machine.kernel)
    }

    /// One page in the text format.
    pub fn page(&self, page: Page) -> String {
        exposition::write_page(&self.machine.runner.collect(page), Format::Text)
    }

    /// The families of a page for a process that prints it and ends: where the GPUs need a second look, it is taken a second
    /// later.
    pub fn families_once(&self, page: Page) -> Vec<Family> {
        self.machine.page_once(page, std::thread::sleep)
    }
}

/// The classifier of kernel lines, with the patterns this program carries.
///
/// # Errors
///
/// A pattern is wrong; a test keeps that from being shipped.
pub fn classifier() -> anyhow::Result<Classifier> {
    Classifier::new(PATTERNS).context("the table of kernel events")
}

/// Reads kernel messages on a thread until told to stop; a source that is missing or fails is tried again.
fn read_kernel(path: &Path, booted: Option<Millis>, kernel: Arc<Kernel>, stop: Stop) -> anyhow::Result<()> {
    let path = path.to_owned();
    // What this machine's kernel said before this start was counted by an earlier one, or is history.
    let (start, boot) = booted.map_or((Start::End, Boot::OfMachine), |at| (Start::Beginning, Boot::At(at)));
    let work = move || {
        while !stop.is_stopped() {
            if let Err(error) = Kmsg::open(&path, start, boot).and_then(|log| follow(log, &kernel, &stop)) {
                kernel.detached(state_of(&error), error_text(&error));
            }
            let _ = stop.wait(KMSG_RETRY);
        }
    };
    std::thread::Builder::new()
        .name("kmsg".into())
        .spawn(work)
        .context("cannot start the reader of kernel messages")?;
    Ok(())
}

fn follow(mut log: Kmsg, kernel: &Kernel, stop: &Stop) -> Result<(), tail::Error> {
    kernel.attached();
    while !stop.is_stopped() {
        match log.next(KMSG_PATIENCE, stop)? {
            Some(Item::Record(record)) => drop(kernel.message(&record.text, record.time)),
            Some(Item::Lost(count)) => kernel.lost(count),
            None => {}
        }
    }
    Ok(())
}

fn state_of(error: &tail::Error) -> State {
    match error {
        tail::Error::Absent { .. } => State::Absent,
        tail::Error::Denied { .. } => State::Denied,
        _ => State::Unsupported,
    }
}

fn error_text(error: &tail::Error) -> String {
    let source = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    format!("{error}{}", source.unwrap_or_default())
}

fn paths(args: &PathArgs) -> Paths {
    Paths {
        procfs: args.procfs.clone(),
        sysfs: args.sysfs.clone(),
        rootfs: args.rootfs.clone(),
        kmsg: args.kmsg.clone(),
        nvml_library: args.nvml_library.clone(),
        ..Paths::default()
    }
}

/// This machine's name, as its kernel tells it.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
