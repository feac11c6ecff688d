//! What this machine says of itself, as metric families.
//!
//! A [`Collector`] reads one source (the processors, the disks, the GPUs, the kernel's messages) and hands over
//! readings *and* the errors beside them. [`Runner`] gives collectors threads and deadlines, so that one source
//! that hangs leaves the others on time, and reports each one's state. [`page`] says which collectors make which page.
//!
//! Names, helps, types and labels are those of node_exporter and dcgm-exporter, to the letter; our own series begin
//! with `watchfire_`. Paths are parameters ([`Paths`]): fakes and containers run the same code.
//!
//! Absent by design: text formats (crate `exposition`), any network, any change to the machine.
//!
//! Invariant: what could not be read is left out and named in an error; it never becomes a zero.

mod collector;
mod desk;
mod error;
pub mod gpu;
pub mod kernel;
mod machine;
pub mod node;
pub mod page;
mod paths;
mod runner;
mod source;

pub use collector::{Collector, Readings, State};
pub use error::Error;
pub use machine::Machine;
pub use paths::Paths;
pub use runner::{CollectorStatus, Runner, Worker};
