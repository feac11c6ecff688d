//! Quantiles of plain numbers; NaN counts as the smallest of all.

use std::cmp::Ordering;
use std::ops::Range;

/// The `q`-quantile of sorted values, interpolated between neighbours.
///
/// NaN when there is no value or `q` is NaN; -Inf below `q` = 0 and +Inf above 1.
pub(crate) fn quantile(q: f64, sorted: &[f64]) -> f64 {
    if sorted.is_empty() || q.is_nan() {
        return f64::NAN;
    }
    if q < 0.0 {
        return f64::NEG_INFINITY;
    }
    if q > 1.0 {
        return f64::INFINITY;
    }
    let rank = q * (sorted.len() - 1) as f64;
    let below = rank.floor();
    let weight = rank - below;
    // Between 0 and the number of values.
    let lower = below as usize;
    let upper = (lower + 1).min(sorted.len() - 1);
    sorted[lower] * (1.0 - weight) + sorted[upper] * weight
}

/// Orders numbers with NaN first.
pub(crate) fn nan_first(a: &f64, b: &f64) -> Ordering {
    a.partial_cmp(b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

/// The values of a window that slides, always sorted.
#[derive(Debug, Default)]
pub(crate) struct Sorted(Vec<f64>);

impl Sorted {
    /// Forgets all values.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The values in order.
    pub(crate) fn values(&self) -> &[f64] {
        &self.0
    }

    /// Makes the values those of `now`, knowing that they are those of `held`; both ends only move up.
    pub(crate) fn slide(&mut self, all: &[f64], held: &Range<usize>, now: &Range<usize>) {
        let kept = now.start.max(held.start)..held.end;
        // Moving few values costs less than sorting many.
        if kept.len() * 2 < now.len() {
            self.0.clear();
            self.0.extend_from_slice(&all[now.clone()]);
            self.0.sort_unstable_by(nan_first);
            return;
        }
        for value in &all[held.start..kept.start] {
            let at = self.0.partition_point(|v| nan_first(v, value) == Ordering::Less);
            self.0.remove(at);
        }
        for value in &all[kept.end..now.end] {
            let at = self.0.partition_point(|v| nan_first(v, value) == Ordering::Less);
            self.0.insert(at, *value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_between_two_values_is_interpolated() {
        for (q, values, want) in [
            (0.8, &[0.0, 1.0][..], 0.8),
            (0.8, &[0.0, 1.0, 4.0], 2.8),
            (0.8, &[f64::NAN, 0.0, 1.0], 0.6),
            (1.0, &[1.0], 1.0),
            (-1.0, &[1.0], f64::NEG_INFINITY),
            (2.0, &[1.0], f64::INFINITY),
        ] {
            assert!(
                (quantile(q, values) - want).abs() < 1e-12 || quantile(q, values) == want,
                "{q} {values:?}"
            );
        }
        assert!(quantile(0.2, &[f64::NAN, 0.0, 1.0]).is_nan());
        assert!(quantile(0.5, &[]).is_nan());
    }

    #[test]
    fn a_sliding_window_stays_sorted() {
        let mut random = fastrand::Rng::with_seed(3);
        let all: Vec<f64> = (0..200)
            .map(|_| {
                if random.u8(..) < 20 {
                    f64::NAN
                } else {
                    f64::from(random.u8(..))
                }
            })
            .collect();
        for width in [1, 5, 40] {
            let mut sorted = Sorted::default();
            let mut held = 0..0;
            let mut start = 0;
            while start + width <= all.len() {
                let now = start..start + width;
                sorted.slide(&all, &held, &now);
                let mut want = all[now.clone()].to_vec();
                want.sort_by(nan_first);
                assert_eq!(format!("{:?}", sorted.values()), format!("{want:?}"));
                held = now;
                start += random.usize(1..4);
            }
        }
    }
}
