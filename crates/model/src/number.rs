//! Numbers as the field writes them: `+Inf`, `NaN`, hexadecimal floats, shortest decimal form.

use std::fmt;
use std::ops::RangeInclusive;

/// Shows a float in plain decimals, shortest form that reads back: `0.001`, `1000000`, `+Inf`, `NaN`.
#[derive(Debug, Clone, Copy)]
pub struct Plain(pub f64);

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match special(self.0) {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// Shows a float with an exponent where it is large or small: `1e+06`, `1.5e-07`, `91.25`, as Go's `%v` and `%g` do
/// in their shortest form (exponent below -4 or from 6 digits on, however many there are: `1.353755652e+09`).
#[derive(Debug, Clone, Copy)]
pub struct General(pub f64);

impl fmt::Display for General {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_exponent(self.0, Some(-4..=5), f)
    }
}

/// Shows a float always with an exponent: `1e+00`, `9.125e+01`, as the HTTP API shows the value of an alert.
#[derive(Debug, Clone, Copy)]
pub struct Scientific(pub f64);

impl fmt::Display for Scientific {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_exponent(self.0, None, f)
    }
}

/// Writes with an exponent unless that is one of `left_out`; two exponent digits at least.
fn fmt_exponent(value: f64, left_out: Option<RangeInclusive<i32>>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if let Some(name) = special(value) {
        return f.write_str(name);
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if left_out.is_some_and(|range| range.contains(&exponent)) {
        return write!(f, "{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    write!(f, "{mantissa}e{sign}{:02}", exponent.abs())
}

fn special(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value == f64::INFINITY {
        Some("+Inf")
    } else if value == f64::NEG_INFINITY {
        Some("-Inf")
    } else {
        None
    }
}

/// Reads a float as Go's `strconv.ParseFloat` does, without underscores: decimals, `inf`, `NaN`, `0x1p-2`.
///
/// `None` when the text is not a number. A decimal beyond the range is an infinity, as in Rust.
#[must_use]
pub fn parse_float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let negative = text.starts_with('-');
    if unsigned.len() > 2 && unsigned.as_bytes()[0] == b'0' && unsigned.as_bytes()[1].eq_ignore_ascii_case(&b'x') {
        let value = parse_hex(&unsigned[2..])?;
        return Some(if negative { -value } else { value });
    }
    // Rust reads `nan`, `inf` and `infinity` in any case, and decimals, just as Go does.
    if unsigned.starts_with(['+', '-']) {
        return None;
    }
    text.parse().ok()
}

/// Hexadecimal digits with an optional point and an optional binary exponent (`1.8p3`).
fn parse_hex(text: &str) -> Option<f64> {
    let (digits, exponent) = match text.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0_f64;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let fraction_bits = i32::try_from(fraction.len()).ok()?.checked_mul(4)?;
    Some(value * 2.0_f64.powi(exponent - fraction_bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_in_both_forms() {
        for (value, plain, general) in [
            (0.0, "0", "0"),
            (91.25, "91.25", "91.25"),
            (100_000.0, "100000", "100000"),
            (1e6, "1000000", "1e+06"),
            (1_353_755_652.0, "1353755652", "1.353755652e+09"),
            (1e21, "1000000000000000000000", "1e+21"),
            (1.5e-7, "0.00000015", "1.5e-07"),
            (f64::INFINITY, "+Inf", "+Inf"),
            (f64::NEG_INFINITY, "-Inf", "-Inf"),
            (f64::NAN, "NaN", "NaN"),
        ] {
            assert_eq!(Plain(value).to_string(), plain);
            assert_eq!(General(value).to_string(), general);
        }
    }

    #[test]
    fn an_exponent_can_be_asked_for() {
        for (value, want) in [(0.0, "0e+00"), (1.0, "1e+00"), (91.25, "9.125e+01"), (-1e-7, "-1e-07")] {
            assert_eq!(Scientific(value).to_string(), want);
        }
    }

    #[test]
    fn floats_are_read_as_go_reads_them() {
        for (text, want) in [
            ("1", 1.0),
            ("+Inf", f64::INFINITY),
            ("-inf", f64::NEG_INFINITY),
            ("0x1p-2", 0.25),
            ("-0xF", -15.0),
            ("1e3", 1000.0),
            (".5", 0.5),
            ("5.", 5.0),
        ] {
            assert_eq!(parse_float(text), Some(want), "{text}");
        }
        assert!(parse_float("nan").expect("NaN is a number here").is_nan());
        for text in ["", "x", "1_000", "--1", "0x", "1e"] {
            assert_eq!(parse_float(text), None, "{text}");
        }
    }
}
