//! Numbers that mean "no number".
//!
//! NVML and the layers above it mark a missing value inside the value: all ones, or the
//! blanks of DCGM's header (`corpora/dcgm/blank-values.tsv`: 2147483632–35, 9223372036854775792–95,
//! 140737488355328.0–331.0). None of them may ever become a sample.

const INT32_BLANKS: std::ops::RangeInclusive<u32> = 2_147_483_632..=2_147_483_635;
const INT64_BLANKS: std::ops::RangeInclusive<u64> = 9_223_372_036_854_775_792..=9_223_372_036_854_775_795;
const DOUBLE_BLANKS: std::ops::RangeInclusive<f64> = 140_737_488_355_328.0..=140_737_488_355_331.0;

/// Keeps a 32-bit number unless it is a sentinel.
pub(crate) fn known_u32(value: u32) -> Option<u32> {
    (value != u32::MAX && !INT32_BLANKS.contains(&value)).then_some(value)
}

/// Keeps a signed 32-bit number unless it is a sentinel.
pub(crate) fn known_i32(value: i32) -> Option<i32> {
    let blank = u32::try_from(value).is_ok_and(|value| INT32_BLANKS.contains(&value));
    (!blank && value != i32::MAX && value != i32::MIN).then_some(value)
}

/// Keeps a 64-bit number unless it is a sentinel.
pub(crate) fn known_u64(value: u64) -> Option<u64> {
    (value != u64::MAX && !INT64_BLANKS.contains(&value)).then_some(value)
}

/// Keeps a signed 64-bit number unless it is a sentinel.
pub(crate) fn known_i64(value: i64) -> Option<i64> {
    let blank = u64::try_from(value).is_ok_and(|value| INT64_BLANKS.contains(&value));
    (!blank && value != i64::MAX && value != i64::MIN).then_some(value)
}

/// Keeps a double unless it is a sentinel, infinite or not a number.
pub(crate) fn known_f64(value: f64) -> Option<f64> {
    (value.is_finite() && !DOUBLE_BLANKS.contains(&value)).then_some(value)
}

/// Keeps a share in percent; anything above 100 is no share.
pub(crate) fn known_percent(value: u32) -> Option<u32> {
    known_u32(value).filter(|value| *value <= 100)
}

/// Keeps a temperature that a board can have, in degrees Celsius.
///
/// The range is wide on purpose: it only separates measurements from garbage
/// (a lost GPU reads as 0xffff, a missing sensor as a sentinel).
pub(crate) fn known_celsius(value: i32) -> Option<i32> {
    (-60..=250).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_of_every_width_are_absent() {
        for value in 2_147_483_632..=2_147_483_635 {
            assert_eq!(known_u32(value), None);
            assert_eq!(known_i32(i32::try_from(value).unwrap()), None);
        }
        for value in 9_223_372_036_854_775_792..=9_223_372_036_854_775_795 {
            assert_eq!(known_u64(value), None);
            assert_eq!(known_i64(i64::try_from(value).unwrap()), None);
        }
        for value in [140_737_488_355_328.0, 140_737_488_355_330.0, f64::NAN, f64::INFINITY] {
            assert_eq!(known_f64(value), None);
        }
        assert_eq!(known_u32(u32::MAX), None);
        assert_eq!(known_u64(u64::MAX), None);
    }

    #[test]
    fn zero_is_a_value() {
        assert_eq!(known_u32(0), Some(0));
        assert_eq!(known_i32(0), Some(0));
        assert_eq!(known_u64(0), Some(0));
        assert_eq!(known_f64(0.0), Some(0.0));
        assert_eq!(known_percent(0), Some(0));
        assert_eq!(known_celsius(0), Some(0));
    }

    #[test]
    fn what_no_board_can_measure_is_absent() {
        assert_eq!(known_percent(101), None);
        assert_eq!(known_celsius(0xffff), None);
        assert_eq!(known_celsius(-273), None);
    }
}
