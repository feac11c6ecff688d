//! The loops: one for each target, spread over the interval, changed without a break when the configuration is.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{Appender, Clock, Labels, Millis};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::append::MetadataMap;
use crate::error::Error;
use crate::events::Found;
use crate::job::Job;
use crate::scraper::Client;
use crate::target::{DroppedTarget, LocalTarget, Target, TargetStatus, Targets, targets_of};

mod metrics;
mod notes;
mod run;

use notes::Notes;
use run::{Loop, Source};

/// Fetches that may be under way at once.
const FETCHES_MAX: usize = 1024;

/// Runs the scrape loops. Cheap to clone.
#[derive(Clone)]
pub struct Manager {
    shared: Arc<Shared>,
}

/// What all loops have in common.
struct Shared {
    appender: Arc<dyn Appender>,
    clock: Arc<dyn Clock>,
    fetches: Semaphore,
    /// Pages are read on threads that may block, as many as there are cores.
    reads: Semaphore,
    /// Page buffers that wait for their next use.
    buffers: Mutex<Vec<Vec<u8>>>,
    running: Mutex<Running>,
    /// One configuration at a time.
    applying: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Running {
    /// In the order of the configuration.
    targets: Vec<Entry>,
    dropped: Vec<DroppedTarget>,
    stopped: bool,
}

/// What tells targets apart: two with the same labels and address are one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    job: String,
    pub labels: Labels,
    pub url: String,
}

pub(crate) struct Entry {
    pub key: Key,
    pub job: Arc<Job>,
    state: Arc<State>,
    order: watch::Sender<Order>,
    task: Option<JoinHandle<()>>,
}

/// What a loop shows of itself.
struct State {
    /// Locked before `notes` where both are.
    status: Mutex<TargetStatus>,
    notes: Mutex<Notes>,
    metadata: Mutex<Arc<MetadataMap>>,
}

/// What a loop is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Run,
    /// End the target's series, then stop.
    Remove,
    /// Stop: the process ends, the series do not.
    Halt,
}

/// What a job's target is made of, before it runs.
struct Wanted {
    key: Key,
    job: Arc<Job>,
    target: Target,
    source: Source,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A loop that panicked has left a status, not a broken promise.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Manager {
    /// A manager without targets.
    #[must_use]
    pub fn new(appender: Arc<dyn Appender>, clock: Arc<dyn Clock>) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        Self {
            shared: Arc::new(Shared {
                appender,
                clock,
                fetches: Semaphore::new(FETCHES_MAX),
                reads: Semaphore::new(cores),
                buffers: Mutex::default(),
                running: Mutex::default(),
                applying: tokio::sync::Mutex::default(),
            }),
        }
    }

    /// Scrapes these from now on. A target whose labels, address and settings are unchanged goes on as if nothing
    /// had happened; one that is gone has its series ended before this returns.
    ///
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// [`Error::Settings`] or [`Error::File`] when a job's HTTP settings cannot be used: nothing has changed then.
    /// A single target that cannot be scraped is shown as down with its reason instead.
    pub async fn apply(&self, jobs: Vec<Job>, locals: Vec<LocalTarget>) -> Result<(), Error> {
        let _one = self.shared.applying.lock().await;
        let (wanted, dropped) = wanted(jobs, locals)?;
        let removed = self.replace(wanted, dropped);
        join(removed).await;
        Ok(())
    }

    /// Stops every loop and waits for scrapes that are being stored. The series do not end: after a restart
    /// they go on.
    pub async fn stop(&self) {
        let _one = self.shared.applying.lock().await;
        let entries = {
            let mut running = lock(&self.shared.running);
            running.stopped = true;
            std::mem::take(&mut running.targets)
        };
        for entry in &entries {
            entry.order.send_replace(Order::Halt);
        }
        join(entries).await;
    }

    /// All targets with their last scrape.
    #[must_use]
    pub fn targets(&self) -> Targets {
        let running = lock(&self.shared.running);
        Targets {
            active: running.targets.iter().map(|e| lock(&e.state.status).clone()).collect(),
            dropped: running.dropped.clone(),
        }
    }

    /// What each target said of its metrics: its labels, then what is known by metric name.
    #[must_use]
    pub fn metadata(&self) -> Vec<(Labels, Arc<MetadataMap>)> {
        let running = lock(&self.shared.running);
        let of = |e: &Entry| (e.key.labels.clone(), Arc::clone(&lock(&e.state.metadata)));
        running.targets.iter().map(of).collect()
    }

    /// A running target, for its events.
    pub(crate) fn target(&self, is_it: impl Fn(&Entry) -> bool) -> Option<Found> {
        let running = lock(&self.shared.running);
        running.targets.iter().find(|entry| is_it(entry)).map(Found::new)
    }

    /// Each running target with its address, its job and what its pages have.
    pub(crate) fn pages(&self) -> Vec<(Labels, String, Arc<Job>, Arc<MetadataMap>)> {
        let running = lock(&self.shared.running);
        let of = |e: &Entry| {
            (
                e.key.labels.clone(),
                e.key.url.clone(),
                Arc::clone(&e.job),
                e.metadata(),
            )
        };
        running.targets.iter().map(of).collect()
    }

    pub(crate) fn appender(&self) -> &dyn Appender {
        &*self.shared.appender
    }

    pub(crate) fn now(&self) -> Millis {
        self.shared.clock.now()
    }

    /// Puts the wanted targets in place of the running ones; gives those that are going.
    fn replace(&self, wanted: Vec<Wanted>, dropped: Vec<DroppedTarget>) -> Vec<Entry> {
        let mut running = lock(&self.shared.running);
        if running.stopped {
            return Vec::new();
        }
        let mut old: HashMap<Key, Entry> = running.targets.drain(..).map(|e| (e.key.clone(), e)).collect();
        for new in wanted {
            match old.remove(&new.key) {
                Some(mut same) if goes_on(&same, &new) => {
                    same.job = new.job;
                    lock(&same.state.status).target.discovered = new.target.discovered;
                    running.targets.push(same);
                }
                Some(changed) => {
                    // The same series go on under the new loop, so they do not end here.
                    changed.order.send_replace(Order::Halt);
                    running.targets.push(self.start(new, changed.task));
                }
                None => running.targets.push(self.start(new, None)),
            }
        }
        running.dropped = dropped;
        let going_on: HashSet<&Labels> = running.targets.iter().map(|e| &e.key.labels).collect();
        for gone in old.values() {
            // A target that only moved to another address keeps its series.
            let moved = going_on.contains(&gone.key.labels);
            gone.order.send_replace(if moved { Order::Halt } else { Order::Remove });
        }
        old.into_values().collect()
    }

    /// Starts a loop; it waits for the one it follows.
    fn start(&self, new: Wanted, follows: Option<JoinHandle<()>>) -> Entry {
        let state = Arc::new(State {
            status: Mutex::new(TargetStatus::new(&new.job.name, new.target)),
            notes: Mutex::default(),
            metadata: Mutex::default(),
        });
        let (order, orders) = watch::channel(Order::Run);
        let run = Loop {
            shared: Arc::clone(&self.shared),
            state: Arc::clone(&state),
            job: Arc::clone(&new.job),
            source: new.source,
            labels: new.key.labels.clone(),
            offset: offset(&new.key),
        };
        let task = tokio::spawn(async move {
            if let Some(before) = follows {
                let _ = before.await;
            }
            run.run(orders).await;
        });
        Entry {
            key: new.key,
            job: new.job,
            state,
            order,
            task: Some(task),
        }
    }
}

impl Entry {
    pub(crate) fn metadata(&self) -> Arc<MetadataMap> {
        Arc::clone(&lock(&self.state.metadata))
    }
}

/// Whether a running target need not notice the new configuration.
fn goes_on(running: &Entry, new: &Wanted) -> bool {
    let target = &lock(&running.state.status).target;
    let same = target.interval == new.target.interval && target.timeout == new.target.timeout;
    // A collector's page comes from a closure, and a new closure may know more than the old.
    same && running.job.scrapes_like(&new.job) && !matches!(new.source, Source::Local(_))
}

async fn join(entries: Vec<Entry>) {
    for mut entry in entries {
        if let Some(task) = entry.task.take() {
            let _ = task.await;
        }
    }
}

/// Where in the interval a target is scraped: the same after every restart, different from its neighbours.
fn offset(key: &Key) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

fn wanted(jobs: Vec<Job>, locals: Vec<LocalTarget>) -> Result<(Vec<Wanted>, Vec<DroppedTarget>), Error> {
    let mut wanted = Vec::new();
    let mut dropped = Vec::new();
    let mut clients = Vec::new();
    let mut seen = HashSet::new();
    for local in locals {
        let target = local.target();
        let job = Arc::new(local.job);
        let key = Key {
            job: job.name.clone(),
            labels: target.labels.clone(),
            url: target.url.clone(),
        };
        if seen.insert(key.clone()) {
            wanted.push(Wanted {
                key,
                job,
                target,
                source: Source::Local(local.page),
            });
        }
    }
    for job in jobs {
        let job = Arc::new(job);
        let client = Client::new(Arc::clone(&job), &clients)?;
        clients.push(client.clone());
        let (active, mut gone) = targets_of(&job);
        dropped.append(&mut gone);
        let limit = usize::try_from(job.limits.targets).unwrap_or(usize::MAX);
        say_unusable(&job, limit, &active);
        for (taken, target) in active.into_iter().enumerate() {
            let (target, source) = match target {
                Ok(target) if limit == 0 || taken < limit => (target, Source::Http(client.clone())),
                Ok(target) => (target, Source::Never(format!("target_limit of {limit} exceeded"))),
                Err(error) => (broken(&job), Source::Never(error.to_string())),
            };
            let key = Key {
                job: job.name.clone(),
                labels: target.labels.clone(),
                url: target.url.clone(),
            };
            if seen.insert(key.clone()) {
                wanted.push(Wanted {
                    key,
                    job: Arc::clone(&job),
                    target,
                    source,
                });
            }
        }
    }
    Ok((wanted, dropped))
}

/// Says which targets of a job are not scraped at all: a line a reason, not a line a target.
fn say_unusable(job: &Job, limit: usize, active: &[Result<Target, Error>]) {
    if limit != 0 && active.len() > limit {
        let targets = active.len();
        tracing::warn!(
            job = job.name,
            limit = format!("target_limit of {limit}"),
            targets,
            refused = targets - limit,
            "a limit is met: the last targets of this job are not scraped"
        );
    }
    let mut errors = active.iter().filter_map(|target| target.as_ref().err());
    if let Some(first) = errors.next() {
        let further = errors.count();
        tracing::warn!(job = job.name, error = %first, further, "a target cannot be scraped");
    }
}

/// Stands for a target that has no address.
fn broken(job: &Job) -> Target {
    let labels = Labels::from_pairs([("job", job.name.as_str())]);
    Target {
        discovered: labels.clone(),
        labels,
        url: String::new(),
        interval: job.interval,
        timeout: job.timeout,
    }
}
