//! In the helper: a thread by each GPU, and one that beats time for them.
//!
//! The beat tells every GPU's thread to take a sample, waits a moment for those that can, and sends what came in one frame;
//! a thread that is still in a call of the driver is left alone, and what it was asked goes along. A round is everything
//! there is to ask; a sample that falls due in the middle of it is taken between two questions.
//!
//! Invariant: no thread that speaks to the driver is waited for, except by itself.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use model::{Clock, Millis};
use nvml::{Device, Nvml};

use super::protocol::{Batch, Begin, Report, Stuck, XidSeen};
use crate::gpu::asker::Asker;
use crate::gpu::driver::Facts;
use crate::gpu::events::{Events, Heard};
use crate::gpu::fault::{Fault, FaultKind};
use crate::gpu::sample::Sample;

/// How long a beat waits for those that are quick. What comes later goes with the next one, with its own time.
const GRACE: Duration = Duration::from_millis(60);

/// A call that took less is not worth a word.
const STUCK_MS: u128 = 200;

/// GPUs beyond this many are not watched; the largest servers have sixteen.
const GPUS_MAX: u32 = 64;

/// The vendor's library runs on these stacks. Only what is used of one costs memory.
const STACK: usize = 1 << 20;

/// Takes what the station has to say; called from all of its threads.
pub type Tell = Arc<dyn Fn(Report) + Send + Sync>;

/// The threads by the GPUs.
pub struct Station {
    shared: Arc<Shared>,
    _events: Option<Events>,
}

struct Shared {
    nvml: Mutex<Option<Nvml>>,
    begin: Begin,
    tell: Tell,
    clock: Arc<dyn Clock>,
    seats: Mutex<Vec<Arc<Seat>>>,
    known: AtomicU32,
    beat: Mutex<Beat>,
    deposited: Condvar,
    stop: AtomicBool,
    /// Threads that may hold the library.
    alive: Mutex<usize>,
    left: Condvar,
}

/// What the present beat has so far.
#[derive(Default)]
struct Beat {
    batch: Batch,
    outstanding: usize,
}

impl Station {
    /// Loads the library, starts a thread by each GPU, and says that it is up; or why not.
    pub fn start(begin: Begin, clock: Arc<dyn Clock>, tell: Tell) -> Option<Self> {
        let opened = Nvml::load(begin.library.as_deref()).map_err(Fault::from);
        let opened = opened.and_then(|nvml| Ok((Facts::read(&nvml)?, nvml)));
        let (facts, nvml) = match opened {
            Ok(opened) => opened,
            Err(fault) => {
                tell(Report::Down(fault));
                return None;
            }
        };
        let known = facts.gpus.min(GPUS_MAX);
        let serves = begin.serves.clone();
        let shared = Arc::new(Shared {
            nvml: Mutex::new(Some(nvml.clone())),
            begin,
            tell,
            clock,
            seats: Mutex::new(Vec::new()),
            known: AtomicU32::new(known),
            beat: Mutex::new(Beat::default()),
            deposited: Condvar::new(),
            stop: AtomicBool::new(false),
            alive: Mutex::new(0),
            left: Condvar::new(),
        });
        shared.tell(Report::Up(facts));
        shared.seat(&nvml, 0..known);
        let of_events = Alive::new(&shared);
        let events = Events::start(
            &nvml,
            move |gpu| serves.has(gpu),
            move |heard| of_events.0.tell(report(heard, of_events.0.clock.now())),
        );
        let of_beat = Arc::clone(&shared);
        let beat = move || of_beat.beat();
        if thread::Builder::new().name("gpu-beat".to_owned()).spawn(beat).is_err() {
            shared.tell(Report::Down(Fault::new(
                FaultKind::Other,
                "the system refuses a thread",
            )));
            return None;
        }
        Some(Self {
            shared,
            _events: events,
        })
    }

    /// Tells every GPU's thread to ask everything. One that is still at an older round goes on with this one after it.
    pub fn round(&self, now: Millis) {
        for seat in lock(&self.shared.seats).iter() {
            lock(&seat.orders).round = Some(now);
            seat.ordered.notify_one();
        }
    }

    /// Lets all threads go and shuts the library down with the last of them, as far as that takes no longer than this.
    /// Says whether it was done.
    pub fn stop(self, patience: Duration) -> bool {
        let Self { shared, _events } = self;
        drop(_events);
        shared.stop.store(true, Ordering::Release);
        lock(&shared.nvml).take();
        for seat in lock(&shared.seats).iter() {
            // Whoever is about to wait has seen the order to stop, or is waiting by now.
            drop(lock(&seat.orders));
            seat.ordered.notify_one();
        }
        let waited = shared
            .left
            .wait_timeout_while(lock(&shared.alive), patience, |alive| *alive > 0);
        *waited.unwrap_or_else(PoisonError::into_inner).0 == 0
    }
}

fn report(heard: Heard, time: Millis) -> Report {
    match heard {
        Heard::Attached(attached) => Report::Events(attached),
        Heard::Xid(pci_bus_id, code) => Report::Xid(XidSeen { pci_bus_id, code, time }),
    }
}

impl Shared {
    fn tell(&self, report: Report) {
        (self.tell)(report);
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Starts threads for these GPUs, as far as they are served.
    fn seat(self: &Arc<Self>, nvml: &Nvml, gpus: std::ops::Range<u32>) {
        for gpu in gpus.filter(|gpu| self.begin.serves.has(*gpu)) {
            let seat = Arc::new(Seat::new(gpu));
            let of_thread = (Alive::new(self), Arc::clone(&seat), nvml.clone());
            let work = move || {
                let (alive, seat, nvml) = of_thread;
                seat.work(&alive.0, &nvml);
            };
            let thread = thread::Builder::new().name(format!("gpu{gpu}")).stack_size(STACK);
            if thread.spawn(work).is_ok() {
                lock(&self.seats).push(seat);
            }
        }
    }

    /// Beats until told to stop.
    fn beat(&self) {
        let interval = Duration::from_millis(self.begin.sample_ms.max(10).into());
        while !self.is_stopped() {
            let orders = lock(&self.seats).iter().filter(|seat| seat.order_sample()).count();
            lock(&self.beat).outstanding += orders;
            for seat in lock(&self.seats).iter() {
                seat.ordered.notify_one();
            }
            let waited = self
                .deposited
                .wait_timeout_while(lock(&self.beat), GRACE.min(interval / 2), |beat| beat.outstanding > 0);
            let mut batch = {
                let mut beat = waited.unwrap_or_else(PoisonError::into_inner).0;
                // Those that are late will not be waited for again.
                beat.outstanding = 0;
                std::mem::take(&mut beat.batch)
            };
            batch.stuck = lock(&self.seats).iter().filter_map(|seat| seat.stuck()).collect();
            self.tell(Report::Samples(batch));
            // On the wall clock's own beats: where one helper takes over from another, nobody gets out of step.
            let interval_ms = Millis::from(self.begin.sample_ms.max(10));
            let rest = interval_ms - self.clock.now().rem_euclid(interval_ms);
            thread::sleep(Duration::from_millis(rest.unsigned_abs()));
        }
    }

    fn deposit(&self, gpu: u32, sample: Result<Sample, FaultKind>) {
        let mut beat = lock(&self.beat);
        match sample {
            Ok(sample) => beat.batch.samples.push(sample),
            Err(kind) => beat.batch.failed.push((gpu, kind)),
        }
        beat.outstanding = beat.outstanding.saturating_sub(1);
        if beat.outstanding == 0 {
            self.deposited.notify_one();
        }
    }
}

/// Held by a thread that may hold the library, and let go after it.
struct Alive(Arc<Shared>);

impl Alive {
    fn new(shared: &Arc<Shared>) -> Self {
        *lock(&shared.alive) += 1;
        Self(Arc::clone(shared))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        *lock(&self.0.alive) -= 1;
        self.0.left.notify_all();
    }
}

/// A GPU's place: its orders, and what its thread is at.
struct Seat {
    gpu: u32,
    orders: Mutex<Orders>,
    ordered: Condvar,
    /// The call that the thread is in.
    call: Mutex<Option<(Instant, &'static str)>>,
}

#[derive(Default)]
struct Orders {
    /// A sample was ordered and not begun.
    sample: bool,
    /// A sample was ordered and is not there.
    sampling: bool,
    round: Option<Millis>,
}

enum Order {
    Sample,
    Round(Millis),
    Leave,
}

impl Seat {
    fn new(gpu: u32) -> Self {
        Self {
            gpu,
            orders: Mutex::default(),
            ordered: Condvar::new(),
            call: Mutex::default(),
        }
    }

    /// Orders a sample, unless the one before is not there yet.
    fn order_sample(&self) -> bool {
        let mut orders = lock(&self.orders);
        if orders.sampling {
            return false;
        }
        (orders.sample, orders.sampling) = (true, true);
        true
    }

    fn next(&self, shared: &Shared) -> Order {
        let is_idle = |orders: &mut Orders| !orders.sample && orders.round.is_none() && !shared.is_stopped();
        let waited = self.ordered.wait_while(lock(&self.orders), is_idle);
        let mut orders = waited.unwrap_or_else(PoisonError::into_inner);
        if shared.is_stopped() {
            return Order::Leave;
        }
        if std::mem::take(&mut orders.sample) {
            return Order::Sample;
        }
        orders.round.take().map_or(Order::Leave, Order::Round)
    }

    fn work(&self, shared: &Arc<Shared>, nvml: &Nvml) {
        let is_census = lock(&shared.seats).first().is_none_or(|first| first.gpu == self.gpu);
        let mut asker = Asker::new(nvml.clone(), self.gpu, &shared.begin.words);
        let mut told = String::new();
        loop {
            match self.next(shared) {
                Order::Leave => return,
                Order::Sample => {
                    self.at("identity");
                    let device = asker.open().map_err(|error| Fault::from(error).kind);
                    self.introduce(shared, &asker, &mut told);
                    self.sample(shared, device.as_ref().map_err(|kind| *kind));
                }
                Order::Round(now) => {
                    if is_census {
                        self.at("device_count");
                        self.census(shared, nvml);
                    }
                    self.at("identity");
                    // Who cannot be opened says so in the round.
                    let _ = asker.open();
                    self.introduce(shared, &asker, &mut told);
                    let reading = asker.round(now, &mut |what, device| {
                        let is_due = std::mem::take(&mut lock(&self.orders).sample);
                        if is_due {
                            self.sample(shared, device.ok_or(FaultKind::Other));
                        }
                        self.at(what);
                    });
                    shared.tell(Report::Reading(now, Box::new(reading)));
                }
            }
            *lock(&self.call) = None;
        }
    }

    /// Says who the GPU is, once.
    fn introduce(&self, shared: &Shared, asker: &Asker, told: &mut String) {
        let identity = asker.identity();
        if *told != identity.uuid {
            told.clone_from(&identity.uuid);
            shared.tell(Report::Known(identity.clone()));
        }
    }

    fn sample(&self, shared: &Shared, device: Result<&Device, FaultKind>) {
        let taken = device.and_then(|device| {
            let sample = Sample::take(device, |what| self.at(what)).map_err(|error| Fault::from(error).kind)?;
            let time = shared.clock.now();
            Ok(Sample { time, ..sample })
        });
        lock(&self.orders).sampling = false;
        shared.deposit(self.gpu, taken);
    }

    /// Looks whether the driver knows more GPUs than before.
    fn census(&self, shared: &Arc<Shared>, nvml: &Nvml) {
        match Facts::read(nvml) {
            Ok(facts) => {
                let (before, now) = (shared.known.load(Ordering::Acquire), facts.gpus.min(GPUS_MAX));
                if now > before {
                    shared.known.store(now, Ordering::Release);
                    shared.tell(Report::Up(facts));
                    shared.seat(nvml, before..now);
                }
            }
            Err(fault) if fault.kind.is_of_driver() => shared.tell(Report::Down(fault)),
            Err(_) => {}
        }
    }

    fn at(&self, what: &'static str) {
        *lock(&self.call) = Some((Instant::now(), what));
    }

    fn stuck(&self) -> Option<Stuck> {
        let (since, what) = (*lock(&self.call))?;
        let since = since.elapsed().as_millis();
        (since >= STUCK_MS).then(|| Stuck {
            gpu: self.gpu,
            since_ms: u32::try_from(since).unwrap_or(u32::MAX),
            what: what.to_owned(),
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
