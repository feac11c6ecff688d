//! Alert state over a restart: since when an alert holds, read back from `ALERTS_FOR_STATE`.
//!
//! The time the server was down counts neither as holding nor as not holding: a pending alert goes on waiting for what
//! was left of its `for`, at least the grace time; an alert that was firing fires on, since the moment it first did.

use hashbrown::HashMap;
use model::text::quote;
use model::{Deadline, Labels, Millis, Value};

use crate::alerting::{ALERT_NAME, AlertState, Alerts, Timing};
use crate::group::{ALERTS_FOR_STATE, Surroundings};
use crate::load::LoadedRule;

/// What the store remembers of one alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Remembered {
    /// When the state was last written.
    down_at: Millis,
    /// Since when the expression held.
    active_at: Millis,
}

/// Gives the alerts of a rule that hold now the `active_at` they had before the restart.
///
/// A store that cannot answer leaves the alerts as they are: new.
pub fn restore(rule: &LoadedRule, alerts: &mut Alerts, timing: Timing, interval: Millis, around: &Surroundings<'_>) {
    if alerts.all().is_empty() {
        return;
    }
    let remembered = match remembered(rule, timing.now, interval, around) {
        Ok(remembered) => remembered,
        Err(error) => {
            tracing::warn!(rule = %rule.name, %error, "cannot restore alert state");
            return;
        }
    };
    for alert in alerts.all_mut() {
        let Some(before) = remembered.get(&alert.labels) else {
            continue;
        };
        alert.active_at = restored_active_at(*before, timing, around.restore_grace);
        if timing.now - alert.active_at >= timing.hold {
            alert.state = AlertState::Firing;
            alert.fired_at = Some((alert.active_at + timing.hold).min(timing.now));
        } else {
            alert.state = AlertState::Pending;
            alert.fired_at = None;
        }
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

fn remembered(
    rule: &LoadedRule,
    now: Millis,
    interval: Millis,
    around: &Surroundings<'_>,
) -> Result<HashMap<Labels, Remembered>, model::QueryError> {
    let selector = format!("{ALERTS_FOR_STATE}{{{ALERT_NAME}={}}}", quote(&rule.name));
    let window = model::time::DurationText(around.outage_tolerance.max(1));
    let outcome = around
        .engine
        .instant(&format!("{selector}[{window}]"), now - 1, &Deadline::never())?;
    let Value::Matrix(series) = outcome.value else {
        return Ok(HashMap::new());
    };
    let mut out = HashMap::new();
    for (labels, column) in series {
        let Some(last) = column.iter().last() else { continue };
        if ended_after(&labels, last.time, now, interval, around)? {
            continue;
        }
        // Seconds in a float, written by this crate.
        let active_at = (last.value * 1000.0) as Millis;
        out.insert(
            labels.drop_name(),
            Remembered {
                down_at: last.time,
                active_at,
            },
        );
    }
    Ok(out)
}

/// Whether a staleness marker followed the last sample: the alert was over before the restart.
fn ended_after(
    labels: &Labels,
    last: Millis,
    now: Millis,
    interval: Millis,
    around: &Surroundings<'_>,
) -> Result<bool, model::QueryError> {
    let matchers: Vec<String> = labels
        .iter()
        .filter(|(n, _)| *n != model::METRIC_NAME)
        .map(|(n, v)| format!("{}={}", quote(n), quote(v)))
        .collect();
    let expr = format!("{ALERTS_FOR_STATE}{{{}}}", matchers.join(","));
    let look = (last + 2 * interval).min(now - 1);
    let outcome = around.engine.instant(&expr, look, &Deadline::never())?;
    Ok(matches!(outcome.value, Value::Vector(found) if found.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downtime_counts_neither_way() {
        let minute = 60_000;
        let timing = Timing {
            now: 100 * minute,
            hold: 30 * minute,
            keep_firing: 0,
        };
        let at = |active: Millis, down: Millis| {
            restored_active_at(
                Remembered {
                    active_at: active * minute,
                    down_at: down * minute,
                },
                timing,
                10 * minute,
            ) / minute
        };
        // Fired before the restart: since then.
        assert_eq!(at(10, 60), 10);
        // Twenty minutes were left: twenty are left.
        assert_eq!(at(50, 60), 90);
        // Two were left: ten, the grace time.
        assert_eq!(at(50, 78), 80);
    }
}
