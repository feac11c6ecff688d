//! One rule over time: its alerts, the series it wrote, and how its last evaluation went.
//!
//! Invariant: an evaluation that fails leaves alerts and series as they were; only a `limit` that is exceeded drops
//! the alerts, as in Prometheus.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use model::{Deadline, Labels, Millis, Sample, TargetId, Value};

use crate::alerting::{Alert, AlertState, Alerts, Timing};
use crate::error::Error;
use crate::expand::{AlertTexts, Expander};
use crate::group::{ALERTS, ALERTS_FOR_STATE, Surroundings};
use crate::load::{LoadedRule, RuleKind};
use crate::output::{Output, Point};
use crate::recording;
use crate::restore::{Back, Recollection};
use crate::unknown::Unknown;
use crate::unknown::health::Health;
use crate::unknown::inputs::{self, Input};
use crate::unknown::judge::{Judge, Vanished};

/// What the API tells of a rule.
#[derive(Debug, Clone)]
pub struct RuleStatus {
    /// As loaded.
    pub rule: Arc<LoadedRule>,
    /// When it was last evaluated; never yet if absent.
    pub last_evaluation: Option<Millis>,
    /// Why the last evaluation failed.
    pub last_error: Option<String>,
    /// How long the last evaluation took.
    pub duration: Duration,
    /// Its alerts: pending, firing, and lately resolved.
    pub alerts: Vec<Alert>,
    /// What is missing of its inputs; while there is anything, its silence means nothing.
    pub unknown: Vec<String>,
}

/// What a group tells each of its rules at an evaluation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment<'a> {
    /// The evaluation's moment.
    pub now: Millis,
    /// How far before it the queries look and the results are written.
    pub offset: Millis,
    /// The group's interval.
    pub interval: Millis,
    /// The most series or alerts; 0 is no limit.
    pub limit: usize,
    /// The owner of the group's timestamps.
    pub target: TargetId,
    /// Whether an event asked for this evaluation, not the grid.
    pub by_event: bool,
    /// What is down, now and at the evaluation before; absent where missing data is to mean what it does in Prometheus.
    pub health: Option<(&'a Health, Option<&'a Health>)>,
}

/// A rule and its state.
pub(crate) struct RuleRun {
    pub rule: Arc<LoadedRule>,
    pub output: Output,
    /// What it stands on; nothing for a recording rule.
    pub inputs: Vec<Input>,
    texts: AlertTexts,
    alerts: Alerts,
    recollection: Recollection,
    last_evaluation: Option<Millis>,
    last_error: Option<String>,
    duration: Duration,
}

impl RuleRun {
    pub fn new(rule: LoadedRule) -> Self {
        let inputs = match rule.kind {
            RuleKind::Alerting { .. } => inputs::of(&rule.expr),
            RuleKind::Recording => Vec::new(),
        };
        Self {
            inputs,
            // Loading judged every template; a rule made otherwise goes without the wrong ones.
            texts: AlertTexts::parse(&rule).unwrap_or_default(),
            rule: Arc::new(rule),
            output: Output::default(),
            alerts: Alerts::default(),
            recollection: Recollection::default(),
            last_evaluation: None,
            last_error: None,
            duration: Duration::ZERO,
        }
    }

    /// Whether a reload carries this rule's state on to `next`: the same kind, name and labels.
    pub fn continues_as(&self, next: &Self) -> bool {
        std::mem::discriminant(&self.rule.kind) == std::mem::discriminant(&next.rule.kind)
            && self.rule.name == next.rule.name
            && self.rule.labels == next.rule.labels
    }

    /// Takes over the state of `old`, which it replaces.
    pub fn adopt(&mut self, old: Self) {
        let new = std::mem::replace(self, old);
        (self.rule, self.texts, self.inputs) = (new.rule, new.texts, new.inputs);
    }

    /// Evaluates once, and returns the alerts that must be told now, sorted by labels.
    ///
    /// A failing rule goes on telling the alerts it had: nothing resolves because a query failed.
    pub fn evaluate(&mut self, moment: Moment<'_>, resend: Millis, around: &Surroundings<'_>) -> Vec<Alert> {
        let begun = Instant::now();
        let outcome = self.try_evaluate(moment, around);
        self.duration = begun.elapsed();
        self.last_evaluation = Some(moment.now);
        self.last_error = outcome.err().map(|e| e.to_string());
        self.alerts.take_due(moment.now, resend)
    }

    fn try_evaluate(&mut self, moment: Moment<'_>, around: &Surroundings<'_>) -> Result<(), Error> {
        let deadline = Deadline::at(Instant::now() + around.query_timeout);
        let time = moment.now - moment.offset;
        let samples = samples(around.engine.instant(&self.rule.expr, time, &deadline)?.value)?;
        let lines = match &self.rule.kind {
            RuleKind::Recording => recording::series(&self.rule, samples, moment.limit)?,
            RuleKind::Alerting { hold, keep_firing, .. } => {
                let timing = Timing {
                    now: moment.now,
                    hold: *hold,
                    keep_firing: *keep_firing,
                    by_event: moment.by_event,
                };
                let expander = Expander {
                    engine: around.engine,
                    now: moment.now,
                    deadline: &deadline,
                    external_labels: around.external_labels,
                    external_url: around.external_url,
                };
                let samples = samples.into_iter().map(|(labels, s)| (labels, s.value)).collect();
                let holding = Alerts::births(&self.rule, &self.texts, samples, moment.now, &expander)?;
                let judge = moment.health.map(|(health, before)| {
                    let (engine, inputs) = (around.engine, &*self.inputs);
                    Judge::new(engine, &deadline, inputs, time, moment.interval, health, before)
                });
                let (held, judge) = self.held(&holding, judge, moment.offset)?;
                self.alerts.advance(holding, held, timing);
                self.recollection
                    .restore(&self.rule, &mut self.alerts, timing, moment.interval, around);
                if let Some(mut judge) = judge {
                    let back = Back {
                        rule: &self.rule,
                        texts: &self.texts,
                        expander: &expander,
                        timing,
                        offset: moment.offset,
                    };
                    self.recollection.hold(&mut self.alerts, &mut judge, &back, around)?;
                }
                self.alerts.keep_within(moment.limit)?;
                alert_series(&self.alerts)
            }
        };
        self.output.write(time, moment.target, lines, around.appender)
    }

    /// The vanished alerts of which it cannot be said that they are over.
    fn held<'a>(
        &self,
        holding: &HashMap<Labels, Alert>,
        judge: Option<Judge<'a>>,
        offset: Millis,
    ) -> Result<(HashMap<Labels, Unknown>, Option<Judge<'a>>), Error> {
        let mut held = HashMap::new();
        let Some(mut judge) = judge else {
            return Ok((held, None));
        };
        for alert in self.alerts.vanished(holding) {
            let vanished = Vanished {
                source: &alert.source,
                held_at: alert.held_at - offset,
                known: alert.unknown.as_ref(),
            };
            if let Some(unknown) = judge.verdict(vanished)? {
                held.insert(alert.labels.clone(), unknown);
            }
        }
        Ok((held, Some(judge)))
    }

    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    pub fn status(&self) -> RuleStatus {
        RuleStatus {
            rule: Arc::clone(&self.rule),
            last_evaluation: self.last_evaluation,
            last_error: self.last_error.clone(),
            duration: self.duration,
            alerts: self.alerts.all().into_iter().cloned().collect(),
            unknown: Vec::new(),
        }
    }
}

/// The samples that a rule works on; a scalar is one sample without labels.
fn samples(value: Value) -> Result<Vec<(Labels, Sample)>, Error> {
    match value {
        Value::Vector(samples) => Ok(samples),
        Value::Scalar(sample) => Ok(vec![(Labels::empty(), sample)]),
        other => Err(Error::Result(format!(
            "rule result is a {}, not a vector or scalar",
            other.type_name()
        ))),
    }
}

/// `ALERTS` and `ALERTS_FOR_STATE` of every alert that is pending or firing.
pub(crate) fn alert_series(alerts: &Alerts) -> Vec<(Labels, Point)> {
    let mut out = Vec::new();
    for alert in alerts.all() {
        if alert.state == AlertState::Resolved {
            continue;
        }
        let named = alert.labels.with(model::METRIC_NAME, ALERTS);
        out.push((named.with("alertstate", alert.state.as_str()), Point::Float(1.0)));
        let since = alert.labels.with(model::METRIC_NAME, ALERTS_FOR_STATE);
        let seconds = alert.active_at.div_euclid(1000) as f64;
        out.push((since, Point::Float(seconds)));
    }
    out
}
