//! Which rules of a group are blind at present, and the alert that says so.
//!
//! A rule is blind when something is down that its inputs came from within the last hour, whether it has alerts or not: its
//! silence means nothing then. One alert a group and origin tells of it, [`RULES_UNKNOWN`], once that has lasted for three
//! evaluations; it has labels of its own, so that it can be routed on its own.

use std::sync::Arc;

use hashbrown::HashMap;
use model::{Appender, Deadline, Labels, Millis, QueryEngine, TargetId};

use super::health::{Health, Origin, Scope, vector};
use super::inputs::Input;
use crate::alerting::{ALERT_NAME, Alert, Alerts, Timing};
use crate::error::Error;
use crate::group::News;
use crate::load::{LoadedRule, RuleKind};
use crate::output::Output;
use crate::run::alert_series;

/// The alert that says that rules cannot tell.
pub const RULES_UNKNOWN: &str = "RulesUnknown";

/// How many evaluations something must be down before it is told.
const PATIENCE: Millis = 3;

/// How far back a series counts as an input, for PromQL.
const LATELY: &str = "1h";

/// Questions asked at one evaluation; the other rules are judged at the next one.
const QUESTIONS_MAX: usize = 300;

/// What a group reports of itself.
pub struct Report {
    rule: Arc<LoadedRule>,
    alerts: Alerts,
    output: Output,
    /// Whether a rule, by its number, takes input from an origin that is down.
    known: HashMap<Origin, Vec<Option<bool>>>,
}

/// What makes rules blind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blind {
    /// What is down.
    pub origin: Origin,
    /// The numbers of the rules.
    pub rules: Vec<usize>,
}

/// What the questions are asked with.
pub struct Asking<'a> {
    /// Answers.
    pub engine: &'a dyn QueryEngine,
    /// Until when.
    pub deadline: &'a Deadline,
    /// The moment that the group looks at.
    pub time: Millis,
}

/// When and how often it is told.
#[derive(Debug, Clone, Copy)]
pub struct Telling {
    /// The evaluation's moment.
    pub now: Millis,
    /// The moment that the group looks at, at which series are written.
    pub time: Millis,
    /// The group's interval.
    pub interval: Millis,
    /// How often a firing alert is repeated.
    pub resend: Millis,
    /// The owner of the group's timestamps.
    pub target: TargetId,
}

impl Report {
    /// Nothing is known to be down yet.
    #[must_use]
    pub fn new(group: &str) -> Self {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let rule = LoadedRule {
            name: RULES_UNKNOWN.to_owned(),
            expr: "the inputs of this group's rules".to_owned(),
            labels: vec![pair("severity", "warning"), pair("rule_group", group)],
            kind: RuleKind::Alerting {
                hold: 0,
                keep_firing: 0,
                annotations: Vec::new(),
            },
        };
        Self {
            rule: Arc::new(rule),
            alerts: Alerts::default(),
            output: Output::default(),
            known: HashMap::new(),
        }
    }

    /// Hands over the series it wrote; it reports no more.
    pub fn give_up(&mut self) -> Output {
        std::mem::take(&mut self.output)
    }

    /// Which rules are blind, with `rules` their inputs by number.
    ///
    /// # Errors
    ///
    /// The engine's.
    pub fn blind(&mut self, health: &Health, rules: &[&[Input]], asking: &Asking<'_>) -> Result<Vec<Blind>, Error> {
        self.known.retain(|origin, _| health.has(origin));
        let mut left = QUESTIONS_MAX;
        let mut out = Vec::new();
        for origin in &health.ailing {
            let known = self.known.entry(origin.clone()).or_default();
            known.resize(rules.len(), None);
            for (number, inputs) in rules.iter().enumerate() {
                if known[number].is_none() && left >= inputs.len() {
                    left -= inputs.len();
                    known[number] = Some(depends(inputs, origin, asking)?);
                }
            }
            let blind: Vec<usize> = (0..rules.len()).filter(|at| known[*at] == Some(true)).collect();
            if !blind.is_empty() {
                out.push(Blind {
                    origin: origin.clone(),
                    rules: blind,
                });
            }
        }
        Ok(out)
    }

    /// Brings the alert up to date and returns what must be told.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] when the store takes nothing.
    pub fn tell(
        &mut self,
        blind: &[Blind],
        names: &[&str],
        moment: Telling,
        appender: &dyn Appender,
    ) -> Result<Option<News>, Error> {
        let now = moment.now;
        let timing = Timing {
            now,
            hold: PATIENCE * moment.interval,
            keep_firing: 0,
            by_event: false,
        };
        let alerts = blind.iter().map(|blind| self.alert(blind, names, now));
        let holding: HashMap<Labels, Alert> = alerts.map(|alert| (alert.labels.clone(), alert)).collect();
        self.alerts.advance(holding, HashMap::new(), timing);
        let due = self.alerts.take_due(now, moment.resend);
        self.output
            .write(moment.time, moment.target, alert_series(&self.alerts), appender)?;
        Ok((!due.is_empty()).then(|| (Arc::clone(&self.rule), due)))
    }

    fn alert(&self, blind: &Blind, names: &[&str], now: Millis) -> Alert {
        let mut labels = model::LabelsBuilder::from(&blind.origin.labels);
        labels.remove(model::METRIC_NAME);
        for (name, value) in &self.rule.labels {
            labels.set(name, value);
        }
        labels.set(ALERT_NAME, RULES_UNKNOWN);
        let mut listed: Vec<&str> = blind.rules.iter().filter_map(|at| names.get(*at).copied()).collect();
        listed.dedup();
        let what = blind.origin.describe();
        let annotation = |name: &str, text: String| (name.to_owned(), text);
        Alert {
            annotations: vec![
                annotation("summary", format!("{} rules cannot tell: {what}", blind.rules.len())),
                annotation(
                    "description",
                    format!(
                        "Alerts of {} are held as they were; new ones cannot fire until it is back.",
                        listed.join(", ")
                    ),
                ),
                annotation(
                    "action",
                    format!(
                        "Bring it back ({}), or take it out of the configuration.",
                        blind.origin.selector()
                    ),
                ),
                annotation("runbook_url", "docs/runbooks/RulesUnknown.md".to_owned()),
            ],
            ..Alert::pending(labels.build(), blind.rules.len() as f64, now)
        }
    }
}

/// Whether one of the inputs had a series of `origin` within the last hour, and, where only a part is down, has none now.
fn depends(inputs: &[Input], origin: &Origin, asking: &Asking<'_>) -> Result<bool, Error> {
    for input in inputs {
        let one = input.of_instance(origin.instance());
        let lately = format!("last_over_time(({one})[{LATELY}:1m])");
        let fed = |expr: &str| -> Result<bool, Error> {
            let outcome = asking.engine.instant(expr, asking.time, asking.deadline)?;
            Ok(vector(outcome.value).iter().any(|series| origin.may_feed(series)))
        };
        if fed(&lately)? && (origin.scope == Scope::Target || !fed(&one)?) {
            return Ok(true);
        }
    }
    Ok(false)
}
