//! The same query with its selectors fixed in time by `@`, so that it may be asked at any moment.

use model::Millis;

use crate::ast::{At, Expr, ExprKind};

/// The query fixed at `time`; `None` when a function in it tells the time.
pub(super) fn at(expr: &Expr, time: Millis) -> Option<Expr> {
    let mut fixed = expr.clone();
    fix(&mut fixed, At::Time(time)).then_some(fixed)
}

/// Fixes every selector and subquery that is not inside a fixed subquery; `false` when that changes the
/// meaning.
fn fix(expr: &mut Expr, at: At) -> bool {
    match &mut expr.kind {
        ExprKind::Number { .. } | ExprKind::Text(_) => true,
        ExprKind::Vector(selector) | ExprKind::Matrix { selector, .. } => {
            selector.at.get_or_insert(at);
            true
        }
        ExprKind::Subquery(subquery) => {
            subquery.at.get_or_insert(at);
            tells_no_time(&subquery.expr)
        }
        ExprKind::Call { function, args } => {
            !is_time_function(function.name) && args.iter_mut().all(|arg| fix(arg, at))
        }
        ExprKind::Aggregate(aggregate) => {
            fix(&mut aggregate.expr, at) && aggregate.param.as_mut().is_none_or(|p| fix(p, at))
        }
        ExprKind::Binary(_) => {
            let mut left = expr;
            while matches!(left.kind, ExprKind::Binary(_)) {
                let ExprKind::Binary(binary) = &mut left.kind else {
                    return false;
                };
                if !fix(&mut binary.rhs, at) {
                    return false;
                }
                left = &mut binary.lhs;
            }
            fix(left, at)
        }
        ExprKind::Unary { expr, .. } => fix(expr, at),
        ExprKind::Paren(inner) => fix(inner, at),
    }
}

fn tells_no_time(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Number { .. } | ExprKind::Text(_) | ExprKind::Vector(_) | ExprKind::Matrix { .. } => true,
        ExprKind::Subquery(subquery) => tells_no_time(&subquery.expr),
        ExprKind::Call { function, args } => !is_time_function(function.name) && args.iter().all(tells_no_time),
        ExprKind::Aggregate(a) => tells_no_time(&a.expr) && a.param.as_ref().is_none_or(tells_no_time),
        ExprKind::Binary(_) => {
            let (links, first) = expr.chain();
            tells_no_time(first) && links.iter().all(|(link, _)| tells_no_time(&link.rhs))
        }
        ExprKind::Unary { expr, .. } => tells_no_time(expr),
        ExprKind::Paren(inner) => tells_no_time(inner),
    }
}

fn is_time_function(name: &str) -> bool {
    matches!(
        name,
        "days_in_month"
            | "day_of_month"
            | "day_of_week"
            | "day_of_year"
            | "end"
            | "hour"
            | "minute"
            | "month"
            | "predict_linear"
            | "range"
            | "start"
            | "step"
            | "time"
            | "timestamp"
            | "year"
    )
}
