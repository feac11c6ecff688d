//! The loops: one for each target, spread over the interval, changed without a break when the configuration is.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use config::prometheus::StaticConfig;
use model::{Appender, Clock, Labels, Millis};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::append::MetadataMap;
use crate::discovery::Finder;
use crate::error::Error;
use crate::events::Found;
use crate::job::Job;
use crate::target::{LocalTarget, Target, TargetStatus, Targets};

mod metrics;
mod notes;
mod pool;
mod run;

use notes::Notes;
use pool::{Finding, Pool, follow, pools};
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
    pools: Vec<Pool>,
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
    /// Whether its page is made in this process.
    is_local: bool,
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
        let (mut pools, finders) = pools(jobs)?;
        let finders = self.look_first(&mut pools, finders).await;
        let mut wanted = wanted_locals(locals);
        for pool in &mut pools {
            wanted.extend(pool.wanted());
        }
        let removed = {
            let mut running = lock(&self.shared.running);
            if running.stopped {
                return Ok(());
            }
            running.stop_finding();
            for (at, place, finder) in finders {
                let follows = follow(self.clone(), pools[at].job.name.clone(), place, finder);
                pools[at].tasks.push(tokio::spawn(follows));
            }
            running.pools = pools;
            self.replace(&mut running, |_| true, wanted)
        };
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
            running.stop_finding();
            std::mem::take(&mut running.targets)
        };
        for entry in &entries {
            entry.order.send_replace(Order::Halt);
        }
        join(entries).await;
    }

    /// Every job, those without targets and those of this process too.
    #[must_use]
    pub fn jobs(&self) -> Vec<Arc<Job>> {
        let running = lock(&self.shared.running);
        let locals = running
            .targets
            .iter()
            .filter(|e| e.is_local)
            .map(|e| Arc::clone(&e.job));
        running.pools.iter().map(|p| Arc::clone(&p.job)).chain(locals).collect()
    }

    /// Takes over what was found before, and looks into files: a list that is there holds from the start.
    async fn look_first(&self, pools: &mut [Pool], finders: Vec<Finding>) -> Vec<Finding> {
        let mut out = Vec::with_capacity(finders.len());
        for (at, place, mut finder) in finders {
            let pool = &mut pools[at];
            pool.found[place] = match &mut finder {
                Finder::File(_) => finder.look().await.0,
                Finder::Http(_) => lock(&self.shared.running).found_before(&pool.job, place),
            };
            out.push((at, place, finder));
        }
        out
    }

    /// Discovery has found other targets of a job.
    async fn found(&self, job: &str, place: usize, groups: Vec<StaticConfig>) {
        let _one = self.shared.applying.lock().await;
        let removed = {
            let mut running = lock(&self.shared.running);
            let pool = running.pools.iter_mut().find(|p| p.job.name == job);
            let changed = pool.filter(|p| p.found.get(place).is_some_and(|known| *known != groups));
            let Some(pool) = changed else { return };
            pool.found[place] = groups;
            let wanted = pool.wanted();
            self.replace(&mut running, |entry| !entry.is_local && entry.key.job == job, wanted)
        };
        join(removed).await;
    }

    /// All targets with their last scrape.
    #[must_use]
    pub fn targets(&self) -> Targets {
        let running = lock(&self.shared.running);
        Targets {
            active: running.targets.iter().map(|e| lock(&e.state.status).clone()).collect(),
            dropped: running.pools.iter().flat_map(|p| p.dropped.clone()).collect(),
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

    /// Puts the wanted targets in place of those running ones that `theirs` chooses; gives those that are going.
    fn replace(&self, running: &mut Running, theirs: impl Fn(&Entry) -> bool, wanted: Vec<Wanted>) -> Vec<Entry> {
        let place = running
            .targets
            .iter()
            .position(&theirs)
            .unwrap_or(running.targets.len());
        let (old, mut others): (Vec<Entry>, Vec<Entry>) = running.targets.drain(..).partition(|e| theirs(e));
        let behind = others.split_off(place.min(others.len()));
        let mut old: HashMap<Key, Entry> = old.into_iter().map(|e| (e.key.clone(), e)).collect();
        let first = others.len();
        for new in wanted {
            match old.remove(&new.key) {
                Some(mut same) if goes_on(&same, &new) => {
                    same.job = new.job;
                    lock(&same.state.status).target.discovered = new.target.discovered;
                    others.push(same);
                }
                Some(changed) => {
                    // The same series go on under the new loop, so they do not end here.
                    changed.order.send_replace(Order::Halt);
                    others.push(self.start(new, changed.task));
                }
                None => others.push(self.start(new, None)),
            }
        }
        let going_on: HashSet<&Labels> = others[first..].iter().map(|e| &e.key.labels).collect();
        for gone in old.values() {
            // A target that only moved to another address keeps its series.
            let moved = going_on.contains(&gone.key.labels);
            gone.order.send_replace(if moved { Order::Halt } else { Order::Remove });
        }
        others.extend(behind);
        running.targets = others;
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
        let is_local = matches!(new.source, Source::Local(_));
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
            is_local,
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

fn wanted_locals(locals: Vec<LocalTarget>) -> Vec<Wanted> {
    let mut wanted = Vec::new();
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
    wanted
}
