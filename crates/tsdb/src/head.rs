//! The head: the last hours in memory, from which queries are answered and blocks are cut.
//!
//! Reading order: a [`series`] keeps its samples as a tail and [`sealed`] runs, a [`snapshot`] is what a query takes
//! of it, a [`target`] owns the timestamps that its series share, a [`shard`] holds series by labels with [`symbols`] and [`postings`], and [`append`] is the
//! way in. A series belongs to the shard of its `job` and `instance`, so a scrape meets one lock.
//!
//! What is deliberately absent: files and the log. [`checkpoint`] turns the head into records and back.
//!
//! Invariant: within a series a timestamp has one value, the first that came.

pub mod append;
pub mod checkpoint;
pub mod postings;
pub mod sealed;
pub mod series;
pub mod shard;
mod shared;
pub mod snapshot;
pub mod symbols;
pub mod target;

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use model::{Labels, Millis, SeriesId};

use shard::Shard;
use target::Targets;

use crate::exemplars::Exemplars;
use crate::sync::{read, write};

/// Number of shards; a series id holds its shard's number, so this is part of the log's format.
pub const SHARDS: usize = 16;

/// See the module.
#[derive(Debug)]
pub struct Head {
    shards: Vec<RwLock<Shard>>,
    /// The owners of timestamps.
    pub targets: Targets,
    /// Held for writing while a batch becomes visible in several shards, for reading while shards are selected from.
    visible: RwLock<()>,
    /// Samples before this moment are in blocks, or gone.
    boundary: AtomicI64,
    /// Samples before this moment are refused; from the boundary on, when a cut is under way.
    floor: AtomicI64,
    /// Earliest and latest sample since the start.
    mint: AtomicI64,
    maxt: AtomicI64,
    series: AtomicU64,
    /// Examples of observations.
    pub exemplars: Exemplars,
}

impl Default for Head {
    fn default() -> Self {
        Self::new(100_000)
    }
}

impl Head {
    /// An empty head that keeps at most this many exemplars.
    #[must_use]
    pub fn new(exemplars_max: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            targets: Targets::default(),
            visible: RwLock::default(),
            boundary: AtomicI64::new(Millis::MIN),
            floor: AtomicI64::new(Millis::MIN),
            mint: AtomicI64::new(Millis::MAX),
            maxt: AtomicI64::new(Millis::MIN),
            series: AtomicU64::new(0),
            exemplars: Exemplars::new(exemplars_max),
        }
    }

    /// The shard that a label set belongs to.
    #[must_use]
    pub fn shard_of(labels: &Labels) -> usize {
        let mut hash = 0;
        for name in ["job", "instance"] {
            let value = labels.get(name).unwrap_or("");
            hash = xxhash_rust::xxh3::xxh3_64_with_seed(value.as_bytes(), hash);
        }
        (hash % SHARDS as u64) as usize
    }

    /// A shard for reading. Whoever needs several at one moment holds [`Head::steady`] meanwhile.
    pub fn shard(&self, number: usize) -> RwLockReadGuard<'_, Shard> {
        read(&self.shards[number])
    }

    /// A shard for writing.
    pub fn shard_mut(&self, number: usize) -> RwLockWriteGuard<'_, Shard> {
        write(&self.shards[number])
    }

    /// While held, no batch is visible in one shard and not yet in another.
    pub fn steady(&self) -> RwLockReadGuard<'_, ()> {
        read(&self.visible)
    }

    /// Number of series.
    #[must_use]
    pub fn series_count(&self) -> u64 {
        self.series.load(Ordering::Relaxed)
    }

    fn count_series(&self, more: i64) {
        self.series.fetch_add(more as u64, Ordering::Relaxed);
    }

    /// Samples before this moment are in blocks, or gone; [`Millis::MIN`] before the first cut.
    #[must_use]
    pub fn boundary(&self) -> Millis {
        self.boundary.load(Ordering::Acquire)
    }

    /// Moves the boundary forward; samples before it are no longer taken.
    pub fn raise_boundary(&self, to: Millis) {
        self.raise_floor(to);
        self.boundary.fetch_max(to, Ordering::AcqRel);
    }

    /// Samples before this moment are refused.
    #[must_use]
    pub fn floor(&self) -> Millis {
        self.floor.load(Ordering::Acquire)
    }

    /// Refuses samples before `to` from now on; what is there stays.
    pub fn raise_floor(&self, to: Millis) {
        self.floor.fetch_max(to, Ordering::AcqRel);
    }

    /// The earliest sample held, found by asking every series.
    #[must_use]
    pub fn first_time(&self) -> Option<Millis> {
        let of_shard = |shard: &RwLock<Shard>| read(shard).iter().filter_map(|(_, s)| s.first(&self.targets)).min();
        self.shards.iter().filter_map(of_shard).min()
    }

    /// Earliest sample held; `None` when there is none.
    #[must_use]
    pub fn mint(&self) -> Option<Millis> {
        let mint = self.mint.load(Ordering::Relaxed).max(self.boundary());
        (mint <= self.maxt()?).then_some(mint)
    }

    /// Latest sample ever taken; `None` when there was none.
    #[must_use]
    pub fn maxt(&self) -> Option<Millis> {
        let maxt = self.maxt.load(Ordering::Relaxed);
        (maxt != Millis::MIN).then_some(maxt)
    }

    fn note_time(&self, mint: Millis, maxt: Millis) {
        self.mint.fetch_min(mint, Ordering::Relaxed);
        self.maxt.fetch_max(maxt, Ordering::Relaxed);
    }

    /// Forgets samples before `boundary` (the start of a span), then series left without any.
    /// Gives the number of series that went.
    pub fn trim(&self, boundary: Millis) -> u64 {
        self.raise_boundary(boundary);
        let mut gone = 0;
        for shard in &self.shards {
            gone += write(shard).trim(boundary);
        }
        self.count_series(-(gone as i64));
        self.targets.trim(boundary);
        gone
    }

    /// The labels of a series; `None` when it has gone.
    #[must_use]
    pub fn labels(&self, id: SeriesId) -> Option<Labels> {
        let (shard, generation, slot) = split_id(id)?;
        let shard = self.shard(shard);
        let series = shard.get(slot).filter(|s| s.generation == generation)?;
        Some(shard.labels(series))
    }
}

/// A series id: shard (8 bits), generation of the slot (24), slot (32).
#[must_use]
pub const fn make_id(shard: usize, generation: u32, slot: u32) -> SeriesId {
    SeriesId((shard as u64) << 56 | ((generation & GENERATION_MASK) as u64) << 32 | slot as u64)
}

/// Shard, generation and slot of an id; `None` when there is no such shard.
#[must_use]
pub const fn split_id(id: SeriesId) -> Option<(usize, u32, u32)> {
    let shard = (id.0 >> 56) as usize;
    if shard >= SHARDS {
        return None;
    }
    Some((shard, (id.0 >> 32) as u32 & GENERATION_MASK, id.0 as u32))
}

/// Generations count to this and start again.
pub const GENERATION_MASK: u32 = 0x00ff_ffff;
