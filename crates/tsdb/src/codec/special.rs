//! Values that are listed beside the integers: no number, or no short decimal.
//!
//! ```text
//! count varint, then for each: gap varint | tag u8 | bits u64 (tag 0 only)
//! ```

use blocks::bytes::{Cursor, put_varint};
use model::STALE_NAN_BITS;

/// Bits that have a tag of their own; tag 0 is followed by the bits.
const TAGGED: [u64; 6] = [
    0,
    STALE_NAN_BITS,
    0x7ff8_0000_0000_0001, // the NaN that the field's parsers give
    0x7ff0_0000_0000_0000, // +Inf
    0xfff0_0000_0000_0000, // -Inf
    0x8000_0000_0000_0000, // -0.0
];

/// Writes the values at the places `at`, ascending.
pub fn encode(values: &[f64], at: &[u32], out: &mut Vec<u8>) {
    put_varint(out, at.len() as u64);
    let mut next = 0;
    for &place in at {
        put_varint(out, u64::from(place - next));
        next = place + 1;
        let bits = values[place as usize].to_bits();
        match (1..).zip(&TAGGED[1..]).find(|(_, tagged)| **tagged == bits) {
            Some((tag, _)) => out.push(tag),
            None => {
                out.push(0);
                out.extend_from_slice(&bits.to_le_bytes());
            }
        }
    }
}

/// Reads places and values of a chunk of `count` values.
pub fn read(cursor: &mut Cursor<'_>, count: usize) -> Option<Vec<(usize, f64)>> {
    let n = cursor.size().filter(|&n| n <= count)?;
    let mut list = Vec::with_capacity(n);
    let mut next = 0_usize;
    for _ in 0..n {
        let place = next.checked_add(cursor.size()?).filter(|&p| p < count)?;
        next = place + 1;
        let bits = match cursor.u8()? {
            0 => cursor.u64()?,
            tag => *TAGGED.get(usize::from(tag))?,
        };
        list.push((place, f64::from_bits(bits)));
    }
    Some(list)
}

/// Puts the values at their places.
pub fn put_back(list: &[(usize, f64)], values: &mut [f64]) {
    for &(place, value) in list {
        if let Some(slot) = values.get_mut(place) {
            *slot = value;
        }
    }
}
