//! Blocks and head read as one.
//!
//! A selection finds series by postings in every block of the range and in every shard of the head, and joins
//! what has the same labels. Samples are decoded when a series is read; timestamps of a block are decoded once
//! a selection. Where parts overlap, a timestamp has the value of the block that came first, the head last.
//!
//! The head is looked at before the list of blocks: a cut publishes its block before it trims the head, so
//! nothing falls between.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use blocks::index::{Terms as _, resolve};
use blocks::{Error as BlocksError, chain};
use foldhash::fast::RandomState;
use model::store::Selection;
use model::{Column, Labels, Matcher, Millis, StoreError, StoredSeries};

use crate::block::deletes::{Deletes, Intervals};
use crate::block::{Block, ChunkRef};
use crate::codec::{self, Scratch};
use crate::column::{self, clip, merge};
use crate::db::Inner;
use crate::head::SHARDS;
use crate::head::snapshot::{PageCache, Snapshot};
use crate::sync::lock;

/// The series that pass `matchers` and may have samples in `mint..=maxt`, sorted by labels.
pub(crate) fn select(inner: &Inner, matchers: &[Matcher], mint: Millis, maxt: Millis) -> Result<Selection, StoreError> {
    let mut found: HashMap<Labels, Found, RandomState> = HashMap::default();
    if inner.head_for(mint, maxt)? {
        from_head(inner, matchers, mint, maxt, &mut found);
    }
    for block in inner.blocks().iter().filter(|b| b.overlaps(mint, maxt)) {
        let view = Arc::new(View::new(block));
        for row in &resolve(&block.index, matchers) {
            let Some((labels, _)) = block.index.series(row) else {
                continue;
            };
            let part = Part {
                refs: view.refs(row, mint, maxt),
                gone: view.deletes.of(row).cloned(),
                view: Arc::clone(&view),
            };
            if !part.refs.is_empty() {
                found.entry(labels).or_default().blocks.push(part);
            }
        }
    }
    let mut series: Vec<(Labels, Found)> = found.into_iter().collect();
    series.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let stored = |(labels, parts)| Arc::new(Joined { labels, parts }) as Arc<dyn StoredSeries>;
    Ok(Selection {
        series: series.into_iter().map(stored).collect(),
        warnings: Vec::new(),
    })
}

fn from_head(
    inner: &Inner,
    matchers: &[Matcher],
    mint: Millis,
    maxt: Millis,
    found: &mut HashMap<Labels, Found, RandomState>,
) {
    let head = &inner.head;
    let mut pages = PageCache::new(&head.targets);
    let _steady = head.steady();
    for number in 0..SHARDS {
        let shard = head.shard(number);
        for slot in &resolve(&*shard, matchers) {
            let Some(series) = shard.get(slot) else { continue };
            let snapshot = series.snapshot(mint, maxt, &mut pages);
            if !snapshot.is_empty() {
                found.entry(shard.labels(series)).or_default().head = Some(snapshot);
            }
        }
    }
}

/// Where the samples of a series are.
#[derive(Default)]
struct Found {
    blocks: Vec<Part>,
    head: Option<Snapshot>,
}

/// The chunks of a series in a block, and what of it is gone there.
struct Part {
    view: Arc<View>,
    refs: Vec<ChunkRef>,
    gone: Option<Arc<Intervals>>,
}

/// A block as one selection sees it: its timestamps are decoded once.
struct View {
    block: Arc<Block>,
    deletes: Arc<Deletes>,
    times: Mutex<HashMap<u32, Arc<[Millis]>, RandomState>>,
}

impl View {
    fn new(block: &Arc<Block>) -> Self {
        Self {
            block: Arc::clone(block),
            deletes: block.deletes(),
            times: Mutex::default(),
        }
    }

    /// The chunks of a row that overlap the range.
    fn refs(&self, row: u32, mint: Millis, maxt: Millis) -> Vec<ChunkRef> {
        let mut refs = self.block.chunk_refs(row);
        let gone = self.deletes.of(row);
        refs.retain(|r| {
            let meta = self.block.columns.meta(r.column);
            meta.is_some_and(|m| {
                let left = gone.is_none_or(|gone| !gone.covers(mint.max(m.mint), maxt.min(m.maxt)));
                m.mint <= maxt && mint <= m.maxt && left
            })
        });
        refs
    }

    fn times(&self, column: u32) -> Result<Arc<[Millis]>, BlocksError> {
        if let Some(times) = lock(&self.times).get(&column) {
            return Ok(Arc::clone(times));
        }
        let times: Arc<[Millis]> = self.block.columns.times(column)?.into();
        lock(&self.times).insert(column, Arc::clone(&times));
        Ok(times)
    }

    /// Adds the samples of a chunk in `mint..=maxt` to `into`.
    fn read(
        &self,
        chunk: ChunkRef,
        mint: Millis,
        maxt: Millis,
        buffers: &mut Buffers,
        into: &mut Column,
    ) -> Result<(), BlocksError> {
        let times = self.times(chunk.column)?;
        let bytes = self.block.chunk(chunk)?;
        let senseless = || {
            let path = std::path::Path::new(&self.block.meta.ulid);
            BlocksError::damaged(path, 0, "a chunk fits its checksum and makes no sense")
        };
        if codec::count(bytes) != Some(times.len()) {
            return Err(senseless());
        }
        let whole = times.first().is_some_and(|&t| t >= mint) && times.last().is_some_and(|&t| t <= maxt);
        if whole {
            codec::decode_column(bytes, &mut buffers.scratch, into).ok_or_else(senseless)?;
            into.times.extend_from_slice(&times);
            return Ok(());
        }
        let whole = &mut buffers.whole;
        whole.clear();
        codec::decode_column(bytes, &mut buffers.scratch, whole).ok_or_else(senseless)?;
        whole.times.extend_from_slice(&times);
        clip(whole, mint, maxt, into);
        Ok(())
    }
}

#[derive(Default)]
struct Buffers {
    scratch: Scratch,
    whole: Column,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

struct Joined {
    labels: Labels,
    parts: Found,
}

impl StoredSeries for Joined {
    fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Everything readable is read before a damaged chunk is told.
    fn read(&self, mint: Millis, maxt: Millis, into: &mut Column) -> Result<(), StoreError> {
        BUFFERS.with_borrow_mut(|buffers| self.read_with(mint, maxt, buffers, into))
    }
}

impl Joined {
    fn read_with(
        &self,
        mint: Millis,
        maxt: Millis,
        buffers: &mut Buffers,
        into: &mut Column,
    ) -> Result<(), StoreError> {
        let mut damaged = None;
        let mut part = Column::default();
        let start = into.len();
        for Part { view, refs, gone } in &self.parts.blocks {
            for &chunk in refs {
                let Some(meta) = view.block.columns.meta(chunk.column) else {
                    continue;
                };
                if meta.mint > maxt || meta.maxt < mint {
                    continue;
                }
                let follows = into.len() == start || into.times.last().is_some_and(|&last| last < meta.mint.max(mint));
                let gone = gone.as_ref().filter(|gone| gone.touches(meta.mint, meta.maxt));
                let done = if follows && gone.is_none() {
                    view.read(chunk, mint, maxt, buffers, into)
                } else {
                    part.clear();
                    let done = view.read(chunk, mint, maxt, buffers, &mut part);
                    if let Some(gone) = gone {
                        column::retain(&mut part, |t| !gone.contains(t));
                    }
                    merge_tail(into, start, &part);
                    done
                };
                if let Err(e) = done {
                    damaged.get_or_insert(e);
                }
            }
        }
        if let Some(head) = &self.parts.head {
            part.clear();
            head.read(mint, maxt, &mut buffers.scratch, &mut part);
            merge_tail(into, start, &part);
        }
        match damaged {
            None => Ok(()),
            Some(e) => Err(StoreError::Damaged(chain(&e))),
        }
    }
}

/// Merges `part` into what `into` has from `start` on; what is there wins.
fn merge_tail(into: &mut Column, start: usize, part: &Column) {
    let Some(&first) = part.times.first() else { return };
    if into.len() == start || into.times.last().is_none_or(|&last| last < first) {
        column::extend(into, part, 0..part.len());
        return;
    }
    let mut tail = column::split_off(into, start);
    merge(&mut tail, part);
    column::extend(into, &tail, 0..tail.len());
}

/// The label names of the series that pass `matchers`, sorted.
pub(crate) fn label_names(
    inner: &Inner,
    matchers: &[Matcher],
    mint: Millis,
    maxt: Millis,
) -> Result<Vec<String>, StoreError> {
    let mut names = BTreeSet::new();
    if !matchers.is_empty() {
        for series in select(inner, matchers, mint, maxt)?.series {
            for (name, _) in series.labels() {
                if !names.contains(name) {
                    names.insert(name.to_owned());
                }
            }
        }
        return Ok(names.into_iter().collect());
    }
    if inner.head_for(mint, maxt)? {
        for number in 0..SHARDS {
            names.extend(inner.head.shard(number).label_names().map(str::to_owned));
        }
    }
    for block in inner.blocks().iter().filter(|b| b.overlaps(mint, maxt)) {
        block.index.label_names(&mut |name| {
            if !names.contains(name) {
                names.insert(name.to_owned());
            }
        });
    }
    Ok(names.into_iter().collect())
}

/// The values of a label among the series that pass `matchers`, sorted.
pub(crate) fn label_values(
    inner: &Inner,
    name: &str,
    matchers: &[Matcher],
    mint: Millis,
    maxt: Millis,
) -> Result<Vec<String>, StoreError> {
    let mut values = BTreeSet::new();
    if !matchers.is_empty() {
        for series in select(inner, matchers, mint, maxt)?.series {
            if let Some(value) = series.labels().get(name)
                && !values.contains(value)
            {
                values.insert(value.to_owned());
            }
        }
        return Ok(values.into_iter().collect());
    }
    let mut take = |value: &str| {
        if !values.contains(value) {
            values.insert(value.to_owned());
        }
    };
    if inner.head_for(mint, maxt)? {
        for number in 0..SHARDS {
            inner.head.shard(number).scan(name, "", &mut |value, _| take(value));
        }
    }
    for block in inner.blocks().iter().filter(|b| b.overlaps(mint, maxt)) {
        block.index.scan(name, "", &mut |value, _| take(value));
    }
    Ok(values.into_iter().collect())
}
