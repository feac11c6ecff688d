//! Values of a chunk as bytes: short decimals become small integers, and most series hardly move.
//!
//! ```text
//! kind u8 | count varint | body
//! ```
//!
//! Reading order: [`decimal`] finds the power of ten that makes all values integers, [`ints`] packs integers
//! by the smallest of four ways, [`special`] lists what is no number (NaN, infinities, -0.0, the staleness marker)
//! or no short decimal, [`xor`] is the way out for full-precision floats, [`histograms`] packs native histograms
//! number by number. `docs/format/codec.md` draws the bytes.
//!
//! Invariant: decoding gives back every bit of every value. Decoding any bytes gives values or `None`, never a panic.

pub mod decimal;
pub mod histograms;
pub mod ints;
pub mod special;
pub mod xor;

use blocks::bytes::{Cursor, put_varint};
use model::Column;

/// What the first byte of a chunk says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Scaled integers: `exponent u8 | integers`.
    Decimal = 1,
    /// Scaled integers with exceptions: `exponent u8 | exceptions | integers`.
    DecimalSpecial = 2,
    /// XOR of neighbours, for floats that are no short decimals.
    Xor = 3,
}

/// The first byte of chunks in which native histograms occur; no float chunk begins with it or above.
pub const KIND_HISTOGRAMS: u8 = 0x40;

/// The most samples of a chunk.
pub const COUNT_MAX: usize = 4096;

/// Adds the chunk of `values` (at most [`COUNT_MAX`]) to `out`.
///
/// # Panics
///
/// With more values than a chunk may have: a mistake of the caller.
pub fn encode(values: &[f64], out: &mut Vec<u8>) {
    assert!(values.len() <= COUNT_MAX, "BUG: a chunk of {} samples", values.len());
    let start = out.len();
    if let Some(scaled) = decimal::scale(values) {
        let kind = if scaled.special.is_empty() {
            Kind::Decimal
        } else {
            Kind::DecimalSpecial
        };
        put_head(out, kind, values.len());
        out.push(scaled.exponent);
        if kind == Kind::DecimalSpecial {
            special::encode(values, &scaled.special, out);
        }
        ints::encode(&scaled.ints, out);
        // Unscaled data can be wide as integers too; seven bytes a value is where XOR may win.
        if out.len() - start < values.len() * 5 + 16 {
            return;
        }
        let packed = out.split_off(start);
        put_head(out, Kind::Xor, values.len());
        xor::encode(values, out);
        if out.len() - start > packed.len() {
            out.truncate(start);
            out.extend_from_slice(&packed);
        }
        return;
    }
    put_head(out, Kind::Xor, values.len());
    xor::encode(values, out);
}

fn put_head(out: &mut Vec<u8>, kind: Kind, count: usize) {
    out.push(kind as u8);
    put_varint(out, count as u64);
}

/// Adds the chunk of the values of `column` (at most [`COUNT_MAX`]), histograms included, to `out`.
///
/// # Panics
///
/// As [`encode`].
pub fn encode_column(column: &Column, out: &mut Vec<u8>) {
    if column.histograms.iter().all(Option::is_none) {
        encode(&column.values, out);
    } else {
        assert!(column.len() <= COUNT_MAX, "BUG: a chunk of {} samples", column.len());
        histograms::encode(column, out);
    }
}

/// How many values a chunk holds; `None` when the bytes are no chunk of a known kind.
#[must_use]
pub fn count(chunk: &[u8]) -> Option<usize> {
    let mut cursor = Cursor::new(chunk);
    if chunk.first() == Some(&KIND_HISTOGRAMS) {
        cursor.u8()?;
        return cursor.size().filter(|&n| n <= COUNT_MAX);
    }
    head(&mut cursor).map(|(_, count)| count)
}

fn head(cursor: &mut Cursor<'_>) -> Option<(Kind, usize)> {
    let kind = match cursor.u8()? {
        1 => Kind::Decimal,
        2 => Kind::DecimalSpecial,
        3 => Kind::Xor,
        _ => return None,
    };
    let count = cursor.size().filter(|&n| n <= COUNT_MAX)?;
    Some((kind, count))
}

/// Scratch memory of [`decode`], reusable.
#[derive(Debug, Default)]
pub struct Scratch {
    ints: Vec<i64>,
}

/// Adds the values of a chunk to `out`; `None` when the bytes are no chunk (`out` is then as it was).
pub fn decode(chunk: &[u8], scratch: &mut Scratch, out: &mut Vec<f64>) -> Option<()> {
    let start = out.len();
    let done = decode_body(chunk, scratch, out);
    if done.is_none() {
        out.truncate(start);
    }
    done
}

/// Adds the values and histograms of a chunk of any kind to `into`, whose timestamps are the caller's; `None` when
/// the bytes are no chunk (`into` is then as it was).
pub fn decode_column(chunk: &[u8], scratch: &mut Scratch, into: &mut Column) -> Option<()> {
    if chunk.first() != Some(&KIND_HISTOGRAMS) {
        decode(chunk, scratch, &mut into.values)?;
        crate::column::level(into);
        return Some(());
    }
    let (start, had) = (into.values.len(), into.histograms.len());
    into.histograms.resize(start, None);
    let mut cursor = Cursor::new(chunk);
    let done = cursor.u8().and_then(|_| {
        let count = cursor.size().filter(|&n| n <= COUNT_MAX)?;
        histograms::decode(&mut cursor, count, scratch, into)
    });
    if done.is_none() {
        into.values.truncate(start);
        into.histograms.truncate(had);
    }
    done
}

fn decode_body(chunk: &[u8], scratch: &mut Scratch, out: &mut Vec<f64>) -> Option<()> {
    let mut cursor = Cursor::new(chunk);
    let (kind, count) = head(&mut cursor)?;
    let start = out.len();
    match kind {
        Kind::Xor => xor::decode(cursor.rest(), count, out),
        Kind::Decimal | Kind::DecimalSpecial => {
            let exponent = cursor.u8()?;
            let special = if kind == Kind::DecimalSpecial {
                special::read(&mut cursor, count)?
            } else {
                Vec::new()
            };
            scratch.ints.clear();
            ints::decode(&mut cursor, count, &mut scratch.ints)?;
            decimal::unscale(&scratch.ints, exponent, out)?;
            special::put_back(&special, out.get_mut(start..)?);
            Some(())
        }
    }
}

#[cfg(test)]
mod tests;
