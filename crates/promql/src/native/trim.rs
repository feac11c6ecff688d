//! `</` and `>/`: the observations below or above a value alone.

use model::{Bucket, Histogram};

use super::distribution::{exponential_share, one_sided};

/// What stays of a histogram below (`keep_below`) or above `limit`; a bucket that is cut is interpolated, one
/// without an end is kept or dropped whole.
pub(crate) fn trim(histogram: &Histogram, limit: f64, keep_below: bool) -> Histogram {
    let mut out = histogram.clone();
    let mut cut = Cut {
        histogram,
        limit,
        keep_below,
        count: 0.0,
        sum: 0.0,
        changed: false,
    };
    for positive in [true, false] {
        let (spans, buckets, kept) = if positive {
            (
                &histogram.positive_spans,
                &histogram.positive_buckets,
                &mut out.positive_buckets,
            )
        } else {
            (
                &histogram.negative_spans,
                &histogram.negative_buckets,
                &mut out.negative_buckets,
            )
        };
        for ((index, count), kept) in model::histogram::indexed(spans, buckets).zip(kept) {
            let (near, far) = (histogram.bound(index.saturating_sub(1)), histogram.bound(index));
            let (lower, upper) = if positive { (near, far) } else { (-far, -near) };
            *kept = cut.bucket(lower, upper, count);
        }
    }
    if histogram.zero_count > 0.0 {
        let width = histogram.zero_threshold;
        let (lower, upper) = one_sided(histogram, -width, width);
        out.zero_count = cut.zeros(Bucket {
            lower,
            upper,
            lower_inclusive: true,
            upper_inclusive: true,
            count: histogram.zero_count,
        });
    }
    if !cut.changed {
        return out;
    }
    out.count = cut.count;
    out.sum = cut.sum;
    super::compact(&out)
}

struct Cut<'a> {
    histogram: &'a Histogram,
    limit: f64,
    keep_below: bool,
    /// Of what is kept.
    count: f64,
    sum: f64,
    changed: bool,
}

impl Cut<'_> {
    /// Keeps what is to be kept of a bucket and returns its count.
    fn bucket(&mut self, lower: f64, upper: f64, count: f64) -> f64 {
        if count == 0.0 {
            return 0.0;
        }
        let whole = if self.keep_below {
            upper <= self.limit
        } else {
            lower >= self.limit
        };
        let apart = if self.keep_below {
            lower >= self.limit
        } else {
            upper <= self.limit
        };
        let (kept, middle) = if whole {
            (count, self.middle(lower, upper))
        } else if apart || self.limit.is_nan() {
            (0.0, 0.0)
        } else {
            self.part(lower, upper, count)
        };
        self.keep(count, kept, middle)
    }

    /// A bucket with the limit inside.
    fn part(&self, mut lower: f64, upper: f64, count: f64) -> (f64, f64) {
        let limit = self.limit;
        if !self.histogram.is_custom() {
            let below = exponential_share(lower, upper, limit);
            return if self.keep_below {
                (count * below, self.middle(lower, limit))
            } else {
                (count * (1.0 - below), self.middle(limit, upper))
            };
        }
        match (lower == f64::NEG_INFINITY, upper == f64::INFINITY) {
            (true, true) => return (0.0, 0.0),
            // A bucket up to something above zero begins at zero, as in classic histograms.
            (true, false) if upper > 0.0 => {
                if limit < 0.0 || (self.keep_below && limit == 0.0) {
                    return (0.0, 0.0);
                }
                lower = 0.0;
            }
            (true, false) if self.keep_below => return (count, limit),
            (true, false) => return (0.0, 0.0),
            (false, true) if self.keep_below => return (0.0, 0.0),
            (false, true) => return (count, limit),
            (false, false) => {}
        }
        if self.keep_below {
            (count * (limit - lower) / (upper - lower), f64::midpoint(lower, limit))
        } else {
            (count * (upper - limit) / (upper - lower), f64::midpoint(limit, upper))
        }
    }

    fn zeros(&mut self, zero: Bucket) -> f64 {
        let (kept_lower, kept_upper) = if self.keep_below {
            (zero.lower, zero.upper.min(self.limit))
        } else {
            (zero.lower.max(self.limit), zero.upper)
        };
        let whole = kept_lower == zero.lower && kept_upper == zero.upper;
        let kept = if whole {
            zero.count
        } else if kept_lower < kept_upper && !self.limit.is_nan() {
            zero.count * (kept_upper - kept_lower) / (zero.upper - zero.lower)
        } else {
            0.0
        };
        let middle = if kept == 0.0 {
            0.0
        } else {
            f64::midpoint(kept_lower, kept_upper)
        };
        self.keep(zero.count, kept, middle)
    }

    fn keep(&mut self, had: f64, kept: f64, middle: f64) -> f64 {
        self.changed |= had != kept;
        self.count += kept;
        if kept != 0.0 {
            self.sum += kept * middle;
        }
        kept
    }

    /// What observations in a bucket are taken for.
    fn middle(&self, lower: f64, upper: f64) -> f64 {
        if !self.histogram.is_custom() {
            return (lower * upper).sqrt().copysign(if lower < 0.0 { -1.0 } else { 1.0 });
        }
        match (lower == f64::NEG_INFINITY, upper == f64::INFINITY) {
            (true, true) => 0.0,
            (true, false) if upper > 0.0 => upper / 2.0,
            (true, false) => upper,
            (false, true) => lower,
            (false, false) => f64::midpoint(lower, upper),
        }
    }
}
