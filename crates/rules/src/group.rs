//! A rule group: its rules are evaluated one after another at the same moment, each seeing what the earlier ones wrote.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hashbrown::HashSet;
use model::{Appender, Deadline, Labels, Millis, QueryEngine, TargetId};

use crate::alerting::Alert;
use crate::error::Error;
use crate::listen::Ears;
use crate::load::{LoadedGroup, LoadedRule, OnMissing, RuleKind};
use crate::output::Output;
use crate::run::{Moment, RuleRun, RuleStatus};
use crate::unknown::health::Health;
use crate::unknown::report::{Asking, Blind, Report, Telling};

/// The series that says an alert is pending or firing.
pub const ALERTS: &str = "ALERTS";
/// The series that carries since when, over a restart; in seconds.
pub const ALERTS_FOR_STATE: &str = "ALERTS_FOR_STATE";

/// What an evaluation needs from outside.
pub struct Surroundings<'a> {
    /// Answers the rules' queries.
    pub engine: &'a dyn QueryEngine,
    /// Takes the rules' results.
    pub appender: &'a dyn Appender,
    /// The labels this server adds to everything that leaves it.
    pub external_labels: &'a Labels,
    /// The address people reach this server at.
    pub external_url: &'a str,
    /// How long one rule's queries may take together.
    pub query_timeout: Duration,
    /// How long after a restart an alert's earlier state still counts, in milliseconds; 0 restores nothing.
    pub outage_tolerance: Millis,
    /// The shortest wait of a pending alert after a restart, in milliseconds.
    pub restore_grace: Millis,
    /// Whether alerts are held when their data is missing; `false` is Prometheus' way.
    pub hold_missing: bool,
}

/// Events have the rules of a group evaluated this often at most, in milliseconds.
const EVENT_PAUSE: Millis = 1_000;

/// Alerts that must be told, with the rule they are of.
pub type News = (Arc<LoadedRule>, Vec<Alert>);

/// A group and the state of its rules.
pub struct Group {
    /// As loaded.
    pub loaded: Arc<LoadedGroup>,
    /// How often it is evaluated.
    pub interval: Millis,
    /// How far in the past it looks.
    pub query_offset: Millis,
    target: TargetId,
    rules: Vec<RuleRun>,
    /// Series of rules that a reload took away: the next evaluation ends them.
    orphans: Output,
    last_evaluation: Option<Millis>,
    duration: Duration,
    missed: u64,
    replaced: bool,
    /// What was down at the last evaluation.
    health: Option<Health>,
    report: Report,
    blind: Vec<Blind>,
    ears: Ears,
    /// When an event last had rules evaluated.
    last_event: Option<Millis>,
    /// Rules that wait because that was a moment ago.
    waiting: BTreeSet<usize>,
}

/// What the API tells of a group.
#[derive(Debug, Clone)]
pub struct GroupStatus {
    /// As loaded.
    pub loaded: Arc<LoadedGroup>,
    /// How often it is evaluated.
    pub interval: Millis,
    /// When it was last evaluated.
    pub last_evaluation: Option<Millis>,
    /// How long that took.
    pub duration: Duration,
    /// Evaluations left out because an earlier one took too long.
    pub missed: u64,
    /// Its rules.
    pub rules: Vec<RuleStatus>,
}

impl Group {
    /// A group that was never evaluated.
    pub fn new(
        loaded: Arc<LoadedGroup>,
        default_interval: Millis,
        default_offset: Millis,
        appender: &dyn Appender,
    ) -> Self {
        let target = appender.target(&Labels::from_pairs([
            ("rule_file", loaded.file.as_str()),
            ("rule_group", &loaded.name),
        ]));
        let rules = loaded.rules.iter().map(|rule| RuleRun::new(rule.clone())).collect();
        Self {
            interval: loaded.interval.unwrap_or(default_interval).max(1),
            query_offset: loaded.query_offset.unwrap_or(default_offset),
            target,
            rules,
            orphans: Output::default(),
            last_evaluation: None,
            duration: Duration::ZERO,
            missed: 0,
            replaced: false,
            health: None,
            report: Report::new(&loaded.name),
            blind: Vec::new(),
            ears: Ears::of(loaded.rules.iter()),
            last_event: None,
            waiting: BTreeSet::new(),
            loaded,
        }
    }

    /// Takes over the state of `old`, rule by rule of the same name and labels, and the duty to end the other rules'
    /// series. `old` is evaluated no more.
    pub fn adopt(&mut self, old: &mut Self) {
        old.replaced = true;
        self.last_evaluation = old.last_evaluation;
        self.duration = old.duration;
        self.missed = old.missed;
        self.health = old.health.take();
        self.last_event = old.last_event;
        std::mem::swap(&mut self.report, &mut old.report);
        for run in &mut self.rules {
            if let Some(at) = old.rules.iter().position(|other| other.continues_as(run)) {
                run.adopt(old.rules.remove(at));
            }
        }
        self.orphans = old.give_up();
    }

    /// Hands over every series that waits for its end; the group is evaluated no more.
    pub fn give_up(&mut self) -> Output {
        self.replaced = true;
        let mut out = std::mem::take(&mut self.orphans);
        out.absorb(self.report.give_up());
        for run in self.rules.drain(..) {
            out.absorb(run.output);
        }
        out
    }

    /// Whether another group took its place: it must not be evaluated.
    #[must_use]
    pub const fn is_replaced(&self) -> bool {
        self.replaced
    }

    /// The owner of its timestamps.
    #[must_use]
    pub const fn target(&self) -> TargetId {
        self.target
    }

    /// The moment on this group's grid at or before `now`; groups are spread over their interval by their names.
    ///
    /// The grid lies on whole seconds where the interval allows it, so that [`ALERTS_FOR_STATE`] loses nothing.
    #[must_use]
    pub fn slot_at(&self, now: Millis) -> Millis {
        let identity = Labels::from_pairs([("file", self.loaded.file.as_str()), ("group", &self.loaded.name)]);
        // An offset below the interval, which is positive and fits.
        let spread = (identity.hash64() % self.interval.unsigned_abs()) as Millis;
        let offset = spread - spread % 1000;
        (now - offset).div_euclid(self.interval) * self.interval + offset
    }

    /// The moment to evaluate at, if it has come; evaluations left out since the last one are counted.
    ///
    /// A clock that was set back by more than an interval begins a new count: rules must not wait for it to catch up.
    pub fn due_at(&mut self, now: Millis) -> Option<Millis> {
        let slot = self.slot_at(now);
        match self.last_evaluation {
            Some(last) if last - slot > self.interval => Some(slot),
            Some(last) if last >= slot => None,
            Some(last) => {
                let left_out = (slot - last).div_euclid(self.interval) - 1;
                self.missed += u64::try_from(left_out).unwrap_or(0);
                Some(slot)
            }
            None => Some(slot),
        }
    }

    /// Evaluates every rule at `now`, in order; a failing rule keeps its state, says why, and stops no other.
    ///
    /// Returns the alerts that must be told now, each with its rule.
    pub fn evaluate(&mut self, now: Millis, resend: Millis, around: &Surroundings<'_>) -> Vec<News> {
        let begun = Instant::now();
        let time = now - self.query_offset;
        let health = self.read_health(time, around);
        let moment = Moment {
            now,
            offset: self.query_offset,
            interval: self.interval,
            limit: self.loaded.limit,
            target: self.target,
            by_event: false,
            health: health.as_ref().map(|health| (health, self.health.as_ref())),
        };
        let mut news = Vec::new();
        for run in &mut self.rules {
            let due = run.evaluate(moment, resend, around);
            if let Some(error) = run.last_error() {
                tracing::warn!(group = %self.loaded.name, rule = %run.rule.name, %error, "rule evaluation failed");
            }
            if !due.is_empty() {
                news.push((Arc::clone(&run.rule), due));
            }
        }
        if let Some(health) = &health {
            match self.tell_blindness(health, now, resend, around) {
                Ok(told) => news.extend(told),
                Err(error) => {
                    tracing::warn!(group = %self.loaded.name, %error, "cannot tell which rules miss their data");
                }
            }
        }
        self.health = health;
        self.end_orphans(time, around.appender);
        self.last_evaluation = Some(now);
        self.duration = begun.elapsed();
        news
    }

    /// Takes note that these series changed with an event, and says when the rules on them are to be evaluated: `now`, or
    /// later where that was done a moment ago; `None` where no rule selects them.
    pub fn hear(&mut self, series: &[Labels], now: Millis) -> Option<Millis> {
        self.waiting.extend(self.ears.hear(series));
        self.event_due(now)
    }

    /// When the rules that an event waits for are to be evaluated.
    pub fn event_due(&self, now: Millis) -> Option<Millis> {
        let earliest = self.last_event.map_or(now, |last| last + EVENT_PAUSE);
        // A clock that was set back must not hold events up.
        let earliest = if earliest > now + EVENT_PAUSE { now } else { earliest };
        (!self.waiting.is_empty()).then_some(earliest.max(now))
    }

    /// Evaluates the rules that events wait for, in order, at `now`; what else the group has stays on its grid.
    pub fn evaluate_events(&mut self, now: Millis, resend: Millis, around: &Surroundings<'_>) -> Vec<News> {
        let moment = Moment {
            now,
            // The event is not to wait until it is old enough.
            offset: 0,
            interval: self.interval,
            limit: self.loaded.limit,
            target: self.target,
            by_event: true,
            health: self.health.as_ref().map(|health| (health, Some(health))),
        };
        let mut news = Vec::new();
        for at in std::mem::take(&mut self.waiting) {
            let Some(run) = self.rules.get_mut(at) else { continue };
            let due = run.evaluate(moment, resend, around);
            if !due.is_empty() {
                news.push((Arc::clone(&run.rule), due));
            }
        }
        self.last_event = Some(now);
        news
    }

    /// What is down; absent where nobody asks, or nobody answers.
    fn read_health(&self, time: Millis, around: &Surroundings<'_>) -> Option<Health> {
        let mut kinds = self.loaded.rules.iter().map(|rule| &rule.kind);
        let alerting = kinds.any(|kind| matches!(kind, RuleKind::Alerting { .. }));
        if !around.hold_missing || self.loaded.on_missing == OnMissing::Resolve || !alerting {
            return None;
        }
        let deadline = Deadline::at(Instant::now() + around.query_timeout);
        match Health::read(around.engine, time, &deadline) {
            Ok(health) => Some(health),
            Err(error) => {
                tracing::warn!(group = %self.loaded.name, %error, "cannot tell what is down");
                // What was down then is the best guess.
                self.health.clone()
            }
        }
    }

    fn tell_blindness(
        &mut self,
        health: &Health,
        now: Millis,
        resend: Millis,
        around: &Surroundings<'_>,
    ) -> Result<Option<News>, Error> {
        let deadline = Deadline::at(Instant::now() + around.query_timeout);
        let asking = Asking {
            engine: around.engine,
            deadline: &deadline,
            time: now - self.query_offset,
        };
        let inputs: Vec<_> = self.rules.iter().map(|run| &*run.inputs).collect();
        self.blind = self.report.blind(health, &inputs, &asking)?;
        let names: Vec<&str> = self.rules.iter().map(|run| run.rule.name.as_str()).collect();
        let moment = Telling {
            now,
            time: asking.time,
            interval: self.interval,
            resend,
            target: self.target,
        };
        self.report.tell(&self.blind, &names, moment, around.appender)
    }

    fn end_orphans(&mut self, time: Millis, appender: &dyn Appender) {
        if self.orphans.is_empty() {
            return;
        }
        let mut living = HashSet::new();
        self.add_written(&mut living);
        self.orphans.release(&living);
        if let Err(error) = self.orphans.write(time, self.target, Vec::new(), appender) {
            tracing::warn!(group = %self.loaded.name, %error, "cannot end the series of removed rules");
        }
    }

    /// Adds every series that its rules write.
    pub fn add_written(&self, into: &mut HashSet<Labels>) {
        into.extend(self.rules.iter().flat_map(|run| run.output.written()).cloned());
    }

    /// What the API tells of it.
    #[must_use]
    pub fn status(&self) -> GroupStatus {
        let mut rules: Vec<RuleStatus> = self.rules.iter().map(RuleRun::status).collect();
        for blind in &self.blind {
            for at in &blind.rules {
                if let Some(rule) = rules.get_mut(*at) {
                    rule.unknown.push(blind.origin.describe());
                }
            }
        }
        GroupStatus {
            loaded: Arc::clone(&self.loaded),
            interval: self.interval,
            last_evaluation: self.last_evaluation,
            duration: self.duration,
            missed: self.missed,
            rules,
        }
    }
}
