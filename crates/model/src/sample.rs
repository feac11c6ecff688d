//! Samples: a value at a moment, and the marker that says a series has ended.

use std::sync::Arc;

use crate::histogram::Histogram;
use crate::time::Millis;

/// The bits of the NaN that means "this series is gone"; any other NaN is a value.
pub const STALE_NAN_BITS: u64 = 0x7ff0_0000_0000_0002;

/// The staleness marker.
#[must_use]
pub const fn stale_nan() -> f64 {
    f64::from_bits(STALE_NAN_BITS)
}

/// Whether a value is the staleness marker (not just any NaN).
#[must_use]
pub const fn is_stale(value: f64) -> bool {
    value.to_bits() == STALE_NAN_BITS
}

/// A value at a moment: a number, or a native histogram.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// When, in milliseconds since the Unix epoch.
    pub time: Millis,
    /// The number; may be the staleness marker. Of a histogram it is the sum.
    pub value: f64,
    /// The histogram, where the value is one.
    pub histogram: Option<Arc<Histogram>>,
}

impl Sample {
    /// A plain number.
    #[must_use]
    pub const fn float(time: Millis, value: f64) -> Self {
        Self {
            time,
            value,
            histogram: None,
        }
    }

    /// A native histogram.
    #[must_use]
    pub fn native(time: Millis, histogram: Arc<Histogram>) -> Self {
        Self {
            time,
            value: histogram.sum,
            histogram: Some(histogram),
        }
    }

    /// The number; `None` where the value is a histogram.
    #[must_use]
    pub const fn as_float(&self) -> Option<f64> {
        match self.histogram {
            None => Some(self.value),
            Some(_) => None,
        }
    }
}

/// A run of samples of one series as two columns of equal length, times ascending and distinct.
///
/// A run in which native histograms occur has a third column of the same length; elsewhere that column is empty.
/// Where it holds a histogram, the value beside it is that histogram's sum (so the staleness marker stays one).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Column {
    /// Moments, in milliseconds.
    pub times: Vec<Millis>,
    /// Values, staleness markers included.
    pub values: Vec<f64>,
    /// Native histograms; empty when the run has none.
    pub histograms: Vec<Option<Arc<Histogram>>>,
}

impl Column {
    /// A run of plain values.
    #[must_use]
    pub fn of(times: Vec<Millis>, values: Vec<f64>) -> Self {
        Self {
            times,
            values,
            histograms: Vec::new(),
        }
    }

    /// Forgets the samples and keeps the memory.
    pub fn clear(&mut self) {
        self.times.clear();
        self.values.clear();
        self.histograms.clear();
    }

    /// Adds a sample at the end.
    pub fn push(&mut self, time: Millis, value: f64) {
        self.times.push(time);
        self.values.push(value);
        if !self.histograms.is_empty() {
            self.histograms.push(None);
        }
    }

    /// Adds a native histogram at the end.
    pub fn push_histogram(&mut self, time: Millis, histogram: Arc<Histogram>) {
        self.histograms.resize(self.times.len(), None);
        self.times.push(time);
        self.values.push(histogram.sum);
        self.histograms.push(Some(histogram));
    }

    /// Number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there is no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The histogram at a place; `None` where a plain number stands there.
    #[must_use]
    pub fn histogram(&self, place: usize) -> Option<&Arc<Histogram>> {
        self.histograms.get(place).and_then(Option::as_ref)
    }

    /// Whether any sample is a native histogram.
    #[must_use]
    pub fn has_histograms(&self) -> bool {
        self.histograms.iter().any(Option::is_some)
    }

    /// Keeps the samples for whose place `keep` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&Self, usize) -> bool) {
        let mut to = 0;
        for from in 0..self.len() {
            if keep(self, from) {
                self.times[to] = self.times[from];
                self.values[to] = self.values[from];
                if !self.histograms.is_empty() {
                    self.histograms.swap(to, from);
                }
                to += 1;
            }
        }
        self.times.truncate(to);
        self.values.truncate(to);
        self.histograms.truncate(to);
    }

    /// The samples in order.
    pub fn iter(&self) -> impl Iterator<Item = Sample> + '_ {
        (0..self.len()).map(|i| Sample {
            time: self.times[i],
            value: self.values[i],
            histogram: self.histogram(i).cloned(),
        })
    }
}
