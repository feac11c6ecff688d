//! From a node to a value, with Go's manners.

use std::collections::BTreeMap;

use model::Millis;
use model::time::parse_duration;

use super::{Node, Result, Scalar, Value};

/// A value that can be read from a node. A null is the type's empty value.
pub trait Decode: Sized {
    /// Reads the node.
    ///
    /// # Errors
    ///
    /// A fault where the node is not such a value.
    fn decode(node: &Node) -> Result<Self>;
}

impl Decode for String {
    /// Any single value, as written: `team: 5` is the text `5`.
    fn decode(node: &Node) -> Result<Self> {
        match &node.value {
            Value::Null => Ok(Self::new()),
            Value::Scalar(scalar) if scalar.binary => {
                Err(node.fault(format!("\"{}\" is not valid UTF-8", scalar.text)))
            }
            Value::Scalar(scalar) => Ok(scalar.text.clone()),
            _ => Err(node.fault(format!("expected a text, got {}", node.kind()))),
        }
    }
}

impl Decode for bool {
    fn decode(node: &Node) -> Result<Self> {
        match &node.value {
            Value::Null => Ok(false),
            Value::Scalar(Scalar { text, plain: true, .. }) => match text.as_str() {
                "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Ok(true),
                "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Ok(false),
                _ => Err(node.fault(format!("expected true or false, got {text:?}"))),
            },
            Value::Scalar(scalar) => {
                Err(node.fault(format!("expected true or false, got the quoted text {:?}", scalar.text)))
            }
            _ => Err(node.fault(format!("expected true or false, got {}", node.kind()))),
        }
    }
}

impl Decode for i64 {
    /// A whole number; a float is cut, as Go's library does.
    fn decode(node: &Node) -> Result<Self> {
        let Some(text) = number_text(node, "a whole number")? else {
            return Ok(0);
        };
        whole(&text).ok_or_else(|| node.fault(format!("expected a whole number, got {text:?}")))
    }
}

impl Decode for u64 {
    fn decode(node: &Node) -> Result<Self> {
        let value: i64 = node.read()?;
        Self::try_from(value).map_err(|_| node.fault(format!("expected a number of at least 0, got {value}")))
    }
}

impl Decode for u32 {
    fn decode(node: &Node) -> Result<Self> {
        let value: i64 = node.read()?;
        Self::try_from(value).map_err(|_| node.fault(format!("number {value} is out of range")))
    }
}

impl Decode for u16 {
    fn decode(node: &Node) -> Result<Self> {
        let value: i64 = node.read()?;
        Self::try_from(value).map_err(|_| node.fault(format!("number {value} is out of range")))
    }
}

/// A floating-point number.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Float(pub f64);

impl Decode for Float {
    fn decode(node: &Node) -> Result<Self> {
        let Some(text) = number_text(node, "a number")? else {
            return Ok(Self(0.0));
        };
        let special = match text.as_str() {
            ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(f64::INFINITY),
            "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
            ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
            _ => None,
        };
        special
            .or_else(|| text.parse().ok().filter(|f: &f64| f.is_finite()))
            .map(Self)
            .ok_or_else(|| node.fault(format!("expected a number, got {text:?}")))
    }
}

/// A span of time, in milliseconds, written as `1h30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Duration(pub Millis);

impl Decode for Duration {
    fn decode(node: &Node) -> Result<Self> {
        if node.is_null() {
            return Ok(Self(0));
        }
        let text: String = node.read()?;
        parse_duration(&text).map(Self).map_err(|e| node.fault(e.to_string()))
    }
}

impl<T: Decode> Decode for Vec<T> {
    fn decode(node: &Node) -> Result<Self> {
        node.list()?.iter().map(T::decode).collect()
    }
}

impl<T: Decode> Decode for BTreeMap<String, T> {
    fn decode(node: &Node) -> Result<Self> {
        let pairs = node.map()?.iter();
        pairs
            .map(|(key, value)| Ok((key.text.clone(), value.read()?)))
            .collect()
    }
}

/// The text of an unquoted number without its underscores; `None` for a null.
fn number_text(node: &Node, what: &str) -> Result<Option<String>> {
    match &node.value {
        Value::Null => Ok(None),
        Value::Scalar(Scalar { text, plain: true, .. }) => Ok(Some(text.replace('_', ""))),
        Value::Scalar(scalar) => Err(node.fault(format!("expected {what}, got the quoted text {:?}", scalar.text))),
        _ => Err(node.fault(format!("expected {what}, got {}", node.kind()))),
    }
}

/// Decimal, `0x`, `0b`, `0o` and (as in YAML 1.1) a leading zero for octal; floats are cut.
fn whole(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.starts_with(['-', '+']) {
        return None;
    }
    let radix = |digits: &str, base| i64::from_str_radix(digits, base).ok();
    let value = match digits.get(..2) {
        Some("0x") => radix(&digits[2..], 16),
        Some("0b") => radix(&digits[2..], 2),
        Some("0o") => radix(&digits[2..], 8),
        _ if digits.len() > 1 && digits.starts_with('0') => radix(digits, 8),
        _ => radix(digits, 10),
    };
    if let Some(value) = value {
        return Some(if negative { -value } else { value });
    }
    let float: f64 = text.parse().ok()?;
    // Beyond 2^63 the cast would saturate: out of range rather than wrong.
    #[expect(clippy::cast_possible_truncation, reason = "range checked in the condition")]
    (float.abs() < 9.2e18).then_some(float as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::parse;

    #[track_caller]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a case reads better with its value than with a reference"
    )]
    fn check<T: Decode + PartialEq + std::fmt::Debug>(text: &str, want: Option<T>) {
        let node = parse(text).expect("valid YAML");
        assert_eq!(node.read::<T>().ok(), want, "{text:?}");
    }

    #[test]
    fn a_null_is_the_empty_value() {
        check::<String>("~", Some(String::new()));
        check::<bool>("null", Some(false));
        check::<i64>("", Some(0));
        check::<Vec<String>>("~", Some(Vec::new()));
        check::<Duration>("~", Some(Duration(0)));
    }

    #[test]
    fn texts_take_any_single_value_as_written() {
        check::<String>("0x10", Some("0x10".into()));
        check::<String>("yes", Some("yes".into()));
        check::<String>("'~'", Some("~".into()));
        check::<String>("[a]", None);
        check::<String>("{a: b}", None);
    }

    #[test]
    fn truth_values_are_unquoted_words() {
        check::<bool>("on", Some(true));
        check::<bool>("No", Some(false));
        check::<bool>("'true'", None);
        check::<bool>("1", None);
    }

    #[test]
    fn numbers_in_every_notation() {
        check::<i64>("1_000", Some(1000));
        check::<i64>("0x1F", Some(31));
        check::<i64>("017", Some(15));
        check::<i64>("-5", Some(-5));
        check::<i64>("1e3", Some(1000));
        check::<i64>("'5'", None);
        check::<i64>("5s", None);
        check::<u64>("-1", None);
        check::<u16>("70000", None);
        check::<Float>("1.5", Some(Float(1.5)));
        check::<Float>(".inf", Some(Float(f64::INFINITY)));
        check::<Float>("inf", None);
    }

    #[test]
    fn durations_are_words_with_units() {
        check::<Duration>("1h30m", Some(Duration(5_400_000)));
        check::<Duration>("-1h", None);
        check::<Duration>("5", None);
        check::<Duration>("''", None);
    }
}
