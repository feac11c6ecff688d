//! One series in memory: a tail that grows, sealed runs before it, and late samples beside them.
//!
//! The tail is either *shared* (values only; the timestamps are a page of the target) or *own* (timestamps too:
//! pushed samples, or a series that two targets write). A shared tail that has not changed yet is one number.
//! A run is sealed when its page is full or its two-hour span is over, so every run belongs to one block.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use blocks::bytes::{Cursor, put_bytes, put_varint, put_zigzag};
use model::{Column, Millis, TargetId};

use super::target::{PAGE, Place, Targets};
use crate::codec::{self, Scratch};
use crate::times::{self, span_start};

/// See the module.
#[derive(Debug)]
pub struct Series {
    /// Of its labels.
    pub hash: u64,
    /// Which tenant of its slot it is.
    pub generation: u32,
    /// Symbols of names and values, sorted by name.
    pub labels: Box<[(u32, u32)]>,
    /// The latest sample in order; [`Millis::MIN`] before the first.
    pub last: Millis,
    tail: Tail,
    sealed: Vec<Sealed>,
    late: Option<Box<Late>>,
}

#[derive(Debug, Default)]
enum Tail {
    #[default]
    Empty,
    Shared(Shared),
    Own(Box<Column>),
}

#[derive(Debug, Clone)]
struct Shared {
    target: TargetId,
    page: u32,
    /// A bit for each slot of the page that has a value here.
    present: [u64; 2],
    /// The value of all samples while `values` is empty.
    constant: f64,
    values: Vec<f64>,
}

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

/// Samples that came after later ones.
#[derive(Debug, Default)]
struct Late {
    tail: Column,
    sealed: Vec<Sealed>,
}

/// What became of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// Later than all before.
    InOrder,
    /// Earlier than the latest.
    Late,
    /// The timestamp had a value.
    Duplicate,
}

impl Series {
    /// A series without samples.
    #[must_use]
    pub fn new(hash: u64, generation: u32, labels: Box<[(u32, u32)]>) -> Self {
        Self {
            hash,
            generation,
            labels,
            last: Millis::MIN,
            tail: Tail::Empty,
            sealed: Vec::new(),
            late: None,
        }
    }

    /// Adds a sample whose timestamp is at `place` of `target`.
    pub fn push_shared(
        &mut self,
        target: TargetId,
        place: Place,
        time: Millis,
        value: f64,
        targets: &Targets,
    ) -> Taken {
        if time <= self.last {
            return self.push_late(time, value, targets);
        }
        self.last = time;
        match &mut self.tail {
            Tail::Shared(tail) if tail.target == target && tail.page == place.page => tail.push(place.slot, value),
            Tail::Own(column) if own_takes(column, time) => column.push(time, value),
            Tail::Shared(tail) if tail.target != target && tail.count() < PAGE / 4 => {
                // Two targets write this series in turn: it keeps timestamps of its own from now on.
                self.make_own(targets);
                self.push_own(time, value, targets);
            }
            _ => {
                self.seal(targets);
                self.tail = Tail::Shared(Shared::new(target, place, value));
            }
        }
        Taken::InOrder
    }

    /// Adds a sample with a timestamp of its own.
    pub fn push_timed(&mut self, time: Millis, value: f64, targets: &Targets) -> Taken {
        if time <= self.last {
            return self.push_late(time, value, targets);
        }
        self.last = time;
        self.push_own(time, value, targets);
        Taken::InOrder
    }

    fn push_own(&mut self, time: Millis, value: f64, targets: &Targets) {
        match &mut self.tail {
            Tail::Own(column) if own_takes(column, time) => column.push(time, value),
            _ => {
                self.seal(targets);
                let mut column = Column::default();
                column.push(time, value);
                self.tail = Tail::Own(Box::new(column));
            }
        }
    }

    fn make_own(&mut self, targets: &Targets) {
        if let Tail::Shared(shared) = &self.tail {
            let page = PageCache::new(targets).get(shared.target, shared.page, shared.end());
            let mut column = Column::default();
            shared.decode(&page, &mut column);
            self.tail = Tail::Own(Box::new(column));
        }
    }

    fn push_late(&mut self, time: Millis, value: f64, targets: &Targets) -> Taken {
        if time == self.last || self.has(time, targets) {
            return Taken::Duplicate;
        }
        let late = self.late.get_or_insert_default();
        let at = late.tail.times.partition_point(|&t| t < time);
        late.tail.times.insert(at, time);
        late.tail.values.insert(at, value);
        if late.tail.len() >= PAGE {
            late.seal();
        }
        Taken::Late
    }

    /// Whether the timestamp has a value.
    #[must_use]
    pub fn has(&self, time: Millis, targets: &Targets) -> bool {
        let mut column = Column::default();
        let snapshot = self.snapshot(time, time, &mut PageCache::new(targets));
        snapshot.read(time, time, &mut Scratch::default(), &mut column);
        !column.is_empty()
    }

    /// Whether there is no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self.tail, Tail::Empty) && self.sealed.is_empty() && self.late.is_none()
    }

    /// The earliest sample; `None` when there is none.
    #[must_use]
    pub fn first(&self, targets: &Targets) -> Option<Millis> {
        let in_order = match (self.sealed.first(), &self.tail) {
            (Some(sealed), _) => Some(sealed.first),
            (None, Tail::Empty) => None,
            (None, Tail::Own(column)) => column.times.first().copied(),
            (None, Tail::Shared(tail)) => tail.first(targets),
        };
        let late = self
            .late
            .iter()
            .flat_map(|l| l.sealed.iter().map(|s| s.first).chain(l.tail.times.first().copied()));
        in_order.into_iter().chain(late).min()
    }

    /// Number of sealed runs.
    #[must_use]
    pub fn sealed_count(&self) -> usize {
        self.sealed.len() + self.late.as_ref().map_or(0, |l| l.sealed.len())
    }

    /// Encodes the tail and begins anew.
    fn seal(&mut self, targets: &Targets) {
        if let Some(sealed) = self.tail_sealed(targets) {
            if self.sealed.len() == self.sealed.capacity() {
                self.sealed.reserve_exact(2);
            }
            self.sealed.push(sealed);
        }
        self.tail = Tail::Empty;
    }

    /// The tail as a sealed run; `None` when it is empty.
    #[must_use]
    pub fn tail_sealed(&self, targets: &Targets) -> Option<Sealed> {
        match &self.tail {
            Tail::Empty => None,
            Tail::Own(column) => Some(Sealed::inline(column)),
            Tail::Shared(tail) => tail.sealed(targets),
        }
    }

    /// All samples as sealed runs, those in order first; late ones apart.
    #[must_use]
    pub fn all_sealed(&self, targets: &Targets) -> (Vec<Sealed>, Vec<Sealed>) {
        let mut runs = self.sealed.clone();
        runs.extend(self.tail_sealed(targets));
        let mut late = Vec::new();
        if let Some(beside) = &self.late {
            late.extend(beside.sealed.iter().cloned());
            late.extend(by_span(beside.tail.clone()));
        }
        (runs, late)
    }

    /// Puts back runs that [`Series::all_sealed`] gave, into a series that has no sample.
    pub fn restore(&mut self, runs: Vec<Sealed>, late: Vec<Sealed>, last: Millis) {
        if !self.is_empty() || self.last != Millis::MIN {
            return;
        }
        self.sealed = runs;
        if !late.is_empty() {
            self.late = Some(Box::new(Late {
                tail: Column::default(),
                sealed: late,
            }));
        }
        self.last = last;
    }

    /// A copy of what holds samples in `mint..=maxt`, to be decoded when needed.
    #[must_use]
    pub fn snapshot(&self, mint: Millis, maxt: Millis, pages: &mut PageCache<'_>) -> Snapshot {
        let mut snapshot = Snapshot::default();
        if self.last >= mint {
            let from = self.sealed.partition_point(|s| s.first <= mint).saturating_sub(1);
            let runs = self.sealed[from..].iter().take_while(|s| s.first <= maxt);
            snapshot.runs.extend(runs.map(|s| s.run(pages)));
            match &self.tail {
                Tail::Empty => {}
                Tail::Own(column) => snapshot.runs.push(Run::Own(Column::clone(column))),
                Tail::Shared(tail) => {
                    let page = pages.get(tail.target, tail.page, tail.end());
                    snapshot.runs.push(Run::Tail(tail.clone(), page));
                }
            }
        }
        if let Some(late) = &self.late {
            let runs = late.sealed.iter().filter(|s| s.first <= maxt);
            snapshot.late.extend(runs.map(|s| s.run(pages)));
            if !late.tail.is_empty() {
                snapshot.late.push(Run::Own(late.tail.clone()));
            }
        }
        snapshot
    }

    /// Forgets samples before `boundary`, the start of a span.
    pub fn trim(&mut self, boundary: Millis) {
        if self.sealed.first().is_some_and(|s| s.first < boundary) {
            self.sealed.retain(|s| s.first >= boundary);
            self.sealed.shrink_to_fit();
        }
        if self.last < boundary {
            // A tail lies within one span, so it goes as a whole.
            self.tail = Tail::Empty;
        }
        if let Some(late) = &mut self.late {
            late.trim(boundary);
            if late.tail.is_empty() && late.sealed.is_empty() {
                self.late = None;
            }
        }
    }
}

/// Whether an own tail goes on with `time`.
fn own_takes(column: &Column, time: Millis) -> bool {
    column.len() < PAGE && column.times.first().is_some_and(|&f| span_start(f) == span_start(time))
}

impl Late {
    /// Encodes the tail.
    fn seal(&mut self) {
        self.sealed.extend(by_span(std::mem::take(&mut self.tail)));
    }

    fn trim(&mut self, boundary: Millis) {
        self.sealed.retain(|s| span_start(s.first) >= boundary);
        let gone = self.tail.times.partition_point(|&t| t < boundary);
        self.tail.times.drain(..gone);
        self.tail.values.drain(..gone);
    }
}

/// Encodes samples as runs that each lie within one span.
fn by_span(mut column: Column) -> Vec<Sealed> {
    let mut runs = Vec::new();
    while let Some(&first) = column.times.first() {
        let end = span_start(first).saturating_add(times::SPAN);
        let n = column.times.partition_point(|&t| t < end);
        let later = Column {
            times: column.times.split_off(n),
            values: column.values.split_off(n),
        };
        runs.push(Sealed::inline(&column));
        column = later;
    }
    runs
}

impl Shared {
    fn new(target: TargetId, place: Place, value: f64) -> Self {
        let mut tail = Self {
            target,
            page: place.page,
            present: [0; 2],
            constant: value,
            values: Vec::new(),
        };
        tail.mark(place.slot);
        tail
    }

    fn mark(&mut self, slot: u8) {
        self.present[usize::from(slot >> 6)] |= 1 << (slot & 63);
    }

    fn count(&self) -> usize {
        (self.present[0].count_ones() + self.present[1].count_ones()) as usize
    }

    fn push(&mut self, slot: u8, value: f64) {
        if self.values.is_empty() {
            if value.to_bits() == self.constant.to_bits() {
                self.mark(slot);
                return;
            }
            let count = self.count();
            self.values.reserve_exact((count + 8).min(PAGE));
            self.values.resize(count, self.constant);
        } else if self.values.len() == self.values.capacity() {
            // Doubling, but never beyond a page.
            let room = PAGE.saturating_sub(self.values.len()).min(self.values.len()).max(1);
            self.values.reserve_exact(room);
        }
        self.mark(slot);
        self.values.push(value);
    }

    fn slots(&self) -> impl Iterator<Item = usize> + '_ {
        slots(self.present)
    }

    /// One past the last slot that has a value.
    fn end(&self) -> usize {
        let mask = u128::from(self.present[0]) | u128::from(self.present[1]) << 64;
        128 - mask.leading_zeros() as usize
    }

    fn first(&self, targets: &Targets) -> Option<Millis> {
        let slot = self.slots().next()?;
        targets.get(self.target)?.time_at(Place {
            page: self.page,
            slot: slot as u8,
        })
    }

    fn decode(&self, page: &[Millis], into: &mut Column) {
        let start = into.times.len();
        into.times.extend(self.slots().filter_map(|s| page.get(s).copied()));
        let count = into.times.len() - start;
        if self.values.is_empty() {
            into.values.resize(into.times.len(), self.constant);
        } else {
            into.values.extend_from_slice(&self.values[..count]);
        }
    }

    fn sealed(&self, targets: &Targets) -> Option<Sealed> {
        let page = targets.get(self.target)?.times(self.page);
        let first = *page.get(self.slots().next()?)?;
        let mut data = Vec::with_capacity(64);
        put_presence(self.present, &mut data);
        if self.values.is_empty() {
            codec::encode(&vec![self.constant; self.count()], &mut data);
        } else {
            codec::encode(&self.values, &mut data);
        }
        Some(Sealed {
            first,
            target: self.target.0,
            page: self.page,
            data: Data::from(data.as_slice()),
        })
    }
}

fn slots(present: [u64; 2]) -> impl Iterator<Item = usize> {
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

/// `start u8 | count u8` for a run without holes, `255 | mask 16 bytes` otherwise.
fn put_presence(present: [u64; 2], out: &mut Vec<u8>) {
    let mask = u128::from(present[0]) | u128::from(present[1]) << 64;
    let (start, count) = (mask.trailing_zeros(), mask.count_ones());
    if mask != 0 && mask >> start == (1_u128 << count) - 1 {
        out.extend_from_slice(&[start as u8, count as u8]);
    } else {
        out.push(255);
        out.extend_from_slice(&mask.to_le_bytes());
    }
}

fn read_presence(cursor: &mut Cursor<'_>) -> Option<[u64; 2]> {
    let mask = match cursor.u8()? {
        255 => return Some([cursor.u64()?, cursor.u64()?]),
        start => {
            let count = cursor.u8()?;
            let ones = 1_u128.checked_shl(u32::from(count))?.wrapping_sub(1);
            ones.checked_shl(u32::from(start))?
        }
    };
    Some([mask as u64, (mask >> 64) as u64])
}

impl Sealed {
    /// Encodes a column with its timestamps.
    #[must_use]
    pub fn inline(column: &Column) -> Self {
        let mut data = Vec::with_capacity(64);
        times::encode(&column.times, &mut data);
        codec::encode(&column.values, &mut data);
        Self {
            first: column.times.first().copied().unwrap_or(Millis::MAX),
            target: INLINE,
            page: 0,
            data: Data::from(data.as_slice()),
        }
    }

    fn run(&self, pages: &mut PageCache<'_>) -> Run {
        let page = if self.target == INLINE {
            Arc::default()
        } else {
            pages.get(TargetId(self.target), self.page, self.slot_end())
        };
        Run::Sealed(self.clone(), page)
    }

    fn slot_end(&self) -> usize {
        let present = read_presence(&mut Cursor::new(&self.data)).unwrap_or_default();
        slots(present).last().map_or(0, |s| s + 1)
    }

    /// Adds the samples to `into`; `None` when the bytes make no sense, which a checkpoint's could not.
    fn decode(&self, page: &[Millis], scratch: &mut Scratch, into: &mut Column) -> Option<()> {
        let mut cursor = Cursor::new(&self.data);
        if self.target == INLINE {
            times::decode(&mut cursor, &mut into.times)?;
        } else {
            let present = read_presence(&mut cursor)?;
            into.times.extend(slots(present).filter_map(|s| page.get(s).copied()));
        }
        codec::decode(cursor.rest(), scratch, &mut into.values)
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

/// Pages of targets met during one selection, each copied once.
#[derive(Debug)]
pub struct PageCache<'a> {
    targets: &'a Targets,
    pages: HashMap<(TargetId, u32), Arc<[Millis]>>,
}

impl<'a> PageCache<'a> {
    /// Nothing met yet.
    #[must_use]
    pub fn new(targets: &'a Targets) -> Self {
        Self {
            targets,
            pages: HashMap::new(),
        }
    }

    /// The timestamps of a page, at least the first `slots` of them where they exist.
    fn get(&mut self, target: TargetId, page: u32, slots: usize) -> Arc<[Millis]> {
        if let Some(times) = self.pages.get(&(target, page))
            && times.len() >= slots
        {
            return Arc::clone(times);
        }
        // New, or the page has grown since it was copied.
        let times = self.targets.get(target).map(|t| t.times(page)).unwrap_or_default();
        let times: Arc<[Millis]> = times.into();
        self.pages.insert((target, page), Arc::clone(&times));
        times
    }
}

/// A run of samples with the timestamps it needs.
#[derive(Debug)]
enum Run {
    Sealed(Sealed, Arc<[Millis]>),
    Tail(Shared, Arc<[Millis]>),
    Own(Column),
}

/// What a series held at one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    runs: Vec<Run>,
    late: Vec<Run>,
}

impl Run {
    /// Adds the samples in `mint..=maxt`, through `whole`, a column to use.
    fn read(&self, mint: Millis, maxt: Millis, scratch: &mut Scratch, whole: &mut Column, into: &mut Column) {
        whole.clear();
        match self {
            Self::Own(column) => return clip(column, mint, maxt, into),
            Self::Tail(tail, page) => tail.decode(page, whole),
            Self::Sealed(sealed, page) => {
                let decoded = sealed.decode(page, scratch, whole);
                // Encoded in this process, or read from a checkpoint whose checksum was right.
                debug_assert!(decoded.is_some() && whole.times.len() == whole.values.len());
                if decoded.is_none() || whole.times.len() != whole.values.len() {
                    return;
                }
            }
        }
        clip(whole, mint, maxt, into);
    }
}

impl Snapshot {
    /// Whether it holds no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.late.is_empty()
    }

    /// Adds the samples in `mint..=maxt` to `into`, in order of time; `into` must end before `mint`.
    pub fn read(&self, mint: Millis, maxt: Millis, scratch: &mut Scratch, into: &mut Column) {
        let mut whole = Column::default();
        if self.late.is_empty() {
            for run in &self.runs {
                run.read(mint, maxt, scratch, &mut whole, into);
            }
            return;
        }
        let mut merged = Column::default();
        for run in &self.runs {
            run.read(mint, maxt, scratch, &mut whole, &mut merged);
        }
        for run in &self.late {
            let mut part = Column::default();
            run.read(mint, maxt, scratch, &mut whole, &mut part);
            merge(&mut merged, &part);
        }
        into.times.extend_from_slice(&merged.times);
        into.values.extend_from_slice(&merged.values);
    }
}

/// Adds the samples of `from` in `mint..=maxt` to `into`.
pub fn clip(from: &Column, mint: Millis, maxt: Millis, into: &mut Column) {
    let start = from.times.partition_point(|&t| t < mint);
    let end = from.times.partition_point(|&t| t <= maxt);
    if start < end {
        into.times.extend_from_slice(&from.times[start..end]);
        into.values.extend_from_slice(&from.values[start..end]);
    }
}

/// Merges `other` into `column`, both in order; where both have a timestamp, `column` wins.
pub fn merge(column: &mut Column, other: &Column) {
    if other.is_empty() {
        return;
    }
    if column.times.last().is_none_or(|l| *l < other.times[0]) {
        column.times.extend_from_slice(&other.times);
        column.values.extend_from_slice(&other.values);
        return;
    }
    let have = std::mem::take(column);
    let (mut i, mut j) = (0, 0);
    while i < have.len() || j < other.len() {
        let left = have.times.get(i).copied().unwrap_or(Millis::MAX);
        let right = other.times.get(j).copied().unwrap_or(Millis::MAX);
        if i < have.len() && (left <= right || j >= other.len()) {
            column.push(left, have.values[i]);
            i += 1;
            if left == right && j < other.len() {
                j += 1;
            }
        } else {
            column.push(right, other.values[j]);
            j += 1;
        }
    }
}
