//! A Prometheus block as a folder: `meta.json`, `index`, `chunks/`, `tombstones`.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blocks::Error;
use blocks::mmap::Mapped;
use blocks::vfs::{Vfs, VfsFile, sync_parent};
use model::{Column, Histogram, Labels, Millis, ResetHint};

use super::index::{ChunkAt, Index, IndexWriter, read_tombstones};
use super::{distribution, xor};
use crate::block::deletes::Intervals;
use crate::column::{extend, merge, retain};

const CHUNKS_MAGIC: [u8; 8] = [0x85, 0xBD, 0x40, 0xDD, 1, 0, 0, 0];
/// A chunk file that has reached this size is followed by another, as in Prometheus.
const FILE_BYTES: usize = 512 << 20;

/// What the byte before a chunk says.
mod encoding {
    pub const XOR: u8 = 1;
    pub const HISTOGRAM: u8 = 2;
    pub const FLOAT_HISTOGRAM: u8 = 3;
}

/// The Prometheus blocks in a folder: itself if it is one, else those in it, by name.
///
/// # Errors
///
/// [`Error::Io`] when the folder cannot be read.
pub fn find(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let is_block = |path: &Path| vfs.exists(&path.join("index")) && vfs.exists(&path.join("meta.json"));
    if is_block(dir) {
        return Ok(vec![dir.to_path_buf()]);
    }
    let entries = vfs.list(dir).map_err(Error::io("list", dir))?;
    let folders = entries.iter().filter(|e| e.folder && !e.name.contains(".tmp"));
    Ok(folders.map(|e| dir.join(&e.name)).filter(|p| is_block(p)).collect())
}

/// A block open for reading.
pub struct Reader {
    dir: PathBuf,
    index: Index,
    files: Vec<(PathBuf, Mapped)>,
    gone: HashMap<u64, Vec<(Millis, Millis)>>,
}

impl Reader {
    /// Opens the block in `dir`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Damaged`].
    pub fn open(vfs: &dyn Vfs, dir: &Path) -> Result<Self, Error> {
        let map = |path: &Path| vfs.map(path).map_err(Error::io("open", path));
        let path = dir.join("index");
        let index = Index::open(map(&path)?, &path)?;
        let folder = dir.join("chunks");
        let mut files = Vec::new();
        for entry in vfs.list(&folder).map_err(Error::io("list", &folder))? {
            let path = folder.join(&entry.name);
            let bytes = map(&path)?;
            if bytes.get(..5) != Some(&CHUNKS_MAGIC[..5]) {
                return Err(Error::damaged(&path, 0, "not a chunk file of a Prometheus block"));
            }
            files.push((path, bytes));
        }
        let path = dir.join("tombstones");
        let gone = if vfs.exists(&path) {
            read_tombstones(&map(&path)?, &path)?
        } else {
            HashMap::new()
        };
        Ok(Self {
            dir: dir.to_path_buf(),
            index,
            files,
            gone,
        })
    }

    /// Number of series.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.series.len()
    }

    /// Whether there is no series.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.series.is_empty()
    }

    /// Labels and samples of the series at `place`, those that tombstones hide left out.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] when index or chunk make no sense.
    pub fn series(&self, place: usize) -> Result<(Labels, Column), Error> {
        let id = self.index.series.get(place).copied();
        let id = id.ok_or_else(|| Error::damaged(&self.dir.join("index"), 0, "no such series"))?;
        let (labels, chunks) = self.index.read(id)?;
        let mut column = Column::default();
        for chunk in &chunks {
            let mut part = Column::default();
            self.read_chunk(chunk, &mut part)?;
            merge(&mut column, &part);
        }
        if let Some(spans) = self.gone.get(&id) {
            let mut gone = Intervals::default();
            spans.iter().for_each(|&(mint, maxt)| gone.add(mint, maxt));
            retain(&mut column, |t| !gone.contains(t));
        }
        Ok((labels, column))
    }

    fn read_chunk(&self, chunk: &ChunkAt, into: &mut Column) -> Result<(), Error> {
        let (number, offset) = ((chunk.place >> 32) as usize, chunk.place & 0xffff_ffff);
        let file = self.files.get(number);
        let read = |bytes: &[u8], into: &mut Column| {
            let mut cursor = blocks::bytes::Cursor::new(bytes.get(offset as usize..)?);
            let length = cursor.size()?;
            let body = cursor.take(length.checked_add(1)?)?;
            let crc = u32::from_be_bytes(cursor.take(4)?.try_into().ok()?);
            if crc != blocks::crc32c(body) {
                return None;
            }
            match body[0] {
                encoding::XOR => xor::read(&body[1..], into)?,
                encoding::HISTOGRAM => distribution::read(&body[1..], true, into)?,
                encoding::FLOAT_HISTOGRAM => distribution::read(&body[1..], false, into)?,
                _ => return None,
            }
            into.times.is_sorted_by(|a, b| a < b).then_some(())
        };
        file.and_then(|(_, bytes)| read(bytes, into)).ok_or_else(|| {
            let path = file.map_or_else(|| self.dir.join("chunks"), |(path, _)| path.clone());
            Error::damaged(&path, offset, "a chunk makes no sense or does not fit its checksum")
        })
    }
}

/// What a written block holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Series.
    pub series: u64,
    /// Samples.
    pub samples: u64,
    /// Chunks.
    pub chunks: u64,
}

/// A block being written, series in the order of their labels.
pub struct Writer {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    ulid: String,
    index: IndexWriter,
    file: Arc<dyn VfsFile>,
    number: u64,
    /// Bytes of the current file, buffered ones included.
    size: usize,
    buffer: Vec<u8>,
    written: Written,
    span: (Millis, Millis),
}

impl Writer {
    /// A block named `ulid` below `dir`, whose series are `labels`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the disk refuses, here and below.
    pub fn new<'a>(
        vfs: &Arc<dyn Vfs>,
        dir: &Path,
        ulid: &str,
        labels: impl IntoIterator<Item = &'a Labels>,
    ) -> Result<Self, Error> {
        let mut symbols: BTreeSet<&str> = BTreeSet::new();
        for (name, value) in labels.into_iter().flat_map(Labels::iter) {
            symbols.insert(name);
            symbols.insert(value);
        }
        let dir = dir.join(format!("{ulid}.tmp-for-creation"));
        let chunks = dir.join("chunks");
        vfs.create_dir_all(&chunks).map_err(Error::io("create", &chunks))?;
        let file = create(&**vfs, &chunks, 0)?;
        Ok(Self {
            vfs: Arc::clone(vfs),
            dir,
            ulid: ulid.to_owned(),
            index: IndexWriter::new(symbols.iter().copied()),
            file,
            number: 0,
            size: CHUNKS_MAGIC.len(),
            buffer: CHUNKS_MAGIC.to_vec(),
            written: Written::default(),
            span: (Millis::MAX, Millis::MIN),
        })
    }

    /// Adds a series; without samples it is left out.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] for a histogram whose buckets do not fit its spans.
    pub fn push(&mut self, labels: &Labels, column: &Column) -> Result<(), Error> {
        let mut chunks = Vec::new();
        let mut at = 0;
        while at < column.len() {
            let is_histogram = |i: usize| matches!(column.histograms.get(i), Some(Some(_)));
            let kind = is_histogram(at);
            let alike = (at..column.len())
                .take(xor::SAMPLES)
                .take_while(|&i| is_histogram(i) == kind)
                .count();
            let (encoding, bytes, n) = if kind {
                let list: Vec<&Histogram> = column.histograms[at..at + alike]
                    .iter()
                    .flatten()
                    .map(|h| &**h)
                    .collect();
                let n = distribution::run(&list, xor::SAMPLES);
                // Where nothing is known, readers compare.
                let reset = list[0].reset == ResetHint::Reset;
                let times = &column.times[at..at + n];
                let bytes = distribution::write(times, &list[..n], reset);
                let bytes = bytes.ok_or_else(|| Error::TooLarge {
                    what: format!("a histogram of {labels} whose buckets do not fit its spans"),
                })?;
                let whole = distribution::is_whole(list[0]);
                (
                    if whole {
                        encoding::HISTOGRAM
                    } else {
                        encoding::FLOAT_HISTOGRAM
                    },
                    bytes,
                    n,
                )
            } else {
                let range = at..at + alike;
                (
                    encoding::XOR,
                    xor::write(&column.times[range.clone()], &column.values[range]),
                    alike,
                )
            };
            let (mint, maxt) = (column.times[at], column.times[at + n - 1]);
            let place = self.put_chunk(encoding, &bytes)?;
            chunks.push(ChunkAt { mint, maxt, place });
            self.written.samples += n as u64;
            at += n;
        }
        let (Some(first), Some(end)) = (chunks.first(), chunks.last()) else {
            return Ok(());
        };
        self.span = (self.span.0.min(first.mint), self.span.1.max(end.maxt));
        self.written.series += 1;
        self.written.chunks += chunks.len() as u64;
        self.index.push(labels, &chunks)
    }

    fn put_chunk(&mut self, encoding: u8, bytes: &[u8]) -> Result<u64, Error> {
        if self.size >= FILE_BYTES {
            self.flush(true)?;
            self.number += 1;
            self.file = create(&*self.vfs, &self.dir.join("chunks"), self.number)?;
            self.size = CHUNKS_MAGIC.len();
            self.buffer.extend_from_slice(&CHUNKS_MAGIC);
        }
        let place = self.number << 32 | self.size as u64;
        let before = self.buffer.len();
        blocks::bytes::put_varint(&mut self.buffer, bytes.len() as u64);
        let start = self.buffer.len();
        self.buffer.push(encoding);
        self.buffer.extend_from_slice(bytes);
        let crc = blocks::crc32c(&self.buffer[start..]);
        self.buffer.extend_from_slice(&crc.to_be_bytes());
        self.size += self.buffer.len() - before;
        if self.buffer.len() > 1 << 20 {
            self.flush(false)?;
        }
        Ok(place)
    }

    fn flush(&mut self, sync: bool) -> Result<(), Error> {
        let mut done = self.file.write(&self.buffer);
        if sync {
            done = done.and_then(|()| self.file.sync());
        }
        self.buffer.clear();
        done.map_err(Error::io("write chunks in", &self.dir))
    }

    /// Puts the block in its place; `None` when it has no series, and nothing is left behind.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn finish(mut self) -> Result<Option<Written>, Error> {
        if self.written.series == 0 {
            self.discard();
            return Ok(None);
        }
        self.flush(true)?;
        let Self {
            vfs,
            dir,
            ulid,
            written,
            ..
        } = self;
        put_file(&*vfs, &dir.join("index"), &self.index.finish())?;
        let meta = format!(
            "{{\n\t\"ulid\": \"{ulid}\",\n\t\"minTime\": {},\n\t\"maxTime\": {},\n\t\"stats\": {{\n\t\t\"numSamples\": {},\n\
             \t\t\"numSeries\": {},\n\t\t\"numChunks\": {}\n\t}},\n\t\"compaction\": {{\n\t\t\"level\": 1,\n\
             \t\t\"sources\": [\n\t\t\t\"{ulid}\"\n\t\t]\n\t}},\n\t\"version\": 1\n}}\n",
            self.span.0,
            self.span.1.saturating_add(1),
            written.samples,
            written.series,
            written.chunks
        );
        put_file(&*vfs, &dir.join("meta.json"), meta.as_bytes())?;
        for folder in [dir.join("chunks"), dir.clone()] {
            vfs.sync_dir(&folder).map_err(Error::io("sync folder", &folder))?;
        }
        let done = dir.with_file_name(&ulid);
        vfs.rename(&dir, &done).map_err(Error::io("rename", &dir))?;
        sync_parent(&*vfs, &done)?;
        Ok(Some(written))
    }

    /// Gives up and removes what was written.
    pub fn discard(self) {
        if let Err(e) = self.vfs.remove_dir_all(&self.dir) {
            tracing::warn!("cannot remove {}: {e}", self.dir.display());
        }
    }
}

fn create(vfs: &dyn Vfs, dir: &Path, number: u64) -> Result<Arc<dyn VfsFile>, Error> {
    let path = dir.join(format!("{:06}", number + 1));
    vfs.create(&path).map_err(Error::io("create", &path))
}

fn put_file(vfs: &dyn Vfs, path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let file = vfs.create(path).map_err(Error::io("create", path))?;
    file.write(bytes)
        .and_then(|()| file.sync())
        .map_err(Error::io("write", path))
}

/// The part of a column in `mint..=maxt`.
#[must_use]
pub fn part(column: &Column, mint: Millis, maxt: Millis) -> Column {
    let start = column.times.partition_point(|&t| t < mint);
    let end = column.times.partition_point(|&t| t <= maxt).max(start);
    let mut part = Column::default();
    extend(&mut part, column, start..end);
    part
}
