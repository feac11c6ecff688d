//! Where rules and evidence come from: files, pages, an API.

use std::path::PathBuf;

use anyhow::Context as _;
use model::{Kind, Millis};
use prove::{Evidence, Facts, Finding, Interval, Origin, Reason, RuleText, Verdict};
use serde_json::Value;

use crate::command::api::{Api, labels, seconds};
use crate::command::{input, output};
use crate::process::shipped::RULE_FILES;

/// What counts as now: a series without a sample for longer is of the past.
const PRESENT: Millis = 3_600_000;

/// How far back a series of the past is looked for.
const PAST: Millis = 7 * 86_400_000;

/// Series of one metric asked for.
const SERIES_MAX: usize = 2_000;

/// The rules to judge, and whether a file could not be read.
pub fn rules(files: &[PathBuf], api: Option<&Api>) -> anyhow::Result<(Vec<RuleText>, bool)> {
    let mut rules = Vec::new();
    if files.is_empty() {
        match api {
            Some(api) => rules = loaded(api)?,
            None => {
                for (name, text) in RULE_FILES {
                    rules.extend(prove::rules_of(&format!("shipped:{name}"), text)?);
                }
            }
        }
        return Ok((rules, false));
    }
    let mut is_unread = false;
    for file in files {
        let name = file.display().to_string();
        let text =
            input::bytes(file).and_then(|bytes| String::from_utf8(bytes).with_context(|| format!("{name}: not UTF-8")));
        let found = text.and_then(|text| Ok(prove::rules_of(&name, &text)?));
        match found {
            Ok(found) => rules.extend(found),
            Err(error) => {
                is_unread = true;
                output::remark(format_args!("{error:#}"));
            }
        }
    }
    Ok((rules, is_unread))
}

/// The rules that a server has loaded.
fn loaded(api: &Api) -> anyhow::Result<Vec<RuleText>> {
    let data = api.get("/api/v1/rules", &[("exclude_alerts", "true".to_owned())])?;
    let mut rules = Vec::new();
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let millis = |value: &Value| (value.as_f64().unwrap_or(0.0) * 1000.0) as Millis;
    for group in data["groups"].as_array().into_iter().flatten() {
        for rule in group["rules"].as_array().into_iter().flatten() {
            let pairs = rule["labels"].as_object().into_iter().flatten();
            rules.push(RuleText {
                file: text(&group["file"]),
                group: text(&group["name"]),
                interval: Some(millis(&group["interval"])).filter(|interval| *interval > 0),
                name: text(&rule["name"]),
                is_alert: rule["type"] == "alerting",
                expr: text(&rule["query"]),
                labels: pairs.map(|(n, v)| (n.clone(), text(v))).collect(),
                hold: millis(&rule["duration"]),
            });
        }
    }
    Ok(rules)
}

/// Evidence from saved pages.
pub fn read(pages: &[PathBuf]) -> anyhow::Result<Evidence> {
    let mut evidence = Evidence::new(Origin::Pages);
    for page in pages {
        let name = page.display().to_string();
        evidence.add_page(&name, &input::bytes(page)?)?;
    }
    Ok(evidence)
}

/// Evidence from a server: the series of the metrics that the rules read, their types, the scrape interval.
pub fn ask(api: &Api, rules: &[RuleText], facts: &Facts) -> anyhow::Result<Evidence> {
    let mut evidence = Evidence::new(if api.is_hub { Origin::Hub } else { Origin::Store });
    let span = |back: Millis| [("start", seconds(api.now - back)), ("end", seconds(api.now))];
    let names = api.get("/api/v1/label/__name__/values", &span(PRESENT))?;
    let names: Vec<&str> = names
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for name in &names {
        evidence.add_name(name);
    }
    for metric in prove::metrics_of(rules, facts) {
        series(api, &metric, &mut evidence)?;
    }
    match api.get("/api/v1/metadata", &[]) {
        Ok(data) => {
            for (name, rows) in data.as_object().into_iter().flatten() {
                evidence.set_kind(name, kind(rows[0]["type"].as_str().unwrap_or("")));
            }
        }
        Err(error) => output::remark(format_args!("types of metrics are not known: {error:#}")),
    }
    evidence.interval = scrape_interval(api);
    let collectors = api.instant("watchfire_collector_state == 1").unwrap_or_default();
    for (labels, _) in collectors {
        let state = labels.get("state").unwrap_or("");
        if !matches!(state, "present" | "") {
            let collector = labels.get("collector").unwrap_or("").to_owned();
            evidence.collectors.push((collector, state.to_owned()));
        }
    }
    Ok(evidence)
}

/// The series of one metric: those of now with their values, else those of the last days.
fn series(api: &Api, metric: &str, evidence: &mut Evidence) -> anyhow::Result<()> {
    let selector = format!("{{__name__={}}}", model::text::quote(metric));
    let now = api.instant(&selector)?;
    for (labels, value) in now.iter().take(SERIES_MAX) {
        let labels = labels.with(model::METRIC_NAME, metric);
        evidence.add_series(&labels, (!value.is_nan()).then(|| Interval::one(*value)));
    }
    if !now.is_empty() {
        return Ok(());
    }
    for back in [PRESENT, PAST] {
        let form = [
            ("match[]", selector.clone()),
            ("start", seconds(api.now - back)),
            ("end", seconds(api.now)),
            ("limit", SERIES_MAX.to_string()),
        ];
        let found = api.post("/api/v1/series", &form)?;
        let found = found.as_array().map_or(&[][..], Vec::as_slice);
        for row in found.iter().take(SERIES_MAX) {
            let labels = labels(row).with(model::METRIC_NAME, metric);
            if back == PRESENT {
                evidence.add_series(&labels, None);
            } else {
                evidence.add_past_series(&labels);
            }
        }
        if !found.is_empty() {
            return Ok(());
        }
    }
    Ok(())
}

/// The shortest interval among the targets, where the server tells it.
fn scrape_interval(api: &Api) -> Option<Millis> {
    let data = api.get("/api/v1/targets", &[("state", "active".to_owned())]).ok()?;
    let targets = data["activeTargets"].as_array()?;
    let intervals = targets
        .iter()
        .filter_map(|t| model::time::parse_duration(t["scrapeInterval"].as_str()?).ok());
    intervals.filter(|interval| *interval > 0).min()
}

fn kind(word: &str) -> Kind {
    match word {
        "counter" => Kind::Counter,
        "gauge" => Kind::Gauge,
        "histogram" => Kind::Histogram,
        "gaugehistogram" => Kind::GaugeHistogram,
        "summary" => Kind::Summary,
        "info" => Kind::Info,
        "stateset" => Kind::StateSet,
        _ => Kind::Unknown,
    }
}

/// Alerts that a drill fired and a receiver took are proven, unless they cannot fire any longer.
pub fn add_drills(api: &Api, findings: &mut [Finding]) {
    let Ok(passed) = api.get("/api/watchfire/v1/drills/passed", &[]) else {
        return;
    };
    for row in passed.as_array().into_iter().flatten() {
        let (alert, expr) = (row["alert"].as_str().unwrap_or(""), row["expr"].as_str().unwrap_or(""));
        for finding in findings.iter_mut().filter(|f| f.alert == alert && f.expr == expr) {
            if finding.verdict == Verdict::CanFire || finding.verdict == Verdict::Unknown {
                finding.verdict = Verdict::Proven;
                let receiver = row["receiver"].as_str().unwrap_or("");
                let at = row["at"].as_str().unwrap_or("");
                let reason = Reason::whole(
                    "drilled",
                    format!("a drill fired it, and receiver {receiver:?} took the message, at {at}"),
                    "",
                );
                finding.reasons.insert(0, reason);
            }
        }
    }
}
