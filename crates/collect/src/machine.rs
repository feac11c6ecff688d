//! One machine with all its collectors, put together.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use model::{Clock, Family};

use crate::gpu;
use crate::kernel::{self, Classifier, Kernel, PATTERNS, XidCatalog, XidCounts};
use crate::page::Page;
use crate::{Error, Paths, Runner, State, node};

/// One machine with all its collectors.
pub struct Machine {
    /// Takes the kernel's messages from whoever reads them.
    pub kernel: Arc<Kernel>,
    /// Gives the pages.
    pub runner: Runner,
    /// The processes that speak to the GPU driver, where it is not this one.
    pub gpu_helpers: Option<gpu::Helpers>,
}

impl Machine {
    /// Starts the collectors of the machine at `paths` with the usual GPU page and the driver's library in this process.
    ///
    /// # Errors
    ///
    /// As [`Machine::start_with`].
    pub fn start(
        paths: &Paths,
        hostname: &str,
        labels: Vec<(&'static str, String)>,
        clock: &Arc<dyn Clock>,
        inventory: Option<&Path>,
    ) -> Result<Self, Error> {
        let shown = gpu::Shown::usual()?;
        Self::start_with(paths, hostname, labels, clock, inventory, shown, gpu::Place::Here)
    }

    /// Starts the collectors of the machine at `paths` with the tables that come with the program.
    ///
    /// `hostname` is the label `Hostname` of the GPU page; `labels` stand on every line (`simulated="true"`).
    /// `inventory` is the file that keeps which GPUs there are ([`gpu::Options::inventory`]).
    /// `place` is where the GPU driver's library is loaded.
    /// Kernel messages are the caller's to read: [`Kernel::attached`] or [`Kernel::detached`], then [`Kernel::message`].
    ///
    /// # Errors
    ///
    /// [`Error::Thread`]; the tables are tested.
    pub fn start_with(
        paths: &Paths,
        hostname: &str,
        labels: Vec<(&'static str, String)>,
        clock: &Arc<dyn Clock>,
        inventory: Option<&Path>,
        shown: gpu::Shown,
        place: gpu::Place,
    ) -> Result<Self, Error> {
        let catalog = XidCatalog::embedded()?;
        let xids = XidCounts::new(&catalog);
        let kernel = Arc::new(Kernel::new(Arc::new(Classifier::new(PATTERNS)?), xids.clone()));
        let options = gpu::Options {
            library: paths.nvml_library.clone(),
            hostname: hostname.to_owned(),
            shown,
            deadline: gpu::DEADLINE,
            tick: gpu::TICK,
            clock: Arc::clone(clock),
            xids,
            catalog,
            inventory: inventory.map(Path::to_owned),
        };
        let mut workers = node::workers(paths);
        let (gpu_workers, gpu_helpers) = gpu::start(paths, options, place)?;
        workers.extend(gpu_workers);
        workers.extend(kernel::workers(&kernel));
        let runner = Runner::start(workers, Arc::clone(clock)).map_err(Error::Thread)?;
        Ok(Self {
            kernel,
            runner: runner.with_labels(labels),
            gpu_helpers,
        })
    }

    /// One page for somebody who asks only once.
    ///
    /// Averages of the GPU's own counters and throttled seconds lie between two looks. So where a driver answers, `pause`
    /// is called to let that much time go by, and the page is that of a second round.
    #[must_use]
    pub fn page_once(&self, page: Page, pause: impl FnOnce(Duration)) -> Vec<Family> {
        let first = self.runner.collect(page);
        let is_gpu = |status: &crate::CollectorStatus| status.name == "gpu" && status.state == State::Present;
        if !page.shows(Page::Gpu) || !self.runner.statuses().iter().any(is_gpu) {
            return first;
        }
        pause(gpu::TICK);
        self.runner.collect(page)
    }
}
