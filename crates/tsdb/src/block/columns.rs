//! The `times` file: distinct columns of timestamps, known by their content.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use blocks::Error;
use blocks::bytes::Cursor;
use blocks::mmap::Mapped;
use blocks::vfs::Vfs;
use model::Millis;

use crate::times;

const MAGIC: [u8; 8] = *b"WFTIMES\x01";
const ENTRY_BYTES: usize = 16 + 8 + 8 + 4 + 4 + 8;
const FOOTER_BYTES: usize = 8 + 4 + 4;

/// What the directory says of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnMeta {
    /// xxh3 of its timestamps as little-endian words.
    pub hash: u128,
    /// First timestamp.
    pub mint: Millis,
    /// Last timestamp.
    pub maxt: Millis,
    /// Number of timestamps.
    pub count: u32,
    len: u32,
    start: u64,
}

/// A `times` file open for reading.
pub struct Columns {
    path: PathBuf,
    bytes: Mapped,
    directory: usize,
    count: u32,
}

impl Columns {
    /// Takes the bytes of the file at `path` and checks its directory.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] when it is not what was written.
    pub fn open(bytes: Mapped, path: &Path) -> Result<Self, Error> {
        let bad = |what: &str| Error::damaged(path, 0, what);
        if bytes.get(..8) != Some(&MAGIC) {
            return Err(bad("not a times file of a known format"));
        }
        let footer = bytes
            .len()
            .checked_sub(FOOTER_BYTES)
            .ok_or_else(|| bad("the file ends early"))?;
        let mut cursor = Cursor::new(&bytes[footer..]);
        let table = (|| {
            let start = usize::try_from(cursor.u64()?).ok()?;
            let (count, crc) = (cursor.u32()?, cursor.u32()?);
            let table = bytes.get(start..footer)?;
            let fits = table.len() == ENTRY_BYTES.checked_mul(count as usize)?;
            (fits && blocks::crc32c(table) == crc).then_some((start, count))
        })();
        let (directory, count) = table.ok_or_else(|| bad("the directory does not fit its checksum"))?;
        Ok(Self {
            path: path.to_path_buf(),
            bytes,
            directory,
            count,
        })
    }

    /// Number of columns.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// What is known of a column without decoding it; `None` when there is no such column.
    #[must_use]
    pub fn meta(&self, column: u32) -> Option<ColumnMeta> {
        if column >= self.count {
            return None;
        }
        let at = self.directory + column as usize * ENTRY_BYTES;
        let mut cursor = Cursor::new(self.bytes.get(at..at + ENTRY_BYTES)?);
        Some(ColumnMeta {
            hash: u128::from_le_bytes(cursor.take(16)?.try_into().ok()?),
            mint: cursor.u64()? as i64,
            maxt: cursor.u64()? as i64,
            count: cursor.u32()?,
            len: cursor.u32()?,
            start: cursor.u64()?,
        })
    }

    /// The encoded bytes of a column.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] when they do not fit their checksum.
    pub fn encoded(&self, column: u32) -> Result<&[u8], Error> {
        let bytes = (|| {
            let meta = self.meta(column)?;
            let mut cursor = Cursor::new(self.bytes.get(usize::try_from(meta.start).ok()?..)?);
            let bytes = cursor.take(meta.len as usize)?;
            (cursor.u32()? == blocks::crc32c(bytes)).then_some(bytes)
        })();
        let start = self.meta(column).map_or(0, |m| m.start);
        bytes.ok_or_else(|| Error::damaged(&self.path, start, "a column of timestamps does not fit its checksum"))
    }

    /// The timestamps of a column.
    ///
    /// # Errors
    ///
    /// As [`Columns::encoded`].
    pub fn times(&self, column: u32) -> Result<Vec<Millis>, Error> {
        let mut out = Vec::new();
        let mut cursor = Cursor::new(self.encoded(column)?);
        times::decode(&mut cursor, &mut out)
            .ok_or_else(|| Error::damaged(&self.path, 0, format!("timestamp column {column} makes no sense")))?;
        Ok(out)
    }
}

/// Collects columns for a `times` file.
#[derive(Debug)]
pub struct ColumnsWriter {
    out: Vec<u8>,
    metas: Vec<ColumnMeta>,
    by_hash: HashMap<u128, u32>,
    /// The column asked for last: the series of a target come one after the other.
    last: Option<(Vec<Millis>, u32)>,
}

impl Default for ColumnsWriter {
    fn default() -> Self {
        Self {
            out: MAGIC.to_vec(),
            metas: Vec::new(),
            by_hash: HashMap::new(),
            last: None,
        }
    }
}

impl ColumnsWriter {
    /// The number of the column of these timestamps (at least one), a new one if need be.
    pub fn column(&mut self, times: &[Millis]) -> u32 {
        if let Some((last, number)) = &self.last
            && last == times
        {
            return *number;
        }
        let mut raw = Vec::with_capacity(times.len() * 8);
        times.iter().for_each(|t| raw.extend_from_slice(&t.to_le_bytes()));
        let hash = xxhash_rust::xxh3::xxh3_128(&raw);
        let number = match self.by_hash.get(&hash) {
            Some(&number) => number,
            None => {
                let mut encoded = Vec::new();
                times::encode(times, &mut encoded);
                let meta = ColumnMeta {
                    hash,
                    mint: times.first().copied().unwrap_or(0),
                    maxt: times.last().copied().unwrap_or(0),
                    count: times.len() as u32,
                    len: 0,
                    start: 0,
                };
                self.add(meta, &encoded)
            }
        };
        self.last = Some((times.to_vec(), number));
        number
    }

    /// The number of a column of another file, copied if it is not here.
    pub fn copy(&mut self, meta: ColumnMeta, encoded: &[u8]) -> u32 {
        match self.by_hash.get(&meta.hash) {
            Some(&number) => number,
            None => self.add(meta, encoded),
        }
    }

    fn add(&mut self, mut meta: ColumnMeta, encoded: &[u8]) -> u32 {
        let number = self.metas.len() as u32;
        meta.start = self.out.len() as u64;
        meta.len = encoded.len() as u32;
        self.out.extend_from_slice(encoded);
        self.out.extend_from_slice(&blocks::crc32c(encoded).to_le_bytes());
        self.by_hash.insert(meta.hash, number);
        self.metas.push(meta);
        number
    }

    /// What is known of a column given before.
    #[must_use]
    pub fn meta(&self, number: u32) -> ColumnMeta {
        self.metas[number as usize]
    }

    /// Writes and syncs the file.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the disk refuses.
    pub fn write(mut self, vfs: &dyn Vfs, path: &Path) -> Result<(), Error> {
        let directory = self.out.len();
        for meta in &self.metas {
            self.out.extend_from_slice(&meta.hash.to_le_bytes());
            self.out.extend_from_slice(&meta.mint.to_le_bytes());
            self.out.extend_from_slice(&meta.maxt.to_le_bytes());
            self.out.extend_from_slice(&meta.count.to_le_bytes());
            self.out.extend_from_slice(&meta.len.to_le_bytes());
            self.out.extend_from_slice(&meta.start.to_le_bytes());
        }
        let crc = blocks::crc32c(&self.out[directory..]);
        self.out.extend_from_slice(&(directory as u64).to_le_bytes());
        self.out.extend_from_slice(&(self.metas.len() as u32).to_le_bytes());
        self.out.extend_from_slice(&crc.to_le_bytes());
        let file = vfs.create(path).map_err(Error::io("create", path))?;
        file.write(&self.out)
            .and_then(|()| file.sync())
            .map_err(Error::io("write", path))
    }
}
