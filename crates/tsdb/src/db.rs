//! The store as others see it.
//!
//! [`Db::open`] returns at once: blocks can be read, the log is replayed by a thread. Until [`Db::ready`] queries
//! that touch the head and all appends answer [`StoreError::NotReady`]. Time comes with [`Db::maintain`], which
//! cuts, compacts and drops blocks; nothing else ever removes a sample.

mod append;
mod delete;
mod exchange;
mod maintain;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, RwLock};
use std::thread::JoinHandle;

use blocks::block as folder;
use blocks::folder::Folder;
use blocks::wal::{Wal, replay};

use blocks::{Error as BlocksError, chain};
use model::store::Selection;
use model::{ExemplarQueryable, Matcher, Millis, Queryable, SeriesExemplars, StoreError};

pub use delete::Deleted;
pub(crate) use delete::set_aside as set_aside_deletes;
pub use exchange::{Export, Exported, Imported, prometheus_blocks};

use crate::Error;
use crate::block::Block;
use crate::changes::{Changes, SETTLE};
use crate::head::Head;
use crate::head::checkpoint::Replayer;
use crate::options::Options;
use crate::querier;
use crate::stats::{Counters, Stats};
use crate::sync::{lock, read, write};
use crate::wal_record::{self, Share};

/// The number in a store's VERSION file. 2 brought native histograms, exemplars and deletions.
pub const FORMAT: u64 = 2;

/// A metric store. Share it in an [`Arc`]; dropping it closes it.
pub struct Db {
    inner: Arc<Inner>,
    replay: Mutex<Option<JoinHandle<()>>>,
}

pub(crate) struct Inner {
    pub(crate) options: Options,
    pub(crate) head: Head,
    wal: OnceLock<Wal>,
    /// Series made but not yet in the log; they go there with the first batch after.
    pending: Mutex<blocks::wal::Frames>,
    blocks: RwLock<Arc<Vec<Arc<Block>>>>,
    state: Mutex<State>,
    changed: Condvar,
    ready: AtomicBool,
    closed: AtomicBool,
    folder: Mutex<Option<Folder>>,
    /// Held for reading during an append.
    appending: RwLock<()>,
    /// Held while blocks are cut, compacted or dropped.
    maintaining: Mutex<maintain::Memory>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) changes: Changes,
    culprit: append::Culprit,
}

/// How far the start has come.
enum State {
    Replaying,
    Ready,
    Failed(String),
}

impl Db {
    /// Opens the store in `options.dir`, made if absent.
    ///
    /// # Errors
    ///
    /// [`blocks::Error::Locked`] when another process has it, [`blocks::Error::Newer`] when a newer program wrote it,
    /// [`blocks::Error::Io`] when the folder cannot be read and written.
    pub fn open(options: Options) -> Result<Self, Error> {
        let vfs = &options.vfs;
        let held = Folder::open(vfs, &options.dir, FORMAT)?;
        let counters = Arc::new(Counters::default());
        let blocks = open_blocks(&options, &counters)?;
        let head = Head::new(options.exemplars_max);
        if let Some(boundary) = blocks.iter().filter_map(|b| b.boundary()).max() {
            head.raise_boundary(boundary);
        }
        let inner = Arc::new(Inner {
            head,
            wal: OnceLock::new(),
            pending: Mutex::default(),
            blocks: RwLock::new(Arc::new(blocks)),
            state: Mutex::new(State::Replaying),
            changed: Condvar::new(),
            ready: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            folder: Mutex::new(Some(held)),
            appending: RwLock::default(),
            maintaining: Mutex::default(),
            counters,
            changes: Changes::default(),
            culprit: append::Culprit::default(),
            options,
        });
        let for_thread = Arc::clone(&inner);
        let thread = std::thread::Builder::new()
            .name("tsdb-replay".into())
            .spawn(move || for_thread.replay())
            .map_err(Error::Thread)?;
        Ok(Self {
            inner,
            replay: Mutex::new(Some(thread)),
        })
    }

    /// Whether the log is replayed, so that everything can be asked and appended.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.inner.ready.load(Ordering::Acquire)
    }

    /// Waits until the log is replayed.
    ///
    /// # Errors
    ///
    /// [`Error::Replay`] when it cannot be.
    pub fn wait_ready(&self) -> Result<(), Error> {
        let mut state = lock(&self.inner.state);
        loop {
            match &*state {
                State::Ready => return Ok(()),
                State::Failed(why) => return Err(Error::Replay(why.clone())),
                State::Replaying => {
                    let waited = self.inner.changed.wait(state);
                    state = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
                }
            }
        }
    }

    /// Cuts, compacts and drops blocks as far as it is time for it at `now`; to be called every few seconds, and
    /// as time passes during a backfill. Returns when it is done; appends and queries go on meanwhile.
    ///
    /// # Errors
    ///
    /// The first failure; each is also counted, and the next call tries again.
    pub fn maintain(&self, now: Millis) -> Result<(), Error> {
        if !self.ready() || self.inner.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        self.inner.maintain(now)
    }

    /// Forces the log to disk.
    ///
    /// # Errors
    ///
    /// When the disk refuses.
    pub fn sync(&self) -> Result<(), Error> {
        self.inner.wal.get().map_or(Ok(()), |wal| Ok(wal.sync()?))
    }

    /// Forces the log to disk and lets go of the folder. Appends are refused from now on.
    ///
    /// # Errors
    ///
    /// When the last sync fails.
    pub fn close(&self) -> Result<(), Error> {
        if let Some(thread) = lock(&self.replay).take() {
            drop(thread.join());
        }
        if self.inner.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        // Whoever maintains finishes first.
        let mut memory = lock(&self.inner.maintaining);
        drop(write(&self.inner.appending));
        self.inner.last_checkpoint(&mut memory);
        let done = self.inner.wal.get().map_or(Ok(()), Wal::close);
        *lock(&self.inner.folder) = None;
        Ok(done?)
    }

    /// What the store counts.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    /// What each block on disk says of itself, in order of time.
    #[must_use]
    pub fn block_metas(&self) -> Vec<blocks::block::Meta> {
        self.inner.blocks().iter().map(|b| b.meta.clone()).collect()
    }

    /// The label names with most values in the head, most first: `(name, values)`.
    #[must_use]
    pub fn label_cardinality(&self, most: usize) -> Vec<(String, u64)> {
        let mut counts = self.inner.label_cardinality();
        counts.truncate(most);
        counts
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        if let Err(e) = self.close() {
            tracing::error!("closing the metric store: {}", chain(&e));
        }
    }
}

fn open_blocks(options: &Options, counters: &Arc<Counters>) -> Result<Vec<Arc<Block>>, Error> {
    let dir = options.dir.join("blocks");
    let found = folder::open_all(&options.vfs, &dir)?;
    for (path, why) in &found.broken {
        tracing::error!("block {} is left out: {why}", path.display());
        Counters::add(&counters.blocks_broken, 1);
    }
    let mut blocks = Vec::new();
    for meta in found.metas {
        let path = dir.join(&meta.ulid);
        match Block::open(&*options.vfs, &dir, meta, counters) {
            Ok(block) => blocks.push(Arc::new(block)),
            Err(e) => {
                tracing::error!("block {} is left out: {}", path.display(), chain(&e));
                Counters::add(&counters.blocks_broken, 1);
            }
        }
    }
    Ok(blocks)
}

impl Inner {
    fn replay(&self) {
        let result = self.try_replay();
        let mut state = lock(&self.state);
        *state = match result {
            Ok(()) => {
                self.ready.store(true, Ordering::Release);
                State::Ready
            }
            Err(e) => {
                let why = chain(&e);
                tracing::error!("metric store: cannot replay the log: {why}");
                State::Failed(why)
            }
        };
        drop(state);
        self.changed.notify_all();
    }

    fn try_replay(&self) -> Result<(), BlocksError> {
        let dir = self.wal_dir();
        let log = replay::check(&*self.options.vfs, &dir)?;
        let (orphans, unknown) = replay_shards(&log, &self.head);
        let done = log.done.clone();
        drop(log);
        if orphans + unknown > 0 {
            tracing::warn!("log replay: {orphans} records and {unknown} samples lean on lost ones and were left out");
        }
        Counters::add(
            &self.counters.wal_corruptions,
            (done.damaged.len() + done.missing.len()) as u64,
        );
        let options = blocks::wal::Options {
            segment_bytes: self.options.wal_segment_bytes,
            sync_interval: self.options.wal_sync,
            ..blocks::wal::Options::default()
        };
        let wal = Wal::open(Arc::clone(&self.options.vfs), &dir, options)?;
        drop(self.wal.set(wal));
        Ok(())
    }

    fn wal_dir(&self) -> PathBuf {
        self.options.dir.join("wal")
    }

    fn blocks_dir(&self) -> PathBuf {
        self.options.dir.join("blocks")
    }

    /// The blocks at this moment.
    pub(crate) fn blocks(&self) -> Arc<Vec<Arc<Block>>> {
        Arc::clone(&read(&self.blocks))
    }

    fn set_blocks(&self, mut blocks: Vec<Arc<Block>>) {
        blocks.sort_by_key(|b| b.meta.mint);
        *write(&self.blocks) = Arc::new(blocks);
    }

    fn check_open(&self) -> Result<(), StoreError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Closed.into());
        }
        if self.ready.load(Ordering::Acquire) {
            return Ok(());
        }
        match &*lock(&self.state) {
            State::Failed(why) => Err(StoreError::Io(why.clone())),
            State::Ready => Ok(()),
            State::Replaying => Err(StoreError::NotReady),
        }
    }

    fn stats(&self) -> Stats {
        let mut stats = Stats {
            ready: self.ready.load(Ordering::Acquire),
            head_series: self.head.series_count(),
            head_chunks: self.head.sealed_count(),
            head_mint: self.head.mint(),
            head_maxt: self.head.maxt(),
            exemplars: self.head.exemplars.len() as u64,
            exemplars_refused: self.head.exemplars.refused(),
            ..Stats::default()
        };
        for block in self.blocks().iter() {
            stats.blocks += 1;
            stats.blocks_bytes += block.meta.size_bytes();
            stats.blocks_samples += block.meta.count("samples");
        }
        if let Some(wal) = self.wal.get() {
            let counters = wal.counters();
            stats.wal_bytes = wal.size_bytes();
            stats.wal_bytes_written = counters.bytes.load(Ordering::Relaxed);
            stats.wal_syncs = counters.syncs.load(Ordering::Relaxed);
            stats.wal_failures = counters.failures.load(Ordering::Relaxed);
            stats.wal_lost = counters.lost.load(Ordering::Relaxed);
        }
        self.counters.fill(&mut stats);
        stats
    }
}

/// The threads that replay a log at most: each reads all of it and takes its shards.
const REPLAY_THREADS_MAX: usize = 8;

/// Replays a log on all cores. Gives the records that could not be used, and the samples whose series is not known.
fn replay_shards(log: &replay::Log, head: &Head) -> (u64, u64) {
    let of = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(REPLAY_THREADS_MAX);
    let replay = |number| {
        let mut replayer = Replayer::new(head, Share { number, of });
        log.visit(&mut |record| replayer.apply(record));
        replayer.finish();
        (replayer.orphans, replayer.unknown)
    };
    let found: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..of).map(|number| scope.spawn(move || replay(number))).collect();
        let own = replay(0);
        let others = threads.into_iter().map(|t| t.join().expect("a replay does not panic"));
        std::iter::once(own).chain(others).collect()
    });
    // A record that makes no sense makes none to every reader.
    let orphans = found.iter().map(|f| f.0).max().unwrap_or(0);
    (orphans, found.iter().map(|f| f.1).sum())
}

impl Queryable for Db {
    fn select(&self, matchers: &[Matcher], mint: Millis, maxt: Millis) -> Result<Selection, StoreError> {
        querier::select(&self.inner, matchers, mint, maxt)
    }

    fn label_names(&self, matchers: &[Matcher], mint: Millis, maxt: Millis) -> Result<Vec<String>, StoreError> {
        querier::label_names(&self.inner, matchers, mint, maxt)
    }

    fn label_values(
        &self,
        name: &str,
        matchers: &[Matcher],
        mint: Millis,
        maxt: Millis,
    ) -> Result<Vec<String>, StoreError> {
        querier::label_values(&self.inner, name, matchers, mint, maxt)
    }

    fn settled(&self) -> Millis {
        self.inner.head.maxt().map_or(Millis::MIN, |t| t.saturating_sub(SETTLE))
    }

    fn revision(&self) -> u64 {
        self.inner.changes.revision()
    }

    fn changed_since(&self, revision: u64) -> Option<Millis> {
        self.inner.changes.since(revision)
    }
}

impl ExemplarQueryable for Db {
    fn exemplars(
        &self,
        selectors: &[Vec<Matcher>],
        mint: Millis,
        maxt: Millis,
    ) -> Result<Vec<SeriesExemplars>, StoreError> {
        match self.inner.check_open() {
            Err(StoreError::Closed(_)) | Ok(()) => Ok(self.inner.head.exemplars.select(selectors, mint, maxt)),
            Err(e) => Err(e),
        }
    }
}

impl Inner {
    /// Whether the head may have samples in `mint..=maxt` and be asked for them.
    pub(crate) fn head_for(&self, mint: Millis, maxt: Millis) -> Result<bool, StoreError> {
        if maxt < self.head.boundary() {
            return Ok(false);
        }
        match self.check_open() {
            // A closed store still answers from what it holds.
            Err(StoreError::Closed(_)) | Ok(()) => {
                let head = &self.head;
                Ok(head.mint().is_some_and(|t| t <= maxt) && head.maxt().is_some_and(|t| t >= mint))
            }
            Err(e) => Err(e),
        }
    }

    /// Appends the pending series and the records of a batch in one write.
    fn log(
        &self,
        target: &crate::head::target::Target,
        id: model::TargetId,
        time: Millis,
        batch: &crate::head::append::Accepted<'_>,
        layouts: &mut wal_record::Layouts,
    ) {
        let Some(wal) = self.wal.get() else { return };
        let mut guard = wal.lock();
        let chain_number = guard.chain();
        let mut frames = std::mem::take(&mut *lock(&self.pending));
        layouts.put(chain_number, (id, &target.labels), time, batch, &mut frames);
        if let Err(e) = guard.append(&frames) {
            // The samples stay in memory and the log keeps the records to try again; both are counted.
            tracing::debug!("WAL: {}", chain(&e));
        }
    }
}

#[cfg(test)]
mod tests;
