//! The head as records of a checkpoint, and records back into a head.
//!
//! A checkpoint is taken while samples come in: each series is as it was when its turn came. Replaying the log
//! after it meets samples that it holds already; they are duplicates and change nothing.

use std::collections::HashMap;

use blocks::bytes::{Cursor, put_varint, put_zigzag};
use blocks::wal::Record;
use blocks::wal::checkpoint::Writer;
use model::{Appended, Millis, SeriesId, TargetId};

use super::append::Accepted;
use super::sealed::Sealed;
use super::{Head, SHARDS, make_id, split_id};
use crate::times;
use crate::wal_record::{self, Scrape, kind};

impl Head {
    /// Writes all that is needed to have this head again.
    ///
    /// # Errors
    ///
    /// When the disk refuses.
    pub fn write_checkpoint(&self, writer: &mut Writer) -> Result<(), blocks::Error> {
        writer.push(kind::HEAD, |out| {
            put_zigzag(out, self.boundary());
            put_zigzag(out, self.maxt().unwrap_or(Millis::MIN));
        })?;
        for (id, target) in self.targets.all() {
            writer.push(kind::TARGET, |out| {
                put_varint(out, u64::from(id.0));
                out.extend_from_slice(target.labels.encoded().as_bytes());
            })?;
        }
        for number in 0..SHARDS {
            self.write_shard(number, writer)?;
        }
        // After the series, so that every place in a page that a series names is there.
        for (id, target) in self.targets.all() {
            let pages = target.pages();
            let Some(first) = pages.first().map(|p| p.0) else {
                continue;
            };
            writer.push(kind::PAGES, |out| {
                put_varint(out, u64::from(id.0));
                put_varint(out, u64::from(first));
                put_varint(out, pages.len() as u64);
                for (_, page) in &pages {
                    times::encode(page, out);
                }
            })?;
        }
        for (series, exemplar) in self.exemplars.all() {
            writer.push(kind::KEPT_EXEMPLAR, |out| {
                wal_record::put_kept_exemplar(&series, &exemplar, out);
            })?;
        }
        Ok(())
    }

    fn write_shard(&self, number: usize, writer: &mut Writer) -> Result<(), blocks::Error> {
        let slots: Vec<u32> = self.shard(number).iter().map(|(slot, _)| slot).collect();
        for part in slots.chunks(1000) {
            // Let go between parts: writing may wait for the disk.
            let mut records: Vec<(u8, Vec<u8>)> = Vec::with_capacity(part.len() * 2);
            {
                let shard = self.shard(number);
                for &slot in part {
                    let Some(series) = shard.get(slot) else { continue };
                    let id = make_id(number, series.generation, slot);
                    let mut out = Vec::new();
                    wal_record::fill_series(&mut out, id, &shard.labels(series));
                    records.push((kind::SERIES, out));
                    let mut out = Vec::new();
                    put_varint(&mut out, id.0);
                    put_zigzag(&mut out, series.last);
                    let (runs, late) = series.all_sealed(&self.targets);
                    for list in [runs, late] {
                        put_varint(&mut out, list.len() as u64);
                        list.iter().for_each(|run| run.put(&mut out));
                    }
                    records.push((kind::STATE, out));
                }
            }
            for (kind, payload) in records {
                writer.push(kind, |out| out.extend_from_slice(&payload))?;
            }
        }
        Ok(())
    }
}

/// Applies the records of a log to a head.
#[derive(Debug)]
pub struct Replayer<'a> {
    head: &'a Head,
    reader: wal_record::Reader,
    scrape: Scrape,
    /// The targets of the log's numbers.
    targets: HashMap<u32, TargetId>,
    /// Samples applied.
    pub samples: u64,
    /// Records that made no sense although their checksum was right, or that lean on lost ones.
    pub orphans: u64,
    /// Samples of series whose definition was lost.
    pub unknown: u64,
}

impl<'a> Replayer<'a> {
    /// A replay into `head`, which should be empty; samples before its boundary are left out.
    #[must_use]
    pub fn new(head: &'a Head) -> Self {
        Self {
            head,
            reader: wal_record::Reader::default(),
            scrape: Scrape::default(),
            targets: HashMap::new(),
            samples: 0,
            orphans: 0,
            unknown: 0,
        }
    }

    /// Applies one record.
    pub fn apply(&mut self, record: Record<'_>) {
        if self.try_apply(record).is_none() {
            self.orphans += 1;
        }
    }

    /// After the last record.
    pub fn finish(&self) {
        for number in 0..SHARDS {
            self.head.shard_mut(number).rebuild_free();
        }
    }

    fn try_apply(&mut self, record: Record<'_>) -> Option<()> {
        match record.kind {
            kind::SERIES => {
                let (id, labels) = wal_record::take_named(record.payload)?;
                self.head.restore_series(SeriesId(id), &labels).then_some(())
            }
            kind::TARGET => {
                let (number, labels) = wal_record::take_named(record.payload)?;
                let number = u32::try_from(number).ok()?;
                self.reader.forget(number);
                self.targets.insert(number, self.head.targets.id(&labels));
                Some(())
            }
            kind::SCRAPE | kind::CHANGES => {
                self.reader.take(record.kind, record.payload, &mut self.scrape)?;
                let target = *self.targets.get(&self.scrape.target)?;
                let time = self.scrape.time;
                if time >= self.head.boundary() {
                    let samples = std::mem::take(&mut self.scrape.samples);
                    let batch = Accepted {
                        samples: samples.as_slice().into(),
                        ..Accepted::default()
                    };
                    self.apply_batch(target, time, &batch);
                    self.scrape.samples = samples;
                }
                Some(())
            }
            kind::TIMED => {
                let mut timed = wal_record::take_timed(record.payload)?;
                let boundary = self.head.boundary();
                timed.retain(|s| s.1 >= boundary);
                self.apply_untargeted(&Accepted {
                    timed: timed.into(),
                    ..Accepted::default()
                })
            }
            kind::HISTOGRAMS => {
                let mut histograms = wal_record::take_histograms(record.payload)?;
                let boundary = self.head.boundary();
                histograms.retain(|h| h.1 >= boundary);
                self.apply_untargeted(&Accepted {
                    histograms: histograms.into(),
                    ..Accepted::default()
                })
            }
            kind::ZEROS => {
                let mut zeros = wal_record::take_zeros(record.payload)?;
                let boundary = self.head.boundary();
                zeros.retain(|z| z.1 >= boundary);
                self.apply_untargeted(&Accepted {
                    zeros: zeros.into(),
                    ..Accepted::default()
                })
            }
            kind::EXEMPLARS => {
                let exemplars = wal_record::take_exemplars(record.payload)?;
                self.apply_untargeted(&Accepted {
                    exemplars: exemplars.into(),
                    ..Accepted::default()
                })
            }
            kind::KEPT_EXEMPLAR => {
                let (series, exemplar) = wal_record::take_kept_exemplar(record.payload)?;
                self.head.exemplars.push(&series, &exemplar);
                Some(())
            }
            kind::HEAD => self.restore_head(&mut Cursor::new(record.payload)),
            kind::PAGES => self.restore_pages(&mut Cursor::new(record.payload)),
            kind::STATE => self.restore_state(&mut Cursor::new(record.payload)),
            _ => None,
        }
    }

    fn apply_untargeted(&mut self, batch: &Accepted<'_>) -> Option<()> {
        self.apply_batch(TargetId(u32::MAX), 0, batch);
        Some(())
    }

    fn apply_batch(&mut self, target: TargetId, time: Millis, batch: &Accepted<'_>) {
        let mut done = Appended::default();
        self.head.apply(target, time, batch, &mut done);
        self.samples += done.accepted;
        self.unknown += done.unknown.len() as u64;
    }

    fn restore_head(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let (boundary, maxt) = (cursor.zigzag()?, cursor.zigzag()?);
        self.head.raise_boundary(boundary);
        self.head.note_time(Millis::MAX, maxt);
        Some(())
    }

    fn restore_pages(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let target = *self.targets.get(&u32::try_from(cursor.varint()?).ok()?)?;
        let first = u32::try_from(cursor.varint()?).ok()?;
        let count = cursor.size().filter(|&n| n <= cursor.rest().len())?;
        let mut pages = Vec::with_capacity(count);
        for _ in 0..count {
            let mut page = Vec::new();
            times::decode(cursor, &mut page)?;
            pages.push(page);
        }
        if let Some(time) = pages.first().and_then(|p| p.first()) {
            self.head.note_time(*time, Millis::MIN);
        }
        self.head.targets.get(target)?.restore(first, pages);
        Some(())
    }

    fn restore_state(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let (number, generation, slot) = split_id(SeriesId(cursor.varint()?))?;
        let last = cursor.zigzag()?;
        let (runs, late) = (take_runs(cursor)?, take_runs(cursor)?);
        let mut earliest = Millis::MAX;
        let boundary = self.head.boundary();
        let mut restored = [runs, late].map(|list| {
            let mut kept = Vec::with_capacity(list.len());
            for mut run in list {
                if run.first < boundary {
                    continue;
                }
                earliest = earliest.min(run.first);
                run.retarget(&self.targets);
                kept.push(run);
            }
            kept
        });
        self.head.note_time(earliest, last);
        let mut shard = self.head.shard_mut(number);
        let series = shard.get_mut(slot).filter(|s| s.generation == generation)?;
        let late = std::mem::take(&mut restored[1]);
        series.restore(std::mem::take(&mut restored[0]), late, last);
        Some(())
    }
}

fn take_runs(cursor: &mut Cursor<'_>) -> Option<Vec<Sealed>> {
    let count = cursor.size().filter(|&n| n <= cursor.rest().len())?;
    (0..count).map(|_| Sealed::take(cursor)).collect()
}
