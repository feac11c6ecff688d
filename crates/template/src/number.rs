//! Numbers as Go's `strconv` writes and reads them.

use model::number::parse_float;

/// How a float is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `1.5e+06`
    Exponent,
    /// `1500000`
    Plain,
    /// Whichever suits the exponent.
    General,
}

/// Writes a float; without `precision` with as many digits as read back to the same number.
pub(crate) fn format_float(value: f64, form: Form, precision: Option<usize>) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    match (form, precision) {
        (Form::Plain, None) => format!("{value}"),
        (Form::Plain, Some(p)) => format!("{value:.p$}"),
        (Form::Exponent, None) => go_exponent(&format!("{value:e}")),
        (Form::Exponent, Some(p)) => go_exponent(&format!("{value:.p$e}")),
        (Form::General, _) => general(value, precision),
    }
}

fn general(value: f64, precision: Option<usize>) -> String {
    // Shortest digits switch to an exponent as six digits would.
    let digits = precision.map(|p| p.max(1));
    let scientific = match digits {
        Some(digits) => format!("{value:.*e}", digits - 1),
        None => format!("{value:e}"),
    };
    let (mantissa, exponent) = split(&scientific);
    let limit = digits.unwrap_or(6);
    let mantissa = trim_zeros(mantissa);
    if exponent < -4 || usize::try_from(exponent).is_ok_and(|e| e >= limit) {
        return go_exponent(&format!("{mantissa}e{exponent}"));
    }
    match digits {
        None => format!("{value}"),
        Some(digits) => {
            let fraction = i32::try_from(digits).unwrap_or(i32::MAX) - 1 - exponent;
            let fraction = usize::try_from(fraction).unwrap_or(0);
            trim_zeros(&format!("{value:.fraction$}")).to_owned()
        }
    }
}

fn split(scientific: &str) -> (&str, i32) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    (mantissa, exponent.parse().unwrap_or(0))
}

fn trim_zeros(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

/// `1.5e6` to `1.5e+06`.
fn go_exponent(scientific: &str) -> String {
    let (mantissa, exponent) = split(scientific);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

/// `%.4g`
pub(crate) fn four_digits(value: f64) -> String {
    format_float(value, Form::General, Some(4))
}

/// Reads a float as `strconv.ParseFloat` does.
///
/// # Errors
///
/// Go's message.
pub(crate) fn read_float(text: &str) -> Result<f64, String> {
    let error = |why: &str| format!("strconv.ParseFloat: parsing {}: {why}", model::text::quote(text));
    let value = parse_float(text).ok_or_else(|| error("invalid syntax"))?;
    if value.is_infinite() && text.bytes().any(|b| b.is_ascii_digit()) {
        return Err(error("value out of range"));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_go_writes_them() {
        for (value, shortest, four, two_plain) in [
            (0.0, "0", "0", "0.00"),
            (1.0, "1", "1", "1.00"),
            (91.25, "91.25", "91.25", "91.25"),
            (100_000.0, "100000", "1e+05", "100000.00"),
            (1_353_755_652.0, "1.353755652e+09", "1.354e+09", "1353755652.00"),
            (0.000_012, "1.2e-05", "1.2e-05", "0.00"),
            (0.000_12, "0.00012", "0.00012", "0.00"),
            (1234.5, "1234.5", "1234", "1234.50"),
            (99_999.0, "99999", "1e+05", "99999.00"),
            (-0.5, "-0.5", "-0.5", "-0.50"),
        ] {
            assert_eq!(format_float(value, Form::General, None), shortest);
            assert_eq!(four_digits(value), four);
            assert_eq!(format_float(value, Form::Plain, Some(2)), two_plain);
        }
        assert_eq!(format_float(1e6, Form::General, None), "1e+06");
        assert_eq!(format_float(1.5, Form::Exponent, Some(3)), "1.500e+00");
        assert_eq!(four_digits(f64::INFINITY), "+Inf");
    }
}
