//! `rate`, `increase`, `delta`: the change over a window, extrapolated to its ends; `irate`, `idelta`:
//! the change between its last two samples.

use model::Column;

use super::window::Frame;

/// How a change is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change {
    /// Whether a decrease is a counter that started again at zero.
    pub(crate) counter: bool,
    /// Whether the result is per second.
    pub(crate) per_second: bool,
}

/// The extrapolated change over each window with two samples or more.
pub(crate) fn extrapolated(change: Change, frame: &Frame, column: &Column, out: &mut [f64]) {
    let (times, values) = (column.times.as_slice(), column.values.as_slice());
    let mut resets = change.counter.then(|| Resets::of(values)).flatten();
    let range_s = seconds(frame.range);
    frame.each(column, |step, window| {
        let (first, last) = (window.start, window.end - 1);
        if first == last {
            return;
        }
        let mut difference = values[last] - values[first];
        if let Some(resets) = &mut resets {
            difference += resets.between(values, first, last);
        }
        let end = frame.end(step);
        let sampled = seconds(times[last] - times[first]);
        let spacing = sampled / (last - first) as f64;
        let near = spacing * 1.1;
        let mut to_start = seconds(times[first] - (end - frame.range));
        let mut to_end = seconds(end - times[last]);
        if to_start >= near {
            to_start = spacing / 2.0;
        }
        // A counter cannot have been below zero before its first sample.
        if change.counter && difference > 0.0 && values[first] >= 0.0 {
            to_start = to_start.min(sampled * (values[first] / difference));
        }
        if to_end >= near {
            to_end = spacing / 2.0;
        }
        let mut factor = (sampled + to_start + to_end) / sampled;
        if change.per_second {
            factor /= range_s;
        }
        out[step] = difference * factor;
    });
}

/// The change between the last two samples of each window.
pub(crate) fn instant(change: Change, frame: &Frame, column: &Column, out: &mut [f64]) {
    frame.each(column, |step, window| {
        if window.len() < 2 {
            return;
        }
        let (before, last) = (window.end - 2, window.end - 1);
        let (from, to) = (column.values[before], column.values[last]);
        let difference = if change.counter && to < from { to } else { to - from };
        let seconds = seconds(column.times[last] - column.times[before]);
        out[step] = if change.per_second {
            difference / seconds
        } else {
            difference
        };
    });
}

fn seconds(millis: model::Millis) -> f64 {
    millis as f64 / 1000.0
}

/// The places where a counter started again, and what it had reached there, summed up from the left.
struct Resets {
    /// Index of the first sample after each reset, ascending.
    places: Vec<usize>,
    /// Sum of what was lost up to each reset; `None` where a sum would not be finite.
    sums: Option<Vec<Exact>>,
    /// Resets at or before the first, and the last sample of the window seen last.
    from: usize,
    to: usize,
}

/// Up to this many resets are added one by one.
const FEW: usize = 8;

impl Resets {
    /// `None` when the counter never decreases, which is the common case.
    fn of(values: &[f64]) -> Option<Self> {
        let decreases = |i: &usize| values[*i] < values[*i - 1];
        let places: Vec<usize> = (1..values.len()).filter(decreases).collect();
        if places.is_empty() {
            return None;
        }
        let mut sums = Some(Vec::with_capacity(places.len()));
        let mut sum = Exact::default();
        for place in &places {
            let lost = values[place - 1];
            sum = sum.plus(lost);
            if !lost.is_finite() || !sum.high.is_finite() {
                sums = None;
                break;
            }
            if let Some(sums) = &mut sums {
                sums.push(sum);
            }
        }
        Some(Self {
            places,
            sums,
            from: 0,
            to: 0,
        })
    }

    /// What was lost at resets after sample `first` up to sample `last`. Both only grow from call to call.
    fn between(&mut self, values: &[f64], first: usize, last: usize) -> f64 {
        while self.from < self.places.len() && self.places[self.from] <= first {
            self.from += 1;
        }
        self.to = self.to.max(self.from);
        while self.to < self.places.len() && self.places[self.to] <= last {
            self.to += 1;
        }
        let inside = &self.places[self.from..self.to];
        match &self.sums {
            Some(sums) if inside.len() > FEW => {
                let before = self.from.checked_sub(1).map_or_else(Exact::default, |i| sums[i]);
                sums[self.to - 1].minus(before)
            }
            _ => inside.iter().map(|place| values[place - 1]).sum(),
        }
    }
}

/// A sum in twice the precision, so that two prefixes can be subtracted.
#[derive(Debug, Clone, Copy, Default)]
struct Exact {
    high: f64,
    low: f64,
}

impl Exact {
    fn plus(self, value: f64) -> Self {
        let sum = self.high + value;
        let shadow = sum - self.high;
        let error = (self.high - (sum - shadow)) + (value - shadow);
        let low = self.low + error;
        let high = sum + low;
        Self {
            high,
            low: low - (high - sum),
        }
    }

    fn minus(self, other: Self) -> f64 {
        (self.high - other.high) + (self.low - other.low)
    }
}

#[cfg(test)]
mod tests {
    use super::super::grid::Grid;
    use super::*;

    fn column(values: &[f64]) -> Column {
        let mut column = Column::default();
        for (i, value) in values.iter().enumerate() {
            column.push(i as i64 * 10_000, *value);
        }
        column
    }

    /// The sum over the window taken literally.
    fn naive(values: &[f64], first: usize, last: usize) -> f64 {
        (first + 1..=last)
            .filter(|i| values[*i] < values[*i - 1])
            .map(|i| values[i - 1])
            .sum()
    }

    #[test]
    fn lost_counts_agree_with_adding_them_one_by_one() {
        let mut random = fastrand::Rng::with_seed(7);
        for with_infinity in [false, true] {
            let mut values: Vec<f64> = (0..500).map(|_| random.f64() * 1e6).collect();
            if with_infinity {
                values[100] = f64::INFINITY;
            }
            for width in [2, 5, 50, 200] {
                let mut resets = Resets::of(&values).expect("random values decrease");
                for first in 0..values.len() - width {
                    let (got, want) = (
                        resets.between(&values, first, first + width),
                        naive(&values, first, first + width),
                    );
                    assert!(got == want || (got - want).abs() <= want.abs() * 1e-12, "{got} {want}");
                }
            }
        }
    }

    #[test]
    fn a_rate_reaches_to_the_ends_of_its_window() {
        let grid = Grid::instant(60_000);
        let frame = Frame {
            grid,
            at: None,
            offset: 0,
            range: 60_000,
            stats: false,
        };
        let mut out = [super::super::series::ABSENT];
        let change = Change {
            counter: true,
            per_second: true,
        };
        extrapolated(
            change,
            &frame,
            &column(&[0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]),
            &mut out,
        );
        assert_eq!(out[0], 1.0);
        extrapolated(change, &frame, &column(&[5.0]), &mut [0.0]);
    }
}
