//! What the lines of a target's page were last time.
//!
//! A page hardly changes between scrapes: the same lines in the same order, other values. So each line's
//! series text is kept as its length and a 128-bit hash, in the order of the page. A line that begins with
//! the expected text is known after one hash of its bytes; any other is looked up by hash; only a text never
//! seen is taken apart. An entry costs about 50 bytes, whatever the length of its line.

use hashbrown::HashTable;
use model::SeriesId;
use xxhash_rust::xxh3::xxh3_128;

/// What a line stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// A sample of a series of the store.
    Series(SeriesId),
    /// The same, and its value says when a counter began.
    Created(SeriesId),
    /// A sample that relabelling drops.
    Dropped,
    /// A sample that met a limit: tried again at each scrape.
    Refused,
    /// A sample whose series the store has not been asked for yet.
    Pending,
    /// A comment or metadata line.
    Note,
}

/// Index of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known(u32);

#[derive(Debug, Clone, Copy)]
struct Entry {
    hash: [u64; 2],
    series: u64,
    length: u32,
    /// The scrape that showed it last.
    seen: u32,
    /// Where it stood in that scrape.
    place: u32,
    kind: Kind,
    /// Whether its last sample had a timestamp of its own.
    timed: bool,
    /// Whether it was live when the page of `seen` showed it.
    carried: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Series,
    Created,
    Dropped,
    Refused,
    Pending,
    Note,
}

/// The lines of one target.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    entries: Vec<Entry>,
    by_hash: HashTable<u32>,
    /// The entries of the last good page, line by line.
    order: Vec<u32>,
    /// Those of the page being read.
    lines: Vec<u32>,
    /// The place in `order` that should match next.
    cursor: usize,
    scrape: u32,
    /// The last scrape that was stored; 0 when the series of the one before have ended.
    live: u32,
    /// Entries of the live scrape, and how many of them this page has shown again.
    live_count: usize,
    carried: usize,
    /// Entries before this page began.
    before: usize,
}

fn halves(hash: u128) -> [u64; 2] {
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    [hash as u64, (hash >> 64) as u64]
}

impl Cache {
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// A page begins.
    pub(crate) fn begin(&mut self) {
        // Zero means "never", so the count begins again at one after four billion scrapes.
        self.scrape = self.scrape.checked_add(1).unwrap_or(1);
        self.lines.clear();
        self.cursor = 0;
        self.carried = 0;
        self.before = self.entries.len();
    }

    /// The entry expected now, with its text's length, when `rest` begins with that text.
    #[inline]
    pub(crate) fn expected(&self, rest: &[u8]) -> Option<(Known, usize, bool)> {
        let &at = self.order.get(self.cursor)?;
        let entry = &self.entries[at as usize];
        let length = entry.length as usize;
        let text = rest.get(..length)?;
        (halves(xxh3_128(text)) == entry.hash).then_some((Known(at), length, entry.kind == Kind::Note))
    }

    /// The entry of `text`, wherever it stood.
    pub(crate) fn find(&self, text: &[u8]) -> Option<Known> {
        let hash = halves(xxh3_128(text));
        let same = |&at: &u32| self.entries[at as usize].hash == hash;
        self.by_hash.find(hash[0], same).copied().map(Known)
    }

    /// A new entry; `None` when there are four billion.
    pub(crate) fn add(&mut self, text: &[u8], line: Line) -> Option<Known> {
        let hash = halves(xxh3_128(text));
        let at = u32::try_from(self.entries.len()).ok()?;
        self.entries.push(Entry {
            hash,
            series: 0,
            length: u32::try_from(text.len()).ok()?,
            seen: 0,
            place: u32::MAX,
            kind: Kind::Note,
            timed: false,
            carried: false,
        });
        let entries = &self.entries;
        self.by_hash
            .insert_unique(hash[0], at, |&at| entries[at as usize].hash[0]);
        self.set(Known(at), line);
        Some(Known(at))
    }

    /// What the entry stands for.
    #[inline]
    pub(crate) fn line(&self, known: Known) -> Line {
        let entry = &self.entries[known.0 as usize];
        match entry.kind {
            Kind::Series => Line::Series(SeriesId(entry.series)),
            Kind::Created => Line::Created(SeriesId(entry.series)),
            Kind::Dropped => Line::Dropped,
            Kind::Refused => Line::Refused,
            Kind::Pending => Line::Pending,
            Kind::Note => Line::Note,
        }
    }

    /// Says what the entry stands for from now on.
    pub(crate) fn set(&mut self, known: Known, line: Line) {
        let entry = &mut self.entries[known.0 as usize];
        entry.kind = match line {
            Line::Series(id) => {
                entry.series = id.0;
                Kind::Series
            }
            Line::Created(id) => {
                entry.series = id.0;
                Kind::Created
            }
            Line::Dropped => Kind::Dropped,
            Line::Refused => Kind::Refused,
            Line::Pending => Kind::Pending,
            Line::Note => Kind::Note,
        };
    }

    /// The page shows this entry now. Tells whether it is the first time on this page, and whether the entry
    /// was on the last good one.
    #[inline]
    pub(crate) fn show(&mut self, known: Known, timed: bool) -> Shown {
        let entry = &mut self.entries[known.0 as usize];
        let shown = Shown {
            first: entry.seen != self.scrape,
            carried: entry.seen == self.live && self.live != 0,
        };
        self.carried += usize::from(shown.carried);
        entry.carried = shown.carried || (entry.carried && !shown.first);
        entry.seen = self.scrape;
        entry.timed = timed;
        // The next line is expected to be the one that followed this one; a new line only stands between.
        if self.order.get(self.cursor) == Some(&known.0) {
            self.cursor += 1;
        } else if entry.place != u32::MAX {
            self.cursor = entry.place as usize + 1;
        }
        self.lines.push(known.0);
        shown
    }

    /// The page was good. Gives the series of the last good page that are not on this one.
    ///
    /// Those whose last sample had its own timestamp are among them only when `timed_too`.
    pub(crate) fn commit(&mut self, timed_too: bool) -> Vec<SeriesId> {
        let vanished = if self.carried == self.live_count {
            Vec::new()
        } else {
            self.live_series(timed_too)
        };
        std::mem::swap(&mut self.order, &mut self.lines);
        for (place, &at) in (0_u32..).zip(&self.order) {
            self.entries[at as usize].place = place;
        }
        self.live = self.scrape;
        self.live_count = self.count_live();
        self.prune();
        vanished
    }

    /// The page was bad, or there was none: all series of the last good page have ended, and these are they.
    pub(crate) fn fail(&mut self, timed_too: bool) -> Vec<SeriesId> {
        for at in (self.before..self.entries.len()).rev() {
            let hash = self.entries[at].hash;
            if let Ok(found) = self.by_hash.find_entry(hash[0], |&other| other as usize == at) {
                found.remove();
            }
        }
        self.entries.truncate(self.before);
        let ended = self.live_or_shown(timed_too);
        self.live = 0;
        self.live_count = 0;
        self.lines.clear();
        self.scrape = self.scrape.checked_add(1).unwrap_or(1);
        ended
    }

    fn live_series(&self, timed_too: bool) -> Vec<SeriesId> {
        let live = |e: &&Entry| e.seen == self.live && self.live != 0;
        self.series(live, timed_too)
    }

    /// As [`Cache::live_series`], with those that half a page has already shown again.
    fn live_or_shown(&self, timed_too: bool) -> Vec<SeriesId> {
        if self.live == 0 {
            return Vec::new();
        }
        self.series(
            |e| e.seen == self.live || (e.seen == self.scrape && e.carried),
            timed_too,
        )
    }

    fn series(&self, filter: impl Fn(&&Entry) -> bool, timed_too: bool) -> Vec<SeriesId> {
        let series = |e: &&Entry| matches!(e.kind, Kind::Series | Kind::Created) && (timed_too || !e.timed);
        let found = self.entries.iter().filter(filter).filter(series);
        found.map(|e| SeriesId(e.series)).collect()
    }

    fn count_live(&self) -> usize {
        if self.carried == self.live_count && self.before == self.entries.len() && self.carried == self.order.len() {
            return self.carried;
        }
        self.entries.iter().filter(|e| e.seen == self.live).count()
    }

    /// Forgets entries long gone, once they are more than half.
    fn prune(&mut self) {
        const SPARED: usize = 64;
        if self.entries.len() <= self.live_count * 2 + SPARED {
            return;
        }
        let mut moved = vec![u32::MAX; self.entries.len()];
        let mut kept = Vec::with_capacity(self.live_count);
        for (at, entry) in self.entries.iter().enumerate() {
            if entry.seen == self.live {
                moved[at] = u32::try_from(kept.len()).expect("fewer than before");
                kept.push(*entry);
            }
        }
        self.entries = kept;
        for at in &mut self.order {
            *at = moved[*at as usize];
        }
        self.lines = Vec::new();
        let entries = &self.entries;
        let hash_of = |at: &u32| entries[*at as usize].hash[0];
        self.by_hash = HashTable::with_capacity(entries.len());
        for (at, entry) in (0_u32..).zip(entries) {
            self.by_hash.insert_unique(entry.hash[0], at, hash_of);
        }
    }
}

/// What [`Cache::show`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shown {
    /// This page has not shown it before.
    pub first: bool,
    /// The last good page had it.
    pub carried: bool,
}
