//! Compensated summation (Kahan, in Neumaier's form): a sum that keeps what rounding takes away.

/// A running sum with its compensation.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sum {
    /// The plain sum.
    pub(crate) sum: f64,
    /// What rounding lost so far.
    pub(crate) lost: f64,
}

impl Sum {
    /// The sum of one value.
    pub(crate) const fn of(value: f64) -> Self {
        Self { sum: value, lost: 0.0 }
    }

    /// Adds a value. Once the sum is infinite nothing is compensated.
    #[inline]
    pub(crate) fn add(&mut self, value: f64) {
        let total = self.sum + value;
        if total.is_infinite() {
            self.lost = 0.0;
        } else if self.sum.abs() >= value.abs() {
            self.lost += (self.sum - total) + value;
        } else {
            self.lost += (value - total) + self.sum;
        }
        self.sum = total;
    }

    /// The sum of two sums.
    #[inline]
    pub(crate) fn join(mut self, other: Self) -> Self {
        self.add(other.sum);
        self.lost += other.lost;
        self
    }

    /// The compensated result.
    #[inline]
    pub(crate) fn total(self) -> f64 {
        if self.sum.is_infinite() {
            self.sum
        } else {
            self.sum + self.lost
        }
    }
}

/// A running mean: the sum divided at the end, or, once the sum would overflow, an incremental mean.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mean {
    /// Sum of all values, or their mean once `incremental`.
    sum: Sum,
    /// Number of values.
    count: f64,
    /// Whether the sum would have overflown.
    incremental: bool,
}

impl Mean {
    /// Adds a value.
    #[inline]
    pub(crate) fn add(&mut self, value: f64) {
        self.count += 1.0;
        if self.count == 1.0 {
            self.sum = Sum::of(value);
            return;
        }
        if !self.incremental {
            let mut next = self.sum;
            next.add(value);
            if !next.sum.is_infinite() {
                self.sum = next;
                return;
            }
            self.incremental = true;
            self.sum.sum /= self.count - 1.0;
            self.sum.lost /= self.count - 1.0;
        }
        let share = (self.count - 1.0) / self.count;
        self.sum.sum *= share;
        self.sum.lost *= share;
        self.sum.add(value / self.count);
    }

    /// The mean of what was added; NaN when nothing was.
    #[inline]
    pub(crate) fn value(&self) -> f64 {
        if self.incremental {
            self.sum.sum + self.sum.lost
        } else {
            self.sum.sum / self.count + self.sum.lost / self.count
        }
    }
}

/// The squared distance of a value from itself: zero, but NaN for an infinity or a NaN.
pub(crate) fn no_distance(value: f64) -> f64 {
    if value.is_finite() { 0.0 } else { f64::NAN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[f64], sum: f64, mean: f64) {
        let mut total = Sum::default();
        let mut average = Mean::default();
        for value in values {
            total.add(*value);
            average.add(*value);
        }
        let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
        assert!(same(total.total(), sum), "{values:?}: {}", total.total());
        assert!(same(average.value(), mean), "{values:?}: {}", average.value());
    }

    #[test]
    fn sums_survive_large_intermediate_values() {
        const BIG: f64 = 9.988_465_674_311_58e307;
        const INF: f64 = f64::INFINITY;
        check(&[1.0, 1e100, 1.0, -1e100], 2.0, 0.5);
        check(&[BIG, BIG], INF, BIG);
        check(&[-BIG, -BIG, BIG, BIG], -INF, 0.0);
        check(&[-BIG, BIG], 0.0, 0.0);
        check(&[INF, 0.0, INF], INF, INF);
        check(&[INF, INF, -INF], f64::NAN, f64::NAN);
        check(&[1.0, f64::NAN], f64::NAN, f64::NAN);
    }
}
