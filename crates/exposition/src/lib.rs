//! What a target shows: Prometheus text, OpenMetrics and protobuf, read, written and judged.
//!
//! [`Reader`] walks a page line by line and allocates nothing: a sample is a slice of the page (name and
//! labels as written), a value, and perhaps a timestamp and an exemplar. [`Series::labels`] builds a label
//! set only when asked. [`write_page`] is the way back. [`check_page`] is strict where a scraper is not, and
//! gives remarks on what is legal but unwise.
//!
//! [`read_protobuf`] reads the format that carries native histograms; [`wire`] below it is protobuf itself, for others
//! too.
//!
//! What is deliberately absent: sockets, clocks, and any opinion of what a target may send — a limit is the
//! scraper's business.
//!
//! Invariant: no input makes this crate panic, recurse or allocate more than a constant times the page.

mod check;
mod error;
mod format;
mod lint;
pub mod native;
mod proto;
mod reader;
mod scan;
mod series;
mod strict;
mod value;
pub mod wire;
mod write;

pub use check::{Remark, Remarks, check_page};
pub use error::{Cause, Error};
pub use format::{Format, PageFormat, Protocol, accept_header, negotiate};
pub use proto::{Histograms, Item, NativeSample, OwnedExemplar, read_protobuf};
pub use reader::{Entry, Exemplar, Reader, Sample};
pub use series::{LABELS_MAX, Pair, Pairs, Series};
pub use value::parse_value;
pub use write::{escape_help, escape_label, put_openmetrics_float, write_float, write_page};
