//! Native histograms as bytes: one by one in the log, column by column in a chunk.
//!
//! In a chunk histograms of one shape (schema, threshold, spans, bounds, reset hint) that follow each other form a
//! group. Each of its numbers (count, sum, every bucket) is a column of its own, packed as values are: a bucket
//! that hardly moves hardly costs. Whole and broken counts need no distinction.

use std::sync::Arc;

use blocks::bytes::{Cursor, put_bytes, put_varint, put_zigzag};
use model::{BucketSpan, Column, Histogram, ResetHint};

use super::{COUNT_MAX, KIND_HISTOGRAMS, Scratch};
use crate::wal_record::{put_value, take_value};

/// The most spans, buckets or bounds of one side of a histogram that are read; Prometheus' schemas end far below.
const PARTS_MAX: usize = 20_000;
/// The most numbers of a chunk of histograms that are read: a small damaged chunk shall not fill the memory.
const NUMBERS_MAX: usize = 16 << 20;

/// Adds one histogram.
pub fn put(histogram: &Histogram, out: &mut Vec<u8>) {
    put_shape(histogram, out);
    let mut last = 0;
    for value in numbers(histogram) {
        put_value(out, last, value.to_bits());
        last = value.to_bits();
    }
}

/// Reads what [`put`] wrote.
pub fn take(cursor: &mut Cursor<'_>) -> Option<Histogram> {
    let mut histogram = take_shape(cursor)?;
    let mut last = 0;
    for value in numbers_mut(&mut histogram) {
        last = take_value(cursor, last)?;
        *value = f64::from_bits(last);
    }
    Some(histogram)
}

/// The numbers that change from histogram to histogram.
fn numbers(h: &Histogram) -> impl Iterator<Item = f64> + '_ {
    let buckets = h.positive_buckets.iter().chain(&h.negative_buckets);
    [h.count, h.zero_count, h.sum].into_iter().chain(buckets.copied())
}

fn numbers_mut(h: &mut Histogram) -> impl Iterator<Item = &mut f64> {
    let buckets = h.positive_buckets.iter_mut().chain(&mut h.negative_buckets);
    [&mut h.count, &mut h.zero_count, &mut h.sum].into_iter().chain(buckets)
}

fn put_shape(h: &Histogram, out: &mut Vec<u8>) {
    out.push(match h.reset {
        ResetHint::Unknown => 0,
        ResetHint::Reset => 1,
        ResetHint::NotReset => 2,
        ResetHint::Gauge => 3,
    });
    out.push(h.schema as u8);
    put_value(out, 0, h.zero_threshold.to_bits());
    for (spans, buckets) in [
        (&h.positive_spans, &h.positive_buckets),
        (&h.negative_spans, &h.negative_buckets),
    ] {
        put_varint(out, spans.len() as u64);
        for span in spans {
            put_zigzag(out, i64::from(span.offset));
            put_varint(out, u64::from(span.length));
        }
        put_varint(out, buckets.len() as u64);
    }
    put_varint(out, h.custom_values.len() as u64);
    let mut last = 0;
    for bound in &h.custom_values {
        put_value(out, last, bound.to_bits());
        last = bound.to_bits();
    }
}

/// A histogram of the shape written, its numbers zero.
fn take_shape(cursor: &mut Cursor<'_>) -> Option<Histogram> {
    let reset = match cursor.u8()? {
        0 => ResetHint::Unknown,
        1 => ResetHint::Reset,
        2 => ResetHint::NotReset,
        3 => ResetHint::Gauge,
        _ => return None,
    };
    let schema = cursor.u8()? as i8;
    let zero_threshold = f64::from_bits(take_value(cursor, 0)?);
    let (positive_spans, positive_buckets) = take_side(cursor)?;
    let (negative_spans, negative_buckets) = take_side(cursor)?;
    let bounds = cursor.size().filter(|&n| n <= PARTS_MAX)?;
    let mut last = 0;
    let mut custom_values = Vec::with_capacity(bounds.min(cursor.rest().len()));
    for _ in 0..bounds {
        last = take_value(cursor, last)?;
        custom_values.push(f64::from_bits(last));
    }
    Some(Histogram {
        reset,
        schema,
        zero_threshold,
        positive_spans,
        negative_spans,
        positive_buckets,
        negative_buckets,
        custom_values,
        ..Histogram::default()
    })
}

fn take_side(cursor: &mut Cursor<'_>) -> Option<(Vec<BucketSpan>, Vec<f64>)> {
    let count = cursor.size().filter(|&n| n <= PARTS_MAX)?;
    let mut spans = Vec::with_capacity(count.min(cursor.rest().len()));
    for _ in 0..count {
        spans.push(BucketSpan {
            offset: i32::try_from(cursor.zigzag()?).ok()?,
            length: u32::try_from(cursor.varint()?).ok()?,
        });
    }
    let buckets = cursor.size().filter(|&n| n <= PARTS_MAX)?;
    Some((spans, vec![0.0; buckets]))
}

/// Adds the chunk of a column in which histograms occur.
pub(super) fn encode(column: &Column, out: &mut Vec<u8>) {
    out.push(KIND_HISTOGRAMS);
    put_varint(out, column.len() as u64);
    let floats = column
        .histograms
        .iter()
        .zip(&column.values)
        .filter(|(h, _)| h.is_none());
    let floats: Vec<f64> = floats.map(|(_, v)| *v).collect();
    out.push(u8::from(!floats.is_empty()));
    if !floats.is_empty() {
        let mut mask = vec![0_u8; column.len().div_ceil(8)];
        for (i, _) in column.histograms.iter().enumerate().filter(|(_, h)| h.is_some()) {
            mask[i / 8] |= 1 << (i % 8);
        }
        out.extend_from_slice(&mask);
        put_column(&floats, out);
    }
    let list: Vec<&Histogram> = column.histograms.iter().flatten().map(|h| &**h).collect();
    let shape = |h: &Histogram| {
        let mut bytes = Vec::new();
        put_shape(h, &mut bytes);
        bytes
    };
    let shapes: Vec<Vec<u8>> = list.iter().map(|h| shape(h)).collect();
    let mut at = 0;
    while at < list.len() {
        let n = shapes[at..].iter().take_while(|s| **s == shapes[at]).count();
        put_varint(out, n as u64);
        out.extend_from_slice(&shapes[at]);
        let mut columns = vec![Vec::with_capacity(n); numbers(list[at]).count()];
        for histogram in &list[at..at + n] {
            for (column, number) in columns.iter_mut().zip(numbers(histogram)) {
                column.push(number);
            }
        }
        columns.iter().for_each(|column| put_column(column, out));
        at += n;
    }
}

fn put_column(values: &[f64], out: &mut Vec<u8>) {
    let mut bytes = Vec::new();
    super::encode(values, &mut bytes);
    put_bytes(out, &bytes);
}

/// Adds the values and histograms of a chunk, read up to its count, to `into`.
pub(super) fn decode(cursor: &mut Cursor<'_>, count: usize, scratch: &mut Scratch, into: &mut Column) -> Option<()> {
    let mixed = match cursor.u8()? {
        0 => false,
        1 => true,
        _ => return None,
    };
    let mask = if mixed { cursor.take(count.div_ceil(8))? } else { &[] };
    let is_histogram = |i: usize| !mixed || mask[i / 8] >> (i % 8) & 1 == 1;
    let mut column = Vec::new();
    let floats = (0..count).filter(|&i| !is_histogram(i)).count();
    let mut floats = if mixed {
        take_column(cursor, floats, scratch, &mut column)?;
        std::mem::take(&mut column).into_iter()
    } else {
        Vec::new().into_iter()
    };
    let wanted = (0..count).filter(|&i| is_histogram(i)).count();
    let mut list: Vec<Histogram> = Vec::with_capacity(wanted);
    let mut numbers_read = 0_usize;
    while list.len() < wanted {
        let n = cursor.size().filter(|&n| n > 0 && n <= wanted - list.len())?;
        let shape = take_shape(cursor)?;
        let columns = 3 + shape.positive_buckets.len() + shape.negative_buckets.len();
        // A column takes at least four bytes, so this bounds what a short chunk can ask for.
        if columns > cursor.rest().len() {
            return None;
        }
        numbers_read += columns.checked_mul(n)?;
        if numbers_read > NUMBERS_MAX {
            return None;
        }
        let start = list.len();
        list.resize(start + n, shape);
        for number in 0..columns {
            take_column(cursor, n, scratch, &mut column)?;
            for (histogram, value) in list[start..].iter_mut().zip(&column) {
                *number_mut(histogram, number)? = *value;
            }
        }
    }
    let mut histograms = list.into_iter();
    for i in 0..count {
        let histogram = if is_histogram(i) { histograms.next() } else { None };
        into.values.push(match &histogram {
            Some(histogram) => histogram.sum,
            None => floats.next()?,
        });
        into.histograms.push(histogram.map(Arc::new));
    }
    Some(())
}

/// One of the numbers of [`numbers`] by its place.
fn number_mut(h: &mut Histogram, place: usize) -> Option<&mut f64> {
    match place {
        0 => Some(&mut h.count),
        1 => Some(&mut h.zero_count),
        2 => Some(&mut h.sum),
        _ if place - 3 < h.positive_buckets.len() => h.positive_buckets.get_mut(place - 3),
        _ => h.negative_buckets.get_mut(place - 3 - h.positive_buckets.len()),
    }
}

fn take_column(cursor: &mut Cursor<'_>, count: usize, scratch: &mut Scratch, into: &mut Vec<f64>) -> Option<()> {
    into.clear();
    super::decode(cursor.bytes()?, scratch, into)?;
    (into.len() == count && count <= COUNT_MAX).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{decode_column, encode_column};

    fn some(rng: &mut fastrand::Rng, gauge: bool) -> Histogram {
        let n = rng.usize(0..30);
        Histogram {
            reset: if gauge { ResetHint::Gauge } else { ResetHint::Unknown },
            schema: rng.i8(-4..8),
            zero_threshold: 1e-128,
            zero_count: f64::from(rng.u8(..)),
            count: f64::from(rng.u32(..)),
            sum: if rng.u8(0..9) == 0 {
                model::stale_nan()
            } else {
                rng.f64() * 1e5
            },
            positive_spans: vec![
                BucketSpan {
                    offset: rng.i32(..),
                    length: 3,
                },
                BucketSpan {
                    offset: 4,
                    length: n as u32,
                },
            ],
            negative_spans: Vec::new(),
            positive_buckets: (0..n + 3)
                .map(|_| f64::from(rng.u16(..)) / f64::from(rng.u8(1..3)))
                .collect(),
            negative_buckets: Vec::new(),
            custom_values: if rng.bool() {
                vec![0.5, 1.0, f64::MAX]
            } else {
                Vec::new()
            },
        }
    }

    /// Bits, since staleness markers are not equal to themselves.
    fn bytes(column: &Column) -> Vec<u8> {
        let mut out = Vec::new();
        for (value, histogram) in column.values.iter().zip(&column.histograms) {
            out.extend_from_slice(&value.to_bits().to_le_bytes());
            if let Some(histogram) = histogram {
                put(histogram, &mut out);
            }
        }
        out
    }

    #[test]
    fn histograms_come_back_to_the_bit_alone_and_among_floats() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..300 {
            let (mut column, mixed) = (Column::default(), rng.bool());
            let mut shape = some(&mut rng, false);
            column.push_histogram(0, Arc::new(shape.clone()));
            for time in 1..rng.i64(1..60) {
                if rng.u8(0..20) == 0 {
                    let gauge = rng.bool();
                    shape = some(&mut rng, gauge);
                }
                shape.positive_buckets[0] += 2.0;
                shape.sum += 0.5;
                if mixed && rng.u8(0..4) == 0 {
                    column.push(time, rng.f64());
                } else {
                    column.push_histogram(time, Arc::new(shape.clone()));
                }
            }
            let mut chunk = Vec::new();
            encode_column(&column, &mut chunk);
            let mut back = Column::default();
            back.push(-1, 1.0);
            decode_column(&chunk, &mut Scratch::default(), &mut back).expect("what was written");
            assert_eq!(back.values.len(), column.len() + 1);
            back.values.remove(0);
            back.histograms.remove(0);
            assert_eq!(bytes(&back), bytes(&column));
            for cut in 0..chunk.len() {
                assert!(decode_column(&chunk[..cut], &mut Scratch::default(), &mut back).is_none());
                assert_eq!(back.values.len(), column.len(), "nothing of a cut chunk is left");
            }
            let mut alone = Vec::new();
            put(&shape, &mut alone);
            let back = take(&mut Cursor::new(&alone)).expect("what was written");
            let mut again = Vec::new();
            put(&back, &mut again);
            assert_eq!(again, alone);
        }
    }

    #[test]
    fn a_quiet_histogram_costs_little() {
        let mut column = Column::default();
        let mut h = Histogram {
            schema: 3,
            zero_threshold: 2.938735877055719e-39,
            positive_spans: vec![BucketSpan {
                offset: -10,
                length: 40,
            }],
            positive_buckets: vec![100.0; 40],
            count: 4000.0,
            sum: 1234.5,
            ..Histogram::default()
        };
        for time in 0..120 {
            h.positive_buckets[time as usize % 7] += 1.0;
            h.count += 1.0;
            h.sum += 0.25;
            column.push_histogram(time, Arc::new(h.clone()));
        }
        let mut chunk = Vec::new();
        encode_column(&column, &mut chunk);
        assert!(
            chunk.len() < 600,
            "{} bytes for 120 histograms of 40 buckets",
            chunk.len()
        );
    }
}
