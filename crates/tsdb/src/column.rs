//! Columns of samples joined, cut and merged, native histograms included.
//!
//! Invariant (of [`Column`]): the histograms are none, or as many as there are samples.

use std::ops::Range;
use std::sync::Arc;

use model::{Column, Histogram, Millis};

/// Adds the samples in `range` of `from`, later than those there, to `into`.
pub fn extend(into: &mut Column, from: &Column, range: Range<usize>) {
    let before = into.values.len();
    into.times.extend_from_slice(&from.times[range.clone()]);
    into.values.extend_from_slice(&from.values[range.clone()]);
    extend_histograms(into, before, from, range);
}

/// The same for the histograms alone, where the values are there already.
fn extend_histograms(into: &mut Column, before: usize, from: &Column, range: Range<usize>) {
    if from.histograms.is_empty() {
        level(into);
        return;
    }
    let part = &from.histograms[range];
    if into.histograms.is_empty() && part.iter().all(Option::is_none) {
        return;
    }
    into.histograms.resize(before, None);
    into.histograms.extend_from_slice(part);
}

/// After plain values were added: they are no histograms.
pub fn level(column: &mut Column) {
    if !column.histograms.is_empty() {
        column.histograms.resize(column.values.len(), None);
    }
}

/// Cuts the samples from `at` on off the end.
pub fn split_off(column: &mut Column, at: usize) -> Column {
    let histograms = if column.histograms.is_empty() {
        Vec::new()
    } else {
        column.histograms.split_off(at)
    };
    Column {
        times: column.times.split_off(at),
        values: column.values.split_off(at),
        histograms,
    }
}

/// Removes the first `count` samples.
pub fn drop_front(column: &mut Column, count: usize) {
    column.times.drain(..count);
    column.values.drain(..count);
    if !column.histograms.is_empty() {
        column.histograms.drain(..count);
    }
}

/// Puts a sample at place `at`.
pub fn insert(column: &mut Column, at: usize, time: Millis, value: &Value) {
    if let Value::Histogram(histogram) = value {
        column.histograms.resize(column.times.len(), None);
        column.histograms.insert(at, Some(Arc::clone(histogram)));
    } else if !column.histograms.is_empty() {
        column.histograms.insert(at, None);
    }
    column.times.insert(at, time);
    column.values.insert(at, value.float());
}

/// Adds the samples of `from` in `mint..=maxt` to `into`.
pub fn clip(from: &Column, mint: Millis, maxt: Millis, into: &mut Column) {
    let start = from.times.partition_point(|&t| t < mint);
    let end = from.times.partition_point(|&t| t <= maxt);
    if start < end {
        extend(into, from, start..end);
    }
}

/// Merges `other` into `column`, both in order; where both have a timestamp, `column` wins.
pub fn merge(column: &mut Column, other: &Column) {
    if other.is_empty() {
        return;
    }
    if column.times.last().is_none_or(|l| *l < other.times[0]) {
        extend(column, other, 0..other.len());
        return;
    }
    let have = std::mem::take(column);
    let (mut i, mut j) = (0, 0);
    while i < have.len() || j < other.len() {
        let left = have.times.get(i).copied().unwrap_or(Millis::MAX);
        let right = other.times.get(j).copied().unwrap_or(Millis::MAX);
        if i < have.len() && (left <= right || j >= other.len()) {
            extend(column, &have, i..i + 1);
            i += 1;
            if left == right && j < other.len() {
                j += 1;
            }
        } else {
            extend(column, other, j..j + 1);
            j += 1;
        }
    }
}

/// Keeps the samples whose time `keep` accepts.
pub fn retain(column: &mut Column, keep: impl Fn(Millis) -> bool) {
    if column.times.iter().all(|&t| keep(t)) {
        return;
    }
    let whole = std::mem::take(column);
    for (i, &time) in whole.times.iter().enumerate() {
        if keep(time) {
            extend(column, &whole, i..i + 1);
        }
    }
}

/// What a sample says.
#[derive(Debug, Clone)]
pub enum Value {
    /// A number.
    Float(f64),
    /// A distribution.
    Histogram(Arc<Histogram>),
}

impl Value {
    /// The number in the column of values.
    #[must_use]
    pub fn float(&self) -> f64 {
        match self {
            Self::Float(value) => *value,
            Self::Histogram(histogram) => histogram.sum,
        }
    }

    /// Whether both say the same, to the bit.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Histogram(a), Self::Histogram(b)) => {
                let bytes = |h| {
                    let mut out = Vec::new();
                    crate::codec::histograms::put(h, &mut out);
                    out
                };
                Arc::ptr_eq(a, b) || bytes(a) == bytes(b)
            }
            _ => false,
        }
    }

    /// The sample at a place of a column.
    #[must_use]
    pub fn at(column: &Column, at: usize) -> Self {
        match column.histograms.get(at) {
            Some(Some(histogram)) => Self::Histogram(Arc::clone(histogram)),
            _ => Self::Float(column.values[at]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Floats as they are, a histogram as its sum above 100.
    fn of(samples: &[(Millis, f64)]) -> Column {
        let mut column = Column::default();
        for &(time, value) in samples {
            if value > 100.0 {
                let sum = Histogram {
                    sum: value,
                    ..Histogram::default()
                };
                column.push_histogram(time, Arc::new(sum));
            } else {
                column.push(time, value);
            }
        }
        column
    }

    #[track_caller]
    fn check(a: &[(Millis, f64)], b: &[(Millis, f64)], want: &[(Millis, f64)]) {
        let mut merged = of(a);
        merge(&mut merged, &of(b));
        assert_eq!(merged, of(want));
        // Cut anywhere and joined again it is the same.
        for at in 0..=want.len() {
            let mut head = of(want);
            let tail = split_off(&mut head, at);
            extend(&mut head, &tail, 0..tail.len());
            assert!(head.histograms.is_empty() || head.histograms.len() == head.len());
            let sums = |c: &Column| (0..c.len()).map(|i| Value::at(c, i).float()).collect::<Vec<_>>();
            assert_eq!(sums(&head), sums(&of(want)));
        }
    }

    #[test]
    fn floats_and_histograms_are_merged_and_the_first_wins() {
        check(&[(1, 1.0)], &[(2, 200.0)], &[(1, 1.0), (2, 200.0)]);
        check(
            &[(1, 150.0), (3, 3.0)],
            &[(1, 1.0), (2, 2.0)],
            &[(1, 150.0), (2, 2.0), (3, 3.0)],
        );
        check(&[(5, 5.0)], &[(1, 101.0), (2, 2.0)], &[(1, 101.0), (2, 2.0), (5, 5.0)]);
        check(&[], &[(1, 101.0)], &[(1, 101.0)]);
    }

    #[test]
    fn samples_go_by_their_time() {
        let mut column = of(&[(1, 1.0), (2, 200.0), (3, 3.0)]);
        retain(&mut column, |t| t != 2);
        assert_eq!(column.values, [1.0, 3.0]);
        insert(&mut column, 1, 2, &Value::Float(9.0));
        assert_eq!(column.values, [1.0, 9.0, 3.0]);
    }
}
