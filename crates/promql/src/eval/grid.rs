//! The moments at which a query is evaluated: `start`, `start + step`, …

use model::Millis;

/// An arithmetic row of moments; an instant query has exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    /// The first moment, in milliseconds.
    pub(crate) start: Millis,
    /// The distance of neighbours, in milliseconds, above zero.
    pub(crate) step: Millis,
    /// How many moments there are; may be zero for the inside of a subquery.
    pub(crate) len: usize,
}

impl Grid {
    /// `start`, `start + step`, … up to `end` included; empty when `end` lies before `start`.
    ///
    /// `None` when there are more steps than `limit`.
    pub(crate) fn new(start: Millis, end: Millis, step: Millis, limit: usize) -> Option<Self> {
        let span = i128::from(end) - i128::from(start);
        if span < 0 {
            return Some(Self { start, step, len: 0 });
        }
        let len = usize::try_from(span / i128::from(step.max(1)) + 1).ok()?;
        (len <= limit).then_some(Self { start, step, len })
    }

    /// The single moment `at`.
    pub(crate) const fn instant(at: Millis) -> Self {
        Self {
            start: at,
            step: 1,
            len: 1,
        }
    }

    /// The moment of step `i`, which is below `len`.
    pub(crate) fn time(self, i: usize) -> Millis {
        // The product may wrap where the start is far below zero; the sum then wraps back.
        let distance = (i as Millis).wrapping_mul(self.step);
        self.start.wrapping_add(distance)
    }

    /// The last moment; `start` when there is none.
    pub(crate) fn last(self) -> Millis {
        self.time(self.len.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_counts_only_where_a_step_meets_it() {
        for (start, end, step, len) in [(0, 10, 5, 3), (0, 9, 5, 2), (5, 5, 1, 1), (5, 4, 1, 0)] {
            assert_eq!(Grid::new(start, end, step, 100).map(|g| g.len), Some(len));
        }
        assert_eq!(Grid::new(0, 100, 1, 100), None);
        assert_eq!(Grid::new(i64::MIN, i64::MAX, 1, usize::MAX), None);
    }
}
