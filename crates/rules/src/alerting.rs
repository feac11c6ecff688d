//! The state machine of one alerting rule: inactive, pending, firing, and back.
//!
//! Invariant: an alert is identified by its labels after the rule's labels are applied; it is pending from the first
//! evaluation that holds, fires once it has held for the rule's `for`, and is resolved by the first evaluation that
//! does not hold after `keep_firing_for`. A resolved alert is kept for [`RESOLVED_KEPT`], so that a receiver that
//! missed the message still gets it. Times are those of the evaluation, whatever the query's offset.
//!
//! An alert whose inputs are missing ([`Unknown`]) stands still: a pending one neither fires nor goes, a firing one fires on.

use hashbrown::HashMap;
use model::{Labels, LabelsBuilder, METRIC_NAME, Millis};

use crate::error::Error;
use crate::expand::{AlertTexts, Expander};
use crate::load::LoadedRule;
use crate::unknown::Unknown;

/// The label that holds the alert's name.
pub const ALERT_NAME: &str = "alertname";

/// How long a resolved alert is remembered, in milliseconds.
pub const RESOLVED_KEPT: Millis = 15 * 60_000;

/// Where an alert stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AlertState {
    /// The expression holds, but not yet for long enough.
    Pending,
    /// It is telling.
    Firing,
    /// It was firing and holds no more.
    Resolved,
}

impl AlertState {
    /// The word in the `alertstate` label and in the API; `inactive` for a resolved one.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Firing => "firing",
            Self::Resolved => "inactive",
        }
    }
}

/// One alert of a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Alert {
    /// Its labels, `alertname` among them.
    pub labels: Labels,
    /// Its annotations, expanded.
    pub annotations: Vec<(String, String)>,
    /// Where it stands.
    pub state: AlertState,
    /// The last value of the expression.
    pub value: f64,
    /// Since when the expression holds.
    pub active_at: Millis,
    /// When it began to fire.
    pub fired_at: Option<Millis>,
    /// When it was resolved.
    pub resolved_at: Option<Millis>,
    /// Since when it fires only because of `keep_firing_for`.
    pub keep_firing_since: Option<Millis>,
    /// When it was last handed to the sink.
    pub last_sent_at: Option<Millis>,
    /// Why it cannot be said whether it still holds; absent when it can.
    pub unknown: Option<Unknown>,
    /// The labels of the sample that it was made of, without a name.
    pub source: Labels,
    /// The last moment at which the expression held.
    pub held_at: Millis,
    /// Whether it began to fire when an event arrived: people need not wait for others of its group.
    pub by_event: bool,
}

impl Alert {
    /// An alert that begins to hold at `now`.
    #[must_use]
    pub fn pending(labels: Labels, value: f64, now: Millis) -> Self {
        Self {
            source: labels.clone(),
            labels,
            annotations: Vec::new(),
            state: AlertState::Pending,
            value,
            active_at: now,
            fired_at: None,
            resolved_at: None,
            keep_firing_since: None,
            last_sent_at: None,
            unknown: None,
            held_at: now,
            by_event: false,
        }
    }

    /// Whether it must be handed on now: firing or resolved, news first, repeated once more than `resend`
    /// milliseconds have passed.
    #[must_use]
    pub fn needs_sending(&self, now: Millis, resend: Millis) -> bool {
        let Some(last) = self.last_sent_at else {
            return self.state != AlertState::Pending;
        };
        let resolved_since = self.resolved_at.is_some_and(|at| at > last);
        // A moment that lies ahead was told before the clock was set back.
        self.state != AlertState::Pending && (resolved_since || last + resend < now || last > now)
    }
}

/// The alerts of one rule.
#[derive(Debug, Default)]
pub struct Alerts {
    active: HashMap<Labels, Alert>,
}

/// The times that drive one alerting rule.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// The evaluation's moment.
    pub now: Millis,
    /// The rule's `for`.
    pub hold: Millis,
    /// The rule's `keep_firing_for`.
    pub keep_firing: Millis,
    /// Whether an event asked for this evaluation, not the grid.
    pub by_event: bool,
}

impl Alerts {
    /// Every alert that is pending, firing or lately resolved, sorted by labels.
    #[must_use]
    pub fn all(&self) -> Vec<&Alert> {
        let mut alerts: Vec<&Alert> = self.active.values().collect();
        alerts.sort_unstable_by(|a, b| a.labels.cmp(&b.labels));
        alerts
    }

    /// The same, to be changed.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Alert> {
        self.active.values_mut()
    }

    /// The alerts that must be handed on at `now`, sorted by labels; they count as told.
    pub fn take_due(&mut self, now: Millis, resend: Millis) -> Vec<Alert> {
        let mut due = Vec::new();
        for alert in self.active.values_mut().filter(|a| a.needs_sending(now, resend)) {
            alert.last_sent_at = Some(now);
            due.push(alert.clone());
        }
        due.sort_unstable_by(|a, b| a.labels.cmp(&b.labels));
        due
    }

    /// Forgets every alert when more than `limit` are pending or firing; 0 is no limit.
    ///
    /// # Errors
    ///
    /// [`Error::Result`] then.
    pub fn keep_within(&mut self, limit: usize) -> Result<(), Error> {
        let living = self.active.values().filter(|a| a.state != AlertState::Resolved).count();
        if limit == 0 || living <= limit {
            return Ok(());
        }
        self.active.clear();
        Err(Error::Result(format!("exceeded limit of {limit} with {living} alerts")))
    }

    /// The alerts that the expression's samples make at `now`, each of another label set.
    ///
    /// # Errors
    ///
    /// [`Error::Result`] when two samples become the same alert.
    pub fn births(
        rule: &LoadedRule,
        texts: &AlertTexts,
        samples: Vec<(Labels, f64)>,
        now: Millis,
        expander: &Expander<'_>,
    ) -> Result<HashMap<Labels, Alert>, Error> {
        let mut holding: HashMap<Labels, Alert> = HashMap::with_capacity(samples.len());
        for (labels, value) in samples {
            let alert = born(rule, texts, &labels, value, now, expander);
            if holding.insert(alert.labels.clone(), alert).is_some() {
                return Err(Error::Result(
                    "vector contains metrics with the same labelset after applying alert labels".into(),
                ));
            }
        }
        Ok(holding)
    }

    /// The alerts that are pending or firing and hold no more.
    pub fn vanished<'a>(&'a self, holding: &'a HashMap<Labels, Alert>) -> impl Iterator<Item = &'a Alert> {
        let living = self.active.values().filter(|a| a.state != AlertState::Resolved);
        living.filter(|a| !holding.contains_key(&a.labels))
    }

    /// Brings the alerts up to date: `holding` are those whose expression holds at `timing.now`, `held` those of the
    /// others of which nothing can be said.
    pub fn advance(&mut self, mut holding: HashMap<Labels, Alert>, mut held: HashMap<Labels, Unknown>, timing: Timing) {
        self.active
            .retain(|labels, alert| match (holding.remove(labels), held.remove(labels)) {
                (None, Some(unknown)) => {
                    alert.unknown = Some(unknown);
                    true
                }
                (fresh, _) => step(alert, fresh, timing),
            });
        for (labels, mut alert) in holding {
            ripen(&mut alert, timing);
            self.active.insert(labels, alert);
        }
    }

    /// Takes in an alert of before a restart.
    pub fn put_back(&mut self, alert: Alert) {
        self.active.insert(alert.labels.clone(), alert);
    }

    /// Whether an alert is known.
    #[must_use]
    pub fn has(&self, labels: &Labels) -> bool {
        self.active.contains_key(labels)
    }
}

/// A new alert for one sample of the result.
pub(crate) fn born(
    rule: &LoadedRule,
    texts: &AlertTexts,
    labels: &Labels,
    value: f64,
    now: Millis,
    expander: &Expander<'_>,
) -> Alert {
    let mut builder = LabelsBuilder::from(labels);
    builder.remove(METRIC_NAME);
    for (name, template) in &texts.labels {
        builder.set(name, &expander.expand(template, labels, value));
    }
    builder.set(ALERT_NAME, &rule.name);
    let annotations = texts.annotations.iter();
    let annotations = annotations
        .map(|(name, t)| (name.clone(), expander.expand(t, labels, value)))
        .collect();
    Alert {
        annotations,
        source: labels.drop_name(),
        ..Alert::pending(builder.build(), value, now)
    }
}

/// Moves a known alert on; `false` forgets it.
fn step(alert: &mut Alert, holding: Option<Alert>, timing: Timing) -> bool {
    alert.unknown = None;
    match (holding, alert.state) {
        (Some(fresh), AlertState::Resolved) => {
            // A new firing is news, whenever the last one was told.
            *alert = fresh;
            ripen(alert, timing);
            true
        }
        (Some(fresh), AlertState::Pending | AlertState::Firing) => {
            alert.value = fresh.value;
            alert.annotations = fresh.annotations;
            alert.source = fresh.source;
            alert.held_at = fresh.held_at;
            alert.keep_firing_since = None;
            ripen(alert, timing);
            true
        }
        (None, AlertState::Pending) => false,
        (None, AlertState::Firing) => {
            if timing.keep_firing > 0 {
                let since = *alert.keep_firing_since.get_or_insert(timing.now);
                if timing.now - since < timing.keep_firing {
                    return true;
                }
            }
            alert.state = AlertState::Resolved;
            alert.resolved_at = Some(timing.now);
            true
        }
        (None, AlertState::Resolved) => alert.resolved_at.is_some_and(|at| timing.now - at <= RESOLVED_KEPT),
    }
}

/// A pending alert that has held long enough fires.
fn ripen(alert: &mut Alert, timing: Timing) {
    if alert.state == AlertState::Pending && timing.now - alert.active_at >= timing.hold {
        alert.state = AlertState::Firing;
        alert.fired_at = Some(timing.now);
        alert.by_event = timing.by_event;
    }
}
