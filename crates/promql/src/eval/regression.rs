//! `deriv` and `predict_linear`: the straight line nearest to the samples of a window.

use model::{Column, Millis};

use super::over_time::Scratch;
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
    /// The slope per second, and the value at `at` seconds.
    fn solve(&self, at: f64) -> (f64, f64) {
        match self.constant {
            Some(value) if value.is_infinite() => (f64::NAN, f64::NAN),
            Some(value) => (0.0, value),
            None => {
                let slope = self.both / self.times;
                (slope, self.value + slope * (at - self.time))
            }
        }
    }
}

/// `deriv`: the slope over each window of two samples or more, per second.
pub(crate) fn slope(frame: &Frame, column: &Column, scratch: &mut Scratch, out: &mut [f64]) {
    lines(frame, column, scratch, |step, line, _| out[step] = line.solve(0.0).0);
}

/// `predict_linear`: the line's value `ahead` seconds after the step.
pub(crate) fn predict(
    ahead: impl Fn(usize) -> f64,
    frame: &Frame,
    column: &Column,
    scratch: &mut Scratch,
    out: &mut [f64],
) {
    lines(frame, column, scratch, |step, line, origin| {
        let now = (frame.grid.time(step) - origin) as f64 / 1000.0;
        let (slope, value) = line.solve(now);
        out[step] = slope * ahead(step) + value;
    });
}

/// Calls `f` with the line of each window of two samples or more, and the origin of its times.
///
/// Times count from the first sample, so that they stay small: at today's epoch a float of seconds is
/// good to a quarter of a microsecond only.
fn lines(frame: &Frame, column: &Column, scratch: &mut Scratch, mut f: impl FnMut(usize, Line, Millis)) {
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
            f(step, line, origin);
        }
    });
}
