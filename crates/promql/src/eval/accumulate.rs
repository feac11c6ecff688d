//! What aggregations remember of the values of a group at a step.

use super::sum::{Mean, Sum, no_distance};

/// What is remembered of the values of a group at a step; `default` has seen none.
pub(super) trait Accumulate: Copy + Default + Send {
    fn add(&mut self, value: f64);

    /// `None` when nothing was added.
    fn value(&self) -> Option<f64>;
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Total(Option<Sum>);

impl Accumulate for Total {
    #[inline]
    fn add(&mut self, value: f64) {
        match &mut self.0 {
            Some(sum) => sum.add(value),
            None => self.0 = Some(Sum::of(value)),
        }
    }

    fn value(&self) -> Option<f64> {
        self.0.map(|s| s.sum + s.lost)
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Average(Option<Mean>);

impl Accumulate for Average {
    #[inline]
    fn add(&mut self, value: f64) {
        self.0.get_or_insert_default().add(value);
    }

    fn value(&self) -> Option<f64> {
        self.0.map(|m| m.value())
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Least(Option<f64>);

impl Accumulate for Least {
    #[inline]
    fn add(&mut self, value: f64) {
        if self.0.is_none_or(|least| least > value || least.is_nan()) {
            self.0 = Some(value);
        }
    }

    fn value(&self) -> Option<f64> {
        self.0
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Most(Option<f64>);

impl Accumulate for Most {
    #[inline]
    fn add(&mut self, value: f64) {
        if self.0.is_none_or(|most| most < value || most.is_nan()) {
            self.0 = Some(value);
        }
    }

    fn value(&self) -> Option<f64> {
        self.0
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Count(u32);

impl Accumulate for Count {
    #[inline]
    fn add(&mut self, _: f64) {
        self.0 += 1;
    }

    fn value(&self) -> Option<f64> {
        (self.0 > 0).then_some(f64::from(self.0))
    }
}

/// `group`
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct One(bool);

impl Accumulate for One {
    #[inline]
    fn add(&mut self, _: f64) {
        self.0 = true;
    }

    fn value(&self) -> Option<f64> {
        self.0.then_some(1.0)
    }
}

/// Welford's running variance.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Variance<const ROOT: bool> {
    count: f64,
    mean: f64,
    squares: f64,
}

impl<const ROOT: bool> Accumulate for Variance<ROOT> {
    #[inline]
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        if self.count == 1.0 {
            self.mean = value;
            self.squares = no_distance(value);
            return;
        }
        let distance = value - self.mean;
        self.mean += distance / self.count;
        self.squares += distance * (value - self.mean);
    }

    fn value(&self) -> Option<f64> {
        let variance = self.squares / self.count;
        (self.count > 0.0).then(|| if ROOT { variance.sqrt() } else { variance })
    }
}
