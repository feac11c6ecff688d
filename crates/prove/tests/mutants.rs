//! The shipped pack and its mutants: changes that kill a rule by construction must be found, changes that do not must not be called dead.
//!
//! What exists is what the drills bring in: every series of every scenario.

#![allow(clippy::unwrap_used, reason = "a test fails where it stands")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use model::{Kind, METRIC_NAME};
use promql::ast::{BinaryOp, Expr, ExprKind};
use prove::{Evidence, Facts, Interval, Origin, RuleText, Verdict};

/// Ends of names, and names, of counters.
const COUNTED: &[&str] = &[
    "_total",
    "_bucket",
    "_count",
    "_sum",
    "_TOTAL",
    "_COUNTER",
    "_failure",
    "_success",
    "_us",
    "_media_errors",
];

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/rules")
}

fn pack() -> Vec<RuleText> {
    let mut rules = Vec::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".yml") && !name.contains("_test") && !name.contains("_drill") {
            rules.extend(prove::rules_of(&name, &support::read(&path)).unwrap());
        }
    }
    rules
}

/// Every series of every scenario, with the values it takes there.
fn evidence() -> Evidence {
    let mut evidence = Evidence::new(Origin::Store);
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_string_lossy().ends_with("_drill.yml") {
            continue;
        }
        for drill in rules::drill::read("drill", &support::read(&path)).unwrap() {
            for source in [&drill.sick, &drill.healthy] {
                for (labels, samples) in drill.points(source, 1_780_000_000_000) {
                    let values = samples
                        .iter()
                        .map(|(_, v)| Interval::new(*v, *v))
                        .filter(|v| v.lo.is_finite());
                    evidence.add_series(&labels, values.reduce(Interval::hull));
                    let name = labels.get(METRIC_NAME).unwrap();
                    let is_counter = COUNTED.iter().any(|end| name.ends_with(end));
                    evidence.set_kind(name, if is_counter { Kind::Counter } else { Kind::Gauge });
                }
            }
        }
    }
    evidence.interval = Some(15_000);
    evidence
}

/// Places in an expression.
#[derive(Default)]
struct Places {
    /// Names of selectors: where, and what.
    names: Vec<(usize, usize, String)>,
    /// Windows of functions that need two samples.
    windows: Vec<(usize, usize)>,
    /// Selectors without a window, with their places.
    instants: Vec<(usize, usize, String)>,
    /// Whether something makes a value of nothing.
    has_absent: bool,
}

#[expect(clippy::only_used_in_recursion, reason = "the text stands beside the tree")]
fn places(expr: &Expr, text: &str, out: &mut Places) {
    match &expr.kind {
        ExprKind::Vector(selector) | ExprKind::Matrix { selector, .. } => {
            let end = expr.span.start + selector.name.len();
            out.names.push((expr.span.start, end, selector.name.clone()));
            if let ExprKind::Matrix { range, .. } = &expr.kind {
                out.windows.push((range.span.start, range.span.end));
            } else {
                out.instants
                    .push((expr.span.start, expr.span.end, selector.name.clone()));
            }
        }
        ExprKind::Call { function, args } => {
            out.has_absent |= function.name.starts_with("absent") || function.name == "vector";
            let needs_two = ["rate", "increase", "predict_linear"].contains(&function.name);
            let before = out.windows.len();
            args.iter().for_each(|arg| places(arg, text, out));
            if !needs_two {
                out.windows.truncate(before);
            }
        }
        ExprKind::Aggregate(aggregate) => places(&aggregate.expr, text, out),
        ExprKind::Binary(binary) => {
            places(&binary.lhs, text, out);
            places(&binary.rhs, text, out);
        }
        ExprKind::Subquery(subquery) => places(&subquery.expr, text, out),
        ExprKind::Unary { expr, .. } | ExprKind::Paren(expr) => places(expr, text, out),
        ExprKind::Number { .. } | ExprKind::Text(_) => {}
    }
}

/// The text with each of these places replaced.
fn replaced(text: &str, mut at: Vec<(usize, usize, String)>) -> String {
    at.sort_by_key(|(start, ..)| std::cmp::Reverse(*start));
    at.dedup();
    let mut text = text.to_owned();
    for (start, end, new) in at {
        text.replace_range(start..end, &new);
    }
    text
}

/// Mutants of one rule that can never fire: kind and expression.
fn dead(rule: &RuleText, evidence: &Evidence, facts: &Facts) -> Vec<(&'static str, String)> {
    let text = rule.expr.as_str();
    let expr = promql::parse(text).unwrap();
    let mut found = Places::default();
    places(&expr, text, &mut found);
    if found.names.is_empty() || found.has_absent {
        return Vec::new();
    }
    let mut out = Vec::new();
    let each = |f: &dyn Fn(&str) -> String| {
        found
            .names
            .iter()
            .map(|(s, e, name)| (*s, *e, f(name)))
            .collect::<Vec<_>>()
    };
    out.push(("renamed", replaced(text, each(&|name| format!("{name}_gone")))));
    out.push((
        "misspelt",
        replaced(text, each(&|name| name.replacen(['e', 'E'], "3", 1))),
    ));
    out.push(("no PromQL", format!("{text}%")));
    let with_label = found.names.iter().map(|(start, end, name)| {
        let has_braces = text[*end..].starts_with('{');
        let more = "no_such_label=\"x\"";
        match has_braces {
            true => (*start, *end + 1, format!("{name}{{{more},")),
            false => (*start, *end, format!("{name}{{{more}}}")),
        }
    });
    let with_label: Vec<_> = with_label.collect();
    out.push(("label nobody has", replaced(text, with_label)));
    if !found.windows.is_empty() && found.instants.is_empty() {
        let short = found.windows.iter().map(|(s, e)| (*s, *e, "10s".to_owned())).collect();
        out.push(("window of less than two scrapes", replaced(text, short)));
    }
    for (start, end, name) in &found.instants {
        let selector = &text[*start..*end];
        if evidence.kind(name) == Some(Kind::Gauge) {
            out.push(("rate of a gauge", format!("rate({selector}[5m]) > 0.5")));
            out.push(("increase of a gauge", format!("increase({selector}[10m]) > 0")));
        }
        out.push((
            "conditions that exclude each other",
            format!("{selector} > 90 and {selector} < 80"),
        ));
        out.push(("count that is nothing", format!("count({selector}) == 0")));
        if let Some(unit) = facts.unit(name).filter(|unit| unit.range.hi.is_finite()) {
            let above = unit.range.hi * 10.0 + 1.0;
            out.push(("above every value", format!("{selector} > {above}")));
            out.push((
                "above every value, averaged",
                format!("avg by (instance) ({selector}) >= {above}"),
            ));
            out.push((
                "percent for a ratio",
                format!("avg_over_time({selector}[5m]) * 1 > {above}"),
            ));
        }
        if name.starts_with("DCGM_") {
            out.push((
                "labels that share nothing",
                format!("({selector} > 1) and vllm:num_requests_waiting > 0"),
            ));
            out.push(("labels that share nothing", format!("{selector} / tgi_queue_size > 1")));
        }
    }
    for (start, end, name) in &found.names {
        if text[*end..].starts_with('{') || evidence.kind(name) != Some(Kind::Counter) {
            continue;
        }
        let _ = start;
        out.push(("a rate below zero", format!("rate({name}[5m]) < 0")));
        if name.ends_with("_bucket") {
            out.push((
                "quantile without le",
                format!("histogram_quantile(0.9, sum by (instance) (rate({name}[5m]))) > 1"),
            ));
            out.push((
                "quantile above the top bucket",
                format!("histogram_quantile(0.9, sum by (le, instance) (rate({name}[5m]))) > 1e6"),
            ));
        }
    }
    out
}

/// Changes that leave a rule able to fire.
fn benign(rule: &RuleText) -> Vec<(&'static str, String)> {
    let text = rule.expr.as_str();
    let expr = promql::parse(text).unwrap();
    let mut found = Places::default();
    places(&expr, text, &mut found);
    let mut out = vec![
        ("as it is", text.to_owned()),
        ("in brackets", format!("({text})")),
        ("or what nobody has", format!("({text}) or (no_such_metric > 1)")),
        ("unless what nobody has", format!("({text}) unless no_such_metric")),
        ("for each instance", format!("max by (instance) ({text})")),
        ("how many", format!("count({text}) > 0")),
        ("over some time", format!("max_over_time(({text})[10m:1m])")),
    ];
    let longer = found.windows.iter().map(|(s, e)| (*s, *e, "30m".to_owned())).collect();
    out.push(("longer windows", replaced(text, longer)));
    let matched = found
        .names
        .iter()
        .map(|(start, end, name)| match text[*end..].starts_with('{') {
            true => (*start, *end + 1, format!("{name}{{instance=~\".+\",")),
            false => (*start, *end, format!("{name}{{instance=~\".+\"}}")),
        });
    let matched: Vec<_> = matched.collect();
    out.push(("of any instance", replaced(text, matched)));
    if let ExprKind::Binary(binary) = &expr.kind
        && binary.op.is_comparison()
        && let ExprKind::Number { value, .. } = binary.rhs.kind
        && matches!(binary.op, BinaryOp::Gt | BinaryOp::Lt)
    {
        let nearer = if binary.op == BinaryOp::Gt {
            value * 0.9
        } else {
            value * 1.1
        };
        let at = (binary.rhs.span.start, binary.rhs.span.end, nearer.to_string());
        out.push(("a threshold a little nearer", replaced(text, vec![at])));
    }
    out
}

fn verdict(rule: &RuleText, expr: String, evidence: &Evidence, facts: &Facts) -> Verdict {
    let mutant = RuleText { expr, ..rule.clone() };
    prove::prove(&[mutant], evidence, facts)[0].verdict
}

#[test]
fn mutants_that_are_dead_are_found_and_those_that_live_are_not_called_dead() {
    let (evidence, facts) = (evidence(), Facts::shipped().unwrap());
    let (mut dead_count, mut missed) = (0, BTreeMap::<&str, Vec<String>>::new());
    let (mut live_count, mut wronged) = (0, BTreeMap::<&str, Vec<String>>::new());
    for rule in pack().iter().filter(|rule| rule.is_alert) {
        for (kind, expr) in dead(rule, &evidence, &facts) {
            dead_count += 1;
            if verdict(rule, expr.clone(), &evidence, &facts) != Verdict::CannotFire {
                missed.entry(kind).or_default().push(format!("{}: {expr}", rule.name));
            }
        }
        for (kind, expr) in benign(rule) {
            live_count += 1;
            if verdict(rule, expr.clone(), &evidence, &facts) == Verdict::CannotFire {
                wronged.entry(kind).or_default().push(format!("{}: {expr}", rule.name));
            }
        }
    }
    let sum = |map: &BTreeMap<&str, Vec<String>>| map.values().map(Vec::len).sum::<usize>();
    println!(
        "dead mutants {dead_count}, missed {}; live ones {live_count}, called dead {}",
        sum(&missed),
        sum(&wronged)
    );
    assert!(dead_count > 500 && live_count > 500, "{dead_count}, {live_count}");
    assert!(sum(&missed) * 100 <= dead_count * 5, "missed: {missed:#?}");
    assert!(sum(&wronged) * 100 <= live_count * 2, "called dead: {wronged:#?}");
}

#[test]
fn the_pack_can_fire_on_the_series_of_its_own_drills() {
    let (evidence, facts) = (evidence(), Facts::shipped().unwrap());
    for finding in prove::prove(&pack(), &evidence, &facts) {
        assert_eq!(finding.verdict, Verdict::CanFire, "{finding:#?}");
    }
}

#[test]
fn the_pack_has_a_dead_man_and_repeats_nothing() {
    let pack = pack();
    assert_eq!(prove::remarks(&pack), []);
    for finding in prove::prove(&pack, &evidence(), &Facts::shipped().unwrap()) {
        let repeated = finding
            .reasons
            .iter()
            .find(|r| r.code == "duplicate" || r.code == "contradictory");
        assert_eq!(repeated, None, "{}", finding.alert);
    }
}
