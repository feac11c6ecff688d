//! Sizes in bytes, written as `20GB` or `512MiB`; every unit is a power of 1024, as in Prometheus.

use crate::yaml::{Decode, Node, Result};

/// A number of bytes; negative only where a file says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Bytes(pub i64);

/// Why a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// No number, or something behind the unit.
    #[error("units: invalid {0}")]
    Form(String),
    /// The letters behind a number are no unit.
    #[error("units: unknown unit {unit} in {text}")]
    Unit {
        /// The letters.
        unit: String,
        /// The whole text.
        text: String,
    },
}

/// Prefixes from the smallest, each 1024 times the one before.
const PREFIXES: &str = "KMGTPE";

/// Reads `20GB`, `1.5MiB`, `1GB512MB`, `-1MB`; a bare `0` needs no unit.
///
/// # Errors
///
/// [`SizeError`] tells a wrong form and an unknown unit apart.
pub fn parse(text: &str) -> std::result::Result<i64, SizeError> {
    let form = || SizeError::Form(text.to_owned());
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(form());
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().map_err(|_| form())?;
        rest = &rest[digits..];
        let letters = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let factor = factor(&rest[..letters]).ok_or_else(|| SizeError::Unit {
            unit: rest[..letters].to_owned(),
            text: text.to_owned(),
        })?;
        total += number * factor;
        rest = &rest[letters..];
    }
    if total >= 9.2e18 {
        return Err(form());
    }
    #[expect(clippy::cast_possible_truncation, reason = "range checked above")]
    Ok((sign * total) as i64)
}

fn factor(unit: &str) -> Option<f64> {
    if unit == "B" {
        return Some(1.0);
    }
    let prefix = unit.strip_suffix("iB").or_else(|| unit.strip_suffix('B'))?;
    let mut letters = prefix.chars();
    let power = PREFIXES.find(letters.next()?)? + 1;
    letters
        .next()
        .is_none()
        .then(|| 1024_f64.powi(i32::try_from(power).unwrap_or(0)))
}

impl Decode for Bytes {
    fn decode(node: &Node) -> Result<Self> {
        if node.is_null() {
            return Ok(Self(0));
        }
        let text: String = node.read()?;
        parse(&text).map(Self).map_err(|e| node.fault(e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, want) in [
            ("0", 0),
            ("15MB", 15 << 20),
            ("15MiB", 15 << 20),
            ("20GB", 20 << 30),
            ("1.5KB", 1536),
            ("1GB512MB", (1 << 30) + (512 << 20)),
            ("100B", 100),
            ("-1MB", -(1 << 20)),
        ] {
            assert_eq!(parse(text), Ok(want), "{text}");
        }
    }

    #[test]
    fn a_size_without_unit_is_refused() {
        assert_eq!(
            parse("100").expect_err("no unit").to_string(),
            "units: unknown unit  in 100"
        );
        for text in ["", "MB", "1XB", "1 MB", "1mb", "1.2.3MB", "16EB"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
