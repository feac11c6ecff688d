//! A part of the head: series by slot, by labels, by label.

use std::borrow::Cow;

use blocks::index::Terms;
use hashbrown::HashTable;
use model::{Labels, Millis};
use roaring::RoaringBitmap;

use super::GENERATION_MASK;
use super::postings::Postings;
use super::series::Series;
use super::symbols::Symbols;

/// Slots of a page of the slab; pages are allocated whole and never move.
const SLAB: usize = 256;

/// See the module.
#[derive(Debug, Default)]
pub struct Shard {
    symbols: Symbols,
    postings: Postings,
    table: HashTable<u32>,
    slab: Vec<Vec<Option<Series>>>,
    free: Vec<u32>,
    /// Series removed since symbols were last rebuilt.
    removed: usize,
    /// The generation that a slot's next tenant gets, for slots that had one.
    generations: std::collections::HashMap<u32, u32>,
}

impl Shard {
    /// The series in a slot.
    #[inline]
    #[must_use]
    pub fn get(&self, slot: u32) -> Option<&Series> {
        self.slab.get(slot as usize / SLAB)?.get(slot as usize % SLAB)?.as_ref()
    }

    /// The series in a slot.
    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut Series> {
        self.slab
            .get_mut(slot as usize / SLAB)?
            .get_mut(slot as usize % SLAB)?
            .as_mut()
    }

    /// All series with their slots.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Series)> {
        (0_u32..)
            .zip(self.slab.iter().flatten())
            .filter_map(|(slot, s)| Some((slot, s.as_ref()?)))
    }

    /// Number of series.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no series.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The slot of these labels.
    #[must_use]
    pub fn find(&self, hash: u64, labels: &Labels) -> Option<u32> {
        let same = |&slot: &u32| {
            self.get(slot)
                .is_some_and(|s| s.hash == hash && self.has_labels(s, labels))
        };
        self.table.find(hash, same).copied()
    }

    fn has_labels(&self, series: &Series, labels: &Labels) -> bool {
        let mut wanted = labels.iter();
        let same =
            |&(name, value): &(u32, u32)| wanted.next() == Some((self.symbols.get(name), self.symbols.get(value)));
        series.labels.iter().all(same) && wanted.next().is_none()
    }

    /// Adds a series in a slot of its own; gives slot and generation. `None` when symbols are full.
    pub fn insert(&mut self, hash: u64, labels: &Labels) -> Option<(u32, u32)> {
        let slot = self.free.pop().unwrap_or_else(|| self.grow());
        let generation = self.generations.get(&slot).copied().unwrap_or(0);
        match self.insert_at(slot, generation, hash, labels) {
            true => Some((slot, generation)),
            false => {
                self.free.push(slot);
                None
            }
        }
    }

    /// Adds a series in this slot, as a log says; whoever is there is gone. Gives whether it was added.
    pub fn insert_at(&mut self, slot: u32, generation: u32, hash: u64, labels: &Labels) -> bool {
        let mut symbols = Vec::with_capacity(labels.len());
        for (name, value) in labels {
            let (Some(name), Some(value)) = (self.symbols.intern(name), self.symbols.intern(value)) else {
                return false;
            };
            symbols.push((name, value));
        }
        self.insert_symbols(slot, generation, hash, symbols.into());
        true
    }

    /// The same for labels that are symbols already.
    pub fn insert_symbols(&mut self, slot: u32, generation: u32, hash: u64, labels: Box<[(u32, u32)]>) {
        while self.slab.len() * SLAB <= slot as usize {
            self.grow_slab();
        }
        self.remove(slot);
        let series = Series::new(hash, generation, labels);
        self.postings.insert(slot, &series.labels);
        self.slab[slot as usize / SLAB][slot as usize % SLAB] = Some(series);
        let Self { table, slab, .. } = self;
        let hash_of = |&slot: &u32| {
            slab[slot as usize / SLAB][slot as usize % SLAB]
                .as_ref()
                .map_or(0, |s| s.hash)
        };
        table.insert_unique(hash, slot, hash_of);
    }

    /// Whether pairs of symbols are in order of their names, each once, and without empty values.
    #[must_use]
    pub fn is_label_set(&self, labels: &[(u32, u32)]) -> bool {
        let text = |symbol| self.symbols.get(symbol);
        labels.is_sorted_by(|a, b| text(a.0) < text(b.0)) && labels.iter().all(|l| !text(l.1).is_empty())
    }

    /// The texts of labels.
    #[must_use]
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// The number of a text, a new one if need be; `None` when symbols are full.
    pub fn intern(&mut self, text: &str) -> Option<u32> {
        self.symbols.intern(text)
    }

    fn grow_slab(&mut self) {
        let mut page = Vec::with_capacity(SLAB);
        page.resize_with(SLAB, || None);
        self.slab.push(page);
    }

    /// A slab page more; gives its first slot, the others become free.
    fn grow(&mut self) -> u32 {
        let first = (self.slab.len() * SLAB) as u32;
        self.grow_slab();
        self.free.extend((first + 1..first + SLAB as u32).rev());
        first
    }

    /// After a replay, which names slots itself: what has no tenant is free.
    pub fn rebuild_free(&mut self) {
        let slots = (self.slab.len() * SLAB) as u32;
        self.free = (0..slots).rev().filter(|&slot| self.get(slot).is_none()).collect();
    }

    /// Takes a series out; its slot is not free yet.
    pub fn remove(&mut self, slot: u32) {
        let Some(series) = self.get(slot) else { return };
        let hash = series.hash;
        if let Ok(entry) = self.table.find_entry(hash, |&s| s == slot) {
            entry.remove();
        }
        let Some(place) = self.slab.get_mut(slot as usize / SLAB) else {
            return;
        };
        if let Some(series) = place[slot as usize % SLAB].take() {
            self.postings.remove(slot, &series.labels);
            self.generations.insert(slot, (series.generation + 1) & GENERATION_MASK);
            self.removed += 1;
        }
    }

    /// Forgets samples before `boundary`, then series left without any; gives their number.
    pub fn trim(&mut self, boundary: Millis) -> u64 {
        let mut gone = Vec::new();
        for (slot, series) in (0_u32..).zip(self.slab.iter_mut().flatten()) {
            let Some(series) = series else { continue };
            series.trim(boundary);
            if series.is_empty() {
                gone.push(slot);
            }
        }
        for &slot in &gone {
            self.remove(slot);
            self.free.push(slot);
        }
        if self.removed > self.len() / 2 + 1000 {
            self.rebuild_symbols();
        }
        gone.len() as u64
    }

    /// Drops texts that only removed series had.
    fn rebuild_symbols(&mut self) {
        let old = std::mem::take(&mut self.symbols);
        self.postings = Postings::default();
        for (slot, series) in (0_u32..).zip(self.slab.iter_mut().flatten()) {
            let Some(series) = series else { continue };
            for pair in &mut series.labels {
                let held = "a smaller table than before has room";
                pair.0 = self.symbols.intern(old.get(pair.0)).expect(held);
                pair.1 = self.symbols.intern(old.get(pair.1)).expect(held);
            }
            self.postings.insert(slot, &series.labels);
        }
        self.removed = 0;
    }

    /// The labels of a series of this shard.
    #[must_use]
    pub fn labels(&self, series: &Series) -> Labels {
        let pairs = series
            .labels
            .iter()
            .map(|&(n, v)| (self.symbols.get(n), self.symbols.get(v)));
        Labels::from_sorted(pairs).expect("symbols were taken from a label set in order")
    }

    /// The label names, in no order.
    pub fn label_names(&self) -> impl Iterator<Item = &str> {
        self.postings.names().map(|name| self.symbols.get(name))
    }

    /// Every pair of label name and value, in no order.
    pub fn label_pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let values = |name| self.postings.values(name).map(move |(value, _)| (name, value));
        let pairs = self.postings.names().flat_map(values);
        pairs.map(|(name, value)| (self.symbols.get(name), self.symbols.get(value)))
    }

    /// The slots in the order of their labels.
    #[must_use]
    pub fn sorted_slots(&self) -> Vec<u32> {
        // Symbols are ranked once, so that series compare as numbers.
        let mut by_text: Vec<u32> = (0..self.symbols.len() as u32).collect();
        by_text.sort_unstable_by(|&a, &b| self.symbols.get(a).cmp(self.symbols.get(b)));
        let mut rank = vec![0_u32; by_text.len()];
        for (r, &id) in (0..).zip(&by_text) {
            rank[id as usize] = r;
        }
        let mut slots: Vec<u32> = self.iter().map(|(slot, _)| slot).collect();
        let key = |slot: u32| self.get(slot).map(|s| &s.labels);
        slots.sort_unstable_by(|&a, &b| {
            let (a, b) = (key(a).into_iter().flatten(), key(b).into_iter().flatten());
            let ranks = |&(n, v): &(u32, u32)| (rank[n as usize], rank[v as usize]);
            a.map(ranks).cmp(b.map(ranks))
        });
        slots
    }
}

impl Terms for Shard {
    fn all(&self) -> Cow<'_, RoaringBitmap> {
        Cow::Borrowed(self.postings.all())
    }

    fn rows(&self, name: &str, value: &str) -> Option<Cow<'_, RoaringBitmap>> {
        let (name, value) = (self.symbols.find(name)?, self.symbols.find(value)?);
        self.postings.get(name, value).map(super::postings::Slots::rows)
    }

    fn scan(&self, name: &str, prefix: &str, visit: &mut dyn FnMut(&str, Cow<'_, RoaringBitmap>)) {
        let Some(name) = self.symbols.find(name) else { return };
        for (value, slots) in self.postings.values(name) {
            let value = self.symbols.get(value);
            if value.starts_with(prefix) {
                visit(value, slots.rows());
            }
        }
    }
}
