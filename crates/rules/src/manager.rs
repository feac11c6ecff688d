//! All groups of a hub: which are due, what they tell, and how a reload keeps their state.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{Appender, Labels, Millis, QueryEngine};

use crate::alerting::Alert;
use crate::group::{Group, GroupStatus, Surroundings};
use crate::load::{LoadedGroup, LoadedRule};

/// Takes the alerts that must be told, as an evaluation finds them.
pub trait AlertSink: Send + Sync {
    /// `alerts` of `rule` fire or were resolved; a firing one is repeated until it is resolved, and is valid until
    /// `valid_until` if nothing more is heard of it.
    fn send(&self, rule: &LoadedRule, alerts: &[Alert], valid_until: Millis);
}

/// What a [`Manager`] needs to know.
#[derive(Debug, Clone)]
pub struct Options {
    /// The interval of groups that name none, in milliseconds.
    pub interval: Millis,
    /// The query offset of groups that name none, in milliseconds.
    pub query_offset: Millis,
    /// Labels this server adds to everything that leaves it.
    pub external_labels: Labels,
    /// The address people reach this server at; may be empty.
    pub external_url: String,
    /// How long one query of a rule may take.
    pub query_timeout: Duration,
    /// A firing alert is handed on again after this long, in milliseconds.
    pub resend: Millis,
    /// How long after a restart an alert's earlier state still counts, in milliseconds.
    pub outage_tolerance: Millis,
    /// The shortest wait of a pending alert after a restart, in milliseconds.
    pub restore_grace: Millis,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interval: 15_000,
            query_offset: 0,
            external_labels: Labels::empty(),
            external_url: String::new(),
            query_timeout: Duration::from_secs(120),
            resend: 60_000,
            outage_tolerance: 3_600_000,
            restore_grace: 600_000,
        }
    }
}

/// The groups, and who answers, stores and tells.
pub struct Manager {
    engine: Arc<dyn QueryEngine>,
    appender: Arc<dyn Appender>,
    sink: Arc<dyn AlertSink>,
    options: Mutex<Options>,
    groups: Mutex<Vec<Arc<Mutex<Group>>>>,
}

impl Manager {
    /// A manager without groups.
    #[must_use]
    pub fn new(
        engine: Arc<dyn QueryEngine>,
        appender: Arc<dyn Appender>,
        sink: Arc<dyn AlertSink>,
        options: Options,
    ) -> Self {
        Self {
            engine,
            appender,
            sink,
            options: Mutex::new(options),
            groups: Mutex::default(),
        }
    }

    /// Replaces the groups; one of the same file and name keeps its state, a removed one ends its series.
    pub fn apply(&self, loaded: &[Arc<LoadedGroup>], options: Options, now: Millis) {
        let mut old: Vec<Arc<Mutex<Group>>> = std::mem::take(&mut *lock(&self.groups));
        let mut fresh = Vec::with_capacity(loaded.len());
        for group in loaded {
            let mut new = Group::new(
                Arc::clone(group),
                options.interval,
                options.query_offset,
                &*self.appender,
            );
            let same = |other: &Arc<Mutex<Group>>| {
                let other = lock(other);
                other.loaded.file == group.file && other.loaded.name == group.name
            };
            if let Some(at) = old.iter().position(same) {
                // What `adopt` leaves behind belongs to rules that are gone: it is ended with the old group.
                new.adopt(&mut lock(&old[at]));
            }
            fresh.push(Arc::new(Mutex::new(new)));
        }
        *lock(&self.options) = options;
        *lock(&self.groups) = fresh;
        for group in old.drain(..) {
            lock(&group).retire(now, &*self.appender);
        }
    }

    /// Evaluates every group whose moment has come, at that moment, and says when the next one comes.
    ///
    /// A group that fell behind is evaluated once, at its latest moment; what it left out is counted.
    pub fn run_due(&self, now: Millis) -> Millis {
        let options = lock(&self.options).clone();
        let groups = lock(&self.groups).clone();
        let mut next = now + options.interval;
        for group in groups {
            let mut group = lock(&group);
            let slot = group.slot_at(now);
            let last = group.last_evaluation();
            if last.is_none_or(|last| last < slot) {
                if let Some(last) = last {
                    let left_out = (slot - last).div_euclid(group.interval) - 1;
                    group.add_missed(u64::try_from(left_out).unwrap_or(0));
                }
                self.evaluate(&mut group, slot, &options);
            }
            next = next.min(slot + group.interval);
        }
        next
    }

    /// Evaluates every group at exactly `now`, grid or not: for tests of rules.
    pub fn run_all(&self, now: Millis) {
        let options = lock(&self.options).clone();
        for group in lock(&self.groups).clone() {
            self.evaluate(&mut lock(&group), now, &options);
        }
    }

    fn evaluate(&self, group: &mut Group, now: Millis, options: &Options) {
        let around = Surroundings {
            engine: &*self.engine,
            appender: &*self.appender,
            external_labels: &options.external_labels,
            external_url: &options.external_url,
            query_timeout: options.query_timeout,
            outage_tolerance: options.outage_tolerance,
            restore_grace: options.restore_grace,
        };
        let interval = group.interval;
        for (rule, alerts) in group.evaluate(now, options.resend, &around) {
            // Four times the longer of the two, as Prometheus: a hub that dies lets its alerts end by themselves.
            self.sink.send(&rule, &alerts, now + 4 * interval.max(options.resend));
        }
    }

    /// What the API tells, in the order of files and groups.
    #[must_use]
    pub fn status(&self) -> Vec<GroupStatus> {
        lock(&self.groups)
            .clone()
            .iter()
            .map(|group| lock(group).status())
            .collect()
    }
}

/// A lock that a panicking thread held still protects consistent data: each change is complete before it is released.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
