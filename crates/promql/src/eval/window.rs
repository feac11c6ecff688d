//! Windows over a column of samples: which samples a range function sees at each step, and folding them
//! in time that depends on the number of samples, not on the overlap of windows.
//!
//! A window is open on the left: `(at - range, at]`.

use std::ops::Range;

use model::{Column, Millis};

use super::grid::Grid;
use crate::plan::Select;

/// Where the windows of a range selector lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// The steps.
    pub(crate) grid: Grid,
    /// The fixed moment of an `@` modifier.
    pub(crate) at: Option<Millis>,
    /// How far the window is moved back.
    pub(crate) offset: Millis,
    /// The length of a window, above zero.
    pub(crate) range: Millis,
    /// Whether of native histograms count and sum alone are asked for.
    pub(crate) stats: bool,
}

impl Frame {
    /// The windows of a selector.
    pub(crate) const fn of(select: &Select, range: Millis, grid: Grid) -> Self {
        Self {
            grid,
            at: select.at,
            offset: select.offset,
            range,
            stats: select.stats,
        }
    }

    /// The right end of the window of step `i`.
    #[inline]
    pub(crate) fn end(&self, i: usize) -> Millis {
        self.at.unwrap_or_else(|| self.grid.time(i)).saturating_sub(self.offset)
    }

    /// The first and last moment of a sample that any window can see.
    pub(crate) fn bounds(&self) -> (Millis, Millis) {
        let first = self.end(0).saturating_sub(self.range).saturating_add(1);
        (first, self.end(self.grid.len.saturating_sub(1)))
    }

    /// Calls `f` with each step that has samples and their places in `column`.
    pub(crate) fn each(&self, column: &Column, mut f: impl FnMut(usize, Range<usize>)) {
        let (mut from, mut to) = (Edge::default(), Edge::default());
        for step in 0..self.grid.len {
            let end = self.end(step);
            to.advance(&column.times, end);
            from.advance(&column.times[..to.place], end.saturating_sub(self.range));
            if from.place < to.place {
                f(step, from.place..to.place);
            }
        }
    }

    /// Whether neighbouring windows share so much that folding each on its own would be wasteful.
    pub(crate) fn overlaps(&self) -> bool {
        self.grid.len > 1 && (self.at.is_some() || self.range / self.grid.step.max(1) >= 3)
    }
}

/// One end of a window that moves to the right.
#[derive(Debug, Clone, Copy, Default)]
struct Edge {
    /// The first sample behind the edge.
    place: usize,
    /// How far the edge moved last: samples mostly come evenly, so it will move about as far again.
    stride: usize,
}

impl Edge {
    /// Moves behind all samples up to `limit`.
    #[inline]
    fn advance(&mut self, times: &[Millis], limit: Millis) {
        let mut place = self.place;
        let ahead = place + self.stride.saturating_sub(1);
        if ahead > place && times.get(ahead - 1).is_some_and(|t| *t <= limit) {
            place = ahead;
        }
        while place < times.len() && times[place] <= limit {
            place += 1;
        }
        self.stride = place - self.place;
        self.place = place;
    }
}

/// Something that can be combined from parts without regard to where they were cut.
pub(crate) trait Fold: Copy {
    /// Of a single sample.
    fn of(time: Millis, value: f64) -> Self;

    /// With the samples of `later` after these.
    fn join(self, later: Self) -> Self;
}

/// Folds the samples of each window and hands the result to `f`.
///
/// The samples of a window are those before a fixed `middle`, folded from there to the left once, and
/// those behind it, folded as they come. Each sample so takes part in two joins, and nothing is ever
/// subtracted: a huge value or an infinity leaves no trace when it leaves the window.
pub(crate) fn fold<F: Fold>(
    frame: &Frame,
    column: &Column,
    left: &mut Vec<F>,
    mut f: impl FnMut(usize, Range<usize>, F),
) {
    let sample = |i: usize| F::of(column.times[i], column.values[i]);
    if !frame.overlaps() {
        frame.each(column, |step, window| {
            let first = sample(window.start);
            let all = (window.start + 1..window.end).fold(first, |acc, i| acc.join(sample(i)));
            f(step, window, all);
        });
        return;
    }
    // `left[i]` folds the samples `base + i..middle`; `right` folds `middle..reached`.
    let (mut base, mut middle, mut reached) = (0, 0, 0);
    let mut right: Option<F> = None;
    frame.each(column, |step, window| {
        if window.start >= middle {
            base = window.start;
            middle = window.end;
            left.clear();
            let mut acc = sample(middle - 1);
            left.push(acc);
            for i in (base..middle - 1).rev() {
                acc = sample(i).join(acc);
                left.push(acc);
            }
            left.reverse();
            right = None;
            reached = middle;
        }
        for i in reached..window.end {
            let one = sample(i);
            right = Some(right.map_or(one, |acc| acc.join(one)));
        }
        reached = window.end;
        let head = left[window.start - base];
        f(step, window, right.map_or(head, |tail| head.join(tail)));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The samples themselves, as a number with one digit each.
    #[derive(Clone, Copy)]
    struct Digits(f64, f64);

    impl Fold for Digits {
        fn of(_: Millis, value: f64) -> Self {
            Self(value, 10.0)
        }

        fn join(self, later: Self) -> Self {
            Self(self.0 * later.1 + later.0, self.1 * later.1)
        }
    }

    #[track_caller]
    fn check(step: Millis, range: Millis, offset: Millis) {
        let mut column = Column::default();
        for i in 1..=9 {
            column.push(i * 10, i as f64);
        }
        let grid = Grid::new(0, 120, step, 1000).expect("few steps");
        let frame = Frame {
            grid,
            at: None,
            offset,
            range,
            stats: false,
        };
        let mut left = Vec::new();
        let mut seen = vec![None; grid.len];
        fold::<Digits>(&frame, &column, &mut left, |i, _, all| seen[i] = Some(all.0));
        for (i, got) in seen.into_iter().enumerate() {
            let end = grid.time(i) - offset;
            let inside = column.iter().filter(|s| s.time > end - range && s.time <= end);
            let want = inside.fold(None, |acc: Option<f64>, s| Some(acc.unwrap_or(0.0) * 10.0 + s.value));
            assert_eq!(got, want, "step {step} range {range} offset {offset} at {end}");
        }
    }

    #[test]
    fn folded_windows_hold_what_lies_in_them_in_order() {
        for step in [1, 3, 5, 10, 20, 50] {
            for range in [1, 9, 10, 11, 30, 45, 200] {
                for offset in [0, 7, -30] {
                    check(step, range, offset);
                }
            }
        }
    }
}
