//! Blocks that grow together: which ones, and how.
//!
//! Spans grow from 2 hours to 6, 18 and 54. Chunks are copied as they are; only where the chunks of a series
//! overlap (imported history) are they decoded, merged and encoded anew. Where a timestamp is in several blocks,
//! the one that was written first wins.

use std::path::Path;
use std::sync::Arc;

use blocks::Error;
use blocks::block::Meta;
use blocks::vfs::Vfs;
use model::{Column, Labels, Millis};

use crate::block::columns::ColumnMeta;
use crate::block::deletes::{Deletes, Intervals};
use crate::block::writer::{BlockWriter, Origin};
use crate::block::{Block, ChunkRef};
use crate::codec::{self, Scratch};
use crate::column::{merge, retain};
use crate::times::SPAN;

/// Spans of compacted blocks, in milliseconds.
const LEVELS: [Millis; 3] = [3 * SPAN, 9 * SPAN, 27 * SPAN];

/// The blocks to compact next, as places in `metas`; empty when there is nothing to do. Blocks reach to
/// `boundary`, before which no more will be cut. No block is made that spans more than a sixth of `keep_time`
/// (but six hours always), so that retention does not hold on to much more than it should.
#[must_use]
pub fn plan(metas: &[&Meta], boundary: Millis, keep_time: Option<Millis>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..metas.len()).collect();
    order.sort_by_key(|&i| (metas[i].mint, metas[i].maxt));
    if let Some(overlapping) = overlapping(metas, &order) {
        return overlapping;
    }
    for span in LEVELS {
        if span > LEVELS[0] && keep_time.is_some_and(|keep| span > keep / 6) {
            break;
        }
        let within = |i: usize| {
            let start = metas[i].mint.div_euclid(span);
            (start == metas[i].maxt.div_euclid(span)).then_some(start)
        };
        let mut at = 0;
        while at < order.len() {
            let Some(start) = within(order[at]) else {
                at += 1;
                continue;
            };
            let n = order[at..].iter().take_while(|&&i| within(i) == Some(start)).count();
            let end = start.saturating_add(1).saturating_mul(span);
            if n > 1 && end <= boundary {
                return order[at..at + n].to_vec();
            }
            at += n;
        }
    }
    Vec::new()
}

/// The first group of blocks that share a moment.
fn overlapping(metas: &[&Meta], order: &[usize]) -> Option<Vec<usize>> {
    let mut group: Vec<usize> = Vec::new();
    let mut end = Millis::MIN;
    for &i in order {
        if !group.is_empty() && metas[i].mint > end {
            if group.len() > 1 {
                return Some(group);
            }
            group.clear();
        }
        end = if group.is_empty() {
            metas[i].maxt
        } else {
            end.max(metas[i].maxt)
        };
        group.push(i);
    }
    (group.len() > 1).then_some(group)
}

/// Writes the block of this `level` that `parents` become; `None` when nothing of them is left.
///
/// # Errors
///
/// [`Error::Io`] when the disk refuses, [`Error::Damaged`] when a chunk of a parent cannot be read: the parents
/// then stay as they are.
pub fn compact(vfs: &Arc<dyn Vfs>, dir: &Path, parents: &[Arc<Block>], level: u32) -> Result<Option<Meta>, Error> {
    let time = parents.iter().map(|b| b.meta.mint).min().unwrap_or(0);
    let boundary = parents.iter().filter_map(|b| b.boundary()).max();
    let mut writer = BlockWriter::new(vfs, dir, time, boundary.map_or(Origin::Import, Origin::Head))?;
    if let Err(e) = copy_all(parents, &mut writer) {
        writer.discard();
        return Err(e);
    }
    let mut sources: Vec<String> = Vec::new();
    for parent in parents {
        sources.push(parent.meta.ulid.clone());
        sources.extend(parent.meta.sources.iter().cloned());
    }
    sources.sort_unstable();
    sources.dedup();
    writer.finish(level, sources)
}

/// A parent at one of its rows.
struct Row<'a> {
    block: &'a Block,
    deletes: Arc<Deletes>,
    row: u32,
    labels: Option<Labels>,
}

impl Row<'_> {
    fn load(&mut self) -> Result<(), Error> {
        self.labels = None;
        if self.row < self.block.index.len() {
            let read = self.block.index.series(self.row);
            let (labels, _) = read.ok_or_else(|| {
                let path = Path::new(&self.block.meta.ulid).join("index");
                Error::damaged(&path, 0, format!("row {} makes no sense", self.row))
            })?;
            self.labels = Some(labels);
        }
        Ok(())
    }
}

fn copy_all(parents: &[Arc<Block>], writer: &mut BlockWriter) -> Result<(), Error> {
    let mut rows: Vec<Row<'_>> = parents
        .iter()
        .map(|block| Row {
            block,
            deletes: block.deletes(),
            row: 0,
            labels: None,
        })
        .collect();
    // Names sort by time of writing, so that the first written wins.
    rows.sort_by(|a, b| (a.block.meta.mint, &a.block.meta.ulid).cmp(&(b.block.meta.mint, &b.block.meta.ulid)));
    for row in &mut rows {
        row.load()?;
    }
    while let Some(labels) = rows.iter().filter_map(|r| r.labels.as_ref()).min().cloned() {
        let mut chunks = Vec::new();
        for row in rows.iter_mut().filter(|r| r.labels.as_ref() == Some(&labels)) {
            let gone = row.deletes.of(row.row);
            let refs = row.block.chunk_refs(row.row).into_iter();
            chunks.extend(refs.map(|chunk| Piece {
                block: row.block,
                chunk,
                gone: gone.cloned(),
            }));
            row.row += 1;
            row.load()?;
        }
        copy_series(&chunks, writer)?;
        writer.end_series(&labels)?;
    }
    Ok(())
}

/// A chunk of a parent, and what of its series is gone there.
struct Piece<'a> {
    block: &'a Block,
    chunk: ChunkRef,
    gone: Option<Arc<Intervals>>,
}

impl Piece<'_> {
    fn meta(&self) -> Result<ColumnMeta, Error> {
        let meta = self.block.columns.meta(self.chunk.column);
        meta.ok_or_else(|| self.damaged("a chunk names timestamps that are not there"))
    }

    fn damaged(&self, what: &str) -> Error {
        Error::damaged(Path::new(&self.block.meta.ulid), 0, what)
    }

    /// Its samples but those that are gone.
    fn samples(&self, scratch: &mut Scratch) -> Result<Column, Error> {
        let mut column = Column::default();
        let decoded = codec::decode_column(self.block.chunk(self.chunk)?, scratch, &mut column);
        column.times = self.block.columns.times(self.chunk.column)?;
        if decoded.is_none() || column.values.len() != column.times.len() {
            return Err(self.damaged("a chunk makes no sense"));
        }
        if let Some(gone) = &self.gone {
            retain(&mut column, |t| !gone.contains(t));
        }
        Ok(column)
    }
}

fn copy_series(pieces: &[Piece<'_>], writer: &mut BlockWriter) -> Result<(), Error> {
    let metas = pieces.iter().map(Piece::meta).collect::<Result<Vec<_>, _>>()?;
    let mut scratch = Scratch::default();
    if metas.windows(2).all(|w| w[0].maxt < w[1].mint) {
        for (piece, meta) in pieces.iter().zip(metas) {
            let (block, chunk) = (piece.block, piece.chunk);
            match &piece.gone {
                Some(gone) if gone.covers(meta.mint, meta.maxt) => {}
                Some(gone) if gone.touches(meta.mint, meta.maxt) => writer.samples(&piece.samples(&mut scratch)?),
                _ => writer.chunk(meta, block.columns.encoded(chunk.column)?, block.chunk(chunk)?),
            }
        }
        return Ok(());
    }
    let mut all = Column::default();
    for piece in pieces {
        merge(&mut all, &piece.samples(&mut scratch)?);
    }
    writer.samples(&all);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const HOUR: Millis = 3600 * 1000;

    #[track_caller]
    fn check(spans: &[(i64, i64)], boundary: i64, keep: Option<Millis>, want: &[usize]) {
        let meta = |&(mint, maxt): &(i64, i64)| Meta {
            format: 1,
            ulid: String::new(),
            store: String::new(),
            mint: mint * HOUR,
            maxt: maxt * HOUR - 1,
            level: 1,
            sources: Vec::new(),
            counts: BTreeMap::new(),
            files: BTreeMap::new(),
        };
        let metas: Vec<Meta> = spans.iter().map(meta).collect();
        let refs: Vec<&Meta> = metas.iter().collect();
        assert_eq!(plan(&refs, boundary * HOUR, keep), want);
    }

    #[test]
    fn a_span_is_compacted_once_it_is_complete() {
        check(&[(0, 2), (2, 4), (4, 6)], 6, None, &[0, 1, 2]);
        check(&[(0, 2), (2, 4)], 4, None, &[]);
        check(&[(0, 2), (4, 6), (6, 8)], 8, None, &[0, 1]);
        check(&[(0, 6), (6, 8), (8, 10), (10, 12)], 12, None, &[1, 2, 3]);
    }

    #[test]
    fn levels_grow_and_stop_where_retention_would_suffer() {
        check(&[(0, 6), (6, 12), (12, 18)], 18, None, &[0, 1, 2]);
        check(&[(0, 6), (6, 12), (12, 18)], 18, Some(50 * HOUR), &[]);
        check(&[(0, 18), (18, 36), (36, 54)], 54, None, &[0, 1, 2]);
        check(&[(0, 54), (54, 108)], 200, None, &[]);
    }

    #[test]
    fn a_lone_block_is_left() {
        check(&[(0, 2)], 100, None, &[]);
        check(&[], 100, None, &[]);
    }

    #[test]
    fn blocks_that_overlap_come_first() {
        check(&[(0, 2), (2, 4), (3, 5), (4, 6)], 4, None, &[1, 2, 3]);
    }
}
