//! A block of metrics: chunks of series and the timestamps they share, read where they lie.
//!
//! ```text
//! index         labels; the payload of a series names its chunks
//! times         distinct timestamp columns
//! chunks/00000N runs of encoded values, series after series
//! deletes       what is gone; absent where nothing is
//! ```
//!
//! [`writer`] makes one, [`columns`] is the `times` file; `docs/format/block.md` draws the bytes.
//! A chunk is checked against its checksum each time it is read.

pub mod columns;
pub mod deletes;
pub mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use blocks::Error;
use blocks::block::Meta;
use blocks::bytes::Cursor;
use blocks::index::Index;
use blocks::mmap::Mapped;
use blocks::vfs::Vfs;
use model::Millis;

use crate::stats::Counters;
use crate::sync::{read, write};
use crate::times::{SPAN, span_start};
use columns::Columns;
use deletes::Deletes;

/// The first bytes of a chunk file; the last one is the format.
const CHUNKS_MAGIC: [u8; 8] = *b"WFCHUNK\x01";

/// A block open for reading.
pub struct Block {
    /// Its description.
    pub meta: Meta,
    /// Its labels.
    pub index: Index,
    /// Its timestamps.
    pub columns: Columns,
    chunks: Vec<(PathBuf, Mapped)>,
    deletes: RwLock<Arc<Deletes>>,
    counters: Arc<Counters>,
}

/// Where a chunk lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkRef {
    /// Its timestamps.
    pub column: u32,
    file: u32,
    offset: u32,
    len: u32,
}

impl Block {
    /// Opens the block of this description below `blocks`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] or [`Error::Damaged`] when a file cannot be used.
    pub(crate) fn open(vfs: &dyn Vfs, blocks: &Path, meta: Meta, counters: &Arc<Counters>) -> Result<Self, Error> {
        let dir = blocks.join(&meta.ulid);
        let map = |path: &Path| vfs.map(path).map_err(Error::io("open", path));
        let path = dir.join("index");
        let index = Index::open(map(&path)?, &path)?;
        let path = dir.join("times");
        let columns = Columns::open(map(&path)?, &path)?;
        let folder = dir.join("chunks");
        let mut chunks = Vec::new();
        for entry in vfs.list(&folder).map_err(Error::io("list", &folder))? {
            let path = folder.join(&entry.name);
            let bytes = map(&path)?;
            if bytes.get(..8) != Some(&CHUNKS_MAGIC) {
                return Err(Error::damaged(&path, 0, "not a chunk file of a known format"));
            }
            chunks.push((path, bytes));
        }
        let deletes = Deletes::read(vfs, &dir).or_else(|e| match e {
            Error::Damaged { .. } => {
                Counters::add(&counters.deletions_damaged, 1);
                crate::db::set_aside_deletes(vfs, &dir, &e);
                Ok(Deletes::default())
            }
            other => Err(other),
        })?;
        Ok(Self {
            meta,
            index,
            columns,
            chunks,
            deletes: RwLock::new(Arc::new(deletes)),
            counters: Arc::clone(counters),
        })
    }

    /// What of it is gone.
    #[must_use]
    pub fn deletes(&self) -> Arc<Deletes> {
        Arc::clone(&read(&self.deletes))
    }

    /// Takes a new list of what is gone, once it is on disk below `blocks`.
    pub(crate) fn set_deletes(&self, vfs: &dyn Vfs, blocks: &Path, deletes: Deletes) -> Result<(), Error> {
        deletes.write(vfs, &blocks.join(&self.meta.ulid))?;
        *write(&self.deletes) = Arc::new(deletes);
        Ok(())
    }

    /// Whether it may have samples in `mint..=maxt`.
    #[must_use]
    pub fn overlaps(&self, mint: Millis, maxt: Millis) -> bool {
        self.meta.mint <= maxt && mint <= self.meta.maxt
    }

    /// The moment up to which the head has been cut; `None` for blocks that were not cut from it.
    #[must_use]
    pub fn boundary(&self) -> Option<Millis> {
        match (self.meta.count("boundary"), self.meta.count("imported")) {
            (0, 0) => Some(span_start(self.meta.maxt).saturating_add(SPAN)),
            (0, _) => None,
            // Never beyond the span of its last sample.
            (boundary, _) => {
                let end = span_start(self.meta.maxt).saturating_add(SPAN);
                Some(i64::try_from(boundary).unwrap_or(end).min(end))
            }
        }
    }

    /// The chunks of a row in order of time; empty when the row's bytes make no sense.
    #[must_use]
    pub fn chunk_refs(&self, row: u32) -> Vec<ChunkRef> {
        self.index.payload(row).and_then(read_refs).unwrap_or_default()
    }

    /// The bytes of a chunk.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] when they do not fit their checksum; this is counted.
    pub fn chunk(&self, chunk: ChunkRef) -> Result<&[u8], Error> {
        let file = self.chunks.get(chunk.file as usize);
        let bytes = file.and_then(|(_, bytes)| {
            let mut cursor = Cursor::new(bytes.get(chunk.offset as usize..)?);
            let bytes = cursor.take(chunk.len as usize)?;
            (cursor.u32()? == blocks::crc32c(bytes)).then_some(bytes)
        });
        bytes.ok_or_else(|| {
            Counters::add(&self.counters.chunk_corruptions, 1);
            let path = file.map_or_else(|| PathBuf::from(&self.meta.ulid), |(path, _)| path.clone());
            Error::damaged(&path, u64::from(chunk.offset), "a chunk does not fit its checksum")
        })
    }
}

fn read_refs(payload: &[u8]) -> Option<Vec<ChunkRef>> {
    let mut cursor = Cursor::new(payload);
    let count = cursor.size().filter(|&n| n <= payload.len())?;
    let file = u32::try_from(cursor.varint()?).ok()?;
    let mut offset = u32::try_from(cursor.varint()?).ok()?;
    let mut column = 0_i64;
    let mut refs = Vec::with_capacity(count);
    for _ in 0..count {
        column = column.checked_add(cursor.zigzag()?)?;
        let len = u32::try_from(cursor.varint()?).ok()?;
        refs.push(ChunkRef {
            column: u32::try_from(column).ok()?,
            file,
            offset,
            len,
        });
        // The checksum lies between chunks.
        offset = offset.checked_add(len)?.checked_add(4)?;
    }
    Some(refs)
}
