//! In the agent: one thread that starts helpers, hears all of them, and ends them, as the roster decides.
//!
//! What helpers tell is kept here for whoever makes the page; samples go on into the ring.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use model::Millis;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::link::{Heard, HelperCommand, Link, ending};
use super::protocol::{Batch, Begin, Report, Request};
use super::roster::{Action, HelperId, Roster, Times, Trouble};
use crate::Error;
use crate::gpu::driver::{Facts, Round};
use crate::gpu::fault::{Fault, FaultKind};
use crate::gpu::identity::Identity;
use crate::gpu::reading::{GpuState, Reading};
use crate::gpu::ring::{RingKeeper, Window};
use crate::gpu::sample::Sample;
use crate::gpu::throttle::Throttle;
use crate::kernel::{XidCounts, XidSource};

/// How long a helper that was hung up on may take to shut the library down before it is killed.
const LEAVE: Duration = Duration::from_secs(4);

/// How long the agent's own end waits for its helpers.
const FAREWELL: Duration = Duration::from_secs(3);

/// The thread looks up at least so often.
const NAP: Duration = Duration::from_secs(2);

/// More GPUs than any server has; a helper that tells of more is not believed.
const GPUS_MAX: u32 = 64;

/// What helpers are started with.
pub struct Options {
    /// How a helper is started.
    pub command: HelperCommand,
    /// What it is told; the GPUs are the roster's to choose.
    pub begin: Begin,
    /// How long things may take.
    pub times: Times,
    /// Where XIDs are counted.
    pub xids: XidCounts,
    /// Where samples are kept.
    pub ring: RingKeeper,
}

/// The thread, and what it has heard.
pub struct Supervisor {
    shared: Arc<Shared>,
    wake: UnixStream,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    told: Mutex<Told>,
    changed: Condvar,
}

/// What helpers have told.
struct Told {
    roster: Roster,
    call: Duration,
    facts: Option<Facts>,
    /// Why there is no driver, while there is none.
    down: Option<Fault>,
    identities: BTreeMap<u32, Identity>,
    /// The last answers, and the round they belong to.
    readings: BTreeMap<u32, (Millis, Reading)>,
    throttles: BTreeMap<u32, Throttle>,
    windows: BTreeMap<u32, Window>,
    /// A round that is to be asked for.
    round: Option<Millis>,
    /// Helpers that wait for the driver's events.
    attached: BTreeSet<HelperId>,
    helpers: Helpers,
    pids: Vec<u32>,
    started: Instant,
    /// When each GPU's last sample was taken.
    sampled: BTreeMap<u32, Millis>,
    stop: bool,
}

/// How many helpers there are and were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Helpers {
    /// Processes that exist, those included that are asked to leave.
    pub processes: u32,
    /// Processes that were started so far.
    pub started: u32,
}

impl Supervisor {
    /// Starts the thread, and with it the first helper.
    ///
    /// # Errors
    ///
    /// The system refuses a socket or a thread.
    pub fn start(options: Options) -> io::Result<Self> {
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let shared = Arc::new(Shared {
            told: Mutex::new(Told {
                roster: Roster::new(options.times),
                call: options.times.call,
                facts: None,
                down: None,
                identities: BTreeMap::new(),
                readings: BTreeMap::new(),
                throttles: BTreeMap::new(),
                windows: BTreeMap::new(),
                round: None,
                attached: BTreeSet::new(),
                helpers: Helpers::default(),
                pids: Vec::new(),
                started: Instant::now(),
                sampled: BTreeMap::new(),
                stop: false,
            }),
            changed: Condvar::new(),
        });
        let keeper = Keeper {
            shared: Arc::clone(&shared),
            options,
            begun: Instant::now(),
            links: BTreeMap::new(),
            leaving: Vec::new(),
            woken,
        };
        let thread = thread::Builder::new()
            .name("gpu-helpers".to_owned())
            .spawn(move || keeper.work())?;
        Ok(Self {
            shared,
            wake,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Asks all GPUs everything and gives what was answered within the deadline; for the others, why not.
    ///
    /// # Errors
    ///
    /// [`Error::Driverless`] while there is no driver, or it does not come up.
    pub fn round(&self, now: Millis, deadline: Duration) -> Result<Round, Error> {
        let begun = Instant::now();
        let rest = || deadline.saturating_sub(begun.elapsed());
        let is_coming = |told: &mut Told| !told.roster.any_up() && told.roster.any_starting() && told.down.is_none();
        let mut told = lock(&self.shared.told);
        if is_coming(&mut told) {
            told = wait(&self.shared.changed, told, rest(), is_coming);
        }
        if let Some(source) = told.driverless() {
            return Err(Error::Driverless { source });
        }
        told.round = Some(now);
        self.wake();
        told = wait(&self.shared.changed, told, rest(), |told| told.awaits(now));
        Ok(told.answer(now))
    }

    /// Lets all helpers shut the library down in order; takes no longer than a few seconds. Nothing answers afterwards.
    pub fn stop(&self) {
        lock(&self.shared.told).stop = true;
        self.wake();
        if let Some(thread) = lock(&self.thread).take() {
            // It never panics; were it to, there would be nothing left to do here.
            let _ = thread.join();
        }
    }

    /// The process ids of the helpers at work.
    pub fn pids(&self) -> Vec<u32> {
        lock(&self.shared.told).pids.clone()
    }

    fn wake(&self) {
        // A full socket wakes as well.
        let _ = (&self.wake).write(&[1]);
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Told {
    /// Whether somebody may still answer this round.
    fn awaits(&self, now: Millis) -> bool {
        let gpus = self.facts.as_ref().map_or(0, |facts| facts.gpus);
        let is_due = |gpu: &u32| self.readings.get(gpu).is_none_or(|(round, _)| *round != now);
        self.roster.any_up() && (0..gpus).any(|gpu| is_due(&gpu) && self.roster.trouble(gpu).is_none())
    }

    fn answer(&mut self, now: Millis) -> Round {
        let facts = self.facts.clone().unwrap_or_default();
        let readings = (0..facts.gpus).map(|gpu| self.reading(gpu, now)).collect();
        Round {
            spreads: (0..facts.gpus)
                .map(|gpu| self.windows.entry(gpu).or_default().since_last(now))
                .collect(),
            facts,
            fault: (!self.roster.any_up()).then(|| self.why_down()),
            readings,
            helpers: Some(self.helpers),
        }
    }

    fn reading(&mut self, gpu: u32, now: Millis) -> Reading {
        let answered = self.readings.remove(&gpu).filter(|(round, _)| *round == now);
        let throttle = self.throttles.get(&gpu).cloned().unwrap_or_default();
        if let Some((_, reading)) = answered {
            return Reading { throttle, ..reading };
        }
        let identity = self.identities.get(&gpu).cloned();
        let identity = identity.unwrap_or_else(|| Identity::unknown(gpu));
        let who = format!("GPU {gpu} ({})", identity.uuid);
        let deadline = self.call;
        let (state, error) = match self.roster.trouble(gpu) {
            Some(Trouble::Hung(what)) => (
                GpuState::Hung,
                Error::Hung {
                    what: format!("{who}, {what}"),
                    deadline,
                },
            ),
            Some(Trouble::Unserved(why)) => (
                GpuState::Failed,
                Error::Driver {
                    what: who,
                    source: Fault::new(FaultKind::Crashed, why),
                },
            ),
            None => (GpuState::Hung, Error::Hung { what: who, deadline }),
        };
        Reading {
            throttle,
            errors: vec![error],
            ..Reading::without(identity, state)
        }
    }

    /// Whether the sample is that helper's to give, and not the second one of a beat in which two helpers spoke.
    fn counts(&mut self, id: HelperId, sample: &Sample, sample_ms: u32, now: Duration) -> bool {
        let gpu = u32::from(sample.gpu);
        if gpu >= GPUS_MAX || !self.roster.answered(id, gpu, None, now) {
            return false;
        }
        let least = Millis::from(sample_ms / 4);
        let last = self.sampled.insert(gpu, sample.time);
        // A clock that was set back is no second sample.
        let is_second = last.is_some_and(|last| (0..least).contains(&(sample.time - last)));
        if is_second {
            self.sampled.extend(last.map(|last| (gpu, last)));
        }
        !is_second
    }

    /// Takes note of who a GPU is. Another board in its place has a history of its own.
    fn meet(&mut self, identity: Identity) {
        let gpu = identity.index;
        if gpu >= GPUS_MAX {
            return;
        }
        if self
            .identities
            .get(&gpu)
            .is_some_and(|known| known.uuid != identity.uuid)
        {
            self.throttles.remove(&gpu);
            self.windows.remove(&gpu);
        }
        self.identities.insert(gpu, identity);
    }

    /// Why there is nothing to ask. A helper that died or hangs leaves GPUs behind that are known, and in trouble.
    fn driverless(&self) -> Option<Fault> {
        let why = self.why_down();
        let is_known = self.facts.is_some() && matches!(why.kind, FaultKind::Crashed | FaultKind::Timeout);
        (self.stop || !self.roster.any_up() && !is_known).then_some(why)
    }

    fn why_down(&self) -> Fault {
        if self.stop {
            return Fault::new(FaultKind::Other, "the GPU helpers were ended");
        }
        let hung = || match self.roster.trouble(0) {
            Some(Trouble::Unserved(why)) if self.started.elapsed() > self.call => Fault::new(FaultKind::Timeout, why),
            _ => Fault::new(FaultKind::Starting, "the driver's library is being loaded"),
        };
        self.down.clone().unwrap_or_else(hung)
    }
}

/// The thread's own.
struct Keeper {
    shared: Arc<Shared>,
    options: Options,
    begun: Instant,
    links: BTreeMap<HelperId, Link>,
    /// Helpers that were left, and when; until the kernel has buried them.
    leaving: Vec<(Instant, Link)>,
    woken: UnixStream,
}

impl Keeper {
    fn work(mut self) {
        let mut scratch = vec![0; 16 << 10];
        loop {
            self.tick();
            if lock(&self.shared.told).stop {
                return self.farewell();
            }
            let ready = self.wait();
            self.hear(&ready, &mut scratch);
            self.bury();
        }
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Does what time and the roster want done.
    fn tick(&mut self) {
        let (now, processes) = (self.now(), self.links.len() + self.leaving.len());
        let shared = Arc::clone(&self.shared);
        let mut told = lock(&shared.told);
        for action in told.roster.tick(now, processes) {
            match action {
                Action::Leave(id) => self.leave(id, &mut told),
                Action::Start(id, serves) => {
                    let begin = Begin {
                        serves,
                        ..self.options.begin.clone()
                    };
                    match Link::start(&self.options.command, begin) {
                        Ok(link) => {
                            tracing::debug!(helper = id, pid = link.pid(), "a GPU helper starts");
                            self.links.insert(id, link);
                            told.helpers.started = told.helpers.started.saturating_add(1);
                        }
                        Err(error) => {
                            let why = format!("cannot start the GPU helper: {error}");
                            told.down = Some(Fault::new(FaultKind::Other, why.clone()));
                            told.roster.ended(id, &why, None, now);
                        }
                    }
                }
            }
        }
        if let Some(round) = told.round.take() {
            for id in told.roster.asked() {
                if let Some(link) = self.links.get_mut(&id) {
                    link.send(&Request::Round(round));
                }
            }
        }
        told.pids.clear();
        told.pids.extend(self.links.values().map(Link::pid));
        told.helpers.processes = u32::try_from(self.links.len() + self.leaving.len()).unwrap_or(u32::MAX);
        shared.changed.notify_all();
    }

    /// Hangs up on a helper; it is killed if it does not leave.
    fn leave(&mut self, id: HelperId, told: &mut Told) {
        if let Some(mut link) = self.links.remove(&id) {
            link.hang_up();
            self.leaving.push((Instant::now(), link));
        }
        self.attached(id, false, told);
    }

    /// Waits for whatever happens next; gives the helpers that have something to say.
    fn wait(&self) -> Vec<HelperId> {
        let speaking: Vec<(&HelperId, &Link)> = self.links.iter().filter(|(_, link)| link.socket().is_some()).collect();
        let sockets = speaking.iter().filter_map(|(_, link)| link.socket());
        let mut fds: Vec<PollFd<'_>> = sockets.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        fds.push(PollFd::new(&self.woken, PollFlags::IN));
        // One that even a kill does not end is looked after seldom.
        let is_soon = self.leaving.iter().any(|(since, _)| since.elapsed() < 2 * LEAVE);
        let nap = if is_soon { NAP / 8 } else { NAP };
        let nap = Timespec::try_from(nap).ok();
        // An interrupted wait is an early one.
        let _ = poll(&mut fds, nap.as_ref());
        if fds.pop().is_some_and(|fd| !fd.revents().is_empty()) {
            let mut bytes = [0; 64];
            while matches!((&self.woken).read(&mut bytes), Ok(64)) {}
        }
        let ready = speaking.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        ready.map(|((id, _), _)| **id).collect()
    }

    fn hear(&mut self, ready: &[HelperId], scratch: &mut [u8]) {
        for id in ready {
            let mut reports = Vec::new();
            let Some(link) = self.links.get_mut(id) else { continue };
            let heard = link.receive(scratch, &mut |report| reports.push(report));
            for report in reports {
                self.take(*id, report);
            }
            if heard == Heard::Closed {
                self.closed(*id);
            }
        }
    }

    /// A helper has hung up: it has ended, is about to, or must.
    fn closed(&mut self, id: HelperId) {
        let Some(mut link) = self.links.remove(&id) else { return };
        link.hang_up();
        // The socket closes a moment before the process can be buried.
        let begun = Instant::now();
        let status = loop {
            match link.ended() {
                None if begun.elapsed() < Duration::from_millis(50) => thread::sleep(Duration::from_millis(2)),
                status => break status,
            }
        };
        let why = status.map_or("hung up".to_owned(), ending);
        let why = format!("the driver's helper process {why}");
        if status.is_none() {
            self.leaving.push((Instant::now(), link));
        }
        tracing::warn!(helper = id, why, "a GPU helper is gone");
        let shared = Arc::clone(&self.shared);
        let mut told = lock(&shared.told);
        told.roster.ended(id, &why, None, self.now());
        if !told.roster.any_up() {
            told.down = Some(Fault::new(FaultKind::Crashed, why));
        }
        self.attached(id, false, &mut told);
        shared.changed.notify_all();
    }

    /// Looks after helpers that are leaving.
    fn bury(&mut self) {
        self.leaving.retain_mut(|(since, link)| {
            if link.ended().is_some() {
                return false;
            }
            if since.elapsed() >= LEAVE {
                link.kill();
            }
            true
        });
    }

    /// Takes what a helper told.
    fn take(&mut self, id: HelperId, report: Report) {
        let now = self.now();
        let shared = Arc::clone(&self.shared);
        let mut told = lock(&shared.told);
        told.roster.heard(id, now);
        match report {
            Report::Up(mut facts) => {
                facts.gpus = facts.gpus.min(GPUS_MAX);
                told.roster.is_up(id, now);
                told.down = None;
                told.facts = Some(facts);
                shared.changed.notify_all();
            }
            Report::Down(fault) => {
                // A process for nothing every minute is enough where no driver was ever installed.
                let patience = if fault.kind == FaultKind::NoLibrary { 4 } else { 1 };
                let retry = self.options.times.retry * patience;
                told.roster.ended(id, &fault.text, Some(retry), now);
                if !told.roster.any_up() {
                    told.down = Some(fault);
                }
                self.leave(id, &mut told);
                shared.changed.notify_all();
            }
            Report::Known(identity) => told.meet(identity),
            Report::Samples(batch) => self.samples(id, batch, &mut told),
            Report::Reading(round, reading) => {
                let gpu = reading.identity.index;
                let fault = fault_of(&reading);
                if told.roster.answered(id, gpu, fault, now) {
                    told.readings.insert(gpu, (round, *reading));
                    shared.changed.notify_all();
                }
            }
            Report::Xid(seen) => {
                self.options
                    .xids
                    .count(XidSource::Driver, &seen.pci_bus_id, seen.code, seen.time);
            }
            Report::Events(attached) => self.attached(id, attached, &mut told),
        }
    }

    fn samples(&mut self, id: HelperId, batch: Batch, told: &mut Told) {
        let now = self.now();
        for stuck in &batch.stuck {
            let since = Duration::from_millis(stuck.since_ms.into());
            told.roster.stuck(id, stuck.gpu, since, &stuck.what, now);
        }
        for (gpu, kind) in &batch.failed {
            told.roster.answered(id, *gpu, Some(*kind), now);
        }
        let is_of_driver = |(_, kind): &(u32, FaultKind)| kind.is_of_driver();
        if batch.samples.is_empty() && batch.failed.iter().any(is_of_driver) {
            // The driver went from under the library: a new process loads what is there now.
            told.roster.ended(id, "the driver was unloaded", None, now);
            told.down = Some(Fault::new(FaultKind::Uninitialized, "the driver was unloaded"));
            self.leave(id, told);
            return;
        }
        let samples = batch.samples.into_iter();
        let samples: Vec<Sample> = samples
            .filter(|sample| told.counts(id, sample, self.options.begin.sample_ms, now))
            .collect();
        for sample in &samples {
            let gpu = u32::from(sample.gpu);
            if let Some(reasons) = sample.reasons {
                let throttle = told.throttles.entry(gpu).or_default();
                throttle.see(sample.time, nvml::ClockReasons(reasons));
            }
            told.windows.entry(gpu).or_default().add(sample);
        }
        let gpus = told.facts.as_ref().map_or(0, |facts| facts.gpus);
        let name = |gpu: u16| told.identities.get(&gpu.into()).map_or("", |identity| &identity.uuid);
        self.options.ring.keep(&samples, gpus, name);
    }

    /// Takes note of whether a helper waits for the driver's events.
    fn attached(&self, id: HelperId, attached: bool, told: &mut Told) {
        if attached {
            told.attached.insert(id);
        } else {
            told.attached.remove(&id);
        }
        self.options.xids.set_driver_attached(!told.attached.is_empty());
    }

    /// Lets all helpers go, and sees them off.
    fn farewell(mut self) {
        let ids: Vec<HelperId> = self.links.keys().copied().collect();
        {
            let shared = Arc::clone(&self.shared);
            let mut told = lock(&shared.told);
            ids.into_iter().for_each(|id| self.leave(id, &mut told));
        }
        let begun = Instant::now();
        while !self.leaving.is_empty() && begun.elapsed() < FAREWELL {
            thread::sleep(Duration::from_millis(10));
            self.bury();
        }
        for (_, link) in &mut self.leaving {
            link.kill();
        }
        thread::sleep(Duration::from_millis(if self.leaving.is_empty() { 0 } else { 50 }));
        self.bury();
    }
}

/// Why the GPU as a whole does not answer, if it does not.
fn fault_of(reading: &Reading) -> Option<FaultKind> {
    match reading.state {
        GpuState::Ok => None,
        GpuState::ResetRequired => Some(FaultKind::ResetRequired),
        GpuState::Lost => Some(FaultKind::GpuLost),
        _ => Some(FaultKind::Other),
    }
}

fn wait<'a>(
    changed: &Condvar,
    told: MutexGuard<'a, Told>,
    rest: Duration,
    condition: impl FnMut(&mut Told) -> bool,
) -> MutexGuard<'a, Told> {
    let waited = changed.wait_timeout_while(told, rest, condition);
    waited.unwrap_or_else(PoisonError::into_inner).0
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
