//! What a rule stands on: the selections in its expression whose absence would make its alerts vanish.

use model::{MatchOp, Matcher, Millis};
use promql::ast::{BinaryOp, DurationExpr, DurationKind, Expr, ExprKind, Selector};

use super::health::is_health;
use crate::group::{ALERTS, ALERTS_FOR_STATE};

/// The most inputs of a rule that are looked at.
const INPUTS_MAX: usize = 16;

/// The longest text of one input, in bytes: what is longer is no selection but a program.
const TEXT_MAX: usize = 4096;

/// The window of a range whose length is arithmetic.
const WINDOW_DEFAULT: Millis = 300_000;

/// One selection: an instant selector, or a function over a range.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    expr: Expr,
    /// How far back it looks beyond the newest sample; 0 for an instant selector.
    pub window: Millis,
}

impl Input {
    /// The selection for one instance alone; an empty name asks for series without one.
    #[must_use]
    pub fn of_instance(&self, instance: &str) -> String {
        let mut expr = self.expr.clone();
        selectors_mut(&mut expr, &mut |selector| {
            if let Ok(matcher) = Matcher::new(MatchOp::Equal, "instance", instance) {
                selector.matchers.insert(0, matcher);
            }
        });
        expr.to_string()
    }
}

/// The inputs of an expression, in the order written; none of one that does not parse.
#[must_use]
pub fn of(expr: &str) -> Vec<Input> {
    let mut found = Vec::new();
    if let Ok(tree) = promql::parse(expr) {
        collect(&tree, &mut found);
    }
    found.truncate(INPUTS_MAX);
    found
}

fn collect(expr: &Expr, found: &mut Vec<Input>) {
    if found.len() >= INPUTS_MAX {
        return;
    }
    match &expr.kind {
        ExprKind::Number { .. } | ExprKind::Text(_) | ExprKind::Matrix { .. } => {}
        ExprKind::Vector(selector) => {
            if speaks_of_a_machine(selector) {
                add(expr, 0, found);
            }
        }
        ExprKind::Subquery(subquery) => collect(&subquery.expr, found),
        ExprKind::Call { function, args } => match (function.name, window(args)) {
            ("absent" | "absent_over_time", _) => {}
            (_, Some(window)) => {
                if any_selector(expr) {
                    add(expr, window, found);
                }
            }
            (_, None) => args.iter().for_each(|arg| collect(arg, found)),
        },
        ExprKind::Aggregate(aggregate) => collect(&aggregate.expr, found),
        ExprKind::Binary(_) => {
            // The left side may be a chain of thousands.
            let mut rest = expr;
            let mut sides = Vec::new();
            while let ExprKind::Binary(binary) = &rest.kind {
                // What `unless` takes away was there: its absence makes alerts come, not go.
                if binary.op != BinaryOp::Unless && sides.len() < INPUTS_MAX {
                    sides.push(&binary.rhs);
                }
                rest = &binary.lhs;
            }
            collect(rest, found);
            sides.iter().rev().for_each(|side| collect(side, found));
        }
        ExprKind::Unary { expr, .. } | ExprKind::Paren(expr) => collect(expr, found),
    }
}

fn add(expr: &Expr, window: Millis, found: &mut Vec<Input>) {
    let input = Input {
        expr: expr.clone(),
        window,
    };
    let is_new = |text: &str| found.iter().all(|other: &Input| other.expr.to_string() != text);
    if expr.span.end - expr.span.start <= TEXT_MAX && is_new(&expr.to_string()) {
        found.push(input);
    }
}

/// Whether a series of it comes from a machine and goes when the machine does.
fn speaks_of_a_machine(selector: &Selector) -> bool {
    let named = |m: &&Matcher| m.name == model::METRIC_NAME && m.op == MatchOp::Equal;
    let name = selector.matchers.iter().find(named).map_or("", |m| m.value.as_str());
    !is_health(name) && name != ALERTS && name != ALERTS_FOR_STATE && selector.at.is_none()
}

/// How far the ranges among the arguments reach; `None` where there is none.
fn window(args: &[Expr]) -> Option<Millis> {
    args.iter().find_map(|arg| match &arg.kind {
        ExprKind::Matrix { range, .. } => Some(length(range)),
        ExprKind::Subquery(subquery) => {
            let inner = match &subquery.expr.kind {
                ExprKind::Call { args, .. } => window(args).unwrap_or(0),
                _ => 0,
            };
            Some(length(&subquery.range).saturating_add(inner))
        }
        ExprKind::Paren(inner) => window(std::slice::from_ref(inner)),
        _ => None,
    })
}

fn length(range: &DurationExpr) -> Millis {
    match range.kind {
        DurationKind::Literal { millis, .. } => millis.max(0),
        _ => WINDOW_DEFAULT,
    }
}

fn any_selector(expr: &Expr) -> bool {
    let mut any = false;
    selectors_mut(&mut expr.clone(), &mut |selector| any |= speaks_of_a_machine(selector));
    any
}

/// Visits every selector; for texts within [`TEXT_MAX`] only, as it recurses.
fn selectors_mut(expr: &mut Expr, visit: &mut dyn FnMut(&mut Selector)) {
    match &mut expr.kind {
        ExprKind::Number { .. } | ExprKind::Text(_) => {}
        ExprKind::Vector(selector) | ExprKind::Matrix { selector, .. } => visit(selector),
        ExprKind::Subquery(subquery) => selectors_mut(&mut subquery.expr, visit),
        ExprKind::Call { args, .. } => args.iter_mut().for_each(|arg| selectors_mut(arg, visit)),
        ExprKind::Aggregate(aggregate) => selectors_mut(&mut aggregate.expr, visit),
        ExprKind::Binary(binary) => {
            selectors_mut(&mut binary.lhs, visit);
            selectors_mut(&mut binary.rhs, visit);
        }
        ExprKind::Unary { expr, .. } | ExprKind::Paren(expr) => selectors_mut(expr, visit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expr: &str, want: &[&str]) {
        let found: Vec<String> = of(expr).iter().map(|input| input.of_instance("a")).collect();
        assert_eq!(found, want, "{expr}");
    }

    #[test]
    fn every_selection_is_an_input() {
        check("temperature > 80", &[r#"temperature{instance="a"}"#]);
        check(
            "a and on (gpu) b{x=\"1\"}",
            &[r#"a{instance="a"}"#, r#"b{instance="a",x="1"}"#],
        );
        check(
            "sum by (le) (rate(x_bucket[5m])) > 1",
            &[r#"rate(x_bucket{instance="a"}[5m])"#],
        );
        check("a / (b + a)", &[r#"a{instance="a"}"#, r#"b{instance="a"}"#]);
        check(
            "max_over_time(rate(x[1m])[5m:30s])",
            &[r#"max_over_time(rate(x{instance="a"}[1m])[5m:30s])"#],
        );
    }

    #[test]
    fn what_speaks_of_missing_data_is_none() {
        check("up == 0", &[]);
        check("avg_over_time(up[5m]) < 0.9", &[]);
        check("absent(temperature)", &[]);
        check("absent_over_time(temperature[5m])", &[]);
        check("ALERTS{alertstate=\"firing\"}", &[]);
        check("a unless on (instance) b", &[r#"a{instance="a"}"#]);
        check("watchfire_gpu_up == 0", &[]);
        check("vector(1)", &[]);
        check("time() > 1", &[]);
    }

    #[test]
    fn windows_add_up() {
        assert_eq!(of("max_over_time(rate(x[1m])[5m:])")[0].window, 360_000);
        assert_eq!(of("x")[0].window, 0);
    }
}
