//! From rule files and evidence to findings, one for each alert.

use config::relabel::NameScheme;
use config::rules::{RuleFile, RuleKind};
use hashbrown::{HashMap, HashSet};
use model::{METRIC_NAME, Millis};
use promql::ast::{BinaryOp, Expr, ExprKind};

use crate::error::Error;
use crate::evidence::Evidence;
use crate::facts::Facts;
use crate::judge::{Found, Judge, Operand, Recorded};
use crate::verdict::{Finding, Reason, Verdict};

/// A rule as its file gives it, or as a hub tells it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RuleText {
    /// The file.
    pub file: String,
    /// The group.
    pub group: String,
    /// The group's interval, where it has one of its own.
    pub interval: Option<Millis>,
    /// The alert's name, or the recorded series'.
    pub name: String,
    /// Whether it is an alert.
    pub is_alert: bool,
    /// The expression.
    pub expr: String,
    /// Labels, those of the group below its own.
    pub labels: Vec<(String, String)>,
    /// How long the expression must hold.
    pub hold: Millis,
}

/// The rules of a file's text.
///
/// # Errors
///
/// The file is no rule file. An expression that does not parse is a finding, not an error.
pub fn rules_of(file: &str, text: &str) -> Result<Vec<RuleText>, Error> {
    let parsed = RuleFile::parse(file, text, NameScheme::Utf8).map_err(Error::File)?;
    let mut rules = Vec::new();
    for group in &parsed.groups {
        for rule in &group.rules {
            let mut labels = group.labels.clone();
            labels.extend(rule.labels.clone());
            let (is_alert, hold) = match &rule.kind {
                RuleKind::Alert(alert) => (true, alert.hold),
                RuleKind::Record(_) => (false, 0),
            };
            rules.push(RuleText {
                file: file.to_owned(),
                group: group.name.clone(),
                interval: group.interval,
                name: rule.name().to_owned(),
                is_alert,
                expr: rule.expr.clone(),
                labels: labels.into_iter().collect(),
                hold,
            });
        }
    }
    Ok(rules)
}

/// The names of metrics that the rules read, those that a judgement looks at beside them included.
#[must_use]
pub fn metrics_of(rules: &[RuleText], facts: &Facts) -> Vec<String> {
    let mut names = HashSet::new();
    for rule in rules {
        if let Ok(expr) = promql::parse(&rule.expr) {
            expr.each_selector(&mut |selector| {
                let matchers = selector.matchers.iter().filter(|m| m.name == METRIC_NAME);
                names.extend(matchers.filter_map(|m| m.set()).flatten().cloned());
            });
        }
    }
    let mut beside: HashSet<String> = HashSet::new();
    for name in &names {
        beside.extend(facts.neighbours(name).map(str::to_owned));
        beside.extend(facts.former(name).map(|(former, _)| former.to_owned()));
    }
    names.extend(beside);
    let mut names: Vec<String> = names.into_iter().collect();
    names.sort();
    names
}

/// Judges every alert among the rules; recording rules among them are followed.
#[must_use]
pub fn prove(rules: &[RuleText], evidence: &Evidence, facts: &Facts) -> Vec<Finding> {
    let mut recorded: HashMap<String, Vec<Recorded>> = HashMap::new();
    for rule in rules.iter().filter(|rule| !rule.is_alert) {
        if let Ok(expr) = promql::parse(&rule.expr) {
            recorded.entry_ref(rule.name.as_str()).or_default().push(Recorded {
                expr,
                text: rule.expr.clone(),
                labels: rule.labels.clone(),
                interval: rule.interval,
            });
        }
    }
    let alerts: HashSet<String> = rules.iter().filter(|r| r.is_alert).map(|r| r.name.clone()).collect();
    let mut findings: Vec<Finding> = Vec::new();
    let judged = rules.iter().filter(|rule| rule.is_alert);
    for rule in judged.clone() {
        findings.push(judge(rule, evidence, facts, &recorded, &alerts));
    }
    let judged: Vec<&RuleText> = judged.collect();
    for (at, finding) in findings.iter_mut().enumerate() {
        finding.reasons.extend(beside(&judged, at));
    }
    findings
}

fn judge(
    rule: &RuleText,
    evidence: &Evidence,
    facts: &Facts,
    recorded: &HashMap<String, Vec<Recorded>>,
    alerts: &HashSet<String>,
) -> Finding {
    let (verdict, reasons) = match promql::parse(&rule.expr) {
        Err(error) => {
            let reason = Reason::at(
                error.span(),
                "does_not_parse",
                format!("this is no PromQL: {}", error.message()),
                "write an expression; a percentage is a plain number",
            );
            (Verdict::CannotFire, vec![reason])
        }
        Ok(expr) => {
            let judge = Judge {
                evidence,
                facts,
                recorded,
                alerts,
                depth: 0,
                text: &rule.expr,
            };
            weigh(&judge, &expr)
        }
    };
    Finding {
        file: rule.file.clone(),
        group: rule.group.clone(),
        alert: rule.name.clone(),
        expr: rule.expr.clone(),
        verdict,
        reasons,
    }
}

/// The word for what an expression can give.
fn weigh(judge: &Judge<'_>, expr: &Expr) -> (Verdict, Vec<Reason>) {
    let mut found = match judge.eval(expr) {
        Operand::Vector(found) => found,
        // A number is always there, and so the alert always fires.
        Operand::Scalar(_, found) => {
            let notes = found.notes;
            return (Verdict::CanFire, notes);
        }
        Operand::Text => Found::default(),
    };
    if is_bool(expr) && !found.lines.is_empty() {
        found.note(Reason::at(
            expr.span,
            "bool_always_fires",
            "a comparison with `bool` gives 0 in place of nothing, and an alert fires at 0 as well",
            "leave out `bool`",
        ));
    }
    gauge_like(judge, expr, &mut found);
    let nothing_known = !evidence_at_all(judge.evidence);
    let verdict = match () {
        () if found.lines.iter().any(|line| !line.guess) => Verdict::CanFire,
        () if !found.lines.is_empty() => Verdict::Unknown,
        () if nothing_known => Verdict::Unknown,
        () => Verdict::CannotFire,
    };
    let mut reasons = found.causes;
    if nothing_known && verdict == Verdict::Unknown {
        reasons = vec![Reason::whole(
            "no_evidence",
            "nothing is known to exist yet",
            "wait for the first scrapes",
        )];
    }
    reasons.append(&mut found.notes);
    (verdict, reasons)
}

fn evidence_at_all(evidence: &Evidence) -> bool {
    evidence.page_count() > 0 || evidence.names().next().is_some()
}

fn is_bool(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Paren(inner) => is_bool(inner),
        ExprKind::Binary(binary) => binary.return_bool,
        _ => false,
    }
}

/// A counter compared with a number that is no zero: it only grows, so the alert fires one day and never stops.
fn gauge_like(judge: &Judge<'_>, expr: &Expr, found: &mut Found) {
    let ExprKind::Binary(binary) = &unwrapped(expr).kind else {
        return;
    };
    let ExprKind::Vector(selector) = &unwrapped(&binary.lhs).kind else {
        return;
    };
    let is_number = matches!(unwrapped(&binary.rhs).kind, ExprKind::Number { .. });
    let is_above = matches!(binary.op, BinaryOp::Gt | BinaryOp::Ge);
    if is_number && is_above && judge.kind_of(&selector.name) == Some(model::Kind::Counter) {
        found.note(Reason::at(
            expr.span,
            "counter_as_gauge",
            format!(
                "`{}` is a counter: once above the threshold, the alert fires until the counter restarts",
                selector.name
            ),
            format!("use increase({}[…])", selector.name),
        ));
    }
}

fn unwrapped(expr: &Expr) -> &Expr {
    match &expr.kind {
        ExprKind::Paren(inner) => unwrapped(inner),
        _ => expr,
    }
}

/// What an alert has to do with the others.
fn beside(rules: &[&RuleText], at: usize) -> Vec<Reason> {
    let rule = rules[at];
    let mut reasons = Vec::new();
    let place = |other: &RuleText| format!("{} in group {} of {}", other.name, other.group, other.file);
    for (to, other) in rules.iter().enumerate() {
        if to == at {
            continue;
        }
        let same_expr = canonical(&rule.expr) == canonical(&other.expr);
        if same_expr && rule.labels == other.labels && rule.hold == other.hold {
            reasons.push(Reason::whole(
                "duplicate",
                format!("the same expression, labels and duration as {}", place(other)),
                "keep one of them",
            ));
        } else if rule.name == other.name && rule.labels == other.labels && opposite(&rule.expr, &other.expr) {
            reasons.push(Reason::whole(
                "contradictory",
                format!(
                    "fires exactly when {} does not, under the same name and labels",
                    place(other)
                ),
                "give them other names, or keep one",
            ));
        }
        if reasons.len() >= 4 {
            break;
        }
    }
    reasons
}

fn canonical(expr: &str) -> String {
    promql::parse(expr).map_or_else(|_| expr.to_owned(), |parsed| parsed.to_string())
}

/// Whether two expressions compare the same things the opposite way.
fn opposite(a: &str, b: &str) -> bool {
    let (Ok(a), Ok(b)) = (promql::parse(a), promql::parse(b)) else {
        return false;
    };
    let (ExprKind::Binary(a), ExprKind::Binary(b)) = (&unwrapped(&a).kind, &unwrapped(&b).kind) else {
        return false;
    };
    let against = match a.op {
        BinaryOp::Gt => BinaryOp::Le,
        BinaryOp::Ge => BinaryOp::Lt,
        BinaryOp::Lt => BinaryOp::Ge,
        BinaryOp::Le => BinaryOp::Gt,
        BinaryOp::Eq => BinaryOp::Ne,
        BinaryOp::Ne => BinaryOp::Eq,
        _ => return false,
    };
    b.op == against && a.lhs.to_string() == b.lhs.to_string() && a.rhs.to_string() == b.rhs.to_string()
}

/// What the set of rules lacks as a whole.
#[must_use]
pub fn remarks(rules: &[RuleText]) -> Vec<Reason> {
    let mut remarks = Vec::new();
    let alerts: Vec<&RuleText> = rules.iter().filter(|rule| rule.is_alert).collect();
    if alerts.is_empty() {
        return remarks;
    }
    let always = |rule: &&RuleText| {
        let expr = rule.expr.split_whitespace().collect::<String>();
        rule.hold == 0 && matches!(expr.as_str(), "vector(1)" | "1" | "vector(1)>0" | "vector(1)==1")
    };
    if !alerts.iter().any(always) {
        remarks.push(Reason::whole(
            "no_dead_man",
            "no alert fires all the time: if the way to people breaks, nobody is told",
            "add an alert with `expr: vector(1)` and a receiver that misses it",
        ));
    }
    let tells_targets = alerts.iter().any(|rule| {
        let mut found = false;
        if let Ok(expr) = promql::parse(&rule.expr) {
            expr.each_selector(&mut |selector| found |= selector.name == "up");
        }
        found || rule.expr.contains("absent")
    });
    if !tells_targets {
        remarks.push(Reason::whole(
            "no_target_down",
            "no alert looks at `up` or absent(): an exporter that dies makes every alert on it silent",
            "add `up == 0`",
        ));
    }
    remarks
}
