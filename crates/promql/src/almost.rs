//! Whether two floats are the same but for rounding.

/// Whether `a` and `b` differ by less than `epsilon` relative to their sum; two NaNs are the same, unless
/// one of them is a staleness marker.
#[must_use]
pub(crate) fn almost_equal(a: f64, b: f64, epsilon: f64) -> bool {
    if model::is_stale(a) || model::is_stale(b) {
        return model::is_stale(a) && model::is_stale(b);
    }
    if (a.is_nan() && b.is_nan()) || a == b {
        return true;
    }
    let sum = a.abs() + b.abs();
    let difference = (a - b).abs();
    if a == 0.0 || b == 0.0 || sum < f64::MIN_POSITIVE {
        return difference < epsilon * f64::MIN_POSITIVE;
    }
    difference / sum.min(f64::MAX) < epsilon
}
