//! Speaking with other engines in their own wire formats.
//!
//! [`write`] takes what Prometheus and its kin push (remote write 1.0 and 2.0), [`otlp`] what OpenTelemetry pushes,
//! [`read`] answers Prometheus' remote read. All three are bytes in, bytes out over the traits of [`model`]: the HTTP
//! around them is `web`'s.
//!
//! What is deliberately absent: sockets, the wall clock, and protobuf schemas — the few fields that matter are read in
//! place by [`exposition::wire`].
//!
//! Invariants: no input panics; memory is bounded by the sizes that [`Limits`] names; a sample is refused by itself,
//! with a reason, and never takes its neighbours along.

pub mod otlp;
pub mod read;
pub mod write;

mod body;
mod error;
mod memory;

pub use body::{Limits, Scratch};
pub use error::Error;
pub use memory::Sayings;
