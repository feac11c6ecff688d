//! All groups of a hub: which are due, what they tell, and how a reload keeps their state.
//!
//! Groups are evaluated one after another. [`Manager::status`] never waits for an evaluation: it tells what the last
//! finished one left.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hashbrown::HashSet;
use model::{Appender, Labels, Millis, QueryEngine, TargetId};

use crate::alerting::Alert;
use crate::group::{Group, GroupStatus, News, Surroundings};
use crate::load::{LoadedGroup, LoadedRule};
use crate::output::Output;

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
    /// Whether alerts are held when their data is missing; `false` is Prometheus' way.
    pub hold_missing: bool,
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
            hold_missing: true,
        }
    }
}

/// The groups, and who answers, stores and tells.
pub struct Manager {
    engine: Arc<dyn QueryEngine>,
    appender: Arc<dyn Appender>,
    sink: Arc<dyn AlertSink>,
    options: Mutex<Options>,
    groups: Mutex<Vec<Arc<Seat>>>,
    endings: Mutex<Vec<Ending>>,
}

/// A group, and what it told when it was last evaluated.
struct Seat {
    group: Mutex<Group>,
    status: Mutex<Arc<GroupStatus>>,
}

/// The series of a group that is gone; a rule that moved to another group has until `due` to write them there.
struct Ending {
    due: Millis,
    target: TargetId,
    output: Output,
}

impl Seat {
    fn new(group: Group) -> Self {
        let status = Mutex::new(Arc::new(group.status()));
        Self {
            group: Mutex::new(group),
            status,
        }
    }
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
            endings: Mutex::default(),
        }
    }

    /// Replaces the groups; one of the same file and name keeps its state, a removed one ends its series.
    pub fn apply(&self, loaded: &[Arc<LoadedGroup>], options: Options, now: Millis) {
        let old = lock(&self.groups).clone();
        let mut fresh = Vec::with_capacity(loaded.len());
        for group in loaded {
            let mut new = Group::new(
                Arc::clone(group),
                options.interval,
                options.query_offset,
                &*self.appender,
            );
            for seat in &old {
                let mut other = lock(&seat.group);
                let same = other.loaded.file == group.file && other.loaded.name == group.name;
                if same && !other.is_replaced() {
                    new.adopt(&mut other);
                    break;
                }
            }
            fresh.push(Arc::new(Seat::new(new)));
        }
        let mut endings = lock(&self.endings);
        for seat in &old {
            let mut group = lock(&seat.group);
            if !group.is_replaced() {
                // Two intervals, as Prometheus waits.
                let due = now + 2 * group.interval;
                endings.push(Ending {
                    due,
                    target: group.target(),
                    output: group.give_up(),
                });
            }
        }
        *lock(&self.options) = options;
        *lock(&self.groups) = fresh;
    }

    /// Evaluates every group whose moment has come, at that moment, and says when the next one comes.
    ///
    /// A group that fell behind is evaluated once, at its latest moment; what it left out is counted.
    pub fn run_due(&self, now: Millis) -> Millis {
        let options = lock(&self.options).clone();
        let seats = lock(&self.groups).clone();
        let mut next = now + options.interval;
        for seat in &seats {
            let mut group = lock(&seat.group);
            if let Some(slot) = group.due_at(now) {
                self.evaluate(seat, &mut group, slot, &options);
            }
            next = next.min(group.slot_at(now) + group.interval);
        }
        self.end_removed(&seats, now);
        next
    }

    /// Evaluates at once the rules on series that an event changed, and those that an earlier event waits for; says when to
    /// call again, with none, for what came too soon after the last time.
    pub fn on_events(&self, series: &[Labels], now: Millis) -> Option<Millis> {
        let options = lock(&self.options).clone();
        let seats = lock(&self.groups).clone();
        let mut next: Option<Millis> = None;
        for seat in &seats {
            let mut group = lock(&seat.group);
            let Some(due) = group.hear(series, now) else { continue };
            if due > now {
                next = Some(next.map_or(due, |next| next.min(due)));
            } else if !group.is_replaced() {
                let interval = group.interval;
                let news = group.evaluate_events(now, options.resend, &self.around(&options));
                *lock(&seat.status) = Arc::new(group.status());
                self.tell(news, now, interval, &options);
            }
        }
        next
    }

    /// Evaluates every group at exactly `now`, grid or not: for tests of rules.
    pub fn run_all(&self, now: Millis) {
        let options = lock(&self.options).clone();
        for seat in lock(&self.groups).clone() {
            self.evaluate(&seat, &mut lock(&seat.group), now, &options);
        }
    }

    /// Ends the series of groups that went away long enough ago, unless a living group writes them.
    fn end_removed(&self, seats: &[Arc<Seat>], now: Millis) {
        let mut endings = lock(&self.endings);
        if endings.iter().all(|ending| ending.due > now) {
            return;
        }
        let mut living = HashSet::new();
        for seat in seats {
            lock(&seat.group).add_written(&mut living);
        }
        endings.retain_mut(|ending| {
            if ending.due > now {
                return true;
            }
            ending.output.release(&living);
            let ended = ending.output.write(now, ending.target, Vec::new(), &*self.appender);
            if let Err(error) = &ended {
                tracing::warn!(%error, "cannot end the series of a removed rule group");
            }
            ended.is_err()
        });
    }

    fn evaluate(&self, seat: &Seat, group: &mut Group, now: Millis, options: &Options) {
        // A reload took its state while this round was under way.
        if group.is_replaced() {
            return;
        }
        let interval = group.interval;
        let news = group.evaluate(now, options.resend, &self.around(options));
        *lock(&seat.status) = Arc::new(group.status());
        self.tell(news, now, interval, options);
    }

    fn around<'a>(&'a self, options: &'a Options) -> Surroundings<'a> {
        Surroundings {
            engine: &*self.engine,
            appender: &*self.appender,
            external_labels: &options.external_labels,
            external_url: &options.external_url,
            query_timeout: options.query_timeout,
            outage_tolerance: options.outage_tolerance,
            restore_grace: options.restore_grace,
            hold_missing: options.hold_missing,
        }
    }

    fn tell(&self, news: Vec<News>, now: Millis, interval: Millis, options: &Options) {
        for (rule, alerts) in news {
            // Four times the longer of the two, as Prometheus: a hub that dies lets its alerts end by themselves.
            self.sink.send(&rule, &alerts, now + 4 * interval.max(options.resend));
        }
    }

    /// What the API tells, in the order of files and groups.
    #[must_use]
    pub fn status(&self) -> Vec<Arc<GroupStatus>> {
        let seats = lock(&self.groups).clone();
        seats.iter().map(|seat| Arc::clone(&lock(&seat.status))).collect()
    }
}

/// A lock that a panicking thread held still protects consistent data: each change is complete before it is released.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(crate) mod tests;
