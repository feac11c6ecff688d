//! Arithmetic of native histograms.
//!
//! A [`Total`] is a histogram being worked on: every number carries what rounding took from it, buckets stand by
//! index without gaps written down. Histograms of different resolution meet at the coarser one, those of
//! different zero buckets at the wider one, those of different custom bounds at the bounds they share.
//!
//! What is deliberately absent: series, steps and notes; whoever calls tells what was met on the way
//! ([`Met`]).

mod distribution;
mod reset;
mod text;
mod trim;

use model::histogram::indexed;
use model::{BucketSpan, Histogram, ResetHint};

pub(crate) use distribution::{Seen, fraction, quantile, variance};
pub(crate) use reset::{appended_hint, is_reset};
pub(crate) use text::{Shown, printed};
pub(crate) use trim::trim;

use crate::eval::Sum;

/// Two histograms of which one has exponential and the other custom buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Incompatible;

/// What was met while histograms were joined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Met {
    /// One knew of a counter reset, the other of none.
    pub(crate) collision: bool,
    /// Custom bounds differed and were brought together.
    pub(crate) reconciled: bool,
}

/// A bucket by its index.
type Cell = (i32, Sum);

/// A histogram being worked on.
#[derive(Debug, Clone)]
pub(crate) struct Total {
    pub(crate) reset: ResetHint,
    schema: i8,
    zero_threshold: f64,
    zero_count: Sum,
    count: Sum,
    sum: Sum,
    positive: Vec<Cell>,
    negative: Vec<Cell>,
    custom: Vec<f64>,
    /// What was met so far.
    pub(crate) met: Met,
}

impl Total {
    /// Begins with a histogram.
    pub(crate) fn of(histogram: &Histogram) -> Self {
        let cells = |spans: &[BucketSpan], buckets: &[f64]| {
            indexed(spans, buckets)
                .filter(|(_, count)| *count != 0.0)
                .map(|(index, count)| (index, Sum::of(count)))
                .collect()
        };
        Self {
            reset: histogram.reset,
            schema: histogram.schema,
            zero_threshold: histogram.zero_threshold,
            zero_count: Sum::of(histogram.zero_count),
            count: Sum::of(histogram.count),
            sum: Sum::of(histogram.sum),
            positive: cells(&histogram.positive_spans, &histogram.positive_buckets),
            negative: cells(&histogram.negative_spans, &histogram.negative_buckets),
            custom: histogram.custom_values.clone(),
            met: Met::default(),
        }
    }

    /// The histogram it has become, empty buckets left out.
    pub(crate) fn finish(self) -> Histogram {
        let (positive_spans, positive_buckets) = spans(&self.positive);
        let (negative_spans, negative_buckets) = spans(&self.negative);
        Histogram {
            reset: self.reset,
            schema: self.schema,
            zero_threshold: self.zero_threshold,
            zero_count: self.zero_count.total(),
            count: self.count.total(),
            sum: self.sum.total(),
            positive_spans,
            negative_spans,
            positive_buckets,
            negative_buckets,
            custom_values: self.custom,
        }
    }

    /// Adds a histogram.
    pub(crate) fn add(&mut self, other: &Histogram) -> Result<(), Incompatible> {
        self.join(other, Sum::add)
    }

    /// Takes a histogram away.
    pub(crate) fn subtract(&mut self, other: &Histogram) -> Result<(), Incompatible> {
        self.join(other, |a, b| a.add(-b))
    }

    fn join(&mut self, other: &Histogram, combine: impl Fn(&mut Sum, f64)) -> Result<(), Incompatible> {
        if other.is_custom() != (self.schema == model::histogram::CUSTOM_BUCKETS_SCHEMA) {
            return Err(Incompatible);
        }
        self.join_hints(other.reset);
        combine(&mut self.count, other.count);
        combine(&mut self.sum, other.sum);
        if other.is_custom() {
            self.join_custom(other, combine);
            return Ok(());
        }
        let zeros = self.widen_zero_bucket(other);
        combine(&mut self.zero_count, zeros);
        if other.schema < self.schema {
            self.coarsen(other.schema);
        }
        let threshold = self.zero_threshold;
        let schema = self.schema;
        let beyond_zero = |(index, _): &(i32, f64)| {
            threshold == 0.0 || model::histogram::exponential_bound(schema, *index) > threshold
        };
        let cells = |spans: &[BucketSpan], buckets: &[f64]| -> Vec<(i32, f64)> {
            coarser(indexed(spans, buckets), other.schema, schema)
                .into_iter()
                .filter(beyond_zero)
                .collect()
        };
        let positive = cells(&other.positive_spans, &other.positive_buckets);
        let negative = cells(&other.negative_spans, &other.negative_buckets);
        merge(&mut self.positive, &positive, &combine);
        merge(&mut self.negative, &negative, &combine);
        Ok(())
    }

    fn join_custom(&mut self, other: &Histogram, combine: impl Fn(&mut Sum, f64)) {
        let theirs = indexed(&other.positive_spans, &other.positive_buckets);
        if same_bounds(&self.custom, &other.custom_values) {
            merge(&mut self.positive, &theirs.collect::<Vec<_>>(), &combine);
            return;
        }
        self.met.reconciled = true;
        let shared = shared_bounds(&self.custom, &other.custom_values);
        let mut own: Vec<Cell> = Vec::with_capacity(self.positive.len());
        for (index, count) in &self.positive {
            let at = placed(*index, &self.custom, &shared);
            match own.last_mut() {
                Some((last, sum)) if *last == at => *sum = sum.join(*count),
                _ => own.push((at, *count)),
            }
        }
        let moved = theirs.map(|(index, count)| (placed(index, &other.custom_values, &shared), count));
        merge(&mut own, &gathered(moved), &combine);
        self.positive = own;
        self.custom = shared;
    }

    /// Multiplies all by a factor.
    pub(crate) fn scale(&mut self, factor: f64) {
        if factor < 0.0 {
            self.reset = ResetHint::Gauge;
        }
        self.each(|number| {
            number.sum *= factor;
            number.lost *= factor;
        });
    }

    /// Divides all by a number; division by zero leaves no bucket.
    pub(crate) fn divide(&mut self, by: f64) {
        if by < 0.0 {
            self.reset = ResetHint::Gauge;
        }
        if by == 0.0 {
            self.positive.clear();
            self.negative.clear();
        }
        self.each(|number| {
            number.sum /= by;
            number.lost = if by == 0.0 { 0.0 } else { number.lost / by };
        });
    }

    /// Whether any number is beyond what a float holds.
    pub(crate) fn overflows(&self) -> bool {
        self.numbers().any(|n| n.sum.is_infinite())
    }

    /// Whether any number is so large that adding to it may leave what a float holds.
    pub(crate) fn is_huge(&self) -> bool {
        self.numbers().any(|n| n.sum.abs() > f64::MAX / 4.0)
    }

    fn numbers(&self) -> impl Iterator<Item = &Sum> {
        let cells = self.positive.iter().chain(&self.negative).map(|(_, sum)| sum);
        [&self.zero_count, &self.count, &self.sum].into_iter().chain(cells)
    }

    fn each(&mut self, mut f: impl FnMut(&mut Sum)) {
        [&mut self.zero_count, &mut self.count, &mut self.sum]
            .into_iter()
            .for_each(&mut f);
        let cells = self.positive.iter_mut().chain(&mut self.negative);
        cells.for_each(|(_, sum)| f(sum));
    }

    fn join_hints(&mut self, other: ResetHint) {
        use ResetHint::{Gauge, Unknown};
        self.reset = match (self.reset, other) {
            (own, other) if own == other => own,
            (Gauge, _) | (_, Gauge) => Gauge,
            (Unknown, _) | (_, Unknown) => Unknown,
            _ => {
                self.met.collision = true;
                Unknown
            }
        };
    }

    /// Brings the zero buckets of both to one width; returns what the other one's then counts.
    fn widen_zero_bucket(&mut self, other: &Histogram) -> f64 {
        let (mut count, mut threshold) = (other.zero_count, other.zero_threshold);
        // Each round makes one of both wider, and buckets are finitely many; a NaN is equal to nothing.
        while threshold != self.zero_threshold && !threshold.is_nan() && !self.zero_threshold.is_nan() {
            if self.zero_threshold > threshold {
                (count, threshold) = reset::zeros_within(other, self.zero_threshold);
            }
            if threshold > self.zero_threshold {
                let own = self.clone().finish();
                let (zeros, wider) = reset::zeros_within(&own, threshold);
                self.zero_count = Sum::of(zeros);
                self.zero_threshold = wider;
                let schema = self.schema;
                let outside =
                    |(index, _): &Cell| model::histogram::exponential_bound(schema, index.saturating_sub(1)) >= wider;
                self.positive.retain(outside);
                self.negative.retain(outside);
            }
        }
        count
    }

    /// Lowers the resolution.
    pub(crate) fn coarsen(&mut self, schema: i8) {
        if self.schema == model::histogram::CUSTOM_BUCKETS_SCHEMA || schema >= self.schema {
            return;
        }
        for cells in [&mut self.positive, &mut self.negative] {
            let mut out: Vec<Cell> = Vec::with_capacity(cells.len());
            for (index, count) in cells.iter() {
                let at = coarser_index(*index, self.schema, schema);
                match out.last_mut() {
                    Some((last, sum)) if *last == at => *sum = sum.join(*count),
                    _ => out.push((at, *count)),
                }
            }
            *cells = out;
        }
        self.schema = schema;
    }
}

/// A running mean of histograms: the sum divided at the end, or, once that would overflow, an incremental mean.
#[derive(Debug, Clone)]
pub(crate) struct Mean {
    total: Total,
    count: f64,
    incremental: bool,
}

impl Mean {
    pub(crate) fn of(histogram: &Histogram) -> Self {
        Self {
            total: Total::of(histogram),
            count: 1.0,
            incremental: false,
        }
    }

    pub(crate) fn add(&mut self, histogram: &Histogram) -> Result<(), Incompatible> {
        self.count += 1.0;
        if !self.incremental {
            if !self.total.is_huge() && !Total::of(histogram).is_huge() {
                return self.total.add(histogram);
            }
            let mut next = self.total.clone();
            next.add(histogram)?;
            if !next.overflows() {
                self.total = next;
                return Ok(());
            }
            self.incremental = true;
            self.total.divide(self.count - 1.0);
        }
        self.total.scale((self.count - 1.0) / self.count);
        let mut share = Total::of(histogram);
        share.divide(self.count);
        self.total.add(&share.finish())
    }

    pub(crate) const fn met(&self) -> Met {
        self.total.met
    }

    pub(crate) fn finish(mut self) -> Histogram {
        if !self.incremental {
            self.total.divide(self.count);
        }
        self.total.finish()
    }
}

/// The same distribution, whatever is known of resets and however buckets are written down.
pub(crate) fn equal(a: &Histogram, b: &Histogram) -> bool {
    let same = |x: f64, y: f64| x.to_bits() == y.to_bits() || x == y;
    let cells = |spans: &[BucketSpan], buckets: &[f64]| -> Vec<(i32, u64)> {
        let all = indexed(spans, buckets).filter(|(_, count)| *count != 0.0);
        all.map(|(index, count)| (index, count.to_bits())).collect()
    };
    a.schema == b.schema
        && same(a.count, b.count)
        && same(a.sum, b.sum)
        && same(a.zero_threshold, b.zero_threshold)
        && same(a.zero_count, b.zero_count)
        && same_bounds(&a.custom_values, &b.custom_values)
        && cells(&a.positive_spans, &a.positive_buckets) == cells(&b.positive_spans, &b.positive_buckets)
        && cells(&a.negative_spans, &a.negative_buckets) == cells(&b.negative_spans, &b.negative_buckets)
}

/// About how many floats a histogram takes in memory.
pub(crate) fn cells(histogram: &Histogram) -> usize {
    16 + histogram.positive_spans.len()
        + histogram.negative_spans.len()
        + histogram.positive_buckets.len()
        + histogram.negative_buckets.len()
        + histogram.custom_values.len()
}

fn same_bounds(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

/// The bounds that both ascending lists have.
fn shared_bounds(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut rest = b.iter().peekable();
    let mut out = Vec::new();
    for bound in a {
        while rest.next_if(|other| **other < *bound).is_some() {}
        if rest.next_if(|other| **other == *bound).is_some() {
            out.push(*bound);
        }
    }
    out
}

/// Where a bucket of custom bounds lies among fewer bounds.
fn placed(index: i32, bounds: &[f64], fewer: &[f64]) -> i32 {
    let upper = usize::try_from(index).ok().and_then(|i| bounds.get(i));
    let at = upper.map_or(fewer.len(), |upper| fewer.partition_point(|bound| bound < upper));
    i32::try_from(at).unwrap_or(i32::MAX)
}

/// The index, at a coarser schema, of the bucket that holds this one.
fn coarser_index(index: i32, from: i8, to: i8) -> i32 {
    let shift = (i32::from(from) - i32::from(to)).clamp(0, 31);
    (index.saturating_sub(1) >> shift).saturating_add(1)
}

/// Buckets at a schema that is coarser, or the same.
fn coarser(cells: impl Iterator<Item = (i32, f64)>, from: i8, to: i8) -> Vec<(i32, f64)> {
    gathered(cells.map(|(index, count)| (coarser_index(index, from, to), count)))
}

/// Neighbours of one index become one.
fn gathered(cells: impl Iterator<Item = (i32, f64)>) -> Vec<(i32, f64)> {
    let mut out: Vec<(i32, f64)> = Vec::new();
    for (index, count) in cells {
        match out.last_mut() {
            Some((last, sum)) if *last == index => *sum += count,
            _ => out.push((index, count)),
        }
    }
    out
}

/// Joins buckets, both lists ascending.
fn merge(into: &mut Vec<Cell>, from: &[(i32, f64)], combine: impl Fn(&mut Sum, f64)) {
    let same_places = into.len() == from.len() && into.iter().zip(from).all(|(a, b)| a.0 == b.0);
    if same_places {
        for (cell, (_, count)) in into.iter_mut().zip(from) {
            combine(&mut cell.1, *count);
        }
        return;
    }
    let mut out = Vec::with_capacity(into.len().max(from.len()));
    let mut own = into.drain(..).peekable();
    for (index, count) in from {
        while let Some(cell) = own.next_if(|cell| cell.0 < *index) {
            out.push(cell);
        }
        let mut cell = own.next_if(|cell| cell.0 == *index).unwrap_or((*index, Sum::of(0.0)));
        combine(&mut cell.1, *count);
        out.push(cell);
    }
    out.extend(own);
    *into = out;
}

/// Buckets as runs, empty ones left out.
fn spans(cells: &[Cell]) -> (Vec<BucketSpan>, Vec<f64>) {
    let mut spans: Vec<BucketSpan> = Vec::new();
    let mut buckets = Vec::with_capacity(cells.len());
    let mut next = 0_i64;
    for (index, count) in cells {
        let count = count.total();
        if count == 0.0 {
            continue;
        }
        let index = i64::from(*index);
        match spans.last_mut() {
            Some(span) if index == next => span.length += 1,
            _ => spans.push(BucketSpan {
                offset: i32::try_from(index - next).unwrap_or(i32::MAX),
                length: 1,
            }),
        }
        next = index + 1;
        buckets.push(count);
    }
    (spans, buckets)
}

/// A histogram without empty buckets.
pub(crate) fn compact(histogram: &Histogram) -> Histogram {
    Total::of(histogram).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testscript::notation::parse_histogram;

    #[track_caller]
    fn check(a: &str, b: &str, want: &str) {
        let [a, b] = [a, b].map(|text| parse_histogram(text).expect("a histogram"));
        let mut total = Total::of(&a);
        let got = total.add(&b).map(|()| Shown(&total.finish()).to_string());
        assert_eq!(
            got.as_deref(),
            if want.is_empty() { Err(&Incompatible) } else { Ok(want) }
        );
    }

    #[test]
    fn histograms_meet_at_the_coarser_resolution() {
        check(
            "{{schema:1 count:3 sum:3 buckets:[1 1 1]}}",
            "{{count:2 sum:2 buckets:[1 1]}}",
            "{{count:5 sum:5 buckets:[2 3]}}",
        );
        check("{{count:1 buckets:[1]}}", "{{schema:-53 custom_values:[1]}}", "");
    }

    #[test]
    fn histograms_meet_at_the_wider_zero_bucket() {
        check(
            "{{count:4 z_bucket:1 z_bucket_w:0.001 offset:-1 buckets:[1 2]}}",
            "{{count:1 z_bucket:1 z_bucket_w:0.5}}",
            "{{count:5 z_bucket:3 z_bucket_w:0.5 buckets:[2]}}",
        );
    }

    #[test]
    fn custom_bounds_meet_where_they_agree() {
        check(
            "{{schema:-53 custom_values:[1 2 3] buckets:[1 1 1 1]}}",
            "{{schema:-53 custom_values:[2 4] buckets:[1 1 1]}}",
            "{{schema:-53 custom_values:[2] buckets:[3 4]}}",
        );
    }
}
