//! The ground every other crate stands on: what a series is, and how the rows of the river meet.
//!
//! Reading order: [`labels`] and [`matcher`] say which series, [`sample`] what is in it, [`family`]
//! what a collector hands over, [`store`] and [`query`] are the traits between the rows.
//!
//! What is deliberately absent: JSON, YAML, HTTP, files, threads and the clock. Time arrives as a
//! value ([`Millis`]); only the binary and the sources read a [`Clock`].

pub mod family;
pub mod histogram;
pub mod labels;
pub mod matcher;
pub mod meter;
pub mod number;
pub mod query;
pub mod sample;
pub mod store;
pub mod text;
pub mod time;

pub use family::{Family, Kind, Metric};
pub use histogram::{Bucket, BucketSpan, Histogram, ResetHint};
pub use labels::{Labels, LabelsBuilder, METRIC_NAME};
pub use matcher::{MatchOp, Matcher};
pub use meter::Meter;
pub use query::{Deadline, QueryEngine, QueryError, QueryOutcome, Value};
pub use sample::{Column, STALE_NAN_BITS, Sample, is_stale, stale_nan};
pub use store::{
    Appended, Appender, Batch, Exemplar, ExemplarQueryable, Queryable, SeriesExemplars, SeriesId, StoreAdmin,
    StoreError, StoredSeries, TargetId,
};
pub use time::{Clock, Millis, SystemClock};
