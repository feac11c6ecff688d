//! Time as the field writes it: milliseconds since the Unix epoch, durations such as `1h30m`.

use std::fmt;

/// Milliseconds: since the Unix epoch where a moment is meant, plain where a span is meant.
pub type Millis = i64;

/// The one way to ask what time it is; a test turns its own by hand.
pub trait Clock: Send + Sync {
    /// The present moment, in milliseconds since the Unix epoch.
    fn now(&self) -> Millis;
}

/// The wall clock of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |d| Millis::try_from(d.as_millis()).unwrap_or(Millis::MAX))
    }
}

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Nothing was written.
    #[error("empty duration string")]
    Empty,
    /// The text is not of the form `1h30m`.
    #[error("not a valid duration string: {0:?}")]
    Form(String),
    /// The value does not fit 64 bits of nanoseconds, the field's limit (about 292 years).
    #[error("duration out of range")]
    Range,
}

/// Unit suffixes from the largest, with their length in milliseconds.
const UNITS: [(&str, Millis); 7] = [
    ("y", 365 * 86_400_000),
    ("w", 7 * 86_400_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// The largest duration, in milliseconds: what 64 bits of nanoseconds hold.
pub const DURATION_MAX: Millis = i64::MAX / 1_000_000;

/// Reads `1h30m`: whole numbers with units `y w d h m s ms`, each at most once, largest first. `0` needs no unit.
///
/// # Errors
///
/// [`DurationError`] tells an empty text, a wrong form and an overflow apart.
pub fn parse_duration(text: &str) -> Result<Millis, DurationError> {
    if text.is_empty() {
        return Err(DurationError::Empty);
    }
    if text == "0" {
        return Ok(0);
    }
    let form = || DurationError::Form(text.to_owned());
    let mut rest = text;
    let mut total: Millis = 0;
    let mut next_unit = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let unit_len = rest[digits..].bytes().take_while(u8::is_ascii_alphabetic).count();
        let (number, unit) = (&rest[..digits], &rest[digits..digits + unit_len]);
        let at = UNITS[next_unit..]
            .iter()
            .position(|(name, _)| *name == unit)
            .ok_or_else(form)?
            + next_unit;
        if number.is_empty() {
            return Err(form());
        }
        let count: Millis = number.parse().map_err(|_| DurationError::Range)?;
        let span = count.checked_mul(UNITS[at].1).ok_or(DurationError::Range)?;
        total = total
            .checked_add(span)
            .filter(|t| *t <= DURATION_MAX)
            .ok_or(DurationError::Range)?;
        next_unit = at + 1;
        rest = &rest[digits + unit_len..];
    }
    Ok(total)
}

/// Shows a span of milliseconds as Prometheus prints it: `1h30m`, `0s`, `-5m`.
#[derive(Debug, Clone, Copy)]
pub struct DurationText(pub Millis);

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        if self.0 < 0 {
            f.write_str("-")?;
        }
        let mut rest = self.0.unsigned_abs();
        for (name, length) in UNITS {
            let length = length.unsigned_abs();
            // A year or a week is named only where it comes out even, so that `90d` stays readable.
            let exact_only = matches!(name, "y" | "w");
            if rest == 0 || rest < length || (exact_only && !rest.is_multiple_of(length)) {
                continue;
            }
            write!(f, "{}{name}", rest / length)?;
            rest %= length;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: Millis) {
        assert_eq!(parse_duration(text), Ok(want), "{text}");
    }

    #[test]
    fn durations_add_their_units() {
        check("0", 0);
        check("0s", 0);
        check("15s", 15_000);
        check("1h30m", 5_400_000);
        check("1d12h", 129_600_000);
        check("1y", 31_536_000_000);
        check("4s425ms", 4_425);
    }

    #[test]
    fn a_wrong_form_is_named() {
        for text in ["1", "1x", "s", "1m1h", "1m1m", "-1s", "1.5h", " 1s"] {
            assert_eq!(parse_duration(text), Err(DurationError::Form(text.into())), "{text}");
        }
        assert_eq!(parse_duration(""), Err(DurationError::Empty));
        assert_eq!(parse_duration("300y"), Err(DurationError::Range));
    }

    #[test]
    fn durations_print_as_prometheus_prints_them() {
        for text in ["1h30m", "15s", "1w", "90d", "1y", "4s425ms", "0s", "8d"] {
            let millis = parse_duration(text).expect("a duration of the table");
            assert_eq!(DurationText(millis).to_string(), text);
        }
        assert_eq!(DurationText(-300_000).to_string(), "-5m");
    }
}
