//! Makes an index file from series in the order of their labels.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use model::Labels;
use roaring::RoaringBitmap;

use super::{MAGIC, Section};
use crate::Error;
use crate::bytes::{put_bytes, put_varint};
use crate::vfs::Vfs;

/// Collects series; [`IndexWriter::write`] makes the file.
#[derive(Debug, Default)]
pub struct IndexWriter {
    symbols: HashMap<String, u32>,
    /// By name and value symbol.
    postings: HashMap<(u32, u32), RoaringBitmap>,
    rows: Vec<u8>,
    row_starts: Vec<u32>,
}

impl IndexWriter {
    /// No series yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of series so far, which is the row of the next.
    #[must_use]
    pub fn len(&self) -> usize {
        self.row_starts.len()
    }

    /// Whether there is no series.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.row_starts.is_empty()
    }

    /// Adds a series; labels must come in ascending order.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] beyond four gigabytes of rows.
    pub fn push(&mut self, labels: &Labels, payload: &[u8]) -> Result<(), Error> {
        let too_large = || Error::TooLarge {
            what: "the series table of a block".into(),
        };
        let start = u32::try_from(self.rows.len()).map_err(|_| too_large())?;
        let row = u32::try_from(self.row_starts.len()).map_err(|_| too_large())?;
        self.row_starts.push(start);
        put_varint(&mut self.rows, labels.len() as u64);
        for (name, value) in labels {
            // Symbols are numbered by first sight here and renumbered in order when written.
            let pair = (self.symbol(name), self.symbol(value));
            put_varint(&mut self.rows, u64::from(pair.0));
            put_varint(&mut self.rows, u64::from(pair.1));
            self.postings.entry(pair).or_default().insert(row);
        }
        put_bytes(&mut self.rows, payload);
        Ok(())
    }

    fn symbol(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.symbols.get(text) {
            return id;
        }
        let id = u32::try_from(self.symbols.len()).unwrap_or(u32::MAX);
        self.symbols.insert(text.to_owned(), id);
        id
    }

    /// Writes and syncs the file at `path`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the disk refuses.
    pub fn write(self, vfs: &dyn Vfs, path: &Path) -> Result<(), Error> {
        let bytes = self.into_bytes(path)?;
        let file = vfs.create(path).map_err(Error::io("create", path))?;
        file.write(&bytes)
            .and_then(|()| file.sync())
            .map_err(Error::io("write", path))
    }

    fn into_bytes(self, path: &Path) -> Result<Vec<u8>, Error> {
        let Self {
            symbols,
            postings,
            rows,
            row_starts,
        } = self;
        let mut texts: Vec<(String, u32)> = symbols.into_iter().collect();
        texts.sort_unstable();
        let mut out = MAGIC.to_vec();
        let mut sections = Vec::new();
        let mut section = |out: &mut Vec<u8>, start: usize| {
            sections.push((start, out.len() - start, crc32c::crc32c(&out[start..])));
        };

        let start = out.len();
        put_table(&mut out, texts.iter().map(|(text, _)| text.as_bytes()));
        section(&mut out, start);

        // Rows keep first-sight numbers; this table translates them, so no row is rewritten.
        let start = out.len();
        let mut sorted_of = vec![0_u32; texts.len()];
        for (sorted, (_, seen)) in texts.iter().enumerate() {
            sorted_of[*seen as usize] = u32::try_from(sorted).unwrap_or(u32::MAX);
        }
        put_rows(&mut out, &rows, &row_starts, &sorted_of);
        section(&mut out, start);
        drop((rows, row_starts));

        let mut by_name: BTreeMap<u32, Vec<(u32, RoaringBitmap)>> = BTreeMap::new();
        for ((name, value), rows) in postings {
            let (name, value) = (sorted_of[name as usize], sorted_of[value as usize]);
            by_name.entry(name).or_default().push((value, rows));
        }
        let start = out.len();
        let mut maps = Vec::new();
        for (name, mut values) in by_name {
            values.sort_unstable_by_key(|(value, _)| *value);
            let mut map = fst::MapBuilder::memory();
            for (value, mut rows) in values {
                let place = put_posting(&mut out, start, &mut rows);
                map.insert(&texts[value as usize].0, place).map_err(fst_error(path))?;
            }
            maps.push((name, map.into_inner().map_err(fst_error(path))?));
        }
        section(&mut out, start);

        let start = out.len();
        let mut names = fst::MapBuilder::memory();
        for (name, map) in maps {
            let place = (out.len() - start) as u64;
            names.insert(&texts[name as usize].0, place).map_err(fst_error(path))?;
            put_bytes(&mut out, &map);
        }
        section(&mut out, start);

        let start = out.len();
        out.extend_from_slice(&names.into_inner().map_err(fst_error(path))?);
        section(&mut out, start);
        debug_assert_eq!(sections.len(), Section::Names as usize + 1);

        let footer = out.len();
        for (start, len, crc) in sections {
            out.extend_from_slice(&(start as u64).to_le_bytes());
            out.extend_from_slice(&(len as u64).to_le_bytes());
            out.extend_from_slice(&crc.to_le_bytes());
        }
        let crc = crc32c::crc32c(&out[footer..]);
        out.extend_from_slice(&crc.to_le_bytes());
        Ok(out)
    }
}

/// A count, then the start of each item after the table and the end of the last, then the items.
fn put_table<'a>(out: &mut Vec<u8>, items: impl Iterator<Item = &'a [u8]> + Clone) {
    let count = items.clone().count();
    out.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
    let mut at = 0_u32;
    out.extend_from_slice(&at.to_le_bytes());
    for item in items.clone() {
        at = at.saturating_add(u32::try_from(item.len()).unwrap_or(u32::MAX));
        out.extend_from_slice(&at.to_le_bytes());
    }
    for item in items {
        out.extend_from_slice(item);
    }
}

fn put_rows(out: &mut Vec<u8>, rows: &[u8], row_starts: &[u32], sorted_of: &[u32]) {
    use crate::bytes::Cursor;
    const HOLDS: &str = "these bytes were written above";
    let mut renumbered = Vec::with_capacity(rows.len());
    let mut starts = Vec::with_capacity(row_starts.len());
    let mut cursor = Cursor::new(rows);
    for _ in row_starts {
        starts.push(renumbered.len());
        let labels = cursor.varint().expect(HOLDS);
        put_varint(&mut renumbered, labels);
        for _ in 0..labels * 2 {
            let seen = cursor.size().expect(HOLDS);
            put_varint(&mut renumbered, u64::from(sorted_of[seen]));
        }
        put_bytes(&mut renumbered, cursor.bytes().expect(HOLDS));
    }
    starts.push(renumbered.len());
    let items = starts.windows(2).map(|w| &renumbered[w[0]..w[1]]);
    put_table(out, items);
}

/// The value under a term: a lone row as `row << 1 | 1`, else the bitmap's place in the section `<< 1`.
fn put_posting(out: &mut Vec<u8>, section: usize, rows: &mut RoaringBitmap) -> u64 {
    if let (1, Some(row)) = (rows.len(), rows.min()) {
        return u64::from(row) << 1 | 1;
    }
    let place = (out.len() - section) as u64;
    rows.optimize();
    put_varint(out, rows.serialized_size() as u64);
    rows.serialize_into(&mut *out).expect("a vector takes all bytes");
    place << 1
}

fn fst_error(path: &Path) -> impl Fn(fst::Error) -> Error {
    let path = path.to_path_buf();
    move |e| Error::damaged(&path, 0, format!("cannot build its terms: {e}"))
}
