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

/// The `q`-quantile of values in any order, which is lost.
pub(crate) fn quantile_of(q: f64, values: &mut [f64]) -> f64 {
    let Some((lower, weight)) = place(q, values.len()) else {
        return quantile(q, values);
    };
    let (_, low, above) = values.select_nth_unstable_by(lower, nan_first);
    let low = *low;
    let high = above.iter().copied().min_by(nan_first).unwrap_or(low);
    low * (1.0 - weight) + high * weight
}

/// The lower place and the weight of the upper one; `None` where the quantile has nothing to do with the values.
fn place(q: f64, count: usize) -> Option<(usize, f64)> {
    if count == 0 || !(0.0..=1.0).contains(&q) {
        return None;
    }
    let rank = q * (count - 1) as f64;
    let below = rank.floor();
    // Between 0 and the number of values.
    Some((below as usize, rank - below))
}

/// The values of a window that slides over a column, by rank: each value's rank is found once, a window is a set
/// of ranks, and the value at a place of its order is found by counting bits.
#[derive(Debug, Default)]
pub(crate) struct Ranked {
    keys: Vec<(u64, u32)>,
    /// The rank of each value of the column.
    ranks: Vec<u32>,
    /// The values by rank.
    sorted: Vec<f64>,
    /// The ranks within the window.
    words: Vec<u64>,
    /// How many of them lie in each run of [`RUN`] words.
    runs: Vec<u32>,
}

/// Words counted together.
const RUN: usize = 8;

impl Ranked {
    /// Begins with a column and an empty window.
    pub(crate) fn begin(&mut self, values: &[f64]) {
        self.keys.clear();
        self.keys.extend((0_u32..).zip(values).map(|(i, v)| (order_key(*v), i)));
        self.keys.sort_unstable();
        self.ranks.clear();
        self.ranks.resize(values.len(), 0);
        self.sorted.clear();
        for (rank, (_, at)) in (0_u32..).zip(&self.keys) {
            self.ranks[*at as usize] = rank;
            self.sorted.push(values[*at as usize]);
        }
        let words = values.len().div_ceil(64);
        self.words.clear();
        self.words.resize(words, 0);
        self.runs.clear();
        self.runs.resize(words.div_ceil(RUN), 0);
    }

    /// Makes the window `now`, knowing that it is `held`; both ends only move up.
    pub(crate) fn slide(&mut self, held: &Range<usize>, now: &Range<usize>) {
        let kept_start = now.start.max(held.start).min(held.end);
        for at in held.start..kept_start {
            let (word, bit) = self.bit(at);
            self.words[word] &= !bit;
            self.runs[word / RUN] -= 1;
        }
        for at in held.end.max(now.start)..now.end {
            let (word, bit) = self.bit(at);
            self.words[word] |= bit;
            self.runs[word / RUN] += 1;
        }
    }

    fn bit(&self, at: usize) -> (usize, u64) {
        let rank = self.ranks[at] as usize;
        (rank / 64, 1 << (rank % 64))
    }

    /// The quantile of a window of `count` values.
    pub(crate) fn quantile(&self, q: f64, count: usize) -> f64 {
        let Some((lower, weight)) = place(q, count) else {
            return quantile(q, &[f64::NAN][..count.min(1)]);
        };
        let mut left = u32::try_from(lower).unwrap_or(u32::MAX);
        let mut run = 0;
        while self.runs[run] <= left {
            left -= self.runs[run];
            run += 1;
        }
        let mut word = run * RUN;
        while self.words[word].count_ones() <= left {
            left -= self.words[word].count_ones();
            word += 1;
        }
        let mut bits = self.words[word];
        for _ in 0..left {
            bits &= bits - 1;
        }
        let low = self.sorted[word * 64 + bits.trailing_zeros() as usize];
        if lower + 1 == count {
            return low * (1.0 - weight) + low * weight;
        }
        bits &= bits - 1;
        while bits == 0 {
            word += 1;
            bits = self.words[word];
        }
        let high = self.sorted[word * 64 + bits.trailing_zeros() as usize];
        low * (1.0 - weight) + high * weight
    }
}

/// A number that orders like the value, NaN first.
fn order_key(value: f64) -> u64 {
    if value.is_nan() {
        return 0;
    }
    let bits = value.to_bits();
    let flip = if bits >> 63 == 1 { u64::MAX } else { 1 << 63 };
    bits ^ flip
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
    fn a_sliding_window_knows_its_order() {
        let mut random = fastrand::Rng::with_seed(3);
        let value = |random: &mut fastrand::Rng| match random.u8(..) {
            0..10 => f64::NAN,
            10..15 => f64::NEG_INFINITY,
            15..20 => -0.0,
            _ => f64::from(random.i8(..)),
        };
        let all: Vec<f64> = (0..700).map(|_| value(&mut random)).collect();
        for width in [1, 5, 40, 600] {
            let mut ranked = Ranked::default();
            ranked.begin(&all);
            let mut held = 0..0;
            let mut start = 0;
            while start + width <= all.len() {
                let now = start..start + width;
                ranked.slide(&held, &now);
                let mut sorted = all[now.clone()].to_vec();
                sorted.sort_by(nan_first);
                for q in [-1.0, 0.0, 0.3, 0.5, 0.99, 1.0, 2.0, f64::NAN] {
                    let want = quantile(q, &sorted);
                    let same = |got: f64| got == want || (got.is_nan() && want.is_nan());
                    assert!(same(ranked.quantile(q, width)), "{q} {now:?}");
                    assert!(same(quantile_of(q, &mut all[now.clone()].to_vec())), "{q} {now:?}");
                }
                held = now;
                start += random.usize(1..40);
            }
        }
    }
}
