//! Writes a block: series in the order of their labels, each with its chunks in the order of time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blocks::Error;
use blocks::block::{Draft, Meta};
use blocks::bytes::{put_varint, put_zigzag};
use blocks::index::IndexWriter;
use blocks::vfs::{Vfs, VfsFile};
use model::{Column, Labels, Millis};

use super::CHUNKS_MAGIC;
use super::columns::{ColumnMeta, ColumnsWriter};
use crate::codec;
use crate::column::extend;

/// A chunk file that has reached this size is followed by another.
const FILE_BYTES: usize = 512 << 20;
/// Bytes gathered before a write.
const BUFFER_BYTES: usize = 1 << 20;
/// The most samples of a chunk: two hours at 15 seconds.
pub const CHUNK_SAMPLES: usize = 480;

/// See the module.
pub struct BlockWriter {
    vfs: Arc<dyn Vfs>,
    draft: Draft,
    index: IndexWriter,
    columns: ColumnsWriter,
    files: ChunkFiles,
    /// Column and bytes of the chunks of the series at hand.
    chunks: Vec<(u32, Vec<u8>)>,
    counts: Counts,
    origin: Origin,
}

/// Where the samples of a block come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// From the head, which has none before this moment since.
    Head(Millis),
    /// From elsewhere: says nothing of the head.
    Import,
}

#[derive(Debug)]
struct Counts {
    samples: u64,
    chunks: u64,
    series: u64,
    mint: Millis,
    maxt: Millis,
}

impl BlockWriter {
    /// A block below `blocks`; `time` goes into its name.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the disk refuses, here and below.
    pub fn new(vfs: &Arc<dyn Vfs>, blocks: &Path, time: Millis, origin: Origin) -> Result<Self, Error> {
        let draft = Draft::new(Arc::clone(vfs), blocks, time)?;
        let files = ChunkFiles::new(vfs, draft.dir().join("chunks"))?;
        Ok(Self {
            vfs: Arc::clone(vfs),
            draft,
            index: IndexWriter::new(),
            columns: ColumnsWriter::default(),
            files,
            chunks: Vec::new(),
            counts: Counts {
                samples: 0,
                chunks: 0,
                series: 0,
                mint: Millis::MAX,
                maxt: Millis::MIN,
            },
            origin,
        })
    }

    /// Adds samples, later than those before, to the series at hand.
    pub fn samples(&mut self, column: &Column) {
        if column.is_empty() {
            return;
        }
        let pieces = column.len().div_ceil(CHUNK_SAMPLES).max(1);
        let size = column.len().div_ceil(pieces).max(1);
        for start in (0..column.len()).step_by(size) {
            let range = start..column.len().min(start + size);
            let mut bytes = Vec::new();
            if column.histograms.is_empty() {
                codec::encode(&column.values[range.clone()], &mut bytes);
            } else {
                let mut part = Column::default();
                extend(&mut part, column, range.clone());
                codec::encode_column(&part, &mut bytes);
            }
            let number = self.columns.column(&column.times[range]);
            self.push(number, bytes);
        }
    }

    /// Adds samples that are a chunk already, later than those before, to the series at hand.
    pub fn encoded(&mut self, times: &[Millis], bytes: &[u8]) {
        let number = self.columns.column(times);
        self.push(number, bytes.to_vec());
    }

    /// Adds a chunk of another block, later than those before, to the series at hand.
    pub fn chunk(&mut self, meta: ColumnMeta, encoded_times: &[u8], bytes: &[u8]) {
        let number = self.columns.copy(meta, encoded_times);
        self.push(number, bytes.to_vec());
    }

    fn push(&mut self, column: u32, bytes: Vec<u8>) {
        let meta = self.columns.meta(column);
        self.counts.samples += u64::from(meta.count);
        self.counts.chunks += 1;
        self.counts.mint = self.counts.mint.min(meta.mint);
        self.counts.maxt = self.counts.maxt.max(meta.maxt);
        self.chunks.push((column, bytes));
    }

    /// Ends the series at hand, which has these labels; without chunks it is left out. Labels must ascend.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::TooLarge`].
    pub fn end_series(&mut self, labels: &Labels) -> Result<(), Error> {
        if self.chunks.is_empty() {
            return Ok(());
        }
        let (file, offset) = self.files.place()?;
        let mut payload = Vec::with_capacity(4 + 4 * self.chunks.len());
        put_varint(&mut payload, self.chunks.len() as u64);
        put_varint(&mut payload, u64::from(file));
        put_varint(&mut payload, offset as u64);
        let mut last = 0_i64;
        for (column, bytes) in &self.chunks {
            put_zigzag(&mut payload, i64::from(*column) - last);
            put_varint(&mut payload, bytes.len() as u64);
            last = i64::from(*column);
            self.files.push(bytes)?;
        }
        self.counts.series += 1;
        self.chunks.clear();
        self.index.push(labels, &payload)
    }

    /// Publishes the block; `None` when it has no series, and nothing is left behind.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; nothing is left behind then either.
    pub fn finish(self, level: u32, sources: Vec<String>) -> Result<Option<Meta>, Error> {
        let Self {
            vfs,
            draft,
            index,
            columns,
            files,
            counts,
            origin,
            ..
        } = self;
        if counts.series == 0 {
            draft.discard();
            return Ok(None);
        }
        let dir = draft.dir();
        let written = files
            .finish()
            .and_then(|()| columns.write(&*vfs, &dir.join("times")))
            .and_then(|()| index.write(&*vfs, &dir.join("index")));
        if let Err(e) = written {
            draft.discard();
            return Err(e);
        }
        let meta = Meta {
            format: 0,
            ulid: String::new(),
            store: "metrics".into(),
            mint: counts.mint,
            maxt: counts.maxt,
            level,
            sources,
            counts: BTreeMap::from([
                ("samples".into(), counts.samples),
                ("chunks".into(), counts.chunks),
                ("series".into(), counts.series),
                match origin {
                    Origin::Head(boundary) => ("boundary".into(), u64::try_from(boundary).unwrap_or(0)),
                    Origin::Import => ("imported".into(), 1),
                },
            ]),
            files: BTreeMap::new(),
        };
        draft.publish(meta).map(Some)
    }

    /// Gives up and removes what was written.
    pub fn discard(self) {
        self.draft.discard();
    }
}

/// The files of `chunks/`.
struct ChunkFiles {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    number: u32,
    file: Arc<dyn VfsFile>,
    /// Size of the current file, buffered bytes included.
    size: usize,
    buffer: Vec<u8>,
}

impl ChunkFiles {
    fn new(vfs: &Arc<dyn Vfs>, dir: PathBuf) -> Result<Self, Error> {
        vfs.create_dir_all(&dir).map_err(Error::io("create", &dir))?;
        let file = create(&**vfs, &dir, 0)?;
        Ok(Self {
            vfs: Arc::clone(vfs),
            dir,
            number: 0,
            file,
            size: CHUNKS_MAGIC.len(),
            buffer: CHUNKS_MAGIC.to_vec(),
        })
    }

    /// Where the next chunk will lie. Files change between series only.
    fn place(&mut self) -> Result<(u32, usize), Error> {
        if self.size >= FILE_BYTES {
            self.flush(true)?;
            self.number += 1;
            self.file = create(&*self.vfs, &self.dir, self.number)?;
            self.size = CHUNKS_MAGIC.len();
            self.buffer.extend_from_slice(&CHUNKS_MAGIC);
        }
        Ok((self.number, self.size))
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.buffer.extend_from_slice(bytes);
        self.buffer.extend_from_slice(&blocks::crc32c(bytes).to_le_bytes());
        self.size += bytes.len() + 4;
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush(false)?;
        }
        Ok(())
    }

    fn flush(&mut self, sync: bool) -> Result<(), Error> {
        let mut done = self.file.write(&self.buffer);
        if sync {
            done = done.and_then(|()| self.file.sync());
        }
        self.buffer.clear();
        done.map_err(Error::io("write chunks in", &self.dir))
    }

    fn finish(mut self) -> Result<(), Error> {
        self.flush(true)
    }
}

fn create(vfs: &dyn Vfs, dir: &Path, number: u32) -> Result<Arc<dyn VfsFile>, Error> {
    let path = dir.join(format!("{:06}", number + 1));
    vfs.create(&path).map_err(Error::io("create", &path))
}
