//! Prometheus' query test scripts: `load` samples, `eval` queries, compare.
//!
//! A script is a list of commands ([`script`]); series are written in a short notation ([`notation`]) and
//! kept in memory ([`mem`]); [`run`] executes a script and tells what held.
//!
//! An instant query is checked three ways, as Prometheus does it: as it is, with its selectors fixed by
//! `@` and asked at other moments, and as the middle step of a range query.
//!
//! Deliberately absent, both behind a feature flag upstream: start timestamps, which are read over at `load`, and
//! native histograms under `anchored` or `smoothed`. An evaluation that touches such a series and does not give
//! what is expected counts as skipped, not as failed.

mod compare;
mod fixed;
pub mod fuzz;
pub mod mem;
mod nhcb;
pub mod notation;
mod run;
pub mod script;

pub use mem::MemStore;
pub use notation::{NotationError, Point, SeriesLine};
pub use run::{Failure, Report, Skip, run, script_options};
pub use script::{Command, ScriptError, parse_script};
