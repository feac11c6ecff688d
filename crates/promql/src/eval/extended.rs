//! Experimental `anchored` and `smoothed`: windows whose ends are samples, real or interpolated.
//!
//! Deliberately absent: native histograms, which are left out here.

use std::ops::Range;

use model::{Column, Labels, QueryError};

use super::Evaluator;
use super::grid::Grid;
use super::native_range::numbers_of;
use super::series::{ABSENT, Series};
use super::window::Frame;
use crate::ast::RangeExtension;
use crate::plan::{RangeCall, RangeFunction, Select};

/// # Errors
///
/// [`QueryError::Execution`] when the function has no meaning under the modifier.
pub(super) fn check(call: &RangeCall, extension: RangeExtension) -> Result<(), QueryError> {
    use RangeFunction::{Changes, Delta, Increase, Rate, Resets};
    let (modifier, names, fine) = match extension {
        RangeExtension::Anchored => (
            "anchored",
            "changes, delta, increase, rate, resets",
            matches!(call.function, Changes | Delta | Increase | Rate | Resets),
        ),
        RangeExtension::Smoothed => (
            "smoothed",
            "delta, increase, rate",
            matches!(call.function, Delta | Increase | Rate),
        ),
    };
    if fine {
        return Ok(());
    }
    Err(QueryError::Execution(format!(
        "{modifier} modifier can only be used with: {names} - not with {}",
        call.name
    )))
}

/// A frame that also sees a lookback before each window and, where smoothed, one behind it.
fn widened(frame: &Frame, lookback: model::Millis, smoothed: bool) -> Frame {
    let behind = if smoothed { lookback } else { 0 };
    Frame {
        offset: frame.offset.saturating_sub(behind),
        range: frame.range.saturating_add(lookback).saturating_add(behind),
        ..*frame
    }
}

impl Evaluator<'_> {
    /// A call over an `anchored` or `smoothed` range.
    pub(super) fn extended_range(
        &self,
        call: &RangeCall,
        select: &Select,
        extension: RangeExtension,
        frame: &Frame,
    ) -> Result<Vec<Series>, QueryError> {
        let smoothed = extension == RangeExtension::Smoothed;
        let wide = widened(frame, self.lookback, smoothed);
        let found = self.select(select, wide.bounds())?;
        self.over_columns(&found, &wide, |labels, column, _| {
            let column = &numbers_of(column);
            let mut values = vec![ABSENT; frame.grid.len];
            wide.each(column, |step, window| {
                let end = frame.end(step);
                let ends = Ends {
                    start: end.saturating_sub(frame.range),
                    end,
                    smoothed,
                };
                let value = match call.function {
                    RangeFunction::Changes => ends.pairs(column, window, |a, b| a != b && !(a.is_nan() && b.is_nan())),
                    RangeFunction::Resets => ends.pairs(column, window, |a, b| b < a),
                    _ => ends.change(column, window, call.function != RangeFunction::Delta),
                };
                if let Some(value) = value {
                    let per_second = call.function == RangeFunction::Rate;
                    values[step] = if per_second {
                        value / (frame.range as f64 / 1000.0)
                    } else {
                        value
                    };
                }
            });
            self.kept(Series::new(labels.clone(), values))
        })
    }

    /// An instant selector under `smoothed`: values between samples are interpolated.
    pub(super) fn smoothed(&self, select: &Select, grid: Grid) -> Result<Vec<Series>, QueryError> {
        let frame = Frame::of(select, 0, grid);
        let wide = widened(&frame, self.lookback, true);
        let found = self.select(select, wide.bounds())?;
        self.over_columns(&found, &wide, |labels, column, _| {
            let column = &numbers_of(column);
            let mut values = vec![ABSENT; grid.len];
            wide.each(column, |step, window| {
                let at = frame.end(step);
                let next = window.start + column.times[window.clone()].partition_point(|t| *t < at);
                let exact = next < window.end && column.times[next] == at;
                if exact {
                    values[step] = column.values[next];
                } else if next > window.start && next < window.end {
                    values[step] = interpolate(column, next - 1, at, false);
                } else if next > window.start {
                    values[step] = column.values[next - 1];
                }
            });
            self.kept(Series::new(labels.clone(), values))
        })
    }

    /// The samples of an `anchored` or `smoothed` range selector that stands alone.
    pub(super) fn extended_matrix(
        &self,
        select: &Select,
        extension: RangeExtension,
        frame: &Frame,
    ) -> Result<Vec<(Labels, Column)>, QueryError> {
        let smoothed = extension == RangeExtension::Smoothed;
        let wide = widened(frame, self.lookback, smoothed);
        let found = self.select(select, wide.bounds())?;
        self.over_columns(&found, &wide, |labels, column, _| {
            let column = &numbers_of(column);
            let end = frame.end(0);
            let ends = Ends {
                start: end.saturating_sub(frame.range),
                end,
                smoothed,
            };
            let mut out = None;
            wide.each(column, |_, window| out = ends.cut(column, window));
            Ok(out.map(|samples| (labels.clone(), samples)))
        })
    }
}

/// The ends of a window within the wider range of samples that is known.
struct Ends {
    start: model::Millis,
    end: model::Millis,
    smoothed: bool,
}

impl Ends {
    /// The first and last sample that matter, or `None` when nothing lies behind the start.
    fn span(&self, column: &Column, window: &Range<usize>) -> Option<(usize, usize)> {
        let times = &column.times[window.clone()];
        let mut last = times.len() - 1;
        let first = times[..last].partition_point(|t| *t <= self.start).saturating_sub(1);
        if self.smoothed {
            last = times[..last].partition_point(|t| *t < self.end);
        }
        if times[last] <= self.start || (self.smoothed && times[first] > self.end) {
            return None;
        }
        Some((window.start + first, window.start + last))
    }

    fn left(&self, column: &Column, first: usize, counter: bool) -> f64 {
        if self.smoothed && column.times[first] < self.start {
            interpolate(column, first, self.start, counter)
        } else {
            column.values[first]
        }
    }

    fn right(&self, column: &Column, last: usize, low: usize, counter: bool) -> f64 {
        if self.smoothed && last > low && column.times[last] > self.end {
            interpolate(column, last - 1, self.end, counter)
        } else {
            column.values[last]
        }
    }

    /// The change between both ends, decreases of a counter added back.
    fn change(&self, column: &Column, window: Range<usize>, counter: bool) -> Option<f64> {
        let low = window.start;
        let (first, last) = self.span(column, &window)?;
        let left = self.left(column, first, counter);
        let right = self.right(column, last, low, counter);
        let mut change = right - left;
        if counter {
            let from = if column.times[first] <= self.start {
                first + 1
            } else {
                first
            };
            let to = if column.times[last] >= self.end { last } else { last + 1 };
            let mut before = left;
            let inside = column.values.get(from..to).unwrap_or(&[]);
            for value in inside.iter().chain([&right]) {
                if *value < before {
                    change += before;
                }
                before = *value;
            }
        }
        Some(change)
    }

    /// How many neighbours satisfy `counts`, the last sample at or before the start included.
    fn pairs(&self, column: &Column, window: Range<usize>, counts: impl Fn(f64, f64) -> bool) -> Option<f64> {
        let inside = column.times[window.clone()].partition_point(|t| *t <= self.start);
        if inside == window.len() {
            return None;
        }
        let values = &column.values[window.start + inside.saturating_sub(1)..window.end];
        Some(values.windows(2).filter(|pair| counts(pair[0], pair[1])).count() as f64)
    }

    /// The samples between the ends, with one at each end.
    fn cut(&self, column: &Column, window: Range<usize>) -> Option<Column> {
        let (first, last) = self.span(column, &window)?;
        let mut out = Column::default();
        out.push(self.start, self.left(column, first, false));
        let from = if column.times[first] <= self.start {
            first + 1
        } else {
            first
        };
        let to = if column.times[last] >= self.end { last } else { last + 1 };
        for i in from..to {
            out.push(column.times[i], column.values[i]);
        }
        out.push(self.end, self.right(column, last, window.start, false));
        Some(out)
    }
}

/// The value at `at` on the line through samples `i` and `i + 1`; a counter that decreased starts at zero.
fn interpolate(column: &Column, i: usize, at: model::Millis, counter: bool) -> f64 {
    let (mut from, to) = (column.values[i], column.values[i + 1]);
    if counter && to < from {
        from = 0.0;
    }
    let (start, end) = (column.times[i], column.times[i + 1]);
    from + (to - from) * (at - start) as f64 / (end - start) as f64
}
