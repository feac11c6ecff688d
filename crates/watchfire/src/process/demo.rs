//! The demonstration: a simulated 8-GPU server whose faults happen on a schedule, with a day of history.
//!
//! The server is a folder: the driver's library (carried in this binary, written out as `libnvidia-ml.so.1`), a proc tree
//! and a kernel log. The real collectors read it, and the real scraper takes their pages. The history is made by the same
//! code, with the clock turned by hand; a restart on the same data goes on where the scenario is, without a second filling.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use anyhow::Context as _;
use collect::Paths;
use model::{Appender, Clock, Labels, Millis, SystemClock};
use scrape::{Ingest, Job};
use sim::Scenario;

use super::sources::{GPU_INVENTORY, LOCAL_JOBS, Sources};

/// The driver's library, as `build.rs` made it.
const LIBRARY: &[u8] = include_bytes!(env!("WATCHFIRE_SIM_LIBRARY"));

/// What the library plays.
const SCENARIO: &str = include_str!("../../../../data/sim/demo-h100x8.yml");

/// How much history is filled in.
const HISTORY: Millis = 24 * 3_600_000;

/// The step of the history, as long as a scrape interval.
const HISTORY_STEP: Millis = 15_000;

/// The scenario starts this long after the process, so that its first fault comes when the page can show it: about
/// what filling in takes.
const LEAD: Millis = 6_000;

/// A stretch of the history, before the scenario's start, in which nothing was scraped: what a page makes of a gap
/// should be seen too.
const GAP: std::ops::Range<Millis> = -9_000_000..-8_760_000;

/// The step at which the store may write blocks while the history is filled in.
const MAINTENANCE_STEP: Millis = 3_600_000;

/// Steps of the history that may be made and not yet stored.
const PAGES_AHEAD: usize = 16;

/// A moment of the history with the page of each local job.
type Step = (Millis, [String; LOCAL_JOBS.len()]);

/// How often the live proc tree and kernel log are brought up to date.
const TICK: Duration = Duration::from_millis(500);

/// A simulated server, its folder written, its clock not yet running.
pub struct Demo {
    scenario: Arc<Scenario>,
    controls: sim::Control,
    folder: PathBuf,
    /// When the scenario starts; what lies before is history.
    epoch: Millis,
    /// Whether the history is still to be filled in.
    is_new: bool,
    clock: Arc<TurnedClock>,
    sources: Arc<Sources>,
}

/// A clock that stands where it was turned to, until it is let go.
#[derive(Debug, Default)]
struct TurnedClock {
    at: AtomicI64,
    runs: AtomicBool,
}

impl Clock for TurnedClock {
    fn now(&self) -> Millis {
        if self.runs.load(Ordering::Acquire) {
            SystemClock.now()
        } else {
            self.at.load(Ordering::Acquire)
        }
    }
}

impl Demo {
    /// Writes the server's folder below `data` and starts its collectors.
    ///
    /// # Errors
    ///
    /// The folder cannot be written, or the library cannot be loaded.
    pub fn prepare(data: &Path) -> anyhow::Result<Self> {
        Self::playing(data, SCENARIO)
    }

    /// The same for another scenario, which the library reads from a file beside it.
    fn playing(data: &Path, text: &str) -> anyhow::Result<Self> {
        let folder = data.join("demo");
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        // The path counts from the root: the loader would search for a bare name elsewhere.
        let folder = folder
            .canonicalize()
            .with_context(|| format!("cannot find {}", folder.display()))?;
        let library = folder.join("libnvidia-ml.so.1");
        write_if_other(&library, LIBRARY)?;
        let controls = sim::Control::open(&library).with_context(|| format!("cannot load {}", library.display()))?;
        let (epoch, is_new) = epoch(&folder)?;
        controls.set_epoch_ms(Some(epoch));
        if text != SCENARIO {
            let file = folder.join("scenario.yml");
            std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
            controls.set_scenario(Some(&file)).context("cannot name the scenario")?;
        }
        let scenario = Scenario::parse(text).context("the simulated server's scenario")?;
        let clock = Arc::new(TurnedClock::default());
        clock.at.store(epoch, Ordering::Release);
        let tree = |time| sim::procfs::Tree::new(Arc::clone(&scenario), &folder.join("proc"), epoch).write(time);
        tree(0).context("cannot write the simulated proc tree")?;
        // Its file systems have the size of this machine's, since they are asked for it where the folder lies.
        for mount in ["", "run", "dev/shm"] {
            let path = folder.join("root").join(mount);
            std::fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        }
        // Anew at each start, as after a boot: what an earlier process read is not read again.
        let log = folder.join("kmsg");
        std::fs::write(&log, "").with_context(|| format!("cannot write {}", log.display()))?;
        let paths = Paths {
            procfs: folder.join("proc"),
            sysfs: folder.join("sys"),
            rootfs: folder.join("root"),
            udev: folder.join("udev"),
            kmsg: log,
            nvml_library: Some(library),
            textfile: None,
        };
        let booted = epoch + scenario.host().booted.ms();
        let time = Arc::clone(&clock) as Arc<dyn Clock>;
        let sources = Sources::start(
            &paths,
            &scenario.host().name,
            &time,
            Some(&folder.join(GPU_INVENTORY)),
            Some(booted),
            collect::gpu::Shown::usual()?,
            // Its clock is turned by hand while the history is made, which only this process can do.
            collect::gpu::Place::Here,
        )?;
        Ok(Self {
            scenario,
            controls,
            folder,
            epoch,
            is_new,
            clock,
            sources,
        })
    }

    /// The name of the simulated host.
    pub fn host_name(&self) -> &str {
        &self.scenario.host().name
    }

    /// The pages of the simulated server.
    pub fn sources(&self) -> Arc<Sources> {
        Arc::clone(&self.sources)
    }

    /// The labels of a local job's series on this server.
    pub fn labels(&self, job: &str) -> Labels {
        Labels::from_pairs([("job", job), ("instance", self.host_name()), ("simulated", "true")])
    }

    fn kernel_log(&self) -> PathBuf {
        self.folder.join("kmsg")
    }

    fn tree(&self) -> sim::procfs::Tree {
        sim::procfs::Tree::new(Arc::clone(&self.scenario), &self.folder.join("proc"), self.epoch)
    }

    /// Fills in the history, unless it is there already; returns the number of samples.
    ///
    /// `maintain` is called with the time reached, so that the store can write blocks on the way.
    ///
    /// # Errors
    ///
    /// The store refuses the samples, or the folder cannot be written.
    pub fn fill_history(
        &self,
        appender: &Arc<dyn Appender>,
        maintain: impl Fn(Millis),
        stopping: &AtomicBool,
    ) -> anyhow::Result<u64> {
        let mut samples = 0;
        if self.is_new {
            // One core makes the pages while another reads them.
            let (made, pages) = mpsc::sync_channel(PAGES_AHEAD);
            samples = std::thread::scope(|scope| {
                let maker = scope.spawn(move || self.make_history(&made, stopping));
                let stored = self.store_history(appender, &pages, maintain);
                // A store that failed takes no more pages; the maker ends by itself.
                drop(pages);
                let made = maker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                stored.and_then(|samples| made.map(|()| samples))
            })?;
            if stopping.load(Ordering::Acquire) {
                return Ok(samples);
            }
            let early = self.epoch - SystemClock.now();
            std::thread::sleep(Duration::from_millis(early.clamp(0, LEAD).unsigned_abs()));
            // Written last: a process that was killed on the way fills in again.
            std::fs::write(self.folder.join("epoch"), self.epoch.to_string())
                .context("cannot keep the demonstration's start")?;
        }
        // After the history: what it says never changes, and reading it five thousand times would take seconds.
        sim::sysfs::Tree::new(Arc::clone(&self.scenario), &self.folder.join("sys"))
            .write(0)
            .context("cannot write the simulated sys tree")?;
        self.controls.set_time_ms(None);
        self.clock.runs.store(true, Ordering::Release);
        Ok(samples)
    }

    /// Makes the pages of each step of the history, with the clock turned by hand.
    fn make_history(&self, made: &mpsc::SyncSender<Step>, stopping: &AtomicBool) -> anyhow::Result<()> {
        let mut tree = self.tree().in_place();
        let mut time = self.epoch - HISTORY;
        while time < self.epoch && !stopping.load(Ordering::Acquire) {
            if !GAP.contains(&(time - self.epoch)) {
                self.clock.at.store(time, Ordering::Release);
                self.controls.set_time_ms(Some(time));
                tree.write(time - self.epoch)
                    .context("cannot write the simulated proc tree")?;
                let pages = LOCAL_JOBS.map(|(_, page, _)| self.sources.page(page));
                if made.send((time, pages)).is_err() {
                    return Ok(());
                }
            }
            time += HISTORY_STEP;
        }
        Ok(())
    }

    /// Stores the pages as they are made; returns the number of samples.
    fn store_history(
        &self,
        appender: &Arc<dyn Appender>,
        made: &mpsc::Receiver<Step>,
        maintain: impl Fn(Millis),
    ) -> anyhow::Result<u64> {
        let mut jobs =
            LOCAL_JOBS.map(|(name, ..)| Ingest::new(Arc::clone(appender), Arc::new(Job::new(name)), self.labels(name)));
        let mut samples = 0;
        for (time, pages) in made {
            for (job, page) in jobs.iter_mut().zip(&pages) {
                samples += job.ingest_page(time, page.as_bytes())?.kept;
            }
            if time % MAINTENANCE_STEP < HISTORY_STEP {
                maintain(time);
            }
        }
        Ok(samples)
    }

    /// Keeps the proc tree and the kernel log up to date, on a thread, for as long as the process lives.
    ///
    /// # Errors
    ///
    /// The kernel log cannot be opened, or the system refuses a thread.
    pub fn play(self: Arc<Self>) -> anyhow::Result<()> {
        let mut tree = self.tree();
        let from = if self.is_new { 0 } else { SystemClock.now() - self.epoch };
        let mut log = sim::kmsg::Writer::open(Arc::clone(&self.scenario), &self.kernel_log(), from)
            .context("cannot open the simulated kernel log")?;
        let play = move || loop {
            let now = SystemClock.now() - self.epoch;
            if let Err(error) = tree.write(now).and_then(|()| log.write_until(now)) {
                tracing::warn!(%error, "the simulated server stands still");
            }
            std::thread::sleep(TICK);
        };
        std::thread::Builder::new()
            .name("demo".into())
            .spawn(play)
            .context("cannot start the demonstration's thread")?;
        Ok(())
    }
}

/// The start of the scenario: kept from an earlier run on the same data, or now.
fn epoch(folder: &Path) -> anyhow::Result<(Millis, bool)> {
    match std::fs::read_to_string(folder.join("epoch")) {
        Ok(text) => {
            let epoch = text
                .trim()
                .parse()
                .with_context(|| format!("{}/epoch is not a time", folder.display()))?;
            Ok((epoch, false))
        }
        Err(_) => Ok((SystemClock.now() + LEAD, true)),
    }
}

/// Writes a file unless it has these bytes already: a library in use must not be written into.
fn write_if_other(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if std::fs::read(path).is_ok_and(|have| have == bytes) {
        return Ok(());
    }
    let fresh = path.with_extension("new");
    std::fs::write(&fresh, bytes).with_context(|| format!("cannot write {}", fresh.display()))?;
    std::fs::rename(&fresh, path).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod healthy;
