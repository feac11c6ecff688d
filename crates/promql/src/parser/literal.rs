//! Numbers, durations and quoted texts as operands.

use model::number::parse_float;
use model::text::quote;
use model::time::{DurationError, parse_duration};

use super::Parser;
use crate::ast::{Expr, ExprKind};
use crate::lexer::quoted::unquote;
use crate::token::{Token, TokenKind};

impl Parser<'_> {
    /// Takes a number or a duration; what has no value is noted and counts as 0.
    pub(super) fn number_literal(&mut self) -> Expr {
        let token = self.bump();
        let is_duration = token.kind == TokenKind::Duration;
        let value = self.seconds(token);
        Expr {
            kind: ExprKind::Number { value, is_duration },
            span: token.span,
        }
    }

    /// The value of a number or duration; a duration counts in seconds.
    pub(super) fn seconds(&mut self, token: Token) -> f64 {
        let text = token.text(self.text);
        let value = match token.kind {
            TokenKind::Duration => duration_seconds(text),
            _ => number(text),
        };
        value.unwrap_or_else(|message| {
            self.problem(token.span, message);
            0.0
        })
    }

    pub(super) fn text_literal(&mut self) -> Expr {
        let token = self.bump();
        Expr {
            kind: ExprKind::Text(unquote(token.text(self.text))),
            span: token.span,
        }
    }
}

/// `1e3`, `0x1F`, `0755` (octal), `1_000`, `Inf`.
fn number(text: &str) -> Result<f64, String> {
    let digits = text.replace('_', "");
    let error = |why: &str| {
        Err(format!(
            "error parsing number: strconv.ParseFloat: parsing {}: {why}",
            quote(text)
        ))
    };
    if text.ends_with('_') {
        return error("invalid syntax");
    }
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        return i64::from_str_radix(hex, 16).map_or_else(|_| error("invalid syntax"), |n| Ok(n as f64));
    }
    if digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|b| matches!(b, b'0'..=b'7')) {
        return i64::from_str_radix(&digits, 8).map_or_else(|_| error("value out of range"), |n| Ok(n as f64));
    }
    match parse_float(&digits) {
        Some(value) if value.is_infinite() && digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
            error("value out of range")
        }
        Some(value) => Ok(value),
        None => error("invalid syntax"),
    }
}

fn duration_seconds(text: &str) -> Result<f64, String> {
    match parse_duration(text) {
        Ok(millis) => Ok(millis as f64 / 1000.0),
        Err(DurationError::Form(_)) => Err(unknown_unit(text).map_or_else(
            || format!("not a valid duration string: {}", quote(text)),
            |unit| format!("unknown unit {} in duration {}", quote(unit), quote(text)),
        )),
        Err(other) => Err(other.to_string()),
    }
}

/// The first unit that is none, read as far as all before it are in order.
fn unknown_unit(text: &str) -> Option<&str> {
    text.split(|c: char| c.is_ascii_digit())
        .filter(|unit| !unit.is_empty())
        .find(|unit| !matches!(*unit, "y" | "w" | "d" | "h" | "m" | "s" | "ms"))
}
