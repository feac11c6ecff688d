//! What of a block is gone: intervals by series, in a file beside the data that is replaced as a whole.
//!
//! ```text
//! WFDELETE 1 | rows varint | rows × (gap varint | count varint | count × (start zigzag | length varint)) | crc32c u32
//! ```
//!
//! The last byte of the magic is the number 1. `gap` counts the rows skipped since the one before. Reading hides
//! what lies in an interval, compaction and [`Db::clean_tombstones`](crate::Db::clean_tombstones) leave it out.
//!
//! Invariant: the intervals of a row ascend and neither overlap nor touch.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use blocks::Error;
use blocks::bytes::{Cursor, put_varint, put_zigzag};
use blocks::vfs::Vfs;
use model::Millis;

const MAGIC: [u8; 8] = *b"WFDELET\x01";
/// The file's name in the folder of a block.
pub const FILE: &str = "deletes";

/// Spans of time, first and last moment of each included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Intervals(Vec<(Millis, Millis)>);

impl Intervals {
    /// Adds a span; does nothing when it ends before it begins.
    pub fn add(&mut self, mint: Millis, maxt: Millis) {
        if mint > maxt {
            return;
        }
        let touches =
            |&(start, end): &(Millis, Millis)| start <= maxt.saturating_add(1) && mint <= end.saturating_add(1);
        let (mut start, mut end) = (mint, maxt);
        for span in self.0.iter().filter(|s| touches(s)) {
            start = start.min(span.0);
            end = end.max(span.1);
        }
        self.0.retain(|s| !touches(s));
        let at = self.0.partition_point(|s| s.0 < start);
        self.0.insert(at, (start, end));
    }

    /// Whether a moment lies in one.
    #[must_use]
    pub fn contains(&self, time: Millis) -> bool {
        let after = self.0.partition_point(|s| s.0 <= time);
        after.checked_sub(1).is_some_and(|at| self.0[at].1 >= time)
    }

    /// Whether one of them covers the whole span.
    #[must_use]
    pub fn covers(&self, mint: Millis, maxt: Millis) -> bool {
        self.0.iter().any(|s| s.0 <= mint && maxt <= s.1)
    }

    /// Whether one of them has a moment of the span.
    #[must_use]
    pub fn touches(&self, mint: Millis, maxt: Millis) -> bool {
        self.0.iter().any(|s| s.0 <= maxt && mint <= s.1)
    }

    /// The spans.
    #[must_use]
    pub fn spans(&self) -> &[(Millis, Millis)] {
        &self.0
    }
}

/// The intervals of a block's rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deletes(BTreeMap<u32, Arc<Intervals>>);

impl Deletes {
    /// Whether nothing is gone.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is gone of a row; `None` when nothing is.
    #[must_use]
    pub fn of(&self, row: u32) -> Option<&Arc<Intervals>> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&row)
    }

    /// Takes a span of a row.
    pub fn add(&mut self, row: u32, mint: Millis, maxt: Millis) {
        Arc::make_mut(self.0.entry(row).or_default()).add(mint, maxt);
    }

    /// Puts the file in the folder of a block, in the place of the one before, synced.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the disk refuses; the file before is then still there.
    pub fn write(&self, vfs: &dyn Vfs, dir: &Path) -> Result<(), Error> {
        let (path, tmp) = (dir.join(FILE), dir.join("deletes.tmp"));
        let file = vfs.create(&tmp).map_err(Error::io("create", &tmp))?;
        file.write(&self.encode())
            .and_then(|()| file.sync())
            .map_err(Error::io("write", &tmp))?;
        vfs.rename(&tmp, &path).map_err(Error::io("rename", &tmp))?;
        vfs.sync_dir(dir).map_err(Error::io("sync folder", dir))
    }

    /// Reads the file in the folder of a block; nothing is gone where there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Damaged`].
    pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<Self, Error> {
        let path = dir.join(FILE);
        if !vfs.exists(&path) {
            return Ok(Self::default());
        }
        let bytes = vfs.map(&path).map_err(Error::io("read", &path))?;
        Self::decode(&bytes).ok_or_else(|| Error::damaged(&path, 0, "no list of deletions, or not the one written"))
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put_varint(&mut out, self.0.len() as u64);
        let mut next = 0_u64;
        for (&row, intervals) in &self.0 {
            put_varint(&mut out, u64::from(row) - next);
            next = u64::from(row) + 1;
            put_varint(&mut out, intervals.0.len() as u64);
            for &(start, end) in &intervals.0 {
                put_zigzag(&mut out, start);
                put_varint(&mut out, end.wrapping_sub(start) as u64);
            }
        }
        let crc = blocks::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (body, crc) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
        if Cursor::new(crc).u32()? != blocks::crc32c(body) {
            return None;
        }
        let mut cursor = Cursor::new(body.strip_prefix(&MAGIC)?);
        let (mut deletes, mut next) = (Self::default(), 0_u64);
        for _ in 0..cursor.varint()? {
            let row = next.checked_add(cursor.varint()?)?;
            next = row + 1;
            for _ in 0..cursor.varint()? {
                let start = cursor.zigzag()?;
                let end = start.wrapping_add(cursor.varint()? as i64);
                deletes.add(u32::try_from(row).ok()?, start, end);
            }
        }
        cursor.is_empty().then_some(deletes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(added: &[(Millis, Millis)], want: &[(Millis, Millis)]) {
        let mut intervals = Intervals::default();
        added.iter().for_each(|&(a, b)| intervals.add(a, b));
        assert_eq!(intervals.spans(), want);
        for time in -2..30 {
            assert_eq!(
                intervals.contains(time),
                want.iter().any(|&(a, b)| (a..=b).contains(&time)),
                "{time}"
            );
        }
    }

    #[test]
    fn spans_that_touch_grow_together() {
        check(&[(1, 3), (7, 9)], &[(1, 3), (7, 9)]);
        check(&[(7, 9), (1, 3), (4, 6)], &[(1, 9)]);
        check(&[(1, 20), (5, 6)], &[(1, 20)]);
        check(&[(5, 4)], &[]);
        check(
            &[(Millis::MIN, 4), (6, Millis::MAX)],
            &[(Millis::MIN, 4), (6, Millis::MAX)],
        );
    }

    #[test]
    fn a_file_comes_back_and_a_damaged_one_is_told() {
        let mut deletes = Deletes::default();
        deletes.add(0, 5, 9);
        deletes.add(7, Millis::MIN, Millis::MAX);
        deletes.add(7_000_000, 5, 9);
        let bytes = deletes.encode();
        assert_eq!(Deletes::decode(&bytes), Some(deletes));
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 4;
            assert_eq!(Deletes::decode(&bad), None);
            assert_eq!(Deletes::decode(&bytes[..at]), None);
        }
    }
}
