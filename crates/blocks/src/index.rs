//! Labels to series: which rows of a block carry which label, and what each row's labels are.
//!
//! [`select`] resolves matchers over anything that has postings (the head has them in memory), [`writer`]
//! makes an index file from series in label order, [`reader`] reads one where it lies.
//! `docs/format/block.md` draws the bytes.
//!
//! A series' payload is bytes here: the metric store puts chunk references there, the log store its own.

pub mod reader;
pub mod select;
pub mod writer;

pub use reader::Index;
pub use select::{Terms, resolve};
pub use writer::IndexWriter;

/// The first bytes of an index file; the last one is the format.
pub const MAGIC: [u8; 8] = *b"WFINDEX\x01";

/// Size of the table at the end: five sections (start u64, length u64, crc u32), then the crc of the table.
const FOOTER_BYTES: usize = 5 * 20 + 4;

/// Sections in the order of the file.
#[derive(Debug, Clone, Copy)]
enum Section {
    /// Distinct texts, sorted: offsets, then bytes.
    Symbols,
    /// Rows: offsets, then labels and payload of each.
    Series,
    /// Roaring bitmaps.
    Postings,
    /// One fst a label name: value to posting.
    Values,
    /// The fst of label names: name to the place of its fst.
    Names,
}

#[cfg(test)]
mod tests;
