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

/// A value at a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// When, in milliseconds since the Unix epoch.
    pub time: Millis,
    /// The value; may be the staleness marker.
    pub value: f64,
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

    /// The samples in order.
    pub fn iter(&self) -> impl Iterator<Item = Sample> + '_ {
        self.times
            .iter()
            .zip(&self.values)
            .map(|(&time, &value)| Sample { time, value })
    }
}
