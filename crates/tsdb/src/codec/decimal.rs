//! The power of ten that makes values integers.
//!
//! Exporters print short decimals: 43.218 W is 43218 / 1000. A decimal of up to 15 digits is the quotient of
//! two integers that a double holds exactly, and division rounds correctly, so the quotient is the very double
//! that the text was read as. Every value is nevertheless checked bit by bit before it is trusted.

/// The largest power of ten tried: 10^9 is a nanosecond, the finest that exporters print.
pub const EXPONENT_MAX: u8 = 9;

pub(super) const POWERS: [f64; EXPONENT_MAX as usize + 1] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

/// Integers above this are not all exact in a double.
const INTEGER_MAX: f64 = 9_007_199_254_740_992.0;

/// Up to this, 2^51, a double plus three times it is between 2^52 and 2^53 where doubles are the integers.
const ROUNDS_BY_ADDING: f64 = 2_251_799_813_685_248.0;

/// Values as integers.
#[derive(Debug)]
pub struct Scaled {
    /// The power of ten they were multiplied with.
    pub exponent: u8,
    /// One integer a value; at a special place the one before it, so that it costs nothing.
    pub ints: Vec<i64>,
    /// Places of values that are not `int / 10^exponent`, ascending.
    pub special: Vec<u32>,
}

/// Scales values; `None` when too many of them are no short decimals.
#[must_use]
pub fn scale(values: &[f64]) -> Option<Scaled> {
    let special_max = values.len() / 8 + 1;
    let exponent = exponent(values, special_max)?;
    let power = POWERS[usize::from(exponent)];
    let mut ints = Vec::with_capacity(values.len());
    let mut special = Vec::new();
    let mut last = 0;
    for (at, &value) in (0..).zip(values) {
        match scaled(value, power) {
            Some(int) => last = int,
            None => special.push(at),
        }
        ints.push(last);
    }
    if special.len() > special_max && special.iter().any(|&at| values[at as usize].is_finite()) {
        return None;
    }
    // A series that begins with a special value should not begin with a step.
    if let Some(first) = (0..).find(|at| special.binary_search(at).is_err()).filter(|&at| at > 0)
        && let Some(&int) = ints.get(first as usize)
    {
        ints[..first as usize].fill(int);
    }
    Some(Scaled {
        exponent,
        ints,
        special,
    })
}

/// The smallest exponent that suits all values but `special_max` of them.
fn exponent(values: &[f64], special_max: usize) -> Option<u8> {
    let mut exponent = 0;
    let mut odd = 0;
    let mut last = f64::NAN;
    for &value in values {
        if value.to_bits() == last.to_bits() || !value.is_finite() {
            continue;
        }
        last = value;
        if scaled(value, POWERS[usize::from(exponent)]).is_some() {
            continue;
        }
        let fits = |e: &u8| scaled(value, POWERS[usize::from(*e)]).is_some();
        match (exponent + 1..=EXPONENT_MAX).find(fits) {
            Some(higher) => exponent = higher,
            None if value.to_bits() == NEGATIVE_ZERO => {}
            None => {
                odd += 1;
                if odd > special_max {
                    return None;
                }
            }
        }
    }
    Some(exponent)
}

const NEGATIVE_ZERO: u64 = 1 << 63;

/// The integer that gives back this very value, where there is one.
#[inline]
fn scaled(value: f64, power: f64) -> Option<i64> {
    let product = value * power;
    if product.abs() <= ROUNDS_BY_ADDING {
        // Adding a number whose last bit is 1 rounds to integers, ties to even, without a call into libm.
        let rounded = (product + 3.0 * ROUNDS_BY_ADDING) - 3.0 * ROUNDS_BY_ADDING;
        return ((rounded / power).to_bits() == value.to_bits()).then_some(rounded as i64);
    }
    let product = product.round_ties_even();
    // The cast is exact within the limit, and -0.0 fails by way of it.
    if product.abs() > INTEGER_MAX || product.is_nan() {
        return None;
    }
    let int = product as i64;
    ((int as f64 / power).to_bits() == value.to_bits()).then_some(int)
}

/// Adds `int / 10^exponent` for each integer; `None` when there is no such exponent.
pub fn unscale(ints: &[i64], exponent: u8, out: &mut Vec<f64>) -> Option<()> {
    let power = *POWERS.get(usize::from(exponent))?;
    if exponent == 0 {
        out.extend(ints.iter().map(|&int| int as f64));
    } else {
        out.extend(ints.iter().map(|&int| int as f64 / power));
    }
    Some(())
}
