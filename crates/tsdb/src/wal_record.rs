//! What the records of the log say, and how a scrape shrinks to its changes.
//!
//! ```text
//! 1 series   id varint | encoded labels
//! 2 target   id varint | encoded labels
//! 3 scrape   target varint | time zigzag | layout u8 | n varint | ids (zigzag differences) | values
//! 4 changes  target varint | time zigzag | layout u8 | bitmap of n bits | values of the set bits
//! 5 timed    n varint | (id zigzag difference | time zigzag difference | value)…
//! 6 head     boundary zigzag | latest sample zigzag
//! 7 pages    target varint | first varint | count varint | timestamps…
//! 8 state    id varint | last zigzag | runs | late runs
//! 9 histograms      n varint | (id zigzag difference | time zigzag difference | histogram)…
//! 10 zeros          n varint | (id zigzag difference | time zigzag difference)…
//! 11 exemplars      n varint | (id zigzag difference | time zigzag difference | value u64 | labels)…
//! 12 kept exemplar  time zigzag | value u64 | labels of the series | labels
//! 14 symbols        shard u8 | first number varint | n varint | texts…
//! 15 row            id varint | hash u64 | n varint | (name symbol varint | value symbol varint)… | last zigzag |
//!                   runs | late runs
//! 13 deletes        first time zigzag | last time zigzag | n varint | ids (zigzag differences)
//! ```
//!
//! A value is written against the one before it in the same place: `0 | difference zigzag` where both are whole
//! numbers, else a byte with the number of leading and trailing zero bytes of their XOR and what is between.
//! A `changes` record leans on the last record of its target and layout *in the same segment*, so every segment
//! begins with whole ones and can be read without those before it.

use std::sync::Arc;

use blocks::bytes::{Cursor, put_bytes, put_varint, put_zigzag};
use blocks::wal::Frames;
use model::{Exemplar, Labels, Millis, SeriesId, TargetId};

use crate::codec::histograms;
use crate::head::append::{Accepted, TimedHistogram};

/// Record kinds.
pub mod kind {
    /// A series got its id.
    pub const SERIES: u8 = 1;
    /// A target got its id.
    pub const TARGET: u8 = 2;
    /// Samples of a target at one time, ids included.
    pub const SCRAPE: u8 = 3;
    /// Samples of the same series as before, only what changed.
    pub const CHANGES: u8 = 4;
    /// Samples with times of their own.
    pub const TIMED: u8 = 5;
    /// First record of a checkpoint.
    pub const HEAD: u8 = 6;
    /// Timestamps of a target.
    pub const PAGES: u8 = 7;
    /// Samples of a series.
    pub const STATE: u8 = 8;
    /// Native histograms.
    pub const HISTOGRAMS: u8 = 9;
    /// Zeros where counters began.
    pub const ZEROS: u8 = 10;
    /// Examples of observations.
    pub const EXEMPLARS: u8 = 11;
    /// An example of observations in a checkpoint.
    pub const KEPT_EXEMPLAR: u8 = 12;
    /// Samples of series are gone from the head.
    pub const DELETES: u8 = 13;
    /// Texts of a shard, in a checkpoint.
    pub const SYMBOLS: u8 = 14;
    /// A series of a shard with its samples, in a checkpoint.
    pub const ROW: u8 = 15;
}

/// Layouts remembered per target; a scrape and its report series take two.
const LAYOUTS: usize = 4;

/// How the last records of a target looked.
#[derive(Debug, Default)]
pub struct Layouts {
    chain: u64,
    list: Vec<Layout>,
    next: usize,
}

#[derive(Debug, Default)]
struct Layout {
    ids: Vec<SeriesId>,
    bits: Vec<u64>,
    /// When reading: all of it is somebody else's.
    foreign: bool,
}

impl Layouts {
    /// Frees the memory; the next record is whole.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// Adds the records of a batch to `frames`. `chain` is the log's: when it has changed, records are whole
    /// and the target introduces itself again.
    pub fn put(
        &mut self,
        chain: u64,
        target: (TargetId, &Labels),
        time: Millis,
        batch: &Accepted<'_>,
        frames: &mut Frames,
    ) {
        if self.chain != chain {
            *self = Self {
                chain,
                ..Self::default()
            };
            frames.push(kind::TARGET, |out| {
                put_varint(out, u64::from(target.0.0));
                out.extend_from_slice(target.1.encoded().as_bytes());
            });
        }
        if !batch.zeros.is_empty() {
            frames.push(kind::ZEROS, |out| put_zeros(&batch.zeros, out));
        }
        if !batch.samples.is_empty() {
            self.put_samples(target.0, time, &batch.samples, frames);
        }
        if !batch.timed.is_empty() {
            frames.push(kind::TIMED, |out| put_timed(&batch.timed, out));
        }
        if !batch.histograms.is_empty() {
            frames.push(kind::HISTOGRAMS, |out| put_histograms(&batch.histograms, out));
        }
        if !batch.exemplars.is_empty() {
            frames.push(kind::EXEMPLARS, |out| put_exemplars(&batch.exemplars, out));
        }
    }

    fn put_samples(&mut self, target: TargetId, time: Millis, samples: &[(SeriesId, f64)], frames: &mut Frames) {
        let same = |l: &Layout| l.ids.len() == samples.len() && l.ids.iter().zip(samples).all(|(a, b)| *a == b.0);
        if let Some(number) = self.list.iter().position(same) {
            let layout = &mut self.list[number];
            frames.push(kind::CHANGES, |out| {
                put_head(out, target, time, number);
                put_changes(out, &mut layout.bits, samples);
            });
            return;
        }
        let number = self.next;
        self.next = (self.next + 1) % LAYOUTS;
        if number == self.list.len() {
            self.list.push(Layout::default());
        }
        let layout = &mut self.list[number];
        layout.ids.clear();
        layout.bits.clear();
        frames.push(kind::SCRAPE, |out| {
            put_head(out, target, time, number);
            put_varint(out, samples.len() as u64);
            let mut last = 0;
            for &(id, _) in samples {
                put_zigzag(out, id.0.wrapping_sub(last) as i64);
                last = id.0;
                layout.ids.push(id);
            }
            for &(_, value) in samples {
                put_value(out, 0, value.to_bits());
                layout.bits.push(value.to_bits());
            }
        });
    }
}

fn put_head(out: &mut Vec<u8>, target: TargetId, time: Millis, layout: usize) {
    put_varint(out, u64::from(target.0));
    put_zigzag(out, time);
    out.push(layout as u8);
}

fn put_changes(out: &mut Vec<u8>, bits: &mut [u64], samples: &[(SeriesId, f64)]) {
    let start = out.len();
    out.resize(start + samples.len().div_ceil(8), 0);
    for (i, (last, (_, value))) in bits.iter_mut().zip(samples).enumerate() {
        let value = value.to_bits();
        if value != *last {
            out[start + i / 8] |= 1 << (i % 8);
            put_value(out, *last, value);
            *last = value;
        }
    }
}

fn put_timed(samples: &[(SeriesId, Millis, f64)], out: &mut Vec<u8>) {
    put_varint(out, samples.len() as u64);
    let (mut last_id, mut last_time, mut last_bits) = (0, 0, 0);
    for &(id, time, value) in samples {
        put_zigzag(out, id.0.wrapping_sub(last_id) as i64);
        put_zigzag(out, time.wrapping_sub(last_time));
        put_value(out, last_bits, value.to_bits());
        (last_id, last_time, last_bits) = (id.0, time, value.to_bits());
    }
}

/// Ids and times of a list, each against those before it.
#[derive(Default)]
struct Chain {
    id: u64,
    time: Millis,
}

impl Chain {
    fn put(&mut self, id: SeriesId, time: Millis, out: &mut Vec<u8>) {
        put_zigzag(out, id.0.wrapping_sub(self.id) as i64);
        put_zigzag(out, time.wrapping_sub(self.time));
        (self.id, self.time) = (id.0, time);
    }

    fn take(&mut self, cursor: &mut Cursor<'_>) -> Option<(SeriesId, Millis)> {
        self.id = self.id.wrapping_add(cursor.zigzag()? as u64);
        self.time = self.time.wrapping_add(cursor.zigzag()?);
        Some((SeriesId(self.id), self.time))
    }
}

fn put_zeros(zeros: &[(SeriesId, Millis)], out: &mut Vec<u8>) {
    put_varint(out, zeros.len() as u64);
    let mut chain = Chain::default();
    zeros.iter().for_each(|&(id, time)| chain.put(id, time, out));
}

fn put_histograms(list: &[TimedHistogram], out: &mut Vec<u8>) {
    put_varint(out, list.len() as u64);
    let mut chain = Chain::default();
    for (id, time, histogram) in list {
        chain.put(*id, *time, out);
        histograms::put(histogram, out);
    }
}

fn put_exemplars(list: &[(SeriesId, Exemplar)], out: &mut Vec<u8>) {
    put_varint(out, list.len() as u64);
    let mut chain = Chain::default();
    for (id, exemplar) in list {
        chain.put(*id, exemplar.time, out);
        out.extend_from_slice(&exemplar.value.to_bits().to_le_bytes());
        put_bytes(out, exemplar.labels.encoded().as_bytes());
    }
}

/// The payload of a kept exemplar.
pub fn put_kept_exemplar(series: &Labels, exemplar: &Exemplar, out: &mut Vec<u8>) {
    put_zigzag(out, exemplar.time);
    out.extend_from_slice(&exemplar.value.to_bits().to_le_bytes());
    put_bytes(out, series.encoded().as_bytes());
    put_bytes(out, exemplar.labels.encoded().as_bytes());
}

/// Reads a kept exemplar.
#[must_use]
pub fn take_kept_exemplar(payload: &[u8]) -> Option<(Labels, Exemplar)> {
    let mut cursor = Cursor::new(payload);
    let time = cursor.zigzag()?;
    let value = f64::from_bits(cursor.u64()?);
    let series = Labels::from_encoded(cursor.text()?)?;
    let labels = Labels::from_encoded(cursor.text()?)?;
    Some((series, Exemplar { labels, value, time }))
}

/// Reads a `deletes` record: series, first and last moment.
#[must_use]
pub fn take_deletes(payload: &[u8]) -> Option<(Vec<SeriesId>, Millis, Millis)> {
    let mut cursor = Cursor::new(payload);
    let (mint, maxt) = (cursor.zigzag()?, cursor.zigzag()?);
    let n = cursor.size().filter(|&n| n <= cursor.rest().len())?;
    let mut last = 0_u64;
    let mut next = || {
        last = last.wrapping_add(cursor.zigzag()? as u64);
        Some(SeriesId(last))
    };
    let ids = (0..n).map(|_| next()).collect::<Option<_>>()?;
    Some((ids, mint, maxt))
}

/// Reads a `zeros` record.
#[must_use]
pub fn take_zeros(payload: &[u8]) -> Option<Vec<(SeriesId, Millis)>> {
    take_list(payload, Chain::take)
}

/// Reads a `histograms` record.
#[must_use]
pub fn take_histograms(payload: &[u8]) -> Option<Vec<TimedHistogram>> {
    take_list(payload, |chain, cursor| {
        let (id, time) = chain.take(cursor)?;
        Some((id, time, Arc::new(histograms::take(cursor)?)))
    })
}

/// Reads an `exemplars` record.
#[must_use]
pub fn take_exemplars(payload: &[u8]) -> Option<Vec<(SeriesId, Exemplar)>> {
    take_list(payload, |chain, cursor| {
        let (id, time) = chain.take(cursor)?;
        let value = f64::from_bits(cursor.u64()?);
        let labels = Labels::from_encoded(cursor.text()?)?;
        Some((id, Exemplar { labels, value, time }))
    })
}

fn take_list<T>(payload: &[u8], mut take: impl FnMut(&mut Chain, &mut Cursor<'_>) -> Option<T>) -> Option<Vec<T>> {
    let mut cursor = Cursor::new(payload);
    let n = cursor.size().filter(|&n| n <= cursor.rest().len())?;
    let mut chain = Chain::default();
    (0..n).map(|_| take(&mut chain, &mut cursor)).collect()
}

/// The marker of a whole-number difference; no XOR has eight leading and other zero bytes at once.
const WHOLE: u8 = 0xff;

pub(crate) fn put_value(out: &mut Vec<u8>, last: u64, bits: u64) {
    if let (Some(a), Some(b)) = (whole(last), whole(bits)) {
        out.push(WHOLE);
        put_zigzag(out, b - a);
        return;
    }
    let changed = last ^ bits;
    let lead = (changed.leading_zeros() / 8) as u8;
    let trail = if lead == 8 {
        0
    } else {
        (changed.trailing_zeros() / 8) as u8
    };
    out.push(lead << 4 | trail);
    let bytes = changed.to_be_bytes();
    out.extend_from_slice(&bytes[usize::from(lead)..8 - usize::from(trail)]);
}

pub(crate) fn take_value(cursor: &mut Cursor<'_>, last: u64) -> Option<u64> {
    let tag = cursor.u8()?;
    if tag == WHOLE {
        let value = whole(last)?.checked_add(cursor.zigzag()?)?;
        return Some((value as f64).to_bits());
    }
    let (lead, trail) = (usize::from(tag >> 4), usize::from(tag & 15));
    let middle = cursor.take(8_usize.checked_sub(lead + trail)?)?;
    let mut bytes = [0; 8];
    bytes[lead..lead + middle.len()].copy_from_slice(middle);
    Some(last ^ u64::from_be_bytes(bytes))
}

/// The integer whose double has these bits, if it is one of up to 2^53.
fn whole(bits: u64) -> Option<i64> {
    let value = f64::from_bits(bits);
    if value.abs() <= 9_007_199_254_740_992.0 {
        let int = value as i64;
        return ((int as f64).to_bits() == bits).then_some(int);
    }
    None
}

/// Adds a `series` record.
pub fn put_series(frames: &mut Frames, id: SeriesId, labels: &Labels) {
    frames.push(kind::SERIES, |out| fill_series(out, id, labels));
}

/// The payload of a `series` record.
pub fn fill_series(out: &mut Vec<u8>, id: SeriesId, labels: &Labels) {
    put_varint(out, id.0);
    out.extend_from_slice(labels.encoded().as_bytes());
}

/// Reads id and labels of a `series` or `target` record.
#[must_use]
pub fn take_named(payload: &[u8]) -> Option<(u64, Labels)> {
    let mut cursor = Cursor::new(payload);
    let id = cursor.varint()?;
    let labels = Labels::from_encoded(std::str::from_utf8(cursor.rest()).ok()?)?;
    Some((id, labels))
}

/// Samples read back: the target's number in the log, the time, the samples.
#[derive(Debug, Default)]
pub struct Scrape {
    /// The target as the log numbers it.
    pub target: u32,
    /// When.
    pub time: Millis,
    /// What.
    pub samples: Vec<(SeriesId, f64)>,
}

/// Reads scrapes in the order they were written.
#[derive(Debug, Default)]
pub struct Reader {
    layouts: std::collections::HashMap<(u32, u8), Layout>,
    share: Share,
}

/// The shards that one of several readers of the same log takes care of.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    /// Which reader it is.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

impl Default for Share {
    fn default() -> Self {
        Self { number: 0, of: 1 }
    }
}

impl Share {
    /// Whether it takes care of a shard.
    #[must_use]
    pub const fn has(self, shard: usize) -> bool {
        shard % self.of == self.number
    }

    /// Whether it takes care of a series.
    #[must_use]
    pub const fn has_series(self, id: SeriesId) -> bool {
        self.has((id.0 >> 56) as usize)
    }
}

impl Reader {
    /// A reader of the samples of some shards.
    #[must_use]
    pub fn of(share: Share) -> Self {
        Self {
            share,
            ..Self::default()
        }
    }

    /// The samples of its shards in a `scrape` or `changes` record; `None` when it leans on one that was not read.
    pub fn take(&mut self, kind: u8, payload: &[u8], into: &mut Scrape) -> Option<()> {
        let taken = self.read(kind, payload, into);
        if taken.is_none() {
            // Half-read values must not be leaned on.
            self.forget(into.target);
        }
        taken
    }

    fn read(&mut self, kind: u8, payload: &[u8], into: &mut Scrape) -> Option<()> {
        let mut cursor = Cursor::new(payload);
        into.target = u32::try_from(cursor.varint()?).ok()?;
        into.time = cursor.zigzag()?;
        let number = cursor.u8()?;
        into.samples.clear();
        if kind == kind::SCRAPE {
            let mut layout = take_layout(&mut cursor)?;
            layout.foreign = !layout.ids.iter().any(|&id| self.share.has_series(id));
            if layout.foreign {
                layout.ids = Vec::new();
                layout.bits = Vec::new();
            }
            self.layouts.insert((into.target, number), layout);
        }
        let share = self.share;
        let layout = self.layouts.get_mut(&(into.target, number))?;
        if layout.foreign {
            return Some(());
        }
        if kind == kind::CHANGES {
            let bitmap = cursor.take(layout.bits.len().div_ceil(8))?;
            for (i, last) in layout.bits.iter_mut().enumerate() {
                if bitmap[i / 8] >> (i % 8) & 1 == 1 {
                    *last = take_value(&mut cursor, *last)?;
                }
            }
        }
        let values = layout.bits.iter().map(|&bits| f64::from_bits(bits));
        let samples = layout.ids.iter().copied().zip(values);
        into.samples.extend(samples.filter(|s| share.has_series(s.0)));
        Some(())
    }

    /// A target was introduced: what is known of its number may be of another.
    pub fn forget(&mut self, target: u32) {
        for number in 0..LAYOUTS {
            self.layouts.remove(&(target, number as u8));
        }
    }
}

fn take_layout(cursor: &mut Cursor<'_>) -> Option<Layout> {
    let n = cursor.size().filter(|&n| n <= cursor.rest().len())?;
    let mut layout = Layout::default();
    let mut last = 0_u64;
    for _ in 0..n {
        last = last.wrapping_add(cursor.zigzag()? as u64);
        layout.ids.push(SeriesId(last));
    }
    for _ in 0..n {
        layout.bits.push(take_value(cursor, 0)?);
    }
    Some(layout)
}

/// Reads a `timed` record.
#[must_use]
pub fn take_timed(payload: &[u8]) -> Option<Vec<(SeriesId, Millis, f64)>> {
    let mut cursor = Cursor::new(payload);
    let n = cursor.size().filter(|&n| n <= cursor.rest().len())?;
    let mut samples = Vec::with_capacity(n);
    let (mut id, mut time, mut bits) = (0_u64, 0_i64, 0);
    for _ in 0..n {
        id = id.wrapping_add(cursor.zigzag()? as u64);
        time = time.wrapping_add(cursor.zigzag()?);
        bits = take_value(&mut cursor, bits)?;
        samples.push((SeriesId(id), time, f64::from_bits(bits)));
    }
    Some(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrapes_come_back_to_the_bit_and_hardly_cost_when_nothing_changes() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        let labels = Labels::from_pairs([("job", "x")]);
        let (mut layouts, mut reader) = (Layouts::default(), Reader::default());
        let odd = [
            f64::NAN,
            model::stale_nan(),
            -0.0,
            f64::INFINITY,
            0.1,
            1e300,
            9_007_199_254_740_992.0,
            -5.0,
        ];
        let mut values: Vec<f64> = (0..100).map(f64::from).collect();
        for round in 0..2000_i64 {
            for _ in 0..rng.usize(0..4) {
                let at = rng.usize(0..values.len());
                values[at] = if rng.bool() {
                    odd[rng.usize(0..8)]
                } else {
                    f64::from_bits(rng.u64(..))
                };
            }
            let n = [100, 100, 3, 50][rng.usize(0..4)];
            let samples: Vec<_> = values[..n]
                .iter()
                .enumerate()
                .map(|(i, v)| (SeriesId(i as u64 * 3), *v))
                .collect();
            let batch = Accepted {
                samples: samples.into(),
                ..Accepted::default()
            };
            let mut frames = Frames::new();
            layouts.put(
                1 + round as u64 / 100,
                (TargetId(7), &labels),
                round,
                &batch,
                &mut frames,
            );
            let mut rest = frames.as_bytes();
            let mut scrape = Scrape::default();
            while let blocks::wal::record::Next::Record(record, len) = blocks::wal::record::next(rest) {
                rest = &rest[len..];
                if record.kind == kind::TARGET {
                    assert_eq!(take_named(record.payload), Some((7, labels.clone())));
                    continue;
                }
                reader
                    .take(record.kind, record.payload, &mut scrape)
                    .expect("what was written");
            }
            assert_eq!(scrape.time, round);
            let bits = |s: &[(SeriesId, f64)]| s.iter().map(|(id, v)| (*id, v.to_bits())).collect::<Vec<_>>();
            assert_eq!(bits(&scrape.samples), bits(&batch.samples));
        }
    }

    #[test]
    fn timed_samples_come_back() {
        let samples = vec![
            (SeriesId(9), 5, 1.5),
            (SeriesId(u64::MAX), Millis::MIN, -0.0),
            (SeriesId(0), 7, 3.0),
        ];
        let mut out = Vec::new();
        put_timed(&samples, &mut out);
        assert_eq!(take_timed(&out), Some(samples));
    }
}
