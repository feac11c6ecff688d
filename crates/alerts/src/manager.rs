//! The door to everything: news goes in from any thread, views come out, messages leave by themselves.
//!
//! One task drives the [`Engine`]: it ticks when something is due or new, hands messages to senders, and
//! writes down what must survive before it sleeps again.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use config::alertmanager::Config;
use model::{Clock, Family, Kind, Millis};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::alert::Alert;
use crate::delivery::{Delivery, Outcome, Receipt};
use crate::engine::{AlertView, Engine, GroupView, LAST_RESORT, Notification, Stats};
use crate::error::Error;
use crate::health::Health;
use crate::journal::{Journal, Write};
use crate::receiver::{Sender, Senders, build};
use crate::silence::Silence;

mod trial;

/// The most messages on their way at one time; others wait.
const IN_FLIGHT_MAX: usize = 64;
/// How long the end waits for messages on their way.
const FAREWELL: Duration = Duration::from_secs(5);
/// The longest sleep: clocks jump.
const SLEEP_MAX: Millis = 10_000;

/// What a manager needs beside its configuration.
#[derive(Clone)]
pub struct Options {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Where what must survive is kept; `None` forgets at the end.
    pub data_dir: Option<PathBuf>,
    /// How people reach this hub; stands in messages.
    pub external_url: String,
    /// The most alerts at one time.
    pub alerts_max: usize,
}

/// The running whole. Cheap to clone; the task ends with [`Manager::shutdown`].
#[derive(Clone)]
pub struct Manager {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Mutex<Engine>,
    senders: RwLock<Arc<Senders>>,
    config: RwLock<Arc<Config>>,
    started_at: Millis,
    journal: Arc<Journal>,
    clock: Arc<dyn Clock>,
    external_url: String,
    wake: Notify,
    stop: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Manager {
    /// Starts. Must be called inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// [`Error`]: a receiver that is not built, or a file that cannot be used.
    pub fn start(config: &Config, options: Options) -> Result<Self, Error> {
        let senders = build(config, &options.external_url)?;
        let (journal, known) = Journal::open(options.data_dir.as_deref())?;
        let engine = Engine::new(config, known, options.alerts_max, options.clock.now());
        let shared = Arc::new(Shared {
            engine: Mutex::new(engine),
            senders: RwLock::new(Arc::new(senders)),
            config: RwLock::new(Arc::new(config.clone())),
            started_at: options.clock.now(),
            journal: Arc::new(journal),
            clock: options.clock,
            external_url: options.external_url,
            wake: Notify::new(),
            stop: watch::Sender::new(false),
            task: Mutex::new(None),
        });
        let task = tokio::spawn(run(Arc::clone(&shared)));
        *lock(&shared.task) = Some(task);
        Ok(Self { shared })
    }

    /// Takes news of alerts in, from any thread. An alert without an end gets the resolve timeout.
    pub fn send(&self, alerts: Vec<Alert>) {
        let now = self.shared.clock.now();
        let mut engine = lock(&self.shared.engine);
        for alert in alerts {
            engine.put(alert, now);
        }
        drop(engine);
        self.shared.wake.notify_one();
    }

    /// Goes over to another configuration, entirely or not at all.
    ///
    /// # Errors
    ///
    /// [`Error::Feature`] and faults of template files; then everything stays as it was.
    pub fn reload(&self, config: &Config) -> Result<(), Error> {
        let senders = Arc::new(build(config, &self.shared.external_url)?);
        let mut engine = lock(&self.shared.engine);
        *self.shared.senders.write().unwrap_or_else(PoisonError::into_inner) = senders;
        *self.shared.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config.clone());
        engine.reload(config, self.shared.clock.now());
        drop(engine);
        self.shared.wake.notify_one();
        Ok(())
    }

    /// The configuration in force.
    #[must_use]
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.shared.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// When it started, in milliseconds since the epoch.
    #[must_use]
    pub fn started_at(&self) -> Millis {
        self.shared.started_at
    }

    /// The present moment of its clock.
    #[must_use]
    pub fn now(&self) -> Millis {
        self.shared.clock.now()
    }

    /// Tells every way of a receiver that this is a test, and waits for what becomes of it. What opens something at
    /// the other end (an incident, an issue) is told right afterwards that it is over.
    ///
    /// # Errors
    ///
    /// [`Error::NoReceiver`].
    pub async fn test(&self, receiver: &str) -> Result<Vec<Delivery>, Error> {
        let senders = self.senders();
        let own = senders
            .get(receiver)
            .ok_or_else(|| Error::NoReceiver(receiver.to_owned()))?;
        let mut all = Vec::new();
        for (at, sender) in own.iter().enumerate() {
            let firing = trial::notification(receiver, at, self.now(), false);
            all.push(self.try_out(sender, &firing).await);
            if trial::OPENING.contains(&sender.kind()) {
                let over = trial::notification(receiver, at, self.now(), true);
                all.push(self.try_out(sender, &over).await);
            }
        }
        self.shared.wake.notify_one();
        Ok(all)
    }

    async fn try_out(&self, sender: &Sender, notification: &Notification) -> Delivery {
        let mut receipt = sender.send(notification).await;
        // Nobody tries a test again.
        if let Outcome::Retry(problem) = receipt.outcome {
            receipt.outcome = Outcome::Failed(problem);
        }
        let now = self.now();
        let delivery = trial::delivery(sender.kind(), notification, now);
        tell_log(notification, Some(sender), &receipt);
        lock(&self.shared.engine).note_test(sender.kind(), delivery, &receipt, now)
    }

    fn senders(&self) -> Arc<Senders> {
        Arc::clone(&self.shared.senders.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The alerts that are not over.
    #[must_use]
    pub fn alerts(&self) -> Vec<AlertView> {
        lock(&self.shared.engine).alerts(self.shared.clock.now())
    }

    /// The groups with alerts that are not over, the labels of their routes filled in.
    #[must_use]
    pub fn groups(&self) -> Vec<GroupView> {
        let now = self.now();
        let mut groups = lock(&self.shared.engine).groups(now);
        let senders = self.senders();
        if let Some(sender) = senders.get(LAST_RESORT).and_then(|own| own.first()) {
            for group in groups.iter_mut().filter(|g| !g.route_labels.is_empty()) {
                group.route_labels = sender.route_labels(group, now);
            }
        }
        groups
    }

    /// Every silence, over or not.
    #[must_use]
    pub fn silences(&self) -> Vec<Silence> {
        lock(&self.shared.engine).silences()
    }

    /// Makes or changes a silence and returns its name.
    ///
    /// # Errors
    ///
    /// [`Error::Silence`] and [`Error::NoSilence`].
    pub fn set_silence(&self, silence: Silence) -> Result<String, Error> {
        let id = lock(&self.shared.engine).set_silence(silence, self.shared.clock.now());
        self.shared.wake.notify_one();
        id
    }

    /// Ends a silence.
    ///
    /// # Errors
    ///
    /// [`Error::NoSilence`] and [`Error::SilenceExpired`].
    pub fn expire_silence(&self, id: &str) -> Result<(), Error> {
        let ended = lock(&self.shared.engine).expire_silence(id, self.shared.clock.now());
        self.shared.wake.notify_one();
        ended
    }

    /// The last deliveries, newest first.
    #[must_use]
    pub fn deliveries(&self) -> Vec<Delivery> {
        lock(&self.shared.engine).deliveries()
    }

    /// The deliveries that told of an alert, and whose last attempt ended at a moment or later; oldest first.
    #[must_use]
    pub fn deliveries_of(&self, fingerprint: u64, since: Millis) -> Vec<Delivery> {
        lock(&self.shared.engine).deliveries_of(fingerprint, since)
    }

    /// Every way of every receiver (`webhook[0]`), with how it is.
    #[must_use]
    pub fn health(&self) -> Vec<(String, String, Health)> {
        lock(&self.shared.engine).health()
    }

    /// The silence of a name.
    #[must_use]
    pub fn silence(&self, id: &str) -> Option<Silence> {
        lock(&self.shared.engine).silence(id)
    }

    /// Everything counted, as metrics: Alertmanager's families and ours.
    #[must_use]
    pub fn families(&self) -> Vec<Family> {
        let mut all = lock(&self.shared.engine).families(self.now());
        let config = self.config();
        let mut put = |name: &str, help: &str, value: usize| {
            let mut family = Family::new(name, Kind::Gauge, help);
            family.push(Vec::new(), value as f64);
            all.push(family);
        };
        put(
            "alertmanager_receivers",
            "Receivers configured.",
            config.receivers.len(),
        );
        let ways = config.receivers.iter().map(|r| r.integrations.len()).sum();
        put("alertmanager_integrations", "Ways of receivers configured.", ways);
        let waiting = self.shared.journal.waiting();
        put(
            "watchfire_notification_log_waiting",
            "Changes that wait for a disk that does not take them.",
            waiting,
        );
        all
    }

    /// Counts since the start.
    #[must_use]
    pub fn stats(&self) -> Stats {
        lock(&self.shared.engine).stats(self.shared.clock.now())
    }

    /// Ends: messages on their way get a few seconds, everything known is on disk afterwards.
    pub async fn shutdown(&self) {
        self.shared.stop.send_replace(true);
        let task = lock(&self.shared.task).take();
        if let Some(task) = task {
            // A task that panicked has nothing left to wait for.
            drop(task.await);
        }
    }
}

/// A panic elsewhere does not make the state useless: every change in it is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a finished message brings back: its number, how it went, how long it took, and its places.
type Finished = (u64, Receipt, Millis, Places);

/// A place on the way and one of the sender's: free again once the outcome is written down.
type Places = [Option<OwnedSemaphorePermit>; 2];

async fn run(shared: Arc<Shared>) {
    let mut stop = shared.stop.subscribe();
    let permits = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
    let mut sending: JoinSet<Finished> = JoinSet::new();
    let mut unwritten: Vec<Places> = Vec::new();
    loop {
        let now = shared.clock.now();
        let (due, writes, next) = {
            let mut engine = lock(&shared.engine);
            let due = engine.tick(now);
            (due, engine.take_writes(), engine.due())
        };
        spawn(&shared, &permits, &mut sending, due);
        persist(&shared, writes).await;
        unwritten.clear();
        let pause = next.map_or(SLEEP_MAX, |next| (next - shared.clock.now()).clamp(0, SLEEP_MAX));
        tokio::select! {
            () = shared.wake.notified() => {}
            Some(finished) = sending.join_next() => {
                unwritten.extend(take(&shared, &permits, &mut sending, finished.ok()));
                // All that came back meanwhile is written down at once: what is on no disk may be told again.
                while let Some(finished) = sending.try_join_next() {
                    unwritten.extend(take(&shared, &permits, &mut sending, finished.ok()));
                }
            }
            () = tokio::time::sleep(Duration::from_millis(pause.unsigned_abs())) => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    farewell(&shared, sending).await;
}

/// Hands messages to their senders.
fn spawn(shared: &Arc<Shared>, permits: &Arc<Semaphore>, sending: &mut JoinSet<Finished>, due: Vec<Notification>) {
    let senders = Arc::clone(&shared.senders.read().unwrap_or_else(PoisonError::into_inner));
    for notification in due {
        let own = senders.get(&notification.receiver);
        let sender = own.and_then(|all| all.get(notification.integration)).cloned();
        let (clock, permits) = (Arc::clone(&shared.clock), Arc::clone(permits));
        sending.spawn(async move {
            let own = match &sender {
                Some(sender) => sender.place().await,
                None => None,
            };
            let places = [own, permits.acquire_owned().await.ok()];
            let start = clock.now();
            let receipt = match &sender {
                Some(sender) => sender.send(&notification).await,
                None => Outcome::Failed("the receiver is gone".into()).into(),
            };
            let latency = (clock.now() - start).max(0);
            tell_log(&notification, sender.as_deref(), &receipt);
            (notification.id, receipt, latency, places)
        });
    }
}

/// Says in the log who was not told what, or was told otherwise than configured, and why.
fn tell_log(notification: &Notification, sender: Option<&Sender>, receipt: &Receipt) {
    let integration = || format!("{}[{}]", sender.map_or("", Sender::kind), notification.integration);
    if !receipt.remark.is_empty() {
        tracing::warn!(
            target: "watchfire::alerts",
            receiver = notification.receiver,
            integration = integration(),
            group = notification.group_key,
            error = receipt.remark,
            "a notification's template failed; another text was sent in its place"
        );
    }
    let (problem, retried) = match &receipt.outcome {
        Outcome::Sent => return,
        Outcome::Retry(problem) => (problem, true),
        Outcome::Failed(problem) => (problem, false),
    };
    tracing::warn!(
        target: "watchfire::alerts",
        receiver = notification.receiver,
        integration = integration(),
        address = receipt.address,
        group = notification.group_key,
        alerts = notification.alerts.len(),
        attempt = notification.attempt,
        retried,
        error = problem.message,
        "a notification was not delivered"
    );
}

fn take(
    shared: &Arc<Shared>,
    permits: &Arc<Semaphore>,
    sending: &mut JoinSet<Finished>,
    finished: Option<Finished>,
) -> Option<Places> {
    let (id, receipt, latency, places) = finished?;
    let more = lock(&shared.engine).finish(id, &receipt, latency, shared.clock.now());
    spawn(shared, permits, sending, more);
    Some(places)
}

/// Writes down, off the runtime's threads. What could not be written waits in the journal; the state in
/// memory goes on being right.
async fn persist(shared: &Arc<Shared>, writes: Vec<Write>) {
    if writes.is_empty() && shared.journal.waiting() == 0 {
        return;
    }
    let (journal, now) = (Arc::clone(&shared.journal), shared.clock.now());
    let written = tokio::task::spawn_blocking(move || journal.write(writes, now)).await;
    if let Err(error) = written {
        tracing::error!(target: "watchfire::alerts", %error, "BUG: writing down what was notified panicked");
    }
}

async fn farewell(shared: &Arc<Shared>, mut sending: JoinSet<Finished>) {
    let all = async {
        while let Some(finished) = sending.join_next().await {
            if let Ok((id, receipt, latency, _)) = finished {
                // What would follow is left to the next start.
                drop(lock(&shared.engine).finish(id, &receipt, latency, shared.clock.now()));
            }
        }
    };
    drop(tokio::time::timeout(FAREWELL, all).await);
    let writes = lock(&shared.engine).take_writes();
    let (journal, now) = (Arc::clone(&shared.journal), shared.clock.now());
    // A panic there has been logged; there is nothing left to do but end.
    drop(tokio::task::spawn_blocking(move || journal.write_last(writes, now)).await);
}
