//! Reads an index file where it lies, mapped.
//!
//! Every section is checked against its checksum when the file is opened, and every place in it against the
//! section's bounds when read: a damaged index gives an error or nothing, never a panic.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use fst::{IntoStreamer as _, Streamer as _};
use model::Labels;
use roaring::RoaringBitmap;

use super::select::Terms;
use super::{FOOTER_BYTES, MAGIC, Section};
use crate::Error;
use crate::bytes::Cursor;
use crate::mmap::Mapped;

/// An index file.
pub struct Index {
    bytes: Mapped,
    sections: [Range<usize>; 5],
    names: fst::Map<Part>,
    all: RoaringBitmap,
}

/// A part of the mapped file that an fst can own.
#[derive(Clone)]
struct Part {
    bytes: Mapped,
    range: Range<usize>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }
}

impl Index {
    /// Takes the bytes of the index file at `path` and checks them.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] when they are not what was written.
    pub fn open(bytes: Mapped, path: &Path) -> Result<Self, Error> {
        let bad = |at: usize, what: &str| Error::damaged(path, at as u64, what);
        if bytes.get(..MAGIC.len()) != Some(&MAGIC) {
            return Err(bad(0, "not an index of a known format"));
        }
        let footer = bytes.len().checked_sub(FOOTER_BYTES).filter(|&f| f >= MAGIC.len());
        let footer = footer.ok_or_else(|| bad(bytes.len(), "the index ends early"))?;
        let mut cursor = Cursor::new(&bytes[footer..]);
        let mut sections = [const { 0..0 }; 5];
        let table_crc = crc32c::crc32c(&bytes[footer..bytes.len() - 4]);
        for section in &mut sections {
            let (start, len, crc) = read_entry(&mut cursor).ok_or_else(|| bad(footer, "the table ends early"))?;
            let range = start..start.saturating_add(len);
            let part = bytes.get(range.clone()).filter(|_| range.end <= footer);
            if part.is_none_or(|p| crc32c::crc32c(p) != crc) {
                return Err(bad(start, "a section does not fit its checksum"));
            }
            *section = range;
        }
        if cursor.u32() != Some(table_crc) {
            return Err(bad(footer, "the table does not fit its checksum"));
        }
        let part = Part {
            bytes: bytes.clone(),
            range: sections[Section::Names as usize].clone(),
        };
        let names = fst::Map::new(part).map_err(|e| bad(sections[Section::Names as usize].start, &e.to_string()))?;
        let count = table_len(&bytes[sections[Section::Series as usize].clone()]);
        let mut all = RoaringBitmap::new();
        all.insert_range(0..count);
        Ok(Self {
            bytes,
            sections,
            names,
            all,
        })
    }

    /// Number of series.
    #[must_use]
    pub fn len(&self) -> u32 {
        u32::try_from(self.all.len()).unwrap_or(u32::MAX)
    }

    /// Whether there is no series.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The labels and the payload of a row; `None` when there is no such row or its bytes make no sense.
    #[must_use]
    pub fn series(&self, row: u32) -> Option<(Labels, &[u8])> {
        let mut cursor = Cursor::new(table_item(self.section(Section::Series), row)?);
        let count = cursor.size()?;
        let mut whole = true;
        let pairs = (0..count).map_while(|_| {
            let pair = (|| Some((self.symbol(cursor.varint()?)?, self.symbol(cursor.varint()?)?)))();
            whole &= pair.is_some();
            pair
        });
        let labels = Labels::from_sorted(pairs).filter(|_| whole)?;
        Some((labels, cursor.bytes()?))
    }

    /// The payload of a row.
    #[must_use]
    pub fn payload(&self, row: u32) -> Option<&[u8]> {
        let mut cursor = Cursor::new(table_item(self.section(Section::Series), row)?);
        let count = cursor.size()?;
        for _ in 0..count.checked_mul(2)? {
            cursor.varint()?;
        }
        cursor.bytes()
    }

    /// The value of one label of a row; `None` when absent.
    #[must_use]
    pub fn label(&self, row: u32, name: &str) -> Option<&str> {
        let mut cursor = Cursor::new(table_item(self.section(Section::Series), row)?);
        let count = cursor.size()?;
        for _ in 0..count {
            let (have, value) = (cursor.varint()?, cursor.varint()?);
            if self.symbol(have)? == name {
                return self.symbol(value);
            }
        }
        None
    }

    /// Gives the name of every label, sorted.
    pub fn label_names(&self, visit: &mut dyn FnMut(&str)) {
        let mut stream = self.names.stream();
        while let Some((name, _)) = stream.next() {
            if let Ok(name) = std::str::from_utf8(name) {
                visit(name);
            }
        }
    }

    fn section(&self, section: Section) -> &[u8] {
        &self.bytes[self.sections[section as usize].clone()]
    }

    fn symbol(&self, id: u64) -> Option<&str> {
        let item = table_item(self.section(Section::Symbols), u32::try_from(id).ok()?)?;
        std::str::from_utf8(item).ok()
    }

    fn values(&self, name: &str) -> Option<fst::Map<Part>> {
        let place = usize::try_from(self.names.get(name)?).ok()?;
        let section = self.section(Section::Values);
        let mut cursor = Cursor::new(section.get(place..)?);
        let map = cursor.bytes()?;
        let end = section.len() - cursor.rest().len();
        let base = self.sections[Section::Values as usize].start;
        let part = Part {
            bytes: self.bytes.clone(),
            range: base + end - map.len()..base + end,
        };
        fst::Map::new(part).ok()
    }

    fn posting(&self, place: u64) -> Option<RoaringBitmap> {
        if place & 1 == 1 {
            let row = u32::try_from(place >> 1).ok()?;
            return Some(std::iter::once(row).collect());
        }
        let section = self.section(Section::Postings);
        let mut cursor = Cursor::new(section.get(usize::try_from(place >> 1).ok()?..)?);
        RoaringBitmap::deserialize_from(cursor.bytes()?).ok()
    }
}

impl Terms for Index {
    fn all(&self) -> Cow<'_, RoaringBitmap> {
        Cow::Borrowed(&self.all)
    }

    fn rows(&self, name: &str, value: &str) -> Option<Cow<'_, RoaringBitmap>> {
        let place = self.values(name)?.get(value)?;
        self.posting(place).map(Cow::Owned)
    }

    fn scan(&self, name: &str, prefix: &str, visit: &mut dyn FnMut(&str, Cow<'_, RoaringBitmap>)) {
        let Some(values) = self.values(name) else { return };
        let mut stream = values.range().ge(prefix).into_stream();
        while let Some((value, place)) = stream.next() {
            let Ok(value) = std::str::from_utf8(value) else {
                continue;
            };
            if !value.starts_with(prefix) {
                break;
            }
            if let Some(rows) = self.posting(place) {
                visit(value, Cow::Owned(rows));
            }
        }
    }
}

fn read_entry(cursor: &mut Cursor<'_>) -> Option<(usize, usize, u32)> {
    let start = usize::try_from(cursor.u64()?).ok()?;
    let len = usize::try_from(cursor.u64()?).ok()?;
    Some((start, len, cursor.u32()?))
}

fn table_len(table: &[u8]) -> u32 {
    Cursor::new(table).u32().unwrap_or(0)
}

fn table_item(table: &[u8], item: u32) -> Option<&[u8]> {
    let count = table_len(table);
    if item >= count {
        return None;
    }
    let slot = |n: usize| Cursor::new(table.get(4 + 4 * n..)?).u32();
    let (from, to) = (slot(item as usize)? as usize, slot(item as usize + 1)? as usize);
    let base = 4 + 4 * (count as usize + 1);
    table.get(base.checked_add(from)?..base.checked_add(to)?)
}
