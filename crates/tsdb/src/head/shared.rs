//! The open tail of a series that shares its target's timestamps.
//!
//! While no value differs it is one number. After that the last [`PART`] values stand as they are, those before in
//! small chunks: a million tails are a good part of the memory, and most of what they hold packs well.

use blocks::bytes::{Cursor, put_varint};
use model::{Column, Millis, TargetId};

use super::sealed::{Sealed, put_presence, slots};
use super::target::{Place, Targets};
use crate::codec::{self, Scratch};

/// Values that are packed together.
const PART: usize = 24;

/// Values in some slots of one page.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    pub(super) target: TargetId,
    pub(super) page: u32,
    /// A bit for each slot of the page that has a value here.
    present: [u64; 2],
    /// The value of all samples while nothing else is here.
    constant: f64,
    /// The first values: chunks, each after its length.
    packed: Box<[u8]>,
    /// The last ones.
    values: Vec<f64>,
}

impl Shared {
    pub(super) fn new(target: TargetId, place: Place, value: f64) -> Self {
        let mut tail = Self {
            target,
            page: place.page,
            present: [0; 2],
            constant: value,
            packed: Box::default(),
            values: Vec::new(),
        };
        tail.mark(place.slot);
        tail
    }

    fn mark(&mut self, slot: u8) {
        self.present[usize::from(slot >> 6)] |= 1 << (slot & 63);
    }

    pub(super) fn count(&self) -> usize {
        (self.present[0].count_ones() + self.present[1].count_ones()) as usize
    }

    fn is_constant(&self) -> bool {
        self.values.is_empty() && self.packed.is_empty()
    }

    pub(super) fn push(&mut self, slot: u8, value: f64) {
        if self.values.is_empty() {
            if self.packed.is_empty() {
                if value.to_bits() == self.constant.to_bits() {
                    self.mark(slot);
                    return;
                }
                let count = self.count();
                self.values.reserve_exact(PART);
                if count < PART {
                    self.values.resize(count, self.constant);
                } else {
                    self.pack(&vec![self.constant; count]);
                }
            }
        } else if self.values.len() >= PART {
            let values = std::mem::take(&mut self.values);
            self.pack(&values);
            self.values = values;
            self.values.clear();
        }
        self.mark(slot);
        self.values.push(value);
    }

    fn pack(&mut self, values: &[f64]) {
        let mut chunk = Vec::with_capacity(64);
        codec::encode(values, &mut chunk);
        let mut packed = Vec::with_capacity(self.packed.len() + chunk.len() + 2);
        packed.extend_from_slice(&self.packed);
        put_varint(&mut packed, chunk.len() as u64);
        packed.extend_from_slice(&chunk);
        self.packed = packed.into();
    }

    fn slots(&self) -> impl Iterator<Item = usize> + '_ {
        slots(self.present)
    }

    /// One past the last slot that has a value.
    pub(super) fn end(&self) -> usize {
        let mask = u128::from(self.present[0]) | u128::from(self.present[1]) << 64;
        128 - mask.leading_zeros() as usize
    }

    pub(super) fn first(&self, targets: &Targets) -> Option<Millis> {
        let slot = self.slots().next()?;
        targets.get(self.target)?.time_at(Place {
            page: self.page,
            slot: slot as u8,
        })
    }

    /// The same of a copy of its page.
    pub(super) fn first_in(&self, page: &[Millis]) -> Option<Millis> {
        page.get(self.slots().next()?).copied()
    }

    pub(super) fn decode(&self, page: &[Millis], scratch: &mut Scratch, into: &mut Column) {
        let start = into.times.len();
        into.times.extend(self.slots().filter_map(|s| page.get(s).copied()));
        self.decode_values(scratch, &mut into.values);
        into.values.truncate(into.times.len());
        debug_assert!(into.values.len() == into.times.len() && into.times.len() >= start);
    }

    fn decode_values(&self, scratch: &mut Scratch, into: &mut Vec<f64>) {
        if self.is_constant() {
            into.resize(into.len() + self.count(), self.constant);
            return;
        }
        let mut cursor = Cursor::new(&self.packed);
        while let Some(chunk) = cursor.bytes() {
            codec::decode(chunk, scratch, into).expect("a chunk that was encoded here");
        }
        into.extend_from_slice(&self.values);
    }

    pub(super) fn sealed(&self, targets: &Targets) -> Option<Sealed> {
        let target = targets.get(self.target)?;
        let first = target.time_at(Place {
            page: self.page,
            slot: self.slots().next()? as u8,
        })?;
        let mut data = Vec::with_capacity(64);
        put_presence(self.present, &mut data);
        if self.packed.is_empty() && !self.values.is_empty() {
            codec::encode(&self.values, &mut data);
        } else {
            let mut values = Vec::with_capacity(self.count());
            self.decode_values(&mut Scratch::default(), &mut values);
            codec::encode(&values, &mut data);
        }
        Some(Sealed::of_page(first, self.target, self.page, &data))
    }
}
