//! Duration arithmetic: `[2m * (10 + 5)]`, `offset -step()`.

use model::Millis;
use model::time::DURATION_MAX;

use crate::ast::{BinaryOp, DurationExpr, DurationKind};

/// What `step()` and `range()` stand for, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context {
    pub(super) step: Millis,
    pub(super) range: Millis,
}

/// The length of `expr` in milliseconds, above zero.
pub(super) fn length(expr: &DurationExpr, context: Context) -> Result<Millis, String> {
    let millis = resolve(expr, context)?;
    if millis <= 0 {
        return Err(at(expr, "duration must be greater than 0"));
    }
    Ok(millis)
}

/// The value of `expr` in milliseconds, which may be negative.
pub(super) fn resolve(expr: &DurationExpr, context: Context) -> Result<Millis, String> {
    if let DurationKind::Literal { millis, .. } = expr.kind {
        return Ok(millis);
    }
    let seconds = seconds(expr, context)?;
    if !seconds.is_finite() {
        return Err(at(expr, "duration is NaN or infinite"));
    }
    let millis = seconds * 1000.0;
    if millis.abs() > DURATION_MAX as f64 {
        return Err(at(expr, "duration is out of range"));
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the range is checked above; the fraction is dropped"
    )]
    Ok(millis as Millis)
}

fn seconds(expr: &DurationExpr, context: Context) -> Result<f64, String> {
    let of = |inner: &DurationExpr| seconds(inner, context);
    Ok(match &expr.kind {
        DurationKind::Literal { millis, .. } => *millis as f64 / 1000.0,
        DurationKind::Step => context.step as f64 / 1000.0,
        DurationKind::Range => context.range as f64 / 1000.0,
        DurationKind::Unary { minus, expr } => {
            let value = of(expr)?;
            if *minus { -value } else { value }
        }
        DurationKind::Paren(inner) => of(inner)?,
        DurationKind::Extreme { max: true, lhs, rhs } => of(lhs)?.max(of(rhs)?),
        DurationKind::Extreme { max: false, lhs, rhs } => of(lhs)?.min(of(rhs)?),
        DurationKind::Binary { op, lhs, rhs } => {
            let (a, b) = (of(lhs)?, of(rhs)?);
            match op {
                BinaryOp::Add => a + b,
                BinaryOp::Sub => a - b,
                BinaryOp::Mul => a * b,
                BinaryOp::Div if b == 0.0 => return Err(at(expr, "division by zero")),
                BinaryOp::Div => a / b,
                BinaryOp::Mod if b == 0.0 => return Err(at(expr, "modulo by zero")),
                BinaryOp::Mod => a % b,
                BinaryOp::Pow => a.powf(b),
                _ => return Err(at(expr, "unexpected duration expression operator")),
            }
        }
    })
}

fn at(expr: &DurationExpr, what: &str) -> String {
    format!("{}:{}: {what}", expr.span.start, expr.span.end)
}
