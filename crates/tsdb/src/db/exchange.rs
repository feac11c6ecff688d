//! History in and out: Prometheus' blocks and samples in bulk become blocks, blocks and head become Prometheus' blocks.
//!
//! What is imported goes past the log and the head, so it may be of any age and come in any order: where it overlaps
//! with what is there, compaction merges, and the block written first wins.

use std::collections::BTreeMap;
use std::path::Path;

use blocks::Error as BlocksError;
use model::{Column, Labels, Matcher, Millis, Queryable as _, StoreError};

use super::{Db, Inner};
use crate::Error;
use crate::block::Block;
use crate::block::writer::{BlockWriter, Origin};
use crate::exchange::folder::{self, Reader, Writer, Written};
use crate::sync::lock;
use crate::times::SPAN;

/// Imported samples are cut to blocks at multiples of this: the span of fully compacted ones.
const IMPORT_SPAN: Millis = 27 * SPAN;

/// What came in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Imported {
    /// Blocks made.
    pub blocks: u64,
    /// Series, counted once a block.
    pub series: u64,
    /// Samples.
    pub samples: u64,
}

/// What goes out.
#[derive(Debug, Clone)]
pub struct Export<'a> {
    /// Series that pass all of these.
    pub matchers: &'a [Matcher],
    /// First moment.
    pub mint: Millis,
    /// Last moment.
    pub maxt: Millis,
    /// Blocks begin and end at multiples of this, in milliseconds.
    pub span: Millis,
}

/// What went out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exported {
    /// Blocks written.
    pub blocks: u64,
    /// Series, counted once a block.
    pub series: u64,
    /// Samples.
    pub samples: u64,
    /// What could not be read, once each.
    pub warnings: Vec<String>,
}

impl Db {
    /// Takes a Prometheus block; `progress` is told how many of its series are done.
    ///
    /// # Errors
    ///
    /// When the block cannot be read, then nothing of it is taken; or the disk refuses.
    pub fn import_prometheus(
        &self,
        block: &Path,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Imported, StoreError> {
        let reader = Reader::open(&*self.inner.options.vfs, block).map_err(Error::from)?;
        let done = self.inner.import(0, |writer| {
            let mut last: Option<Labels> = None;
            for place in 0..reader.len() {
                let (labels, column) = reader.series(place)?;
                if last.as_ref().is_some_and(|last| *last >= labels) {
                    return Err(BlocksError::damaged(
                        &block.join("index"),
                        0,
                        format!("{labels} is out of order"),
                    ));
                }
                writer.samples(&column);
                writer.end_series(&labels)?;
                last = Some(labels);
                progress(place + 1, reader.len());
            }
            Ok(())
        });
        Ok(done.map_err(Error::from)?)
    }

    /// Takes samples in bulk, by series; times need not be in order, and of a time that is twice the first counts.
    ///
    /// # Errors
    ///
    /// When the disk refuses; some blocks may then be there, and doing it again is safe.
    pub fn import_samples(&self, series: BTreeMap<Labels, Column>) -> Result<Imported, StoreError> {
        let mut sorted: Vec<(Labels, Column)> = series
            .into_iter()
            .map(|(labels, column)| (labels, in_order(column)))
            .collect();
        sorted.retain(|(_, column)| !column.is_empty());
        let first = |c: &Column| c.times.first().copied();
        let mut total = Imported::default();
        while let Some(mint) = sorted.iter().filter_map(|(_, c)| first(c)).min() {
            let end = (mint.div_euclid(IMPORT_SPAN) + 1).saturating_mul(IMPORT_SPAN);
            let done = self.inner.import(mint, |writer| {
                for (labels, column) in &mut sorted {
                    let n = column.times.partition_point(|&t| t < end);
                    if n > 0 {
                        let later = crate::column::split_off(column, n);
                        writer.samples(column);
                        writer.end_series(labels)?;
                        *column = later;
                    }
                }
                Ok(())
            });
            let done = done.map_err(Error::from)?;
            total.blocks += done.blocks;
            total.series += done.series;
            total.samples += done.samples;
            sorted.retain(|(_, column)| !column.is_empty());
        }
        Ok(total)
    }

    /// Writes Prometheus blocks into `dir`, one a span; `progress` is told how many spans are done.
    ///
    /// # Errors
    ///
    /// When the store cannot be asked or the disk refuses. Damaged chunks cost their samples and a warning.
    pub fn export_prometheus(
        &self,
        dir: &Path,
        what: &Export<'_>,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Exported, StoreError> {
        let held = self.inner.span();
        let mut done = Exported::default();
        let Some((first, last)) = held else { return Ok(done) };
        let (mint, maxt) = (what.mint.max(first), what.maxt.min(last));
        if mint > maxt || what.span <= 0 {
            return Ok(done);
        }
        let (from, to) = (mint.div_euclid(what.span), maxt.div_euclid(what.span));
        let total = usize::try_from(to - from + 1).unwrap_or(usize::MAX);
        for (i, number) in (from..=to).enumerate() {
            let start = number.saturating_mul(what.span);
            let (start, end) = (start.max(mint), start.saturating_add(what.span - 1).min(maxt));
            if let Some(written) = self.export_span(dir, what.matchers, start, end, &mut done.warnings)? {
                done.blocks += 1;
                done.series += written.series;
                done.samples += written.samples;
            }
            progress(i + 1, total);
        }
        Ok(done)
    }

    fn export_span(
        &self,
        dir: &Path,
        matchers: &[Matcher],
        start: Millis,
        end: Millis,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Written>, StoreError> {
        let selection = self.select(matchers, start, end)?;
        if selection.series.is_empty() {
            return Ok(None);
        }
        let labels = selection.series.iter().map(|s| s.labels());
        let ulid = blocks::block::fresh_ulid(start);
        let mut writer = Writer::new(&self.inner.options.vfs, dir, &ulid, labels).map_err(Error::from)?;
        let mut column = Column::default();
        for series in &selection.series {
            column.clear();
            if let Err(e) = series.read(start, end, &mut column) {
                let text = e.to_string();
                if !warnings.contains(&text) && warnings.len() < 100 {
                    warnings.push(text);
                }
            }
            if let Err(e) = writer.push(series.labels(), &column) {
                writer.discard();
                return Err(Error::from(e).into());
            }
        }
        Ok(writer.finish().map_err(Error::from)?)
    }
}

/// Sorts by time; of a time that is twice the first stays.
fn in_order(column: Column) -> Column {
    if column.times.is_sorted_by(|a, b| a < b) {
        return column;
    }
    let mut order: Vec<usize> = (0..column.len()).collect();
    order.sort_by_key(|&i| column.times[i]);
    order.dedup_by_key(|i| column.times[*i]);
    let mut sorted = Column::default();
    order
        .iter()
        .for_each(|&i| crate::column::extend(&mut sorted, &column, i..i + 1));
    sorted
}

impl Inner {
    fn import(
        &self,
        time: Millis,
        fill: impl FnOnce(&mut BlockWriter) -> Result<(), BlocksError>,
    ) -> Result<Imported, BlocksError> {
        let dir = self.blocks_dir();
        let mut writer = BlockWriter::new(&self.options.vfs, &dir, time, Origin::Import)?;
        if let Err(e) = fill(&mut writer) {
            writer.discard();
            return Err(e);
        }
        let Some(meta) = writer.finish(1, Vec::new())? else {
            return Ok(Imported::default());
        };
        let done = Imported {
            blocks: 1,
            series: meta.count("series"),
            samples: meta.count("samples"),
        };
        let mint = meta.mint;
        let block = Block::open(&*self.options.vfs, &dir, meta, &self.counters)?;
        let _memory = lock(&self.maintaining);
        let mut blocks = self.blocks().to_vec();
        blocks.push(std::sync::Arc::new(block));
        self.set_blocks(blocks);
        self.changes.note(mint);
        Ok(done)
    }

    /// The first and last moment of all samples; `None` when there is none.
    fn span(&self) -> Option<(Millis, Millis)> {
        let blocks = self.blocks();
        let first = blocks.iter().map(|b| b.meta.mint).chain(self.head.mint()).min()?;
        let last = blocks.iter().map(|b| b.meta.maxt).chain(self.head.maxt()).max()?;
        Some((first, last))
    }
}

/// The Prometheus blocks in a folder, by name.
///
/// # Errors
///
/// When the folder cannot be read.
pub fn prometheus_blocks(dir: &Path) -> Result<Vec<std::path::PathBuf>, Error> {
    Ok(folder::find(&blocks::vfs::RealFs, dir)?)
}
