//! Samples: a value at a moment, and the marker that says a series has ended.

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
/// Native histograms will get a third column beside these (the chunk kind is reserved in `tsdb`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Column {
    /// Moments, in milliseconds.
    pub times: Vec<Millis>,
    /// Values, staleness markers included.
    pub values: Vec<f64>,
}

impl Column {
    /// Forgets the samples and keeps the memory.
    pub fn clear(&mut self) {
        self.times.clear();
        self.values.clear();
    }

    /// Adds a sample at the end.
    pub fn push(&mut self, time: Millis, value: f64) {
        self.times.push(time);
        self.values.push(value);
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
