//! Prometheus' index, version 2.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use blocks::Error;
use blocks::mmap::Mapped;
use model::{Labels, Millis};

use super::bits::BitReader;

const MAGIC: u32 = 0xBAAA_D700;
const TOC_BYTES: usize = 6 * 8 + 4;

/// Where a chunk lies, and what times it spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkAt {
    /// First sample.
    pub mint: Millis,
    /// Last sample.
    pub maxt: Millis,
    /// The file's number from 0 in the high half, the offset in it in the low one.
    pub place: u64,
}

/// An index file.
pub struct Index {
    path: PathBuf,
    bytes: Mapped,
    symbols: Vec<String>,
    /// Ids of all series, in the order of their labels.
    pub series: Vec<u64>,
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn be64(bytes: &[u8], at: usize) -> Option<usize> {
    let number = u64::from_be_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?);
    usize::try_from(number).ok()
}

/// The body of a section `length u32 | body | crc32c u32`.
fn section(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let start = at.checked_add(4)?;
    let end = start.checked_add(be32(bytes, at)? as usize)?;
    let body = bytes.get(start..end)?;
    (be32(bytes, end)? == blocks::crc32c(body)).then_some(body)
}

/// Reads `length uvarint | text`.
fn text<'a>(body: &mut &'a [u8]) -> Option<&'a str> {
    let length = usize::try_from(uvarint(body)?).ok()?;
    let (text, rest) = body.split_at_checked(length)?;
    *body = rest;
    std::str::from_utf8(text).ok()
}

fn uvarint(body: &mut &[u8]) -> Option<u64> {
    let mut cursor = blocks::bytes::Cursor::new(body);
    let value = cursor.varint()?;
    *body = cursor.rest();
    Some(value)
}

impl Index {
    /// Takes the bytes of the index file at `path`: checks them and reads the symbols.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] when they are no such index.
    pub fn open(bytes: Mapped, path: &Path) -> Result<Self, Error> {
        let bad = |what: &str| Error::damaged(path, 0, what);
        if be32(&bytes, 0) != Some(MAGIC) {
            return Err(bad("not an index of a Prometheus block"));
        }
        match bytes.get(4) {
            Some(2) => {}
            other => {
                return Err(bad(&format!(
                    "index version {}, only 2 is read",
                    other.copied().unwrap_or(0)
                )));
            }
        }
        let toc = bytes
            .len()
            .checked_sub(TOC_BYTES)
            .ok_or_else(|| bad("the index ends early"))?;
        if be32(&bytes, bytes.len() - 4) != Some(blocks::crc32c(&bytes[toc..bytes.len() - 4])) {
            return Err(bad("the table of contents does not fit its checksum"));
        }
        let at = |place: usize| be64(&bytes, toc + 8 * place);
        let symbols = at(0).and_then(|start| read_symbols(section(&bytes, start)?));
        let symbols = symbols.ok_or_else(|| bad("the symbols make no sense or do not fit their checksum"))?;
        let series = at(5).and_then(|start| read_all(&bytes, section(&bytes, start)?));
        let series = series.ok_or_else(|| bad("the list of all series makes no sense or does not fit its checksum"))?;
        Ok(Self {
            path: path.to_path_buf(),
            bytes,
            symbols,
            series,
        })
    }

    /// Labels and chunks of a series.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] when its bytes make no sense or do not fit their checksum.
    pub fn read(&self, id: u64) -> Result<(Labels, Vec<ChunkAt>), Error> {
        self.try_read(id).ok_or_else(|| {
            let what = "a series makes no sense or does not fit its checksum";
            Error::damaged(&self.path, id.saturating_mul(16), what)
        })
    }

    fn try_read(&self, id: u64) -> Option<(Labels, Vec<ChunkAt>)> {
        let mut rest = self.bytes.get(usize::try_from(id.checked_mul(16)?).ok()?..)?;
        let length = usize::try_from(uvarint(&mut rest)?).ok()?;
        let (mut body, after) = rest.split_at_checked(length)?;
        if be32(after, 0)? != blocks::crc32c(body) {
            return None;
        }
        let count = uvarint(&mut body)?;
        let mut pairs = Vec::new();
        for _ in 0..count {
            let mut symbol = || self.symbols.get(usize::try_from(uvarint(&mut body)?).ok()?);
            pairs.push((symbol()?.as_str(), symbol()?.as_str()));
        }
        let labels = Labels::from_pairs(pairs);
        let count = uvarint(&mut body)?;
        let mut bits = BitReader::new(body);
        let mut chunks: Vec<ChunkAt> = Vec::new();
        for _ in 0..count {
            let (mint, length, place) = match chunks.last() {
                None => (bits.varint()?, bits.uvarint()?, bits.uvarint()?),
                Some(last) => {
                    let mint = last.maxt.wrapping_add(bits.uvarint()? as i64);
                    let length = bits.uvarint()?;
                    (mint, length, last.place.wrapping_add(bits.varint()? as u64))
                }
            };
            let maxt = mint.checked_add(i64::try_from(length).ok()?)?;
            chunks.push(ChunkAt { mint, maxt, place });
        }
        Some((labels, chunks))
    }
}

fn read_symbols(body: &[u8]) -> Option<Vec<String>> {
    let count = be32(body, 0)? as usize;
    let mut rest = body.get(4..)?;
    if count > rest.len() {
        return None;
    }
    (0..count).map(|_| text(&mut rest).map(str::to_owned)).collect()
}

/// The postings of the empty name and value: every series.
fn read_all(bytes: &[u8], table: &[u8]) -> Option<Vec<u64>> {
    let count = be32(table, 0)?;
    let mut rest = table.get(4..)?;
    for _ in 0..count {
        if uvarint(&mut rest)? != 2 {
            return None;
        }
        let (name, value) = (text(&mut rest)?, text(&mut rest)?);
        let place = uvarint(&mut rest)?;
        if name.is_empty() && value.is_empty() {
            let list = section(bytes, usize::try_from(place).ok()?)?;
            let count = be32(list, 0)? as usize;
            if list.len() != 4 + 4 * count {
                return None;
            }
            return (0..count).map(|i| be32(list, 4 + 4 * i).map(u64::from)).collect();
        }
    }
    None
}

/// Makes an index from series in the order of their labels.
#[derive(Debug)]
pub struct IndexWriter {
    out: Vec<u8>,
    symbols: HashMap<String, u32>,
    postings: BTreeMap<(String, String), Vec<u32>>,
}

impl IndexWriter {
    /// An index of series whose labels use `symbols`, sorted and distinct.
    #[must_use]
    pub fn new<'a>(symbols: impl IntoIterator<Item = &'a str> + Clone) -> Self {
        let mut out = MAGIC.to_be_bytes().to_vec();
        out.push(2);
        let mut body = Vec::new();
        let count = symbols.clone().into_iter().count();
        body.extend_from_slice(&(count as u32).to_be_bytes());
        let mut numbers = HashMap::with_capacity(count);
        for (number, symbol) in (0..).zip(symbols) {
            blocks::bytes::put_bytes(&mut body, symbol.as_bytes());
            numbers.insert(symbol.to_owned(), number);
        }
        put_section(&mut out, &body);
        Self {
            out,
            symbols: numbers,
            postings: BTreeMap::new(),
        }
    }

    /// Adds a series.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] beyond 64 GiB of index.
    pub fn push(&mut self, labels: &Labels, chunks: &[ChunkAt]) -> Result<(), Error> {
        use blocks::bytes::{put_varint, put_zigzag};
        self.out.resize(self.out.len().next_multiple_of(16), 0);
        let id = u32::try_from(self.out.len() / 16).map_err(|_| Error::TooLarge {
            what: "the index of a Prometheus block".into(),
        })?;
        let mut body = Vec::with_capacity(64);
        put_varint(&mut body, labels.len() as u64);
        for (name, value) in labels {
            for text in [name, value] {
                put_varint(
                    &mut body,
                    u64::from(self.symbols.get(text).copied().unwrap_or(u32::MAX)),
                );
            }
            let key = (name.to_owned(), value.to_owned());
            self.postings.entry(key).or_default().push(id);
        }
        self.postings
            .entry((String::new(), String::new()))
            .or_default()
            .push(id);
        put_varint(&mut body, chunks.len() as u64);
        let mut last: Option<&ChunkAt> = None;
        for chunk in chunks {
            match last {
                None => put_zigzag(&mut body, chunk.mint),
                Some(last) => put_varint(&mut body, chunk.mint.wrapping_sub(last.maxt) as u64),
            }
            put_varint(&mut body, chunk.maxt.wrapping_sub(chunk.mint) as u64);
            match last {
                None => put_varint(&mut body, chunk.place),
                Some(last) => put_zigzag(&mut body, chunk.place.wrapping_sub(last.place) as i64),
            }
            last = Some(chunk);
        }
        put_varint(&mut self.out, body.len() as u64);
        self.out.extend_from_slice(&body);
        self.out.extend_from_slice(&blocks::crc32c(&body).to_be_bytes());
        Ok(())
    }

    /// The bytes of the file.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let symbols = 5_u64;
        let series = (5 + 4 + u64::from(be32(&self.out, 5).unwrap_or(0)) + 4).next_multiple_of(16);
        // Label indices are a thing of the past, which readers leave alone: there is an empty table of them.
        let indices = self.out.len() as u64;
        let indices_table = indices;
        put_section(&mut self.out, &0_u32.to_be_bytes());
        self.out.resize(self.out.len().next_multiple_of(4), 0);
        let postings = self.out.len() as u64;
        let mut table = (self.postings.len() as u32).to_be_bytes().to_vec();
        for ((name, value), ids) in &self.postings {
            self.out.resize(self.out.len().next_multiple_of(4), 0);
            blocks::bytes::put_varint(&mut table, 2);
            blocks::bytes::put_bytes(&mut table, name.as_bytes());
            blocks::bytes::put_bytes(&mut table, value.as_bytes());
            blocks::bytes::put_varint(&mut table, self.out.len() as u64);
            let mut body = (ids.len() as u32).to_be_bytes().to_vec();
            ids.iter().for_each(|id| body.extend_from_slice(&id.to_be_bytes()));
            put_section(&mut self.out, &body);
        }
        let postings_table = self.out.len() as u64;
        put_section(&mut self.out, &table);
        let toc = self.out.len();
        for place in [symbols, series, indices, indices_table, postings, postings_table] {
            self.out.extend_from_slice(&place.to_be_bytes());
        }
        let crc = blocks::crc32c(&self.out[toc..]);
        self.out.extend_from_slice(&crc.to_be_bytes());
        self.out
    }
}

fn put_section(out: &mut Vec<u8>, body: &[u8]) {
    out.extend_from_slice(&(body.len() as u32).to_be_bytes());
    out.extend_from_slice(body);
    out.extend_from_slice(&blocks::crc32c(body).to_be_bytes());
}

/// Reads a tombstones file: what is gone, by series id. Of an absent file nothing is.
///
/// # Errors
///
/// [`Error::Damaged`] when the bytes are no such file.
pub fn read_tombstones(bytes: &[u8], path: &Path) -> Result<HashMap<u64, Vec<(Millis, Millis)>>, Error> {
    let read = || {
        let body = bytes.get(5..bytes.len().checked_sub(4)?)?;
        let fits = be32(bytes, 0)? == 0x0130_BA30 && bytes[4] == 1;
        if !fits || be32(bytes, bytes.len() - 4)? != blocks::crc32c(body) {
            return None;
        }
        let mut bits = BitReader::new(body);
        let mut gone: HashMap<u64, Vec<(Millis, Millis)>> = HashMap::new();
        while let Some(id) = bits.uvarint() {
            gone.entry(id).or_default().push((bits.varint()?, bits.varint()?));
        }
        Some(gone)
    };
    read().ok_or_else(|| Error::damaged(path, 0, "the tombstones make no sense or do not fit their checksum"))
}
