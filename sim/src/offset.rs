//! Times of a scenario: milliseconds from its start, negative before it.

use serde::de::{self, Deserialize, Deserializer, Visitor};

/// A time relative to the scenario's start, or a length of time; written `45s`, `1h30m`, `-21h`, `250ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offset(pub i64);

impl Offset {
    /// In milliseconds.
    #[must_use]
    pub fn ms(self) -> i64 {
        self.0
    }

    /// In seconds.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "scenario times are far below 2^53 ms")]
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    /// Parses `[-]` and one or more of number and unit (`ms`, `s`, `m`, `h`, `d`); a bare `0` is zero.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (sign, mut rest) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text),
        };
        if rest == "0" {
            return Some(Self(0));
        }
        if rest.is_empty() {
            return None;
        }
        let mut sum: i64 = 0;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit())?;
            let number: i64 = rest[..digits].parse().ok()?;
            rest = &rest[digits..];
            let unit = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            sum = sum.checked_add(number.checked_mul(unit_ms(&rest[..unit])?)?)?;
            rest = &rest[unit..];
        }
        Some(Self(sign * sum))
    }
}

fn unit_ms(unit: &str) -> Option<i64> {
    Some(match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    })
}

impl<'de> Deserialize<'de> for Offset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Offset;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a time such as 45s, 1h30m or -21h")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Offset, E> {
                Offset::parse(text).ok_or_else(|| E::custom(format!("{text:?} is no time such as 45s, 1h30m or -21h")))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: Option<i64>) {
        assert_eq!(Offset::parse(text).map(Offset::ms), want);
    }

    #[test]
    fn times_have_a_unit_and_may_be_negative() {
        check("45s", Some(45_000));
        check("1h30m", Some(5_400_000));
        check("-21h", Some(-75_600_000));
        check("250ms", Some(250));
        check("0", Some(0));
        check("2d", Some(172_800_000));
    }

    #[test]
    fn a_number_without_unit_is_no_time() {
        for text in ["", "-", "45", "s", "1h30", "5 s", "3w"] {
            check(text, None);
        }
    }
}
