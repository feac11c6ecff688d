//! The series that were pushed before, by a hash of their labels as they stood in the request.
//!
//! Two generations: when the younger is full it becomes the elder, and the elder goes. What is used moves back into
//! the younger, so a series that is pushed stays known, and memory is bounded whatever comes and goes.

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use hashbrown::HashTable;
use model::{Millis, SeriesId};

/// Entries of one generation: 40 bytes each.
const GENERATION_MAX: usize = 2_000_000;

/// A series known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub hash: u128,
    pub id: SeriesId,
    /// When its counter began, as last told; 0 for not told.
    pub created: Millis,
}

#[derive(Default)]
pub(super) struct Known(RwLock<Generations>);

#[derive(Default)]
pub(super) struct Generations {
    young: HashTable<Entry>,
    old: HashTable<Entry>,
}

#[expect(clippy::cast_possible_truncation, reason = "half of the hash places it")]
const fn half(hash: u128) -> u64 {
    hash as u64
}

impl Generations {
    /// The entry, and whether it is of the elder generation.
    #[inline]
    pub fn find(&self, hash: u128) -> Option<(Entry, bool)> {
        let same = |e: &Entry| e.hash == hash;
        if let Some(entry) = self.young.find(half(hash), same) {
            return Some((*entry, false));
        }
        self.old.find(half(hash), same).map(|entry| (*entry, true))
    }
}

impl Known {
    pub fn read(&self) -> RwLockReadGuard<'_, Generations> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers entries; takes them out of `news`.
    pub fn add(&self, news: &mut Vec<Entry>) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for entry in news.drain(..) {
            if all.young.len() >= GENERATION_MAX {
                all.old = std::mem::take(&mut all.young);
            }
            match all.young.find_mut(half(entry.hash), |e| e.hash == entry.hash) {
                Some(known) => *known = entry,
                None => {
                    all.young.insert_unique(half(entry.hash), entry, |e| half(e.hash));
                }
            }
        }
    }

    /// Forgets entries whose id the store knows no more; another id in its place stays.
    pub fn remove(&self, lost: &[(SeriesId, u128)]) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let Generations { young, old } = &mut *all;
        for (id, hash) in lost {
            for table in [&mut *young, &mut *old] {
                if let Ok(found) = table.find_entry(half(*hash), |e| e.hash == *hash && e.id == *id) {
                    found.remove();
                }
            }
        }
    }
}
