//! Alert state over a restart: since when an alert holds, read back from `ALERTS_FOR_STATE`.
//!
//! The time the server was down counts neither as holding nor as not holding: a pending alert goes on waiting for what
//! was left of its `for`, at least the grace time; an alert that was firing fires on, since the moment it first did.
//! Prometheus restores only rules whose `for` is above the grace time, once; here every rule is restored, and an alert
//! may come back within [`window`] of the first evaluation: its data needs a scrape or two. One whose machine is down
//! comes back as unknown.

use hashbrown::{HashMap, HashSet};
use model::text::quote;
use model::{Deadline, Labels, Millis, QueryError, Value};

use crate::alerting::{ALERT_NAME, Alert, AlertState, Alerts, Timing, born};
use crate::error::Error;
use crate::expand::{AlertTexts, Expander};
use crate::group::{ALERTS_FOR_STATE, Surroundings};
use crate::load::LoadedRule;
use crate::unknown::judge::{Judge, Vanished};

/// For how long a query sees a sample when no other follows: the engine's lookback, in milliseconds.
const LOOKBACK: Millis = 300_000;

/// What a rule still knows of the time before the restart.
#[derive(Debug, Default)]
pub enum Recollection {
    /// Nothing was asked yet.
    #[default]
    Unasked,
    /// These alerts may still come back.
    Known(Memory),
    /// What has not come back is over.
    Over,
}

/// The alerts that were pending or firing before the restart.
#[derive(Debug, Default)]
pub struct Memory {
    /// When the store was asked: everything later is of this run.
    asked_at: Millis,
    before: HashMap<Labels, Remembered>,
    /// By moment: the series that no staleness marker had ended after it.
    open: HashMap<Millis, HashSet<Labels>>,
}

/// What the store remembers of one alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Remembered {
    /// When the state was last written.
    down_at: Millis,
    /// Since when the expression held.
    active_at: Millis,
}

/// How long after the first evaluation an alert may come back: four evaluations, a minute at least.
const fn window(interval: Millis) -> Millis {
    let four = 4 * interval;
    if four > 60_000 { four } else { 60_000 }
}

impl Recollection {
    /// Gives alerts that begin to hold now the `active_at` they had before the restart.
    ///
    /// A store that cannot answer leaves the alerts as they are: new.
    pub fn restore(
        &mut self,
        rule: &LoadedRule,
        alerts: &mut Alerts,
        timing: Timing,
        interval: Millis,
        around: &Surroundings<'_>,
    ) {
        if matches!(self, Self::Unasked) {
            *self = Memory::recall(rule, timing.now, around).map_or_else(
                |error| {
                    tracing::warn!(rule = %rule.name, %error, "cannot restore alert state");
                    Self::Over
                },
                Self::Known,
            );
        }
        let Self::Known(memory) = self else { return };
        for alert in alerts.all_mut() {
            if alert.active_at == timing.now && alert.state != AlertState::Resolved {
                match memory.take(rule, &alert.labels, around) {
                    Ok(Some(before)) => put_back(alert, before, timing, interval, around.restore_grace),
                    Ok(None) => {}
                    Err(error) => tracing::warn!(rule = %rule.name, %error, "cannot restore alert state"),
                }
            }
        }
        if memory.before.is_empty() || timing.now - memory.asked_at >= window(interval) {
            *self = Self::Over;
        }
    }

    /// Takes up again, as unknown, the alerts of before the restart whose inputs are missing now.
    ///
    /// # Errors
    ///
    /// The engine's.
    pub fn hold(
        &mut self,
        alerts: &mut Alerts,
        judge: &mut Judge<'_>,
        back: &Back<'_>,
        around: &Surroundings<'_>,
    ) -> Result<(), Error> {
        let Self::Known(memory) = self else { return Ok(()) };
        if judge.health.ailing.is_empty() {
            return Ok(());
        }
        let waiting: Vec<(Labels, Remembered)> = memory.before.iter().map(|(l, b)| (l.clone(), *b)).collect();
        for (labels, before) in waiting {
            if alerts.has(&labels) {
                continue;
            }
            let source = back.source(&labels);
            let vanished = Vanished {
                source: &source,
                // When it began to hold its data was there; later it may have been unknown already.
                held_at: before.active_at - back.offset,
                known: None,
            };
            let Some(unknown) = judge.verdict(vanished)? else {
                continue;
            };
            let Some(before) = memory.take(back.rule, &labels, around)? else {
                continue;
            };
            let mut alert = born(back.rule, back.texts, &source, f64::NAN, back.timing.now, back.expander);
            alert.labels = labels;
            alert.held_at = before.active_at;
            alert.active_at = before.active_at;
            if before.down_at - before.active_at >= back.timing.hold {
                alert.state = AlertState::Firing;
                alert.fired_at = Some((before.active_at + back.timing.hold).min(back.timing.now));
            }
            alert.unknown = Some(unknown);
            alerts.put_back(alert);
        }
        Ok(())
    }
}

/// What it takes to write an alert of before the restart anew.
pub struct Back<'a> {
    /// Its rule.
    pub rule: &'a LoadedRule,
    /// The rule's texts.
    pub texts: &'a AlertTexts,
    /// Expands them.
    pub expander: &'a Expander<'a>,
    /// The rule's times.
    pub timing: Timing,
    /// How far in the past the rule looks.
    pub offset: Millis,
}

impl Back<'_> {
    /// What is left of an alert's labels without those that the rule adds.
    fn source(&self, labels: &Labels) -> Labels {
        let added = |name: &str| name == ALERT_NAME || self.rule.labels.iter().any(|(own, _)| own == name);
        Labels::from_pairs(labels.iter().filter(|(name, _)| !added(name)))
    }
}

fn put_back(alert: &mut Alert, before: Remembered, timing: Timing, interval: Millis, grace: Millis) {
    alert.active_at = restored_active_at(before, timing, grace);
    if timing.now - alert.active_at >= timing.hold {
        alert.state = AlertState::Firing;
        // The evaluation at which it first fired: the same moment as before, so that nobody is told twice.
        let waited = timing.hold.div_euclid(interval) + i64::from(timing.hold % interval > 0);
        alert.fired_at = Some((alert.active_at + waited * interval).min(timing.now));
    } else {
        alert.state = AlertState::Pending;
        alert.fired_at = None;
    }
}

fn restored_active_at(before: Remembered, timing: Timing, grace: Millis) -> Millis {
    let left = timing.hold - (before.down_at - before.active_at);
    if left <= 0 {
        before.active_at
    } else if left < grace {
        // So close to firing: the data has until the grace time to come back and say otherwise.
        timing.now + grace.min(timing.hold) - timing.hold
    } else {
        before.active_at + (timing.now - before.down_at)
    }
}

fn selector(rule: &LoadedRule) -> String {
    format!("{ALERTS_FOR_STATE}{{{ALERT_NAME}={}}}", quote(&rule.name))
}

impl Memory {
    fn recall(rule: &LoadedRule, now: Millis, around: &Surroundings<'_>) -> Result<Self, QueryError> {
        let mut memory = Self {
            asked_at: now,
            ..Self::default()
        };
        if around.outage_tolerance <= 0 {
            return Ok(memory);
        }
        let window = model::time::DurationText(around.outage_tolerance);
        let expr = format!("{}[{window}]", selector(rule));
        // Up to and with this moment: this run has written nothing yet, and the run before may have died right after it
        // evaluated this very slot.
        let outcome = around.engine.instant(&expr, now, &Deadline::never())?;
        let Value::Matrix(series) = outcome.value else {
            return Ok(memory);
        };
        for (labels, column) in series {
            let Some(last) = column.iter().last() else { continue };
            // Seconds, written by this crate; anything else is somebody else's series.
            let active_at = (last.value * 1000.0) as Millis;
            if last.value.is_finite() && active_at <= last.time {
                let before = Remembered {
                    down_at: last.time,
                    active_at,
                };
                memory.before.insert(labels.drop_name(), before);
            }
        }
        Ok(memory)
    }

    /// What is remembered of one alert, once; `None` if it was over before the restart.
    fn take(
        &mut self,
        rule: &LoadedRule,
        labels: &Labels,
        around: &Surroundings<'_>,
    ) -> Result<Option<Remembered>, QueryError> {
        let Some(before) = self.before.remove(labels) else {
            return Ok(None);
        };
        if !self.open.contains_key(&before.down_at) {
            // Late enough that a marker after the last sample hides it, early enough that the sample is still seen.
            let look = (before.down_at + LOOKBACK - 1).min(self.asked_at);
            let outcome = around.engine.instant(&selector(rule), look, &Deadline::never())?;
            let Value::Vector(found) = outcome.value else {
                return Ok(None);
            };
            let open = found.into_iter().map(|(labels, _)| labels.drop_name()).collect();
            self.open.insert(before.down_at, open);
        }
        let open = self.open.get(&before.down_at).is_some_and(|open| open.contains(labels));
        Ok(open.then_some(before))
    }
}

#[cfg(test)]
mod tests;
