//! `…_over_time` and their kin: one number out of the samples of a window.

use std::ops::Range;

use model::{Column, Millis};

use super::quantile::{Ranked, quantile, quantile_of};
use super::regression::Line;
use super::sum::{Mean, Sum, no_distance};
use super::window::{Fold, Frame, fold};

/// Buffers used again from series to series.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    sums: Vec<Sum>,
    largest: Vec<Extreme<false>>,
    smallest: Vec<Extreme<true>>,
    moments: Vec<Moments>,
    pub(crate) lines: Vec<Line>,
    pub(crate) near: Column,
    numbers: Vec<f64>,
    ranked: Ranked,
    marks: Vec<u32>,
}

/// `sum_over_time`
pub(crate) fn sum(frame: &Frame, column: &Column, scratch: &mut Scratch, out: &mut [f64]) {
    fold::<Sum>(frame, column, &mut scratch.sums, |step, _, sum| out[step] = sum.total());
}

/// `avg_over_time`
pub(crate) fn avg(frame: &Frame, column: &Column, scratch: &mut Scratch, out: &mut [f64]) {
    fold::<Sum>(frame, column, &mut scratch.sums, |step, window, sum| {
        let count = window.len() as f64;
        // An overflow, or an infinity among the values: the mean is taken sample by sample then.
        out[step] = if sum.sum.is_finite() {
            sum.sum / count + sum.lost / count
        } else {
            mean(&column.values[window])
        };
    });
}

fn mean(values: &[f64]) -> f64 {
    let mut mean = Mean::default();
    values.iter().for_each(|v| mean.add(*v));
    mean.value()
}

impl Fold for Sum {
    #[inline]
    fn of(_: Millis, value: f64) -> Self {
        Self::of(value)
    }

    #[inline]
    fn join(self, later: Self) -> Self {
        self.join(later)
    }
}

/// What of an extreme value is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Facet {
    /// The value.
    Value,
    /// Its moment, in seconds.
    Moment,
}

/// `max_over_time`, `ts_of_max_over_time`
pub(crate) fn max(facet: Facet, frame: &Frame, column: &Column, scratch: &mut Scratch, out: &mut [f64]) {
    fold::<Extreme<false>>(frame, column, &mut scratch.largest, |step, _, found| {
        out[step] = found.facet(facet);
    });
}

/// `min_over_time`, `ts_of_min_over_time`
pub(crate) fn min(facet: Facet, frame: &Frame, column: &Column, scratch: &mut Scratch, out: &mut [f64]) {
    fold::<Extreme<true>>(frame, column, &mut scratch.smallest, |step, _, found| {
        out[step] = found.facet(facet);
    });
}

/// The largest or smallest value with its moment; a NaN only where there is nothing else.
#[derive(Debug, Clone, Copy)]
struct Extreme<const SMALLEST: bool> {
    value: f64,
    time: Millis,
}

impl<const SMALLEST: bool> Extreme<SMALLEST> {
    fn facet(self, facet: Facet) -> f64 {
        match facet {
            Facet::Value => self.value,
            Facet::Moment => seconds(self.time),
        }
    }
}

impl<const SMALLEST: bool> Fold for Extreme<SMALLEST> {
    #[inline]
    fn of(time: Millis, value: f64) -> Self {
        Self { value, time }
    }

    /// Of equal values the later one counts: `ts_of_max_over_time` is defined so.
    #[inline]
    fn join(self, later: Self) -> Self {
        let better = if SMALLEST {
            later.value <= self.value
        } else {
            later.value >= self.value
        };
        if better || self.value.is_nan() { later } else { self }
    }
}

/// `stdvar_over_time`, and `stddev_over_time` with `root`.
pub(crate) fn variance(root: bool, frame: &Frame, column: &Column, scratch: &mut Scratch, out: &mut [f64]) {
    fold::<Moments>(frame, column, &mut scratch.moments, |step, _, moments| {
        let variance = moments.squares / moments.count;
        out[step] = if root { variance.sqrt() } else { variance };
    });
}

/// Count, mean and sum of squared distances from it.
#[derive(Debug, Clone, Copy)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Fold for Moments {
    #[inline]
    fn of(_: Millis, value: f64) -> Self {
        Self {
            count: 1.0,
            mean: value,
            squares: no_distance(value),
        }
    }

    #[inline]
    fn join(self, later: Self) -> Self {
        let count = self.count + later.count;
        let distance = later.mean - self.mean;
        let share = later.count / count;
        Self {
            count,
            mean: self.mean + distance * share,
            squares: self.squares + later.squares + distance * distance * self.count * share,
        }
    }
}

/// `quantile_over_time`
pub(crate) fn quantiles(
    q: impl Fn(usize) -> f64,
    frame: &Frame,
    column: &Column,
    scratch: &mut Scratch,
    out: &mut [f64],
) {
    if !frame.overlaps() {
        let numbers = &mut scratch.numbers;
        frame.each(column, |step, window| {
            numbers.clear();
            numbers.extend_from_slice(&column.values[window]);
            out[step] = quantile_of(q(step), numbers);
        });
        return;
    }
    let ranked = &mut scratch.ranked;
    ranked.begin(&column.values);
    let mut held = 0..0;
    frame.each(column, |step, window| {
        ranked.slide(&held, &window);
        out[step] = ranked.quantile(q(step), window.len());
        held = window;
    });
}

/// `mad_over_time`: the median distance from the median.
pub(crate) fn median_distance(frame: &Frame, column: &Column, scratch: &mut Scratch, out: &mut [f64]) {
    let numbers = &mut scratch.numbers;
    frame.each(column, |step, window| {
        numbers.clear();
        numbers.extend_from_slice(&column.values[window]);
        if numbers.iter().any(|v| v.is_nan()) {
            out[step] = f64::NAN;
            return;
        }
        numbers.sort_unstable_by(f64::total_cmp);
        let median = quantile(0.5, numbers);
        numbers.iter_mut().for_each(|v| *v = (*v - median).abs());
        numbers.sort_unstable_by(f64::total_cmp);
        out[step] = quantile(0.5, numbers);
    });
}

/// `changes`
pub(crate) fn changes(frame: &Frame, column: &Column, scratch: &mut Scratch, out: &mut [f64]) {
    pairs(frame, column, &mut scratch.marks, out, |before, value| {
        before != value && !(before.is_nan() && value.is_nan())
    });
}

/// `resets`
pub(crate) fn resets(frame: &Frame, column: &Column, scratch: &mut Scratch, out: &mut [f64]) {
    pairs(frame, column, &mut scratch.marks, out, |before, value| value < before);
}

/// Counts the neighbours within each window for which `counts` holds.
fn pairs(frame: &Frame, column: &Column, marks: &mut Vec<u32>, out: &mut [f64], counts: impl Fn(f64, f64) -> bool) {
    marks.clear();
    let mut before = None;
    let mut count = 0;
    marks.extend(column.values.iter().map(|value| {
        count += u32::from(before.is_some_and(|b| counts(b, *value)));
        before = Some(*value);
        count
    }));
    frame.each(column, |step, window| {
        out[step] = f64::from(marks[window.end - 1] - marks[window.start]);
    });
}

/// A function that looks at the places of a window alone: `count_over_time`, `last_over_time` and so on.
pub(crate) fn each(frame: &Frame, column: &Column, out: &mut [f64], f: impl Fn(&Column, Range<usize>) -> f64) {
    frame.each(column, |step, window| out[step] = f(column, window));
}

/// `double_exponential_smoothing` with smoothing and trend factors between 0 and 1.
pub(crate) fn smooth(factors: impl Fn(usize) -> (f64, f64), frame: &Frame, column: &Column, out: &mut [f64]) {
    frame.each(column, |step, window| {
        let values = &column.values[window];
        if values.len() < 2 {
            return;
        }
        let (smoothing, trending) = factors(step);
        let mut level = values[0];
        let mut level_before = 0.0;
        let mut trend = values[1] - values[0];
        for (i, value) in values[1..].iter().enumerate() {
            if i > 0 {
                trend = trending * (level - level_before) + (1.0 - trending) * trend;
            }
            let next = smoothing * value + (1.0 - smoothing) * (level + trend);
            (level_before, level) = (level, next);
        }
        out[step] = level;
    });
}

/// Milliseconds as seconds.
pub(crate) fn seconds(millis: Millis) -> f64 {
    millis as f64 / 1000.0
}
