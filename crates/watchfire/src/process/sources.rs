//! The sources of one machine: collectors with their threads, and the pages they make.

use std::sync::Arc;

use anyhow::Context as _;
use collect::page::Page;
use collect::{Paths, Runner, Worker};
use exposition::Format;
use model::Clock;

use crate::cli::PathArgs;

/// The local jobs: name, page, path on an agent.
pub const LOCAL_JOBS: [(&str, Page, &str); 2] =
    [("dcgm", Page::Gpu, "/metrics/gpu"), ("node", Page::Node, "/metrics/node")];

/// The collectors of one machine.
pub struct Sources {
    runner: Runner,
}

impl Sources {
    /// Starts the collectors' threads.
    ///
    /// # Errors
    ///
    /// The system refuses a thread. A source that is not there is no error: its collector says so.
    pub fn start(workers: Vec<Worker>, clock: Arc<dyn Clock>) -> anyhow::Result<Arc<Self>> {
        let runner = Runner::start(workers, clock).context("cannot start the collectors")?;
        Ok(Arc::new(Self { runner }))
    }

    /// One page in the text format.
    pub fn page(&self, page: Page) -> String {
        exposition::write_page(&self.runner.collect(page), Format::Text)
    }
}

/// Where the facts of this machine are.
pub fn paths(args: &PathArgs) -> Paths {
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
