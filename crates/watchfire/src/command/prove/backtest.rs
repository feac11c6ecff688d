//! When each alert would have fired: its expression over the time that lies behind, and its `for`.

use std::collections::BTreeMap;
use std::fmt;

use model::{Labels, Millis};
use prove::RuleText;
use serde_json::{Value, json};

use super::Firings;
use crate::command::api::{Api, labels, seconds};
use crate::command::output;

/// Steps of one question: the API gives no more than 11,000 points.
const STEPS_MAX: Millis = 10_000;

/// The finest step.
const STEP_MIN: Millis = 15_000;

/// Firings told of one alert.
const FIRINGS_MAX: usize = 1_000;

/// One time that an alert would have fired.
#[derive(Debug, Clone, PartialEq)]
pub struct Firing {
    /// The series that fired.
    pub labels: Labels,
    /// Since when.
    pub from: Millis,
    /// Until when; still then, where it is the end of what was looked at.
    pub until: Millis,
}

impl Firing {
    /// As JSON.
    pub fn json(&self) -> Value {
        let labels: serde_json::Map<_, _> = self.labels.iter().map(|(n, v)| (n.to_owned(), json!(v))).collect();
        json!({"labels": labels, "from": moment(self.from), "until": moment(self.until)})
    }
}

impl fmt::Display for Firing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let series = model::labels::SeriesText(&self.labels);
        write!(f, "{} to {}  {series}", moment(self.from), moment(self.until))
    }
}

fn moment(time: Millis) -> String {
    jiff::Timestamp::from_millisecond(time).map_or_else(|_| time.to_string(), |stamp| stamp.to_string())
}

/// Looks back over `back` milliseconds.
pub fn run(api: &Api, rules: &[RuleText], back: Millis) -> anyhow::Result<Firings> {
    let mut out = BTreeMap::new();
    for rule in rules.iter().filter(|rule| rule.is_alert) {
        let step = (back / STEPS_MAX).max(rule.interval.unwrap_or(STEP_MIN)).max(STEP_MIN);
        let form = [
            ("query", rule.expr.clone()),
            ("start", seconds(api.now - back)),
            ("end", seconds(api.now)),
            ("step", seconds(step)),
        ];
        let data = match api.post("/api/v1/query_range", &form) {
            Ok(data) => data,
            Err(error) => {
                output::remark(format_args!("{}: cannot look back: {error:#}", rule.name));
                continue;
            }
        };
        let mut firings = Vec::new();
        for series in data["result"].as_array().into_iter().flatten() {
            let points = series["values"].as_array().into_iter().flatten();
            let times: Vec<Millis> = points
                .filter_map(|p| Some((p[0].as_f64()? * 1000.0) as Millis))
                .collect();
            let labels = labels(&series["metric"]).drop_name();
            firings.extend(spells(&times, step, rule.hold).into_iter().map(|(from, until)| Firing {
                labels: labels.clone(),
                from,
                until,
            }));
        }
        firings.sort_by_key(|firing| firing.from);
        firings.truncate(FIRINGS_MAX);
        let key = (
            rule.file.clone(),
            rule.group.clone(),
            rule.name.clone(),
            rule.expr.clone(),
        );
        out.insert(key, firings);
    }
    Ok(out)
}

/// The spells in which a series was there without a gap for longer than `hold`, from when it fires.
fn spells(times: &[Millis], step: Millis, hold: Millis) -> Vec<(Millis, Millis)> {
    let mut out = Vec::new();
    let mut begun: Option<(Millis, Millis)> = None;
    let mut end = |spell: Option<(Millis, Millis)>| {
        if let Some((from, last)) = spell
            && last - from >= hold
        {
            out.push((from + hold, last));
        }
    };
    for time in times {
        begun = match begun {
            Some((from, last)) if time - last <= step => Some((from, *time)),
            other => {
                end(other);
                Some((*time, *time))
            }
        };
    }
    end(begun);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spell_fires_after_its_hold_and_a_gap_begins_anew() {
        let times = [0, 10, 20, 30, 60, 70, 120];
        assert_eq!(spells(&times, 10, 20), [(20, 30)]);
        assert_eq!(spells(&times, 10, 0), [(0, 30), (60, 70), (120, 120)]);
        assert_eq!(spells(&[], 10, 0), []);
    }
}
