//! The values that an expression can have: from the least to the greatest, both included.

use promql::ast::BinaryOp;

/// A range of numbers; never empty, never NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The least.
    pub lo: f64,
    /// The greatest.
    pub hi: f64,
}

impl Interval {
    /// Every number.
    pub const ALL: Self = Self {
        lo: f64::NEG_INFINITY,
        hi: f64::INFINITY,
    };

    /// Zero and above.
    pub const POSITIVE: Self = Self {
        lo: 0.0,
        hi: f64::INFINITY,
    };

    /// From `lo` to `hi`; every number where a bound is no number or they are the wrong way round.
    #[must_use]
    pub fn new(lo: f64, hi: f64) -> Self {
        if lo <= hi { Self { lo, hi } } else { Self::ALL }
    }

    /// One number.
    #[must_use]
    pub fn one(value: f64) -> Self {
        Self::new(value, value)
    }

    /// The one number, where there is only one.
    #[must_use]
    pub fn single(self) -> Option<f64> {
        (self.lo == self.hi).then_some(self.lo)
    }

    /// Whether the number is in it.
    #[must_use]
    pub fn holds(self, value: f64) -> bool {
        self.lo <= value && value <= self.hi
    }

    /// How far its ends are apart.
    #[must_use]
    pub fn width(self) -> f64 {
        self.hi - self.lo
    }

    /// The smallest range over both.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self::new(self.lo.min(other.lo), self.hi.max(other.hi))
    }

    /// What both have in common.
    #[must_use]
    pub fn meet(self, other: Self) -> Option<Self> {
        let (lo, hi) = (self.lo.max(other.lo), self.hi.min(other.hi));
        (lo <= hi).then_some(Self { lo, hi })
    }

    /// Both ends through a rising function.
    #[must_use]
    pub fn rising(self, f: impl Fn(f64) -> f64) -> Self {
        Self::new(f(self.lo), f(self.hi))
    }

    /// The values of `self op other`, arithmetic.
    #[must_use]
    pub fn arithmetic(self, op: BinaryOp, other: Self) -> Self {
        match op {
            BinaryOp::Add => Self::new(self.lo + other.lo, self.hi + other.hi),
            BinaryOp::Sub => Self::new(self.lo - other.hi, self.hi - other.lo),
            BinaryOp::Mul => self.corners(other, |a, b| if a == 0.0 || b == 0.0 { 0.0 } else { a * b }),
            BinaryOp::Div if other.lo > 0.0 || other.hi < 0.0 => {
                self.corners(other, |a, b| if b.is_infinite() { 0.0 } else { a / b })
            }
            BinaryOp::Div if self.lo >= 0.0 && other.lo >= 0.0 => Self::POSITIVE,
            BinaryOp::Mod if other.lo > 0.0 && self.lo >= 0.0 => Self::new(0.0, other.hi.min(self.hi)),
            BinaryOp::Pow if self.lo >= 0.0 && other.lo >= 0.0 => Self::POSITIVE,
            _ => Self::ALL,
        }
    }

    fn corners(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        let all = [
            f(self.lo, other.lo),
            f(self.lo, other.hi),
            f(self.hi, other.lo),
            f(self.hi, other.hi),
        ];
        if all.iter().any(|v| v.is_nan()) {
            return Self::ALL;
        }
        let lo = all.iter().copied().fold(f64::INFINITY, f64::min);
        let hi = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self::new(lo, hi)
    }

    /// What is left of `self` where `self op other` holds; `None` where it never does.
    ///
    /// `whole` says that only whole numbers occur.
    #[must_use]
    pub fn narrowed(self, op: BinaryOp, other: Self, whole: bool) -> Option<Self> {
        let left = match op {
            BinaryOp::Gt => self.meet(Self::new(other.lo.next_up(), f64::INFINITY)),
            BinaryOp::Ge => self.meet(Self::new(other.lo, f64::INFINITY)),
            BinaryOp::Lt => self.meet(Self::new(f64::NEG_INFINITY, other.hi.next_down())),
            BinaryOp::Le => self.meet(Self::new(f64::NEG_INFINITY, other.hi)),
            BinaryOp::Eq => self.meet(other),
            BinaryOp::Ne if self.single().is_some() && self == other => None,
            _ => Some(self),
        }?;
        // Whole numbers only: the nearest ones inside.
        if whole {
            let (lo, hi) = (left.lo.ceil(), left.hi.floor());
            return (lo <= hi).then_some(Self { lo, hi });
        }
        Some(left)
    }

    /// Whether `self op other` holds whatever the values.
    #[must_use]
    pub fn always(self, op: BinaryOp, other: Self) -> bool {
        match op {
            BinaryOp::Gt => self.lo > other.hi,
            BinaryOp::Ge => self.lo >= other.hi,
            BinaryOp::Lt => self.hi < other.lo,
            BinaryOp::Le => self.hi <= other.lo,
            BinaryOp::Eq => self.single().is_some() && self == other,
            BinaryOp::Ne => self.meet(other).is_none(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use BinaryOp::{Div, Eq, Ge, Gt, Lt, Mul, Ne, Sub};

    #[track_caller]
    fn check(range: (f64, f64), op: BinaryOp, other: (f64, f64), want: Option<(f64, f64)>) {
        let (range, other) = (Interval::new(range.0, range.1), Interval::new(other.0, other.1));
        let got = match op.is_comparison() {
            true => range.narrowed(op, other, true),
            false => Some(range.arithmetic(op, other)),
        };
        assert_eq!(got, want.map(|(lo, hi)| Interval::new(lo, hi)));
    }

    #[test]
    fn a_comparison_leaves_what_meets_it() {
        check((0.0, 100.0), Gt, (90.0, 90.0), Some((91.0, 100.0)));
        check((0.0, 100.0), Gt, (100.0, 100.0), None);
        check((0.0, 100.0), Ge, (100.0, 100.0), Some((100.0, 100.0)));
        check((0.0, f64::INFINITY), Lt, (0.0, 0.0), None);
        check((0.0, 1.0), Eq, (0.5, 0.5), None);
        check((1.0, 1.0), Ne, (1.0, 1.0), None);
        check((0.0, 1.0), Ne, (1.0, 1.0), Some((0.0, 1.0)));
    }

    #[test]
    fn arithmetic_keeps_to_the_corners() {
        check((0.0, 1.0), Mul, (100.0, 100.0), Some((0.0, 100.0)));
        check((100.0, 100.0), Sub, (0.0, 100.0), Some((0.0, 100.0)));
        check((0.0, 10.0), Div, (2.0, 5.0), Some((0.0, 5.0)));
        check((0.0, 10.0), Div, (0.0, 5.0), Some((0.0, f64::INFINITY)));
        check((-1.0, 10.0), Div, (0.0, 5.0), Some((f64::NEG_INFINITY, f64::INFINITY)));
        check(
            (0.0, f64::INFINITY),
            Mul,
            (0.0, f64::INFINITY),
            Some((0.0, f64::INFINITY)),
        );
    }
}
