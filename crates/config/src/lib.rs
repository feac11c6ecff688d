//! Configuration files: text in, typed values out, and errors that point at the line.
//!
//! Every file goes the same way: [`yaml`] reads it into nodes that know their place, one module per
//! language turns nodes into what was meant, defaults resolved and everything checked that a start
//! would check. `check` and a start therefore tell the same.
//!
//! Reading order: [`watchfire`] is our own file, [`prometheus`], [`rules`] and [`alertmanager`] are the
//! ecosystem's; [`relabel`] is the one part that also *does* something.
//!
//! What is absent: expressions (`promql` parses them), templates, the network, and the clock. Files are
//! read in [`error::read`] and where one file names another, nowhere else.

pub mod watchfire;

pub mod alertmanager;
pub mod prometheus;
pub mod relabel;
pub mod rule_tests;
pub mod rules;

pub mod glob;
pub mod http;
pub mod secret;
pub mod size;
pub mod url;

pub mod error;
mod shape;
pub mod yaml;

pub use error::Error;
pub use secret::Secret;
