//! The last half hour of quick numbers, on disk: what a GPU did before it, or the whole machine, went away.
//!
//! A ring is one preallocated file of fixed-size records ([`record`]); `docs/format/ring.md` gives the bytes. [`writer`]
//! hands each beat's samples to the kernel in one write, so that nothing is lost when this process is killed, and
//! [`reader`] gives a window of it. [`window`] keeps the last minute in memory for the page's minimum, mean and maximum.
//!
//! Invariant: a record is read as it was written or not at all. The file never grows, and a reader holds no more than it
//! was told to.

mod keeper;
mod reader;
mod record;
mod window;
mod writer;

pub use keeper::RingKeeper;
pub use reader::{Column, History, RingReader, Wanted};
pub use window::{Spread, Spreads, Window};
pub use writer::{RingError, RingWriter};

use model::Millis;

/// How far back the ring goes.
pub const SPAN_MS: Millis = 30 * 60 * 1_000;
