//! What a histogram says of the distribution behind it: quantiles, shares, spread.

use model::Histogram;

use crate::eval::Sum;

/// What an estimate has to be remarked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Nothing.
    Fine,
    /// Observations are NaN, and so is the result.
    NanResult,
    /// Observations are NaN; they count as larger than all others, or, in shares, not at all.
    NanAside,
}

/// The `q`-quantile: between exponential bounds interpolated exponentially, else linearly.
pub(crate) fn quantile(q: f64, histogram: &Histogram) -> (f64, Seen) {
    if q < 0.0 {
        return (f64::NEG_INFINITY, Seen::Fine);
    }
    if q > 1.0 {
        return (f64::INFINITY, Seen::Fine);
    }
    if histogram.count == 0.0 || q.is_nan() {
        return (f64::NAN, Seen::Fine);
    }
    let has_nan = histogram.sum.is_nan();
    // NaN observations are in no bucket: with them ranks count from the left alone.
    let from_left = has_nan || q < 0.5;
    let mut rank = if from_left { q } else { 1.0 - q } * histogram.count;
    let mut buckets = histogram.buckets();
    if !from_left {
        buckets.reverse();
    }
    let (mut lower, mut upper, mut inside, mut count) = (0.0, 0.0, 0.0, 0.0);
    for bucket in buckets.iter().filter(|b| b.count != 0.0) {
        (lower, upper, inside) = (bucket.lower, bucket.upper, bucket.count);
        count += bucket.count;
        if count >= rank {
            break;
        }
    }
    if histogram.is_custom() {
        if lower == f64::NEG_INFINITY {
            if upper <= 0.0 {
                return (upper, Seen::Fine);
            }
            lower = 0.0;
        } else if upper == f64::INFINITY {
            return (lower, Seen::Fine);
        }
    } else if lower < 0.0 && upper > 0.0 {
        (lower, upper) = one_sided(histogram, lower, upper);
    }
    if count > histogram.count {
        count = histogram.count;
    }
    if count < rank {
        return if has_nan {
            (f64::NAN, Seen::NanResult)
        } else {
            (upper, Seen::Fine)
        };
    }
    let seen = if has_nan { Seen::NanAside } else { Seen::Fine };
    rank = if from_left {
        rank - (count - inside)
    } else {
        count - rank
    };
    let fraction = rank / inside;
    if histogram.is_custom() || (lower <= 0.0 && upper >= 0.0) {
        return (lower + (upper - lower) * fraction, seen);
    }
    let (log_lower, log_upper) = (lower.abs().log2(), upper.abs().log2());
    let value = if lower > 0.0 {
        (log_lower + (log_upper - log_lower) * fraction).exp2()
    } else {
        -(log_upper + (log_lower - log_upper) * (1.0 - fraction)).exp2()
    };
    (value, seen)
}

/// The zero bucket of a histogram that has buckets on one side only reaches to that side.
pub(super) fn one_sided(histogram: &Histogram, lower: f64, upper: f64) -> (f64, f64) {
    let (negative, positive) = (
        !histogram.negative_buckets.is_empty(),
        !histogram.positive_buckets.is_empty(),
    );
    match (negative, positive) {
        (false, true) => (0.0, upper),
        (true, false) => (lower, 0.0),
        _ => (lower, upper),
    }
}

/// The share of observations between `low` and `high`.
pub(crate) fn fraction(low: f64, high: f64, histogram: &Histogram) -> (f64, Seen) {
    if histogram.count == 0.0 || low.is_nan() || high.is_nan() {
        return (f64::NAN, Seen::Fine);
    }
    if low >= high {
        return (0.0, Seen::Fine);
    }
    let buckets = histogram.buckets();
    let (count, seen) = if histogram.sum.is_nan() {
        (buckets.iter().map(|b| b.count).sum(), Seen::NanAside)
    } else {
        (histogram.count, Seen::Fine)
    };
    let rank = |value: f64| -> f64 {
        let mut below = 0.0;
        for bucket in &buckets {
            let (mut lower, mut upper) = (bucket.lower, bucket.upper);
            let linear = histogram.is_custom() || (lower <= 0.0 && upper >= 0.0);
            if lower <= 0.0 && upper >= 0.0 {
                (lower, upper) = one_sided(histogram, lower, upper);
            }
            if lower >= value {
                return below;
            }
            if upper > value {
                return if !linear {
                    below + bucket.count * exponential_share(lower, upper, value)
                } else if lower == f64::NEG_INFINITY {
                    bucket.count
                } else {
                    below + bucket.count * (value - lower) / (upper - lower)
                };
            }
            below += bucket.count;
        }
        count
    };
    let (low, high) = (rank(low).min(count), rank(high).min(count));
    ((high - low) / histogram.count, seen)
}

/// The share of a bucket that lies below `value`, on a logarithmic scale.
pub(super) fn exponential_share(lower: f64, upper: f64, value: f64) -> f64 {
    let (log_lower, log_upper, log) = (lower.abs().log2(), upper.abs().log2(), value.abs().log2());
    if value > 0.0 {
        (log - log_lower) / (log_upper - log_lower)
    } else {
        1.0 - (log - log_upper) / (log_lower - log_upper)
    }
}

/// The estimated variance: every observation counts as the middle of its bucket.
pub(crate) fn variance(histogram: &Histogram) -> f64 {
    let mean = histogram.sum / histogram.count;
    let mut squares = Sum::default();
    for bucket in histogram.buckets().iter().filter(|b| b.count != 0.0) {
        let middle = if histogram.is_custom() {
            f64::midpoint(bucket.upper, bucket.lower)
        } else if bucket.lower <= 0.0 && bucket.upper >= 0.0 {
            0.0
        } else {
            (bucket.upper * bucket.lower).sqrt().copysign(bucket.upper)
        };
        squares.add(bucket.count * (middle - mean) * (middle - mean));
    }
    squares.total() / histogram.count
}
