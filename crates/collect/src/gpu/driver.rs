//! The driver's library: loaded when it is there, looked for again when it is not.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::{Clock, Millis};
use nvml::Nvml;

use super::driver_error;
use super::events::Events;
use super::fault::Fault;
use super::watcher::Watcher;
use crate::Error;
use crate::kernel::XidCounts;

/// A driver that is not there is looked for again after so long, in milliseconds.
const RETRY_MS: Millis = 15_000;

/// GPUs beyond this many are not watched; the largest servers have sixteen.
const GPUS_MAX: u32 = 64;

/// The driver, as long as it is there.
pub struct Driver {
    library: Option<PathBuf>,
    words: Vec<String>,
    tick: Duration,
    clock: Arc<dyn Clock>,
    xids: XidCounts,
    session: Option<Session>,
    /// When it was last looked for in vain, and why.
    failed: Option<(Millis, Fault)>,
}

/// What is known while the library is loaded.
pub struct Session {
    nvml: Nvml,
    pub driver_version: String,
    pub cuda_version: String,
    pub nvml_version: String,
    pub watchers: Vec<Watcher>,
    _events: Option<Events>,
}

impl Driver {
    pub fn new(
        library: Option<PathBuf>,
        words: Vec<String>,
        tick: Duration,
        clock: Arc<dyn Clock>,
        xids: XidCounts,
    ) -> Self {
        Self {
            library,
            words,
            tick,
            clock,
            xids,
            session: None,
            failed: None,
        }
    }

    /// The session, with a watcher for every GPU the driver knows now.
    pub fn session(&mut self, now: Millis) -> Result<&mut Session, Error> {
        if self.session.is_none() {
            if let Some((at, why)) = &self.failed
                && (0..RETRY_MS).contains(&(now - at))
            {
                return Err(Error::Driverless { source: why.clone() });
            }
            match self.open() {
                Ok(session) => {
                    self.session = Some(session);
                    self.failed = None;
                }
                Err(error) => {
                    let why = Fault::from(error);
                    self.failed = Some((now, why.clone()));
                    return Err(Error::Driverless { source: why });
                }
            }
        }
        let session = self.session.as_mut().expect("opened above");
        let known = session
            .nvml
            .device_count()
            .map_err(|e| driver_error("cannot count the GPUs", e))?;
        for index in u32::try_from(session.watchers.len()).unwrap_or(GPUS_MAX)..known.min(GPUS_MAX) {
            let clock = Arc::clone(&self.clock);
            let watcher = Watcher::start(session.nvml.clone(), index, &self.words, self.tick, clock);
            session.watchers.push(watcher.map_err(Error::Thread)?);
        }
        Ok(session)
    }

    /// Lets the library go, to be loaded anew.
    pub fn close(&mut self) {
        self.session = None;
    }

    fn open(&self) -> Result<Session, nvml::Error> {
        let nvml = Nvml::load(self.library.as_deref())?;
        let cuda = nvml.cuda_version().ok().flatten();
        Ok(Session {
            driver_version: nvml.driver_version()?.unwrap_or_default(),
            cuda_version: cuda
                .map(|(major, minor)| format!("{major}.{minor}"))
                .unwrap_or_default(),
            nvml_version: nvml.nvml_version().ok().flatten().unwrap_or_default(),
            watchers: Vec::new(),
            _events: Events::start(&nvml, self.xids.clone(), Arc::clone(&self.clock)),
            nvml,
        })
    }
}
