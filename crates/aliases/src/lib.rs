//! One schema over many names: a query for one name of a metric is answered from whichever name is stored.
//!
//! [`Table`] holds which names mean the same, with the factor between their units and the labels that changed with
//! them; [`Aliased`] is a layer over [`model::Queryable`] that uses it. Exporters rename: DCGM exporter 4.9, vLLM
//! between its engines, NIM, which leaves the prefix out.
//!
//! What is deliberately absent: patterns. The layer acts on an equality matcher of the name alone; everything else
//! sees what is stored. Tests of PromQL, federation and remote read ask the store itself.
//!
//! Invariants: where both names are stored for the same labels the native sample wins at each moment, never both; a
//! query for a name without aliases costs one look-up.

mod layer;
mod table;

pub use layer::Aliased;
pub use table::{Error, Table};
