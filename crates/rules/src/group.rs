//! A rule group: its rules are evaluated one after another at the same moment, each seeing what the earlier ones wrote.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hashbrown::{HashMap, HashSet};
use model::{Appender, Batch, Deadline, Labels, Millis, QueryEngine, SeriesId, TargetId, stale_nan};

use crate::alerting::{Alert, AlertState, Alerts, Timing};
use crate::error::Error;
use crate::expand::{AlertTexts, Expander};
use crate::load::{LoadedGroup, LoadedRule, RuleKind};
use crate::{recording, restore};

/// The series that says an alert is pending or firing.
pub const ALERTS: &str = "ALERTS";
/// The series that carries since when, over a restart.
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
    /// How long one query of a rule may take.
    pub query_timeout: Duration,
    /// How long after a restart an alert's earlier state still counts, in milliseconds.
    pub outage_tolerance: Millis,
    /// The shortest wait of a pending alert after a restart, in milliseconds.
    pub restore_grace: Millis,
}

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
    restored: bool,
    last_evaluation: Option<Millis>,
    duration: Duration,
    missed: u64,
}

struct RuleRun {
    rule: LoadedRule,
    texts: AlertTexts,
    alerts: Alerts,
    /// What the last evaluation wrote: the next one ends those it does not write again.
    written: HashSet<Labels>,
    ids: HashMap<Labels, SeriesId>,
    last_evaluation: Option<Millis>,
    last_error: Option<String>,
    duration: Duration,
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

/// What the API tells of a rule.
#[derive(Debug, Clone)]
pub struct RuleStatus {
    /// As loaded.
    pub rule: LoadedRule,
    /// When it was last evaluated; never yet if absent.
    pub last_evaluation: Option<Millis>,
    /// Why the last evaluation failed.
    pub last_error: Option<String>,
    /// How long the last evaluation took.
    pub duration: Duration,
    /// Its alerts: pending, firing, and lately resolved.
    pub alerts: Vec<Alert>,
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
            loaded,
            target,
            rules,
            restored: false,
            last_evaluation: None,
            duration: Duration::ZERO,
            missed: 0,
        }
    }

    /// Takes over alerts and written series of `old`, rule by rule of the same name and labels.
    pub fn adopt(&mut self, old: &mut Self) {
        self.restored = old.restored;
        self.last_evaluation = old.last_evaluation;
        self.missed = old.missed;
        for run in &mut self.rules {
            let same = |other: &RuleRun| {
                !other.written.is_empty() && other.rule.name == run.rule.name && other.rule.labels == run.rule.labels
            };
            if let Some(at) = old.rules.iter().position(same) {
                let other = old.rules.swap_remove(at);
                run.alerts = other.alerts;
                run.written = other.written;
                run.ids = other.ids;
                run.last_evaluation = other.last_evaluation;
                run.last_error = other.last_error;
            }
        }
    }

    /// The moment on this group's grid at or before `now`; groups are spread over their interval by their names.
    #[must_use]
    pub fn slot_at(&self, now: Millis) -> Millis {
        let identity = Labels::from_pairs([("file", self.loaded.file.as_str()), ("group", &self.loaded.name)]);
        // An offset below the interval, which is positive and fits.
        let offset = (identity.hash64() % self.interval.unsigned_abs()) as Millis;
        (now - offset).div_euclid(self.interval) * self.interval + offset
    }

    /// When it was last evaluated.
    #[must_use]
    pub const fn last_evaluation(&self) -> Option<Millis> {
        self.last_evaluation
    }

    /// Counts evaluations that had to be left out.
    pub fn add_missed(&mut self, count: u64) {
        self.missed += count;
    }

    /// Evaluates every rule at `now`, in order; a failing rule keeps its state, says why, and stops no other.
    ///
    /// Returns the alerts that must be told now, each with its rule.
    pub fn evaluate(
        &mut self,
        now: Millis,
        resend: Millis,
        around: &Surroundings<'_>,
    ) -> Vec<(LoadedRule, Vec<Alert>)> {
        let begun = Instant::now();
        let mut news = Vec::new();
        let time = now - self.query_offset;
        for run in &mut self.rules {
            let rule_begun = Instant::now();
            let outcome = run.evaluate(
                time,
                self.loaded.limit,
                self.interval,
                self.target,
                self.restored,
                around,
            );
            run.duration = rule_begun.elapsed();
            run.last_evaluation = Some(now);
            run.last_error = outcome.err().map(|e| e.to_string());
            if let Some(error) = &run.last_error {
                tracing::warn!(group = %self.loaded.name, rule = %run.rule.name, %error, "rule evaluation failed");
            }
            let due = run.take_due(now, resend);
            if !due.is_empty() {
                news.push((run.rule.clone(), due));
            }
        }
        self.restored = true;
        self.last_evaluation = Some(now);
        self.duration = begun.elapsed();
        news
    }

    /// Ends every series that the group's rules wrote: the group is gone from the configuration.
    pub fn retire(&mut self, now: Millis, appender: &dyn Appender) {
        for run in &mut self.rules {
            let result = run.write(now, self.target, Vec::new(), appender);
            if let Err(error) = result {
                tracing::warn!(group = %self.loaded.name, rule = %run.rule.name, %error, "cannot end the series of a removed rule");
            }
        }
    }

    /// What the API tells of it.
    #[must_use]
    pub fn status(&self) -> GroupStatus {
        GroupStatus {
            loaded: Arc::clone(&self.loaded),
            interval: self.interval,
            last_evaluation: self.last_evaluation,
            duration: self.duration,
            missed: self.missed,
            rules: self.rules.iter().map(RuleRun::status).collect(),
        }
    }
}

impl RuleRun {
    fn new(rule: LoadedRule) -> Self {
        Self {
            // Loading judged every template; a rule made otherwise goes without the wrong ones.
            texts: AlertTexts::parse(&rule).unwrap_or_default(),
            rule,
            alerts: Alerts::default(),
            written: HashSet::new(),
            ids: HashMap::new(),
            last_evaluation: None,
            last_error: None,
            duration: Duration::ZERO,
        }
    }

    fn evaluate(
        &mut self,
        time: Millis,
        limit: usize,
        interval: Millis,
        target: TargetId,
        restored: bool,
        around: &Surroundings<'_>,
    ) -> Result<(), Error> {
        let deadline = Deadline::at(Instant::now() + around.query_timeout);
        let value = around.engine.instant(&self.rule.expr, time, &deadline)?.value;
        let output = match &self.rule.kind {
            RuleKind::Recording => {
                let series = recording::series(&self.rule, value)?;
                if limit > 0 && series.len() > limit {
                    return Err(Error::Result(format!(
                        "exceeded limit of {limit} with {} series",
                        series.len()
                    )));
                }
                series
            }
            RuleKind::Alerting { hold, keep_firing, .. } => {
                let expander = Expander {
                    engine: around.engine,
                    now: time,
                    external_labels: around.external_labels,
                    external_url: around.external_url,
                };
                let timing = Timing {
                    now: time,
                    hold: *hold,
                    keep_firing: *keep_firing,
                };
                self.alerts
                    .update(&self.rule, &self.texts, value, timing, limit, &expander)?;
                if !restored {
                    restore::restore(&self.rule, &mut self.alerts, timing, interval, around);
                }
                alert_series(&self.alerts)
            }
        };
        self.write(time, target, output, around.appender)
    }

    /// Adds `output` to the store and ends what was written last time and is not part of it.
    fn write(
        &mut self,
        time: Millis,
        target: TargetId,
        output: Vec<(Labels, f64)>,
        appender: &dyn Appender,
    ) -> Result<(), Error> {
        let mut now_written = HashSet::with_capacity(output.len());
        let mut lines = output;
        for (labels, _) in &lines {
            now_written.insert(labels.clone());
        }
        let ended: Vec<Labels> = self
            .written
            .iter()
            .filter(|l| !now_written.contains(*l))
            .cloned()
            .collect();
        for labels in &ended {
            lines.push((labels.clone(), stale_nan()));
        }
        self.append(time, target, &lines, appender)?;
        for labels in &ended {
            self.ids.remove(labels);
        }
        self.written = now_written;
        Ok(())
    }

    fn append(
        &mut self,
        time: Millis,
        target: TargetId,
        lines: &[(Labels, f64)],
        appender: &dyn Appender,
    ) -> Result<(), Error> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut pending: Vec<&(Labels, f64)> = lines.iter().collect();
        // Twice at most: a store that forgot a series names it, and its labels are told again.
        for _ in 0..2 {
            let mut batch = Batch::default();
            for (labels, value) in &pending {
                let id = match self.ids.get(labels) {
                    Some(id) => *id,
                    None => {
                        let id = appender.series(labels)?;
                        self.ids.insert(labels.clone(), id);
                        id
                    }
                };
                batch.samples.push((id, *value));
            }
            let unknown = appender.append(target, time, &batch)?.unknown;
            if unknown.is_empty() {
                break;
            }
            pending.retain(|(labels, _)| self.ids.get(labels).is_some_and(|id| unknown.contains(id)));
            for (labels, _) in &pending {
                self.ids.remove(labels);
            }
        }
        Ok(())
    }

    fn take_due(&mut self, now: Millis, resend: Millis) -> Vec<Alert> {
        let mut due = Vec::new();
        for alert in self.alerts.all_mut() {
            if alert.needs_sending(now, resend) {
                alert.last_sent_at = Some(now);
                due.push(alert.clone());
            }
        }
        due.sort_unstable_by(|a, b| a.labels.cmp(&b.labels));
        due
    }

    fn status(&self) -> RuleStatus {
        RuleStatus {
            rule: self.rule.clone(),
            last_evaluation: self.last_evaluation,
            last_error: self.last_error.clone(),
            duration: self.duration,
            alerts: self.alerts.all().into_iter().cloned().collect(),
        }
    }
}

/// `ALERTS` and `ALERTS_FOR_STATE` of every alert that is pending or firing.
fn alert_series(alerts: &Alerts) -> Vec<(Labels, f64)> {
    let mut out = Vec::new();
    for alert in alerts.all() {
        if alert.state == AlertState::Resolved {
            continue;
        }
        let state = alert
            .labels
            .with(model::METRIC_NAME, ALERTS)
            .with("alertstate", alert.state.as_str());
        out.push((state, 1.0));
        let since = alert.labels.with(model::METRIC_NAME, ALERTS_FOR_STATE);
        out.push((since, (alert.active_at as f64 / 1000.0).trunc()));
    }
    out
}
