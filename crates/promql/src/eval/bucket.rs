//! Classic histograms: cumulative counts with upper bounds.

use crate::almost::almost_equal;

/// How many observations were not above `bound`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bucket {
    /// The upper bound, included.
    pub(super) bound: f64,
    /// The cumulative count.
    pub(super) count: f64,
}

/// What was mended to make counts grow with bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Mended {
    /// The smallest and the largest bound touched.
    pub(super) bounds: (f64, f64),
    /// The largest decrease removed.
    pub(super) decrease_max: f64,
}

/// Relative differences up to this are rounding, not a decrease.
const ROUNDING: f64 = 1e-12;

/// The `q`-quantile of buckets sorted by bound, interpolated linearly within a bucket.
///
/// NaN where there is no answer: no observation, a single bucket, or no bucket up to +Inf. The buckets
/// are joined and mended on the way.
pub(super) fn quantile(q: f64, buckets: &mut Vec<Bucket>) -> (f64, Option<Mended>) {
    if q.is_nan() {
        return (f64::NAN, None);
    }
    if q < 0.0 {
        return (f64::NEG_INFINITY, None);
    }
    if q > 1.0 {
        return (f64::INFINITY, None);
    }
    if !reaches_infinity(buckets) {
        return (f64::NAN, None);
    }
    join_equal_bounds(buckets);
    let mended = mend(buckets);
    let last = buckets.len() - 1;
    let observations = buckets[last].count;
    if last == 0 || observations == 0.0 {
        return (f64::NAN, mended);
    }
    let mut rank = q * observations;
    // A NaN among the counts compares with nothing: the last bucket is found then.
    let below = |b: &Bucket| b.count.partial_cmp(&rank).is_none_or(std::cmp::Ordering::is_lt);
    let at = buckets[..last].partition_point(below);
    let found = buckets[at];
    if at == last {
        return (buckets[last - 1].bound, mended);
    }
    if at == 0 && found.bound <= 0.0 {
        return (found.bound, mended);
    }
    let (mut start, mut count) = (0.0, found.count);
    if at > 0 {
        let below = buckets[at - 1];
        start = below.bound;
        count -= below.count;
        rank -= below.count;
    }
    (start + (found.bound - start) * (rank / count), mended)
}

/// The share of observations between `lower` and `upper`, buckets sorted by bound.
pub(super) fn fraction(lower: f64, upper: f64, buckets: &mut Vec<Bucket>) -> f64 {
    if !reaches_infinity(buckets) {
        return f64::NAN;
    }
    join_equal_bounds(buckets);
    let count = buckets.last().map_or(0.0, |b| b.count);
    if count == 0.0 || lower.is_nan() || upper.is_nan() {
        return f64::NAN;
    }
    if lower >= upper {
        return 0.0;
    }
    let rank_of = |value: f64| rank(value, buckets).filter(|rank| *rank <= count).unwrap_or(count);
    (rank_of(upper) - rank_of(lower)) / count
}

/// How many observations lie below `value`; `None` beyond the last bucket.
fn rank(value: f64, buckets: &[Bucket]) -> Option<f64> {
    let mut below = 0.0;
    let mut start = if buckets[0].bound <= 0.0 {
        f64::NEG_INFINITY
    } else {
        0.0
    };
    for bucket in buckets {
        if start >= value {
            return Some(below);
        }
        if bucket.bound > value {
            // A bucket without a lower end has no inside: all of it counts.
            return Some(if start == f64::NEG_INFINITY {
                bucket.count
            } else {
                below + (bucket.count - below) * (value - start) / (bucket.bound - start)
            });
        }
        below = bucket.count;
        start = bucket.bound;
    }
    None
}

fn reaches_infinity(buckets: &[Bucket]) -> bool {
    buckets.last().is_some_and(|b| b.bound == f64::INFINITY)
}

fn join_equal_bounds(buckets: &mut Vec<Bucket>) {
    buckets.dedup_by(|next, kept| {
        let same = next.bound == kept.bound;
        if same {
            kept.count += next.count;
        }
        same
    });
}

/// Removes decreases, and differences that are rounding.
fn mend(buckets: &mut [Bucket]) -> Option<Mended> {
    let mut mended: Option<Mended> = None;
    let mut before = buckets[0].count;
    for bucket in &mut buckets[1..] {
        let count = bucket.count;
        if count == before {
            continue;
        }
        if almost_equal(before, count, ROUNDING) {
            bucket.count = before;
        } else if count < before {
            bucket.count = before;
            let m = mended.get_or_insert(Mended {
                bounds: (bucket.bound, bucket.bound),
                decrease_max: 0.0,
            });
            m.bounds = (m.bounds.0.min(bucket.bound), m.bounds.1.max(bucket.bound));
            m.decrease_max = m.decrease_max.max(before - count);
        } else {
            before = count;
        }
    }
    mended
}

#[cfg(test)]
mod tests {
    use super::*;

    const INF: f64 = f64::INFINITY;

    fn buckets(pairs: &[(f64, f64)]) -> Vec<Bucket> {
        pairs
            .iter()
            .map(|(bound, count)| Bucket {
                bound: *bound,
                count: *count,
            })
            .collect()
    }

    #[track_caller]
    fn check(q: f64, pairs: &[(f64, f64)], want: f64) {
        let (got, _) = quantile(q, &mut buckets(pairs));
        assert!(
            got == want || (got.is_nan() && want.is_nan()),
            "{q} of {pairs:?}: {got}"
        );
    }

    #[test]
    fn quantiles_lie_on_the_line_through_their_bucket() {
        check(0.5, &[(0.0, 0.0), (2.0, 1.0), (4.0, 2.0), (6.0, 3.0), (INF, 3.0)], 3.0);
        check(0.5, &[(1.0, 10.0), (INF, 10.0)], 0.5);
        check(1.0, &[(1.0, 10.0), (INF, 20.0)], 1.0);
        check(0.5, &[(-1.0, 10.0), (INF, 10.0)], -1.0);
        check(0.5, &[(1.0, 10.0)], f64::NAN);
        check(0.5, &[(INF, 10.0)], f64::NAN);
        check(0.5, &[(1.0, 0.0), (INF, 0.0)], f64::NAN);
        check(-0.1, &[(1.0, 1.0), (INF, 1.0)], f64::NEG_INFINITY);
        check(1.1, &[(1.0, 1.0), (INF, 1.0)], INF);
        check(0.5, &[(1.0, 4.0), (1.0, 6.0), (INF, 10.0)], 0.5);
    }

    #[test]
    fn a_decrease_is_mended_and_told() {
        let (got, mended) = quantile(0.5, &mut buckets(&[(1.0, 10.0), (2.0, 6.0), (3.0, 8.0), (INF, 20.0)]));
        assert_eq!(got, 1.0);
        assert_eq!(
            mended,
            Some(Mended {
                bounds: (2.0, 3.0),
                decrease_max: 4.0
            })
        );
        let rounding = quantile(0.5, &mut buckets(&[(1.0, 10.0), (2.0, 10.0 - 1e-13), (INF, 10.0)]));
        assert_eq!(rounding, (0.5, None));
    }

    #[test]
    fn fractions_count_what_lies_between() {
        let pairs = [(1.0, 2.0), (2.0, 4.0), (INF, 8.0)];
        for (lower, upper, want) in [(0.0, 2.0, 0.5), (0.0, INF, 1.0), (1.0, 1.5, 0.125), (2.0, 1.0, 0.0)] {
            assert_eq!(fraction(lower, upper, &mut buckets(&pairs)), want, "{lower} {upper}");
        }
        assert!(fraction(f64::NAN, 1.0, &mut buckets(&pairs)).is_nan());
    }
}
