//! Numbers, spans and moments for people.

use crate::moment::{Moment, Span};
use crate::number::{four_digits, read_float};
use crate::value::Value;

/// A number, or a text or span that is one.
pub(crate) fn to_float(value: &Value) -> Result<f64, String> {
    match value {
        Value::Float(n) => Ok(*n),
        Value::Int(n) => Ok(*n as f64),
        Value::Uint(n) => Ok(*n as f64),
        Value::Text(text) => read_float(text),
        Value::Span(span) => Ok(span.seconds()),
        other => Err(format!("can't convert {} to float", other.type_name())),
    }
}

/// `1.235M`, `120m`
pub(crate) fn humanize(value: f64) -> String {
    match value.abs() {
        0.0 => four_digits(value),
        n if !n.is_finite() => four_digits(value),
        n if n >= 1.0 => large(value, 1000.0, &["k", "M", "G", "T", "P", "E", "Z", "Y"]),
        _ => small(value, ""),
    }
}

/// `1.177Mi`
pub(crate) fn humanize_1024(value: f64) -> String {
    match value.abs() {
        n if !n.is_finite() || n <= 1.0 => four_digits(value),
        _ => large(value, 1024.0, &["ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi"]),
    }
}

fn large(mut value: f64, step: f64, prefixes: &[&'static str]) -> String {
    let mut shown = "";
    for prefix in prefixes {
        if value.abs() < step {
            break;
        }
        shown = prefix;
        value /= step;
    }
    four_digits(value) + shown
}

fn small(mut value: f64, unit: &str) -> String {
    let mut shown = "";
    for prefix in ["m", "u", "n", "p", "f", "a", "z", "y"] {
        if value.abs() >= 1.0 {
            break;
        }
        shown = prefix;
        value *= 1000.0;
    }
    four_digits(value) + shown + unit
}

/// Seconds: `1d 2h 3m 4s`, `12.35s`, `100ms`
pub(crate) fn humanize_duration(value: f64) -> String {
    if !value.is_finite() {
        return four_digits(value);
    }
    if value == 0.0 {
        return four_digits(value) + "s";
    }
    if value.abs() < 1.0 {
        return small(value, "s");
    }
    let sign = if value < 0.0 { "-" } else { "" };
    // Beyond the range of integers the conversion stops at the largest.
    let whole = value.abs() as i64;
    let (days, hours, minutes, seconds) = (whole / 86_400, whole / 3600 % 24, whole / 60 % 60, whole % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{sign}{}s", four_digits(value.abs())),
        (0, 0, _) => format!("{sign}{minutes}m {seconds}s"),
        (0, ..) => format!("{sign}{hours}h {minutes}m {seconds}s"),
        _ => format!("{sign}{days}d {hours}h {minutes}m {seconds}s"),
    }
}

/// `12.35%`
pub(crate) fn humanize_percentage(value: f64) -> String {
    four_digits(value * 100.0) + "%"
}

/// Seconds since the Unix epoch as a moment; what is no number stays as it is.
pub(crate) fn humanize_timestamp(value: f64) -> Result<String, String> {
    match value.is_finite() {
        true => to_moment(value).map(|moment| moment.to_string()),
        false => Ok(four_digits(value)),
    }
}

/// Seconds since the Unix epoch as a moment.
pub(crate) fn to_moment(value: f64) -> Result<Moment, String> {
    if !value.is_finite() {
        return Err("value is NaN or Inf".to_owned());
    }
    let nanos = value * 1e9;
    if nanos > i64::MAX as f64 || nanos < i64::MIN as f64 {
        let shown = crate::number::format_float(value, crate::number::Form::General, None);
        return Err(format!(
            "{shown} cannot be represented as a nanoseconds timestamp since it overflows int64"
        ));
    }
    Ok(Moment::from_millis((nanos as i64).div_euclid(1_000_000)))
}

/// Seconds as a span.
pub(crate) fn to_span(value: f64) -> Span {
    Span::from_nanos((value * 1e9) as i64)
}
