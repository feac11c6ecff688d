//! Follows the machine's logs, entry by entry.
//!
//! [`kmsg`] reads the kernel's own messages. Absent for now: files, journald and container logs; they come with the log
//! store. Absent by design: what an entry means (crate `collect` knows the kernel's events) and where it is kept.
//!
//! Invariant: an entry that was lost is counted and told; none is told twice.

mod error;
pub mod kmsg;
mod stop;

pub use error::Error;
pub use stop::Stop;
