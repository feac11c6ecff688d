//! Comparing what rules gave with what a test expects, and saying how they differ.

use std::collections::BTreeMap;

use config::rule_tests::{AlertTest, ExpectedSample};
use model::{Labels, Millis};
use promql::testscript::notation::parse_metric;

use crate::alerting::{ALERT_NAME, AlertState};
use crate::manager::Manager;

pub fn check_alerts(manager: &Manager, case: &AlertTest) -> Result<(), String> {
    let groups = manager.status();
    let rules = groups
        .iter()
        .flat_map(|g| &g.rules)
        .filter(|r| r.rule.name == case.alert_name);
    let firing = rules.flat_map(|r| &r.alerts).filter(|a| a.state == AlertState::Firing);
    let mut got: Vec<String> = firing
        .map(|a| alert_text(&a.labels, &a.annotations.iter().cloned().collect()))
        .collect();
    let mut want: Vec<String> = case
        .expected
        .iter()
        .map(|(labels, annotations)| {
            let pairs = labels.iter().map(|(n, v)| (n.as_str(), v.as_str()));
            let labels = Labels::from_pairs(pairs.chain([(ALERT_NAME, case.alert_name.as_str())]));
            alert_text(&labels, annotations)
        })
        .collect();
    got.sort();
    want.sort();
    if got == want {
        return Ok(());
    }
    let show = |list: &[String]| {
        if list.is_empty() {
            "    none".to_owned()
        } else {
            list.join("\n")
        }
    };
    let (at, name) = (minutes(case.eval_time), &case.alert_name);
    Err(format!(
        "{name} at {at}:\n  expected\n{}\n  got\n{}",
        show(&want),
        show(&got)
    ))
}

fn alert_text(labels: &Labels, annotations: &BTreeMap<String, String>) -> String {
    let annotations: Vec<String> = annotations.iter().map(|(n, v)| format!("{n}={v:?}")).collect();
    format!("    labels {labels} annotations {{{}}}", annotations.join(", "))
}

pub fn expected(sample: &ExpectedSample) -> Result<(Labels, f64), String> {
    let labels = if sample.labels.trim().is_empty() {
        Labels::empty()
    } else {
        parse_metric(&sample.labels).map_err(|e| e.to_string())?
    };
    Ok((labels, sample.value))
}

/// Bit for bit, or to a millionth part where the file allows it.
pub fn same(a: f64, b: f64, fuzzy: bool) -> bool {
    if a.is_nan() || b.is_nan() {
        return a.is_nan() && b.is_nan();
    }
    a == b || (fuzzy && (a - b).abs() <= 1e-6 * a.abs().max(b.abs()))
}

pub fn list(samples: &[(Labels, f64)]) -> String {
    if samples.is_empty() {
        return "nothing".to_owned();
    }
    let texts: Vec<String> = samples
        .iter()
        .map(|(labels, value)| format!("{labels} {}", model::number::General(*value)))
        .collect();
    texts.join(", ")
}

pub fn minutes(time: Millis) -> String {
    model::time::DurationText(time).to_string()
}
