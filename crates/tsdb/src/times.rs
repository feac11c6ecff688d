//! Timestamps as bytes, and the spans of time that blocks cover.
//!
//! A column of timestamps belongs to a target: all its series point to the same one. On disk a column is
//! known by its content, so series with equal columns share it whoever wrote them.

use blocks::bytes::{Cursor, put_varint};
use model::Millis;

use crate::codec::{COUNT_MAX, ints};

/// The span of a block cut from the head, in milliseconds; spans begin at multiples of it.
pub const SPAN: Millis = 2 * 3600 * 1000;

/// The start of the span that holds `time`.
#[must_use]
pub const fn span_start(time: Millis) -> Millis {
    time.div_euclid(SPAN).saturating_mul(SPAN)
}

/// Adds a column to `out`.
pub fn encode(times: &[Millis], out: &mut Vec<u8>) {
    put_varint(out, times.len() as u64);
    ints::encode(times, out);
}

/// Adds the timestamps of a column to `out`; `None` when the bytes are none, or go backwards.
pub fn decode(cursor: &mut Cursor<'_>, out: &mut Vec<Millis>) -> Option<()> {
    let count = cursor.size().filter(|&n| n <= COUNT_MAX)?;
    let start = out.len();
    ints::decode(cursor, count, out)?;
    out.truncate(start + count);
    out[start..].is_sorted_by(|a, b| a < b).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(times: &[Millis]) -> usize {
        let mut bytes = Vec::new();
        encode(times, &mut bytes);
        let mut back = Vec::new();
        decode(&mut Cursor::new(&bytes), &mut back).expect("what was written");
        assert_eq!(back, times);
        bytes.len()
    }

    #[test]
    fn columns_come_back_and_regular_ones_are_small() {
        check(&[]);
        check(&[Millis::MIN, 0, Millis::MAX]);
        let regular: Vec<Millis> = (0..480).map(|i| 1_700_000_000_000 + i * 15_000).collect();
        assert!(check(&regular) < 60);
        let jitter: Vec<Millis> = regular
            .iter()
            .enumerate()
            .map(|(i, t)| t + (i as i64 * 7) % 4)
            .collect();
        assert!(check(&jitter) < 480);
    }

    #[test]
    fn a_column_that_goes_backwards_is_refused() {
        let mut bytes = Vec::new();
        encode(&[3, 2], &mut bytes);
        assert_eq!(decode(&mut Cursor::new(&bytes), &mut Vec::new()), None);
    }

    #[test]
    fn spans_are_aligned_before_the_epoch_too() {
        assert_eq!(span_start(SPAN + 1), SPAN);
        assert_eq!(span_start(-1), -SPAN);
    }
}
