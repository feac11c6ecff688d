//! What happens as time passes: cut the head, compact, keep within limits, mind the disk.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use blocks::block as folder;
use blocks::retention::{Keep, Kept, expired};
use blocks::{Error as BlocksError, chain};
use model::{Column, Labels, Millis};

use super::Inner;
use crate::Error;
use crate::block::Block;
use crate::block::writer::{BlockWriter, Origin};
use crate::codec::Scratch;
use crate::compact;
use crate::head::SHARDS;
use crate::head::snapshot::PageCache;
use crate::stats::Counters;
use crate::sync::{lock, write};
use crate::times::{SPAN, span_start};

/// A checkpoint is due after this much log a series: about what a series takes in the checkpoint.
const LOG_BYTES_PER_SERIES: u64 = 300;

/// A log of this size is quick to replay.
const LAST_CHECKPOINT_BYTES: u64 = 8 << 20;

/// What maintenance remembers from one call to the next.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// A block was dropped for want of room when the span that begins here was to be cut.
    dropped_for: Option<Millis>,
    /// The log should get a checkpoint: blocks were cut since the last, or records were lost.
    checkpoint_due: bool,
    /// Lost appends when the last checkpoint was written.
    lost_seen: u64,
    /// Bytes written to the log when the last checkpoint was written.
    bytes_seen: u64,
}

impl Inner {
    pub(super) fn maintain(&self, now: Millis) -> Result<(), Error> {
        let mut memory = lock(&self.maintaining);
        let mut first = None;
        let mut note = |result: Result<(), BlocksError>| {
            if let Err(e) = result {
                tracing::warn!("metric store: {}", chain(&e));
                Counters::add(&self.counters.maintenance_failures, 1);
                if e.is_full_disk() {
                    Counters::add(&self.counters.disk_refusals, 1);
                }
                first.get_or_insert(e);
            }
        };
        note(self.cut(now, &mut memory));
        note(self.checkpoint(&mut memory));
        note(self.compact());
        note(self.drop_expired(now));
        first.map_or(Ok(()), |e| Err(e.into()))
    }

    /// Cuts all spans that no sample may enter any more.
    fn cut(&self, now: Millis, memory: &mut Memory) -> Result<(), BlocksError> {
        let Some(maxt) = self.head.maxt() else { return Ok(()) };
        let until = span_start(
            maxt.min(now)
                .saturating_sub(self.options.late_timed.max(self.options.late_scraped)),
        );
        if self.head.mint().is_none_or(|mint| mint >= until) {
            return Ok(());
        }
        self.head.raise_floor(until);
        // Appends judged by the old floor finish before anything is cut.
        drop(write(&self.appending));
        while let Some(first) = self.head.first_time().filter(|&t| t < until) {
            let start = span_start(first);
            if !self.has_room() && !self.make_room(start, memory)? {
                Counters::add(&self.counters.disk_refusals, 1);
                return self.forget_beyond_span(maxt);
            }
            self.cut_span(start, start.saturating_add(SPAN))?;
            memory.checkpoint_due = true;
        }
        Ok(())
    }

    fn cut_span(&self, start: Millis, end: Millis) -> Result<(), BlocksError> {
        let dir = self.blocks_dir();
        let mut writer = BlockWriter::new(&self.options.vfs, &dir, start, Origin::Head(end))?;
        if let Err(e) = self.write_span(start, end, &mut writer) {
            writer.discard();
            return Err(e);
        }
        if let Some(meta) = writer.finish(1, Vec::new())? {
            let block = Block::open(&*self.options.vfs, &dir, meta, &self.counters)?;
            let mut blocks = self.blocks().to_vec();
            blocks.push(Arc::new(block));
            self.set_blocks(blocks);
            Counters::add(&self.counters.cuts, 1);
        }
        let gone = self.head.trim(end);
        Counters::add(&self.counters.series_removed, gone);
        Ok(())
    }

    /// Writes the samples of `start..end`, series in the order of their labels.
    fn write_span(&self, start: Millis, end: Millis, writer: &mut BlockWriter) -> Result<(), BlocksError> {
        let head = &self.head;
        let mut pages = PageCache::new(&head.targets);
        let mut queues: Vec<Queue> = (0..SHARDS).map(|n| Queue::new(self, n)).collect();
        let (mut scratch, mut column) = (Scratch::default(), Column::default());
        loop {
            let next = queues.iter_mut().filter(|q| q.labels.is_some());
            let Some(queue) = next.min_by(|a, b| a.labels.cmp(&b.labels)) else {
                return Ok(());
            };
            let snapshot = {
                let shard = head.shard(queue.shard);
                shard.get(queue.slot()).map(|s| s.snapshot(start, end - 1, &mut pages))
            };
            if let Some(snapshot) = snapshot {
                // Pages lie within one span, so a run of them is all of it or nothing.
                let within = |times: &[Millis]| times.first() >= Some(&start) && times.last() < Some(&end);
                if let Some((times, chunk)) = snapshot.chunk().filter(|c| within(c.0)) {
                    writer.encoded(times, chunk);
                } else {
                    column.clear();
                    snapshot.read(start, end - 1, &mut scratch, &mut column);
                    writer.samples(&column);
                }
                writer.end_series(queue.labels.as_ref().expect("filtered above"))?;
            }
            queue.advance(self);
        }
    }

    /// Replaces the log's past by a checkpoint, if it is time.
    fn checkpoint(&self, memory: &mut Memory) -> Result<(), BlocksError> {
        let Some(wal) = self.wal.get() else { return Ok(()) };
        let (lost, bytes) = (
            wal.counters().lost.load(Ordering::Relaxed),
            wal.counters().bytes.load(Ordering::Relaxed),
        );
        // A log much longer than the state it leads to makes a slow start.
        let long = (2 * self.options.wal_segment_bytes).max(LOG_BYTES_PER_SERIES * self.head.series_count());
        let due = memory.checkpoint_due || lost > memory.lost_seen || bytes - memory.bytes_seen > long;
        if !due {
            return Ok(());
        }
        if !self.has_room() {
            Counters::add(&self.counters.disk_refusals, 1);
            return Ok(());
        }
        self.write_checkpoint(memory)
    }

    fn write_checkpoint(&self, memory: &mut Memory) -> Result<(), BlocksError> {
        let Some(wal) = self.wal.get() else { return Ok(()) };
        let counters = wal.counters();
        let (lost, bytes) = (
            counters.lost.load(Ordering::Relaxed),
            counters.bytes.load(Ordering::Relaxed),
        );
        wal.checkpoint(|writer| self.head.write_checkpoint(writer))?;
        memory.checkpoint_due = false;
        memory.lost_seen = lost;
        memory.bytes_seen = bytes;
        Ok(())
    }

    /// Before the end: a checkpoint is read much quicker than the log that it stands for.
    pub(super) fn last_checkpoint(&self, memory: &mut Memory) {
        let Some(wal) = self.wal.get() else { return };
        let bytes = wal.counters().bytes.load(Ordering::Relaxed) - memory.bytes_seen;
        if bytes > LAST_CHECKPOINT_BYTES
            && self.has_room()
            && let Err(e) = self.write_checkpoint(memory)
        {
            tracing::warn!("metric store: no last checkpoint: {}", chain(&e));
        }
    }

    fn compact(&self) -> Result<(), BlocksError> {
        loop {
            let blocks = self.blocks();
            let metas: Vec<_> = blocks.iter().map(|b| &b.meta).collect();
            let chosen = compact::plan(&metas, self.head.boundary(), self.options.keep_time);
            if chosen.is_empty() {
                return Ok(());
            }
            if !self.has_room() {
                Counters::add(&self.counters.disk_refusals, 1);
                return Ok(());
            }
            let parents: Vec<Arc<Block>> = chosen.iter().map(|&i| Arc::clone(&blocks[i])).collect();
            let level = parents.iter().map(|b| b.meta.level).max().unwrap_or(0) + 1;
            self.replace(&parents, level)?;
        }
    }

    fn drop_expired(&self, now: Millis) -> Result<(), BlocksError> {
        let blocks = self.blocks();
        let kept: Vec<Kept> = blocks
            .iter()
            .map(|b| Kept {
                maxt: b.meta.maxt,
                size_bytes: b.meta.size_bytes(),
            })
            .collect();
        let keep = Keep {
            time: self.options.keep_time,
            bytes: self.options.keep_bytes,
        };
        // Listing the log's files is for the limit alone.
        let log = keep.bytes.and(self.wal.get()).map_or(0, blocks::wal::Wal::size_bytes);
        let gone = expired(&kept, log, keep, now);
        for (block, _) in blocks.iter().zip(gone).filter(|(_, gone)| *gone) {
            self.drop_block(block)?;
        }
        Ok(())
    }

    fn drop_block(&self, block: &Arc<Block>) -> Result<(), BlocksError> {
        let ulid = &block.meta.ulid;
        self.set_blocks(self.blocks().iter().filter(|b| b.meta.ulid != *ulid).cloned().collect());
        Counters::add(&self.counters.blocks_dropped, 1);
        folder::delete(&*self.options.vfs, &self.blocks_dir(), ulid)
    }

    /// Whether there is room on the disk for more than the log.
    fn has_room(&self) -> bool {
        match self.options.vfs.space(&self.options.dir) {
            Ok(space) => space.free >= self.options.free_bytes_min.max(space.total / 100),
            // Not knowing is no reason to stop: a full disk will tell by itself.
            Err(_) => true,
        }
    }

    /// Gives up the oldest block for the span to be cut, once; says whether there is room now.
    fn make_room(&self, start: Millis, memory: &mut Memory) -> Result<bool, BlocksError> {
        if memory.dropped_for == Some(start) {
            return Ok(false);
        }
        let blocks = self.blocks();
        let Some(oldest) = blocks.iter().min_by_key(|b| b.meta.maxt) else {
            return Ok(false);
        };
        tracing::warn!("disk nearly full: dropping the oldest block {}", oldest.meta.ulid);
        memory.dropped_for = Some(start);
        self.drop_block(oldest)?;
        Ok(self.has_room())
    }

    /// Without room for blocks the head must not grow for ever.
    fn forget_beyond_span(&self, maxt: Millis) -> Result<(), BlocksError> {
        let floor = span_start(maxt.saturating_sub(self.options.head_span_max));
        while let Some(first) = self.head.first_time().filter(|&t| t < floor) {
            let end = span_start(first).saturating_add(SPAN);
            tracing::error!("disk full for too long: two hours of samples are forgotten");
            let gone = self.head.trim(end);
            Counters::add(&self.counters.series_removed, gone);
            Counters::add(&self.counters.spans_lost, 1);
        }
        Ok(())
    }
}

/// The series of a shard in the order of their labels, labels built for the next one only.
struct Queue {
    shard: usize,
    slots: Vec<u32>,
    at: usize,
    labels: Option<Labels>,
}

impl Queue {
    fn new(inner: &Inner, shard: usize) -> Self {
        let slots = inner.head.shard(shard).sorted_slots();
        let mut queue = Self {
            shard,
            slots,
            at: 0,
            labels: None,
        };
        queue.load(inner);
        queue
    }

    fn slot(&self) -> u32 {
        self.slots[self.at]
    }

    fn load(&mut self, inner: &Inner) {
        let shard = inner.head.shard(self.shard);
        // Series leave the head by the one who cuts, so each is still there.
        self.labels = self
            .slots
            .get(self.at)
            .and_then(|&slot| shard.get(slot))
            .map(|s| shard.labels(s));
    }

    fn advance(&mut self, inner: &Inner) {
        self.at += 1;
        self.load(inner);
    }
}
