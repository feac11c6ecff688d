//! Which slots of a shard carry which label.

use std::borrow::Cow;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use roaring::RoaringBitmap;

/// Slots by name and value symbol.
#[derive(Debug, Default)]
pub struct Postings {
    names: HashMap<u32, HashMap<u32, Slots, RandomState>, RandomState>,
    all: RoaringBitmap,
}

/// A set of slots: most values belong to one series or to many.
#[derive(Debug)]
pub enum Slots {
    /// Just this one.
    One(u32),
    /// Any number.
    Many(Box<RoaringBitmap>),
}

impl Slots {
    /// The set, borrowed where it is one.
    #[must_use]
    pub fn rows(&self) -> Cow<'_, RoaringBitmap> {
        match self {
            Self::One(slot) => Cow::Owned(std::iter::once(*slot).collect()),
            Self::Many(set) => Cow::Borrowed(set),
        }
    }
}

impl Postings {
    /// All slots in use.
    #[must_use]
    pub fn all(&self) -> &RoaringBitmap {
        &self.all
    }

    /// Adds a series.
    pub fn insert(&mut self, slot: u32, labels: &[(u32, u32)]) {
        self.all.insert(slot);
        for &(name, value) in labels {
            let values = self.names.entry(name).or_default();
            values
                .entry(value)
                .and_modify(|slots| match slots {
                    Slots::One(other) if *other == slot => {}
                    Slots::One(other) => *slots = Slots::Many(Box::new([*other, slot].into_iter().collect())),
                    Slots::Many(set) => drop(set.insert(slot)),
                })
                .or_insert(Slots::One(slot));
        }
    }

    /// Takes a series out.
    pub fn remove(&mut self, slot: u32, labels: &[(u32, u32)]) {
        self.all.remove(slot);
        for (name, value) in labels {
            let Some(values) = self.names.get_mut(name) else {
                continue;
            };
            let empty = match values.get_mut(value) {
                None => false,
                Some(Slots::One(_)) => true,
                Some(Slots::Many(set)) => {
                    set.remove(slot);
                    set.is_empty()
                }
            };
            if empty {
                values.remove(value);
                if values.is_empty() {
                    self.names.remove(name);
                }
            }
        }
    }

    /// Slots of a value.
    #[must_use]
    pub fn get(&self, name: u32, value: u32) -> Option<&Slots> {
        self.names.get(&name)?.get(&value)
    }

    /// Values of a name with their slots, in no order.
    pub fn values(&self, name: u32) -> impl Iterator<Item = (u32, &Slots)> {
        self.names.get(&name).into_iter().flatten().map(|(v, s)| (*v, s))
    }

    /// All names, in no order.
    pub fn names(&self) -> impl Iterator<Item = u32> {
        self.names.keys().copied()
    }
}
