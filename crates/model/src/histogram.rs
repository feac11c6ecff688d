//! Native histograms: a distribution at a moment, in buckets whose bounds follow from a schema.
//!
//! Counts are absolute floats whatever the exposition said: an integer histogram is one whose counts are whole.
//! Buckets stand in ascending order of their index, empty ones between two spans left out.

/// The schema of histograms whose bounds are given one by one in [`Histogram::custom_values`].
pub const CUSTOM_BUCKETS_SCHEMA: i8 = -53;

/// The finest and the coarsest exponential schema.
pub const EXPONENTIAL_SCHEMAS: std::ops::RangeInclusive<i8> = -4..=8;

/// A run of buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BucketSpan {
    /// Buckets left out before this run; for the first run, the index of its first bucket.
    pub offset: i32,
    /// Buckets in this run.
    pub length: u32,
}

/// What is known of a counter's reset between a histogram and the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResetHint {
    /// Nothing: compare the two.
    #[default]
    Unknown,
    /// There was a reset.
    Reset,
    /// There was none.
    NotReset,
    /// It is a gauge: resets mean nothing.
    Gauge,
}

/// A native histogram.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Histogram {
    /// What is known of a reset.
    pub reset: ResetHint,
    /// `-4..=8` for exponential bounds (`2^(2^-schema)` from bucket to bucket), `-53` for custom ones.
    pub schema: i8,
    /// Width of the bucket around zero, on either side.
    pub zero_threshold: f64,
    /// Observations in the bucket around zero.
    pub zero_count: f64,
    /// All observations; NaN in sum does not count here.
    pub count: f64,
    /// Sum of all observations; the staleness marker here says that the series has ended.
    pub sum: f64,
    /// Runs of buckets above zero.
    pub positive_spans: Vec<BucketSpan>,
    /// Runs of buckets below zero.
    pub negative_spans: Vec<BucketSpan>,
    /// Observations by bucket above zero.
    pub positive_buckets: Vec<f64>,
    /// Observations by bucket below zero.
    pub negative_buckets: Vec<f64>,
    /// Upper bounds, ascending, without +Inf; only with schema -53.
    pub custom_values: Vec<f64>,
}
