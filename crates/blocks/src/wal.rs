//! The write-ahead log: a sample is with the kernel here before the head shows it.
//!
//! A WAL is a folder of numbered segments, each a run of checksummed records ([`record`]), beside at most
//! one checkpoint ([`checkpoint`]) that stands for all segments up to its number. [`Wal::lock`] writes,
//! [`replay`](replay::replay) reads; `docs/format/wal.md` draws the bytes.
//!
//! Invariant: replaying a log cut at any byte yields a prefix of what was appended. A damaged place ends
//! its segment, is set aside and reported, and reading goes on with the next segment. Nothing is invented.
//! Numbers have no gaps and only the last segment may be empty, so that a loss is noticed.

pub mod checkpoint;
pub mod record;
pub mod replay;
mod trouble;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

pub use record::{Frames, Record};
pub use replay::{Replayed, replay};

use crate::vfs::{Vfs, VfsFile, sync_parent};
use crate::{Error, chain};
use trouble::Trouble;

/// How the log behaves.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// A segment that has reached this size in bytes is followed by a new one.
    pub segment_bytes: u64,
    /// How often written records are forced to disk; zero forces each append.
    pub sync_interval: Duration,
    /// Frames kept in memory while the disk refuses them; more are dropped and counted.
    pub backlog_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            sync_interval: Duration::from_secs(1),
            backlog_bytes_max: 32 << 20,
        }
    }
}

/// What the log has done, for metrics.
#[derive(Debug, Default)]
pub struct Counters {
    /// Bytes appended since the start.
    pub bytes: AtomicU64,
    /// Times that records were forced to disk.
    pub syncs: AtomicU64,
    /// Writes and syncs that failed.
    pub failures: AtomicU64,
    /// Appends whose records never reached the log, because the disk refused for too long.
    pub lost: AtomicU64,
}

/// A log open for writing.
pub struct Wal {
    shared: Arc<Shared>,
    flusher: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    options: Options,
    counters: Counters,
    writing: Trouble,
    rolling: Trouble,
    syncing: Trouble,
    writer: Mutex<Writer>,
    /// The segment last written to, and whether it has records that were not synced; apart from the
    /// writer so that a slow sync does not hold up appends.
    dirty: Mutex<Dirty>,
    wake: Condvar,
}

struct Dirty {
    file: Arc<dyn VfsFile>,
    unsynced: bool,
    stop: bool,
}

struct Writer {
    segment: u64,
    size: u64,
    file: Arc<dyn VfsFile>,
    /// Changes whenever a record may not refer to those before it: in a new segment, after a loss.
    chain: u64,
    backlog: Vec<u8>,
    /// A failed write may have left part of a record; the file must be cut to `size` first.
    torn: bool,
}

impl Wal {
    /// Opens `dir` (made if absent) for writing in a new segment after those that are there (in the last one
    /// if that is empty), and starts the thread that syncs. Call [`replay()`] before.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the folder cannot be written.
    pub fn open(vfs: Arc<dyn Vfs>, dir: &Path, options: Options) -> Result<Self, Error> {
        vfs.create_dir_all(dir).map_err(Error::io("create", dir))?;
        sync_parent(&*vfs, dir)?;
        let last = segments(&*vfs, dir)?.last().copied();
        let checkpoint = checkpoint::latest(&*vfs, dir)?;
        let (segment, file) = match last {
            Some(last) if Some(last) > checkpoint && is_empty(&*vfs, dir, last)? => {
                let path = segment_path(dir, last);
                (last, vfs.open_end(&path).map_err(Error::io("open WAL segment", &path))?)
            }
            _ => {
                let next = last.max(checkpoint).map_or(0, |n| n + 1);
                (next, create_segment(&*vfs, dir, next)?)
            }
        };
        let shared = Arc::new(Shared {
            vfs,
            dir: dir.to_path_buf(),
            options,
            counters: Counters::default(),
            writing: Trouble::new("written; samples are kept in memory, and lost beyond a bound"),
            rolling: Trouble::new("continued in a new segment; the old one grows"),
            syncing: Trouble::new("forced to disk; a power cut now costs samples"),
            writer: Mutex::new(Writer {
                segment,
                size: 0,
                file: Arc::clone(&file),
                chain: 1,
                backlog: Vec::new(),
                torn: false,
            }),
            dirty: Mutex::new(Dirty {
                file,
                unsynced: false,
                stop: false,
            }),
            wake: Condvar::new(),
        });
        let flusher = (!options.sync_interval.is_zero()).then(|| spawn_flusher(Arc::clone(&shared)));
        let flusher = Mutex::new(
            flusher
                .transpose()
                .map_err(Error::io("start the sync thread for", dir))?,
        );
        Ok(Self { shared, flusher })
    }

    /// Takes the log for one append.
    #[must_use]
    pub fn lock(&self) -> Guard<'_> {
        Guard {
            shared: &self.shared,
            writer: lock(&self.shared.writer),
        }
    }

    /// What the log has done so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Forces what was appended to disk.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the disk refuses; the next sync tries again.
    pub fn sync(&self) -> Result<(), Error> {
        let guard = self.lock();
        let retried = guard.retry_backlog();
        self.shared.sync().and(retried)
    }

    /// Size on disk, checkpoint included, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        size_bytes(&*self.shared.vfs, &self.shared.dir)
    }

    /// Ends the current segment and writes the checkpoint that stands for it and all before it: `write`
    /// gives the records of the whole state. Segments and checkpoints it replaces are removed.
    ///
    /// Records appended while `write` runs go to the next segment and may also be in the checkpoint, so
    /// replaying them twice must be harmless.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; the old segments then remain and nothing is lost.
    pub fn checkpoint(&self, write: impl FnOnce(&mut checkpoint::Writer) -> Result<(), Error>) -> Result<(), Error> {
        let upto = {
            let mut guard = self.lock();
            guard.end_segment()?
        };
        let shared = &self.shared;
        checkpoint::write(&shared.vfs, &shared.dir, upto, write)
    }

    /// Syncs and ends the thread. Appending afterwards still works, unsynced.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the last sync fails.
    pub fn close(&self) -> Result<(), Error> {
        lock(&self.shared.dirty).stop = true;
        self.shared.wake.notify_all();
        if let Some(thread) = lock(&self.flusher).take() {
            drop(thread.join());
        }
        self.sync()
    }
}

impl Drop for Wal {
    fn drop(&mut self) {
        if lock(&self.flusher).is_some()
            && let Err(e) = self.close()
        {
            tracing::warn!("WAL: {}", chain(&e));
        }
    }
}

/// The log, held for one append.
pub struct Guard<'a> {
    shared: &'a Shared,
    writer: MutexGuard<'a, Writer>,
}

impl Guard<'_> {
    /// A number that changes whenever records may not refer to earlier ones. Starts a new segment when the
    /// current one is full, so call this before building the records.
    pub fn chain(&mut self) -> u64 {
        if self.writer.size >= self.shared.options.segment_bytes {
            // Where there is no new segment, the old one takes them still.
            match self.roll() {
                Err(e) => self.shared.rolling.failed(&e, &self.shared.counters),
                Ok(()) => self.shared.rolling.works(0, &self.shared.counters),
            }
        }
        self.writer.chain
    }

    /// Appends the frames in one write.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the disk refused. The frames are then kept in memory and written before the next
    /// ones, up to a bound; beyond it they are lost, which changes [`Guard::chain`] and is counted.
    pub fn append(mut self, frames: &Frames) -> Result<(), Error> {
        let kept = self.writer.backlog.len();
        let done = if kept == 0 && !self.writer.torn {
            self.write(frames.as_bytes())
        } else {
            self.flush_backlog().and_then(|()| self.write(frames.as_bytes()))
        };
        if let Err(e) = &done {
            self.shared.writing.failed(e, &self.shared.counters);
            self.keep(frames.as_bytes());
            return done;
        }
        self.shared.writing.works(kept, &self.shared.counters);
        lock(&self.shared.dirty).unsynced = true;
        if self.shared.options.sync_interval.is_zero() {
            let shared = self.shared;
            drop(self);
            return shared.sync();
        }
        Ok(())
    }

    fn retry_backlog(mut self) -> Result<(), Error> {
        if self.writer.backlog.is_empty() {
            return Ok(());
        }
        let kept = self.writer.backlog.len();
        self.flush_backlog()?;
        self.shared.writing.works(kept, &self.shared.counters);
        lock(&self.shared.dirty).unsynced = true;
        Ok(())
    }

    fn path(&self) -> PathBuf {
        segment_path(&self.shared.dir, self.writer.segment)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if let Err(e) = self.writer.file.write(bytes) {
            self.shared.counters.failures.fetch_add(1, Ordering::Relaxed);
            self.writer.torn = true;
            return Err(Error::io("write WAL segment", &self.path())(e));
        }
        self.writer.size += bytes.len() as u64;
        self.shared
            .counters
            .bytes
            .fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn flush_backlog(&mut self) -> Result<(), Error> {
        if self.writer.torn {
            let size = self.writer.size;
            if let Err(e) = self.writer.file.set_len(size) {
                self.shared.counters.failures.fetch_add(1, Ordering::Relaxed);
                return Err(Error::io("cut WAL segment", &self.path())(e));
            }
            self.writer.torn = false;
        }
        let backlog = std::mem::take(&mut self.writer.backlog);
        let done = self.write(&backlog);
        if done.is_err() {
            self.writer.backlog = backlog;
        }
        done
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.writer.backlog.len() + bytes.len() <= self.shared.options.backlog_bytes_max {
            self.writer.backlog.extend_from_slice(bytes);
        } else {
            self.writer.chain += 1;
            self.shared.counters.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Ends the segment that has records; gives the number of the last one ended.
    fn end_segment(&mut self) -> Result<u64, Error> {
        if self.writer.size == 0 && self.writer.backlog.is_empty() && self.writer.segment > 0 {
            return Ok(self.writer.segment - 1);
        }
        self.roll()?;
        Ok(self.writer.segment - 1)
    }

    /// Ends the segment, synced, and begins the next.
    fn roll(&mut self) -> Result<(), Error> {
        if !self.writer.backlog.is_empty() || self.writer.torn {
            self.flush_backlog()?;
        }
        let old = self.path();
        self.writer.file.sync().map_err(Error::io("sync WAL segment", &old))?;
        let next = self.writer.segment + 1;
        let file = create_segment(&*self.shared.vfs, &self.shared.dir, next)?;
        let mut dirty = lock(&self.shared.dirty);
        dirty.file = Arc::clone(&file);
        dirty.unsynced = false;
        self.writer.file = file;
        self.writer.segment = next;
        self.writer.size = 0;
        self.writer.chain += 1;
        Ok(())
    }
}

impl Shared {
    fn sync(&self) -> Result<(), Error> {
        let file = {
            let mut dirty = lock(&self.dirty);
            if !dirty.unsynced {
                return Ok(());
            }
            dirty.unsynced = false;
            Arc::clone(&dirty.file)
        };
        self.counters.syncs.fetch_add(1, Ordering::Relaxed);
        let done = file.sync().map_err(Error::io("sync the WAL in", &self.dir));
        match &done {
            Ok(()) => self.syncing.works(0, &self.counters),
            Err(e) => {
                self.counters.failures.fetch_add(1, Ordering::Relaxed);
                lock(&self.dirty).unsynced = true;
                self.syncing.failed(e, &self.counters);
            }
        }
        done
    }
}

fn spawn_flusher(shared: Arc<Shared>) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("wal-sync".into()).spawn(move || {
        loop {
            let dirty = lock(&shared.dirty);
            if dirty.stop {
                return;
            }
            let waited = shared.wake.wait_timeout(dirty, shared.options.sync_interval);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            // The next round tries again; `syncing` has told it.
            drop(shared.sync());
        }
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const SEGMENT_EXT: &str = ".seg";

fn segment_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:08}{SEGMENT_EXT}"))
}

/// Numbers of the segments in `dir`, ascending.
fn segments(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<u64>, Error> {
    let entries = vfs.list(dir).map_err(Error::io("list", dir))?;
    let number = |name: &str| name.strip_suffix(SEGMENT_EXT)?.parse().ok();
    let mut found: Vec<u64> = entries.iter().filter_map(|e| number(&e.name)).collect();
    found.sort_unstable();
    Ok(found)
}

fn create_segment(vfs: &dyn Vfs, dir: &Path, number: u64) -> Result<Arc<dyn VfsFile>, Error> {
    let path = segment_path(dir, number);
    let file = vfs.create(&path).map_err(Error::io("create WAL segment", &path))?;
    vfs.sync_dir(dir).map_err(Error::io("sync folder", dir))?;
    Ok(file)
}

/// Makes a log in `dir` (made if absent, and empty before) that is one checkpoint.
///
/// # Errors
///
/// [`Error::Io`] when the disk refuses.
pub fn write_lone_checkpoint(
    vfs: &Arc<dyn Vfs>,
    dir: &Path,
    write: impl FnOnce(&mut checkpoint::Writer) -> Result<(), Error>,
) -> Result<(), Error> {
    vfs.create_dir_all(dir).map_err(Error::io("create", dir))?;
    create_segment(&**vfs, dir, 1)?;
    checkpoint::write(vfs, dir, 0, write)
}

fn is_empty(vfs: &dyn Vfs, dir: &Path, number: u64) -> Result<bool, Error> {
    let path = segment_path(dir, number);
    let bytes = vfs.map(&path).map_err(Error::io("read WAL segment", &path))?;
    Ok(bytes.is_empty())
}

fn size_bytes(vfs: &dyn Vfs, dir: &Path) -> u64 {
    let Ok(entries) = vfs.list(dir) else { return 0 };
    let size = |e: &crate::vfs::Entry| {
        if e.folder {
            size_bytes(vfs, &dir.join(&e.name))
        } else {
            e.size
        }
    };
    entries.iter().map(size).sum()
}

#[cfg(test)]
mod tests;
