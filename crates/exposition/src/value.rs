//! Numbers of a page: plain decimals by hand, the rest by the standard library.

use model::number::parse_float;

/// Powers of ten that a double holds exactly.
const TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// The largest mantissa for which mantissa / 10^n is rounded once only, hence exactly as a full parser rounds.
const MANTISSA_MAX: u64 = 1 << 53;

/// Reads the plain decimal (`-12.5`) that `text` begins with; gives it with its length in bytes.
///
/// `None` when there is none, or when what follows (an exponent, too many digits) needs [`parse_value`].
/// The caller decides whether the byte behind it may stand there.
#[inline]
pub(crate) fn leading_decimal(text: &[u8]) -> Option<(f64, usize)> {
    let negative = text.first() == Some(&b'-');
    let start = usize::from(negative);
    let mut at = start;
    let mut mantissa = 0_u64;
    while let Some(digit) = text.get(at).map(|b| b.wrapping_sub(b'0')).filter(|d| *d < 10) {
        mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    let mut digits = at - start;
    let mut decimals = 0;
    if text.get(at) == Some(&b'.') {
        at += 1;
        let point = at;
        while let Some(digit) = text.get(at).map(|b| b.wrapping_sub(b'0')).filter(|d| *d < 10) {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
            at += 1;
        }
        decimals = at - point;
        digits += decimals;
    }
    // Nineteen digits cannot have wrapped around 64 bits.
    if digits == 0 || digits > 19 || mantissa > MANTISSA_MAX {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "at most 2^53")]
    let whole = mantissa as f64;
    let value = if decimals == 0 { whole } else { whole / TENS[decimals] };
    Some((if negative { -value } else { value }, at))
}

/// Reads a value as the text formats write it: as Go reads a float, without hexadecimal and underscores.
///
/// Any NaN becomes the plain one, so that no page can forge a staleness marker. `None` when the text is not
/// a number or is beyond the range of a double.
#[must_use]
pub fn parse_value(text: &[u8]) -> Option<f64> {
    if let Some((value, length)) = leading_decimal(text)
        && length == text.len()
    {
        return Some(value);
    }
    if text.iter().any(|b| matches!(b, b'p' | b'P' | b'x' | b'X' | b'_')) {
        return None;
    }
    let value = parse_float(std::str::from_utf8(text).ok()?)?;
    if value.is_nan() {
        return matches!(text[0], b'n' | b'N').then_some(f64::NAN);
    }
    let written_infinite = text.iter().any(|b| matches!(b, b'i' | b'I'));
    (value.is_finite() || written_infinite).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_path_agrees_with_the_library_to_the_bit() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..200_000 {
            let decimals = random.usize(0..12);
            let text = format!("{:.decimals$}", (random.f64() - 0.5) * 10_f64.powi(random.i32(0..12)));
            let want: f64 = text.parse().expect("a decimal");
            let got = parse_value(text.as_bytes()).expect("a decimal");
            assert_eq!(got.to_bits(), want.to_bits(), "{text}");
        }
    }

    #[test]
    fn odd_numbers_are_read_or_refused_as_go_does() {
        for (text, want) in [
            ("0", 0.0),
            ("08", 8.0),
            ("+1", 1.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("4.9351e-05", 4.9351e-5),
            ("-3e3", -3000.0),
            ("+Inf", f64::INFINITY),
            ("-inf", f64::NEG_INFINITY),
            ("9223372036854775808", 9_223_372_036_854_775_808.0),
            ("0000000000000000000000000000000000000000001", 1.0),
        ] {
            assert_eq!(parse_value(text.as_bytes()), Some(want), "{text}");
        }
        assert_eq!(parse_value(b"-0").map(f64::to_bits), Some((-0.0_f64).to_bits()));
        assert!(parse_value(b"NaN").is_some_and(|v| v.is_nan() && !model::is_stale(v)));
        for text in [
            "", "-", ".", "1_2", "0x1p-3", "true", "1e999", "+NaN", "1\t2", "--1", "0o1", "1 ",
        ] {
            assert_eq!(parse_value(text.as_bytes()), None, "{text:?}");
        }
    }
}
