//! The driver's library in this process: loaded when it is there, looked for again when it is not.
//!
//! For the simulated machine, whose clock this process turns, and for tests; see [`driver`](super::driver).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Clock, Millis};
use nvml::Nvml;

use super::driver::{Facts, Round};
use super::driver_error;
use super::events::{Events, Heard};
use super::fault::Fault;
use super::watcher::Watcher;
use crate::Error;
use crate::kernel::{XidCounts, XidSource};

/// A driver that is not there is looked for again after so long, in milliseconds.
const RETRY_MS: Millis = 15_000;

/// GPUs beyond this many are not watched; the largest servers have sixteen.
const GPUS_MAX: u32 = 64;

/// The driver, as long as it is there.
pub struct Here {
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
struct Session {
    nvml: Nvml,
    facts: Facts,
    watchers: Vec<Watcher>,
    _events: Option<Events>,
}

impl Here {
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

    /// Asks all GPUs everything, each as long as the deadline allows.
    pub fn round(&mut self, now: Millis, deadline: Duration) -> Result<Round, Error> {
        let session = self.session(now)?;
        let begun = Instant::now();
        let asked: Vec<bool> = session.watchers.iter().map(|w| w.ask(now)).collect();
        let watchers = session.watchers.iter_mut().zip(asked);
        Ok(Round {
            facts: session.facts.clone(),
            fault: None,
            readings: watchers
                .map(|(watcher, asked)| watcher.wait(asked, begun, deadline))
                .collect(),
            spreads: Vec::new(),
            helpers: None,
        })
    }

    /// The session, with a watcher for every GPU the driver knows now.
    fn session(&mut self, now: Millis) -> Result<&mut Session, Error> {
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
                Err(why) => {
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

    fn open(&self) -> Result<Session, Fault> {
        let nvml = Nvml::load(self.library.as_deref())?;
        Ok(Session {
            facts: Facts::read(&nvml)?,
            watchers: Vec::new(),
            _events: Events::start(&nvml, |_| true, counting(self.xids.clone(), Arc::clone(&self.clock))),
            nvml,
        })
    }
}

/// Counts what is heard of the driver.
fn counting(xids: XidCounts, clock: Arc<dyn Clock>) -> impl Fn(Heard) + Send {
    move |heard| match heard {
        Heard::Attached(attached) => xids.set_driver_attached(attached),
        Heard::Xid(pci, code) => xids.count(XidSource::Driver, &pci, code, clock.now()),
    }
}
