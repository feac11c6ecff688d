//! `deriv` and `predict_linear`: the straight line nearest to the samples of a window.

use std::ops::Range;

use model::{Column, Millis};

use super::over_time::Scratch;
use super::sum::Sum;
use super::window::{Fold, Frame, fold};

/// Means and centred products of time and value: all that the line needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    count: f64,
    time: f64,
    value: f64,
    /// Sum of products of both distances from the means.
    both: f64,
    /// Sum of squared distances of the times.
    times: f64,
    /// The value that all samples share, as long as they do.
    constant: Option<f64>,
}

impl Fold for Line {
    #[inline]
    fn of(time: Millis, value: f64) -> Self {
        Self {
            count: 1.0,
            time: time as f64 / 1000.0,
            value,
            both: 0.0,
            times: 0.0,
            constant: Some(value),
        }
    }

    #[inline]
    fn join(self, later: Self) -> Self {
        let count = self.count + later.count;
        let (time, value) = (later.time - self.time, later.value - self.value);
        let share = later.count / count;
        Self {
            count,
            time: self.time + time * share,
            value: self.value + value * share,
            both: self.both + later.both + time * value * self.count * share,
            times: self.times + later.times + time * time * self.count * share,
            constant: self.constant.filter(|v| Some(*v) == later.constant),
        }
    }
}

impl Line {
    /// The slope per second, and the value at `at` seconds; `None` where a value is not finite.
    fn solve(&self, at: f64) -> Option<(f64, f64)> {
        match self.constant {
            Some(value) if value.is_infinite() => Some((f64::NAN, f64::NAN)),
            Some(value) => Some((0.0, value)),
            None => {
                let slope = self.both / self.times;
                self.both
                    .is_finite()
                    .then_some((slope, self.value + slope * (at - self.time)))
            }
        }
    }
}

/// The slope and the value at `at` by plain sums: with infinities among the values the result is what
/// their order makes of it.
fn plain(column: &Column, window: Range<usize>, at: Millis) -> (f64, f64) {
    let count = window.len() as f64;
    let mut sums = [Sum::default(); 4];
    for (time, value) in column.times[window.clone()].iter().zip(&column.values[window]) {
        let x = (time - at) as f64 / 1000.0;
        for (sum, term) in sums.iter_mut().zip([x, *value, x * value, x * x]) {
            sum.add(term);
        }
    }
    let [x, y, xy, xx] = sums.map(|s| s.sum + s.lost);
    let slope = (xy - x * y / count) / (xx - x * x / count);
    (slope, y / count - slope * x / count)
}

/// `deriv`: the slope over each window of two samples or more, per second.
pub(crate) fn slope(frame: &Frame, column: &Column, scratch: &mut Scratch, out: &mut [f64]) {
    lines(frame, column, scratch, |step, window, line, near| {
        let solved = line.solve(0.0);
        let (slope, _) = solved.unwrap_or_else(|| plain(near, window.clone(), near.times[window.start]));
        out[step] = slope;
    });
}

/// `predict_linear`: the line's value `ahead` seconds after the step.
pub(crate) fn predict(
    ahead: impl Fn(usize) -> f64,
    frame: &Frame,
    column: &Column,
    scratch: &mut Scratch,
    out: &mut [f64],
) {
    let origin = column.times.first().copied().unwrap_or(0);
    lines(frame, column, scratch, |step, window, line, near| {
        let now = frame.grid.time(step) - origin;
        let solved = line.solve(now as f64 / 1000.0);
        let (slope, value) = solved.unwrap_or_else(|| plain(near, window, now));
        out[step] = slope * ahead(step) + value;
    });
}

/// Calls `f` with the line of each window of two samples or more, and the samples it goes through.
///
/// Their times count from the first sample, so that they stay small: at today's epoch a float of seconds
/// is good to a quarter of a microsecond only.
fn lines(frame: &Frame, column: &Column, scratch: &mut Scratch, mut f: impl FnMut(usize, Range<usize>, Line, &Column)) {
    let origin = column.times.first().copied().unwrap_or(0);
    let near = &mut scratch.near;
    near.clear();
    near.times.extend(column.times.iter().map(|t| t - origin));
    near.values.extend_from_slice(&column.values);
    let moved = Frame {
        offset: frame.offset.saturating_add(origin),
        ..*frame
    };
    fold::<Line>(&moved, near, &mut scratch.lines, |step, window, line| {
        if window.len() >= 2 {
            f(step, window, line, near);
        }
    });
}
