//! Encoded runs of a series: a page's worth, four pages joined, or samples with timestamps of their own.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use blocks::bytes::{Cursor, put_bytes, put_varint, put_zigzag};
use model::{Column, Millis, TargetId};

use super::snapshot::{PageCache, Run};
use super::target::PAGE;
use crate::codec::{self, Scratch};
use crate::column::split_off;
use crate::times::{self, span_start};

/// An encoded run. There is one for every 120 samples of every series, so each byte counts.
#[derive(Debug, Clone)]
pub struct Sealed {
    /// Its first timestamp.
    pub first: Millis,
    /// The target whose page has its timestamps; [`INLINE`] when they are in front of the values.
    target: u32,
    page: u32,
    /// `presence | chunk` where the timestamps are shared, `timestamps | chunk` where they are its own.
    data: Data,
}

/// No target: the timestamps of a run are its own.
const INLINE: u32 = u32::MAX;

/// Bytes of a run: those of a constant fit without an allocation.
#[derive(Debug, Clone)]
enum Data {
    Short(u8, [u8; 22]),
    Long(Arc<[u8]>),
}

impl From<&[u8]> for Data {
    fn from(bytes: &[u8]) -> Self {
        let mut short = [0; 22];
        match short.get_mut(..bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                Self::Short(bytes.len() as u8, short)
            }
            None => Self::Long(bytes.into()),
        }
    }
}

impl Deref for Data {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Short(len, bytes) => &bytes[..usize::from(*len)],
            Self::Long(bytes) => bytes,
        }
    }
}

/// Samples of a run of its own timestamps.
const RUN: usize = 4 * PAGE;

/// Encodes samples as runs that each lie within one span.
pub(super) fn by_span(mut column: Column) -> Vec<Sealed> {
    let mut runs = Vec::new();
    while let Some(&first) = column.times.first() {
        let end = span_start(first).saturating_add(times::SPAN);
        let n = column.times.partition_point(|&t| t < end).min(RUN);
        let later = split_off(&mut column, n);
        runs.push(Sealed::inline(&column));
        column = later;
    }
    runs
}

pub(super) fn slots(present: [u64; 2]) -> impl Iterator<Item = usize> {
    (0..2).flat_map(move |half| {
        let mut bits = present[half];
        std::iter::from_fn(move || {
            if bits == 0 {
                return None;
            }
            let slot = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            Some(half * 64 + slot)
        })
    })
}

/// Pages that are joined to one run: the samples of a chunk on disk.
pub(super) const JOIN: usize = 4;
/// The first byte of a run of [`JOIN`] whole pages.
const WHOLE_PAGES: u8 = 254;
/// The first byte of a run with holes.
const MASK: u8 = 255;

/// `start u8 | count u8` for a run without holes, `255 | mask 16 bytes` otherwise.
pub(super) fn put_presence(present: [u64; 2], out: &mut Vec<u8>) {
    let mask = u128::from(present[0]) | u128::from(present[1]) << 64;
    let (start, count) = (mask.trailing_zeros(), mask.count_ones());
    if mask != 0 && mask >> start == (1_u128 << count) - 1 {
        out.extend_from_slice(&[start as u8, count as u8]);
    } else {
        out.push(MASK);
        out.extend_from_slice(&mask.to_le_bytes());
    }
}

fn read_presence(cursor: &mut Cursor<'_>) -> Option<[u64; 2]> {
    let mask = match cursor.u8()? {
        MASK => return Some([cursor.u64()?, cursor.u64()?]),
        start => {
            let count = cursor.u8()?;
            let ones = 1_u128.checked_shl(u32::from(count))?.wrapping_sub(1);
            ones.checked_shl(u32::from(start))?
        }
    };
    Some([mask as u64, (mask >> 64) as u64])
}

impl Sealed {
    /// A run whose timestamps are in a page of a target.
    pub(super) fn of_page(first: Millis, target: TargetId, page: u32, data: &[u8]) -> Self {
        Self {
            first,
            target: target.0,
            page,
            data: Data::from(data),
        }
    }

    /// Encodes a column with its timestamps.
    #[must_use]
    pub fn inline(column: &Column) -> Self {
        let mut data = Vec::with_capacity(64);
        times::encode(&column.times, &mut data);
        codec::encode_column(column, &mut data);
        Self {
            first: column.times.first().copied().unwrap_or(Millis::MAX),
            target: INLINE,
            page: 0,
            data: Data::from(data.as_slice()),
        }
    }

    pub(super) fn run(&self, pages: &mut PageCache<'_>) -> Run {
        let target = TargetId(self.target);
        let times = match self.data.first() {
            _ if self.target == INLINE => Arc::default(),
            Some(&WHOLE_PAGES) => pages.get_joined(target, self.page),
            _ => pages.get(target, self.page, self.slot_end()),
        };
        Run::Sealed(self.clone(), times)
    }

    /// These runs as one, if they are whole pages of a target one after the other, within one span.
    pub(super) fn joined(runs: &[Self]) -> Option<Self> {
        let first = runs.first()?;
        let follows = |(i, run): (u32, &Self)| {
            run.target != INLINE
                && run.target == first.target
                && run.page == first.page + i
                && run.data.starts_with(&[0, PAGE as u8])
                && span_start(run.first) == span_start(first.first)
        };
        if !(0..).zip(runs).all(follows) {
            return None;
        }
        let (mut scratch, mut values) = (Scratch::default(), Vec::with_capacity(JOIN * PAGE));
        for run in runs {
            codec::decode(&run.data[2..], &mut scratch, &mut values)?;
        }
        let mut data = vec![WHOLE_PAGES];
        codec::encode(&values, &mut data);
        Some(Self {
            first: first.first,
            target: first.target,
            page: first.page,
            data: Data::from(data.as_slice()),
        })
    }

    /// The chunk of a run of whole pages; `None` for any other.
    pub(super) fn chunk(&self) -> Option<&[u8]> {
        (self.target != INLINE)
            .then(|| self.data.strip_prefix(&[WHOLE_PAGES]))
            .flatten()
    }

    fn slot_end(&self) -> usize {
        let present = read_presence(&mut Cursor::new(&self.data)).unwrap_or_default();
        slots(present).last().map_or(0, |s| s + 1)
    }

    /// Adds the samples to `into`; `None` when the bytes make no sense, which a checkpoint's could not.
    pub(super) fn decode(&self, page: &[Millis], scratch: &mut Scratch, into: &mut Column) -> Option<()> {
        let mut cursor = Cursor::new(&self.data);
        if self.target == INLINE {
            times::decode(&mut cursor, &mut into.times)?;
        } else if self.data.first() == Some(&WHOLE_PAGES) {
            cursor.u8()?;
            into.times.extend_from_slice(page);
        } else {
            let present = read_presence(&mut cursor)?;
            into.times.extend(slots(present).filter_map(|s| page.get(s).copied()));
        }
        codec::decode_column(cursor.rest(), scratch, into)
    }

    /// Translates the log's number of a target.
    pub fn retarget(&mut self, targets: &HashMap<u32, TargetId>) {
        if let Some(now) = targets.get(&self.target) {
            self.target = now.0;
        }
    }

    /// For a checkpoint.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_zigzag(out, self.first);
        put_varint(out, u64::from(self.target));
        put_varint(out, u64::from(self.page));
        put_bytes(out, &self.data);
    }

    /// The inverse of [`Sealed::put`].
    pub fn take(cursor: &mut Cursor<'_>) -> Option<Self> {
        Some(Self {
            first: cursor.zigzag()?,
            target: u32::try_from(cursor.varint()?).ok()?,
            page: u32::try_from(cursor.varint()?).ok()?,
            data: Data::from(cursor.bytes()?),
        })
    }
}
