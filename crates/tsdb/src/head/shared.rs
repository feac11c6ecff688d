//! The open tail of a series that shares its target's timestamps.

use model::{Column, Millis, TargetId};

use super::sealed::{Sealed, put_presence, slots};
use super::target::{PAGE, Place, Targets};
use crate::codec;

/// Values in some slots of one page.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    pub(super) target: TargetId,
    pub(super) page: u32,
    /// A bit for each slot of the page that has a value here.
    present: [u64; 2],
    /// The value of all samples while `values` is empty.
    constant: f64,
    values: Vec<f64>,
}

impl Shared {
    pub(super) fn new(target: TargetId, place: Place, value: f64) -> Self {
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

    pub(super) fn count(&self) -> usize {
        (self.present[0].count_ones() + self.present[1].count_ones()) as usize
    }

    pub(super) fn push(&mut self, slot: u8, value: f64) {
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

    pub(super) fn decode(&self, page: &[Millis], into: &mut Column) {
        let start = into.times.len();
        into.times.extend(self.slots().filter_map(|s| page.get(s).copied()));
        let count = into.times.len() - start;
        if self.values.is_empty() {
            into.values.resize(into.times.len(), self.constant);
        } else {
            into.values.extend_from_slice(&self.values[..count]);
        }
    }

    pub(super) fn sealed(&self, targets: &Targets) -> Option<Sealed> {
        let page = targets.get(self.target)?.times(self.page);
        let first = *page.get(self.slots().next()?)?;
        let mut data = Vec::with_capacity(64);
        put_presence(self.present, &mut data);
        if self.values.is_empty() {
            codec::encode(&vec![self.constant; self.count()], &mut data);
        } else {
            codec::encode(&self.values, &mut data);
        }
        Some(Sealed::of_page(first, self.target, self.page, &data))
    }
}
