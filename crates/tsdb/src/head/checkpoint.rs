//! The head as records of a checkpoint, and records back into a head.
//!
//! A checkpoint is taken while samples come in: each series is as it was when its turn came. Replaying the log
//! after it meets samples that it holds already; they are duplicates and change nothing.

use std::collections::HashMap;

use blocks::bytes::{Cursor, put_bytes, put_varint, put_zigzag};
use blocks::wal::Record;
use blocks::wal::checkpoint::Writer;
use model::{Appended, Millis, SeriesId, TargetId};

use super::append::Accepted;
use super::sealed::Sealed;
use super::series::Series;
use super::{Head, SHARDS, make_id, split_id};
use crate::times;
use crate::wal_record::{self, Scrape, Share, kind};

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
        let mut written = 0;
        for part in slots.chunks(1000) {
            // Let go between parts: writing may wait for the disk.
            let (mut symbols, mut rows) = (Vec::new(), Vec::with_capacity(part.len()));
            {
                let shard = self.shard(number);
                // Symbols only grow while a checkpoint is written: they are rebuilt by the one who writes it.
                let known = shard.symbols().len();
                if known > written {
                    symbols.push(number as u8);
                    put_varint(&mut symbols, written as u64);
                    put_varint(&mut symbols, (known - written) as u64);
                    (written..known).for_each(|s| put_bytes(&mut symbols, shard.symbols().get(s as u32).as_bytes()));
                    written = known;
                }
                for &slot in part {
                    let Some(series) = shard.get(slot) else { continue };
                    let mut out = Vec::with_capacity(128);
                    self.put_row(make_id(number, series.generation, slot), series, &mut out);
                    rows.push(out);
                }
            }
            if !symbols.is_empty() {
                writer.push(kind::SYMBOLS, |out| out.extend_from_slice(&symbols))?;
            }
            for row in rows {
                writer.push(kind::ROW, |out| out.extend_from_slice(&row))?;
            }
        }
        Ok(())
    }

    fn put_row(&self, id: SeriesId, series: &Series, out: &mut Vec<u8>) {
        put_varint(out, id.0);
        out.extend_from_slice(&series.hash.to_le_bytes());
        put_varint(out, series.labels.len() as u64);
        for &(name, value) in &series.labels {
            put_varint(out, u64::from(name));
            put_varint(out, u64::from(value));
        }
        put_zigzag(out, series.last);
        let (runs, late) = series.all_sealed(&self.targets);
        for list in [runs, late] {
            put_varint(out, list.len() as u64);
            list.iter().for_each(|run| run.put(out));
        }
    }
}

/// Applies the records of a log to some shards of a head. Several may do so at once, each for its share.
#[derive(Debug)]
pub struct Replayer<'a> {
    head: &'a Head,
    share: Share,
    /// The symbols of the checkpoint's numbers, by shard.
    symbols: Vec<Vec<u32>>,
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
    pub fn new(head: &'a Head, share: Share) -> Self {
        Self {
            head,
            share,
            symbols: vec![Vec::new(); SHARDS],
            reader: wal_record::Reader::of(share),
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
        for number in (0..SHARDS).filter(|&n| self.share.has(n)) {
            self.head.shard_mut(number).rebuild_free();
        }
    }

    fn try_apply(&mut self, record: Record<'_>) -> Option<()> {
        match record.kind {
            kind::SERIES => {
                let id = SeriesId(Cursor::new(record.payload).varint()?);
                if !self.share.has_series(id) {
                    return Some(());
                }
                let (_, labels) = wal_record::take_named(record.payload)?;
                self.head.restore_series(id, &labels).then_some(())
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
                if time >= self.head.boundary() && !self.scrape.samples.is_empty() {
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
                timed.retain(|s| s.1 >= boundary && self.share.has_series(s.0));
                self.apply_untargeted(&Accepted {
                    timed: timed.into(),
                    ..Accepted::default()
                })
            }
            kind::HISTOGRAMS => {
                let mut histograms = wal_record::take_histograms(record.payload)?;
                let boundary = self.head.boundary();
                histograms.retain(|h| h.1 >= boundary && self.share.has_series(h.0));
                self.apply_untargeted(&Accepted {
                    histograms: histograms.into(),
                    ..Accepted::default()
                })
            }
            kind::ZEROS => {
                let mut zeros = wal_record::take_zeros(record.payload)?;
                let boundary = self.head.boundary();
                zeros.retain(|z| z.1 >= boundary && self.share.has_series(z.0));
                self.apply_untargeted(&Accepted {
                    zeros: zeros.into(),
                    ..Accepted::default()
                })
            }
            kind::DELETES => {
                let (mut ids, mint, maxt) = wal_record::take_deletes(record.payload)?;
                ids.retain(|&id| self.share.has_series(id));
                self.head.delete(&ids, mint, maxt);
                Some(())
            }
            kind::EXEMPLARS => {
                let mut exemplars = wal_record::take_exemplars(record.payload)?;
                exemplars.retain(|e| self.share.has_series(e.0));
                self.apply_untargeted(&Accepted {
                    exemplars: exemplars.into(),
                    ..Accepted::default()
                })
            }
            kind::KEPT_EXEMPLAR => {
                let (series, exemplar) = wal_record::take_kept_exemplar(record.payload)?;
                if self.share.has(Head::shard_of(&series)) {
                    self.head.exemplars.push(&series, &exemplar);
                }
                Some(())
            }
            kind::HEAD => self.restore_head(&mut Cursor::new(record.payload)),
            kind::PAGES => self.restore_pages(&mut Cursor::new(record.payload)),
            kind::STATE => self.restore_state(&mut Cursor::new(record.payload)),
            kind::SYMBOLS => self.restore_symbols(&mut Cursor::new(record.payload)),
            kind::ROW => self.restore_row(&mut Cursor::new(record.payload)),
            _ => None,
        }
    }

    fn apply_untargeted(&mut self, batch: &Accepted<'_>) -> Option<()> {
        self.apply_batch(TargetId(u32::MAX), 0, batch);
        Some(())
    }

    fn apply_batch(&mut self, target: TargetId, time: Millis, batch: &Accepted<'_>) {
        let mut done = Appended::default();
        self.head.apply_unseen(target, time, batch, &mut done);
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
        let id = SeriesId(cursor.varint()?);
        if !self.share.has_series(id) {
            return Some(());
        }
        self.restore_runs(id, cursor)
    }

    fn restore_symbols(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let number = usize::from(cursor.u8()?);
        if number >= SHARDS || !self.share.has(number) {
            return (number < SHARDS).then_some(());
        }
        let (first, count) = (cursor.size()?, cursor.size()?);
        let known = &mut self.symbols[number];
        if known.len() != first {
            return None;
        }
        let mut shard = self.head.shard_mut(number);
        for _ in 0..count {
            known.push(shard.intern(cursor.text()?)?);
        }
        Some(())
    }

    fn restore_row(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let id = SeriesId(cursor.varint()?);
        if !self.share.has_series(id) {
            return Some(());
        }
        let (number, generation, slot) = split_id(id)?;
        let hash = cursor.u64()?;
        let count = cursor.size().filter(|&n| n <= cursor.rest().len())?;
        let symbols = &self.symbols[number];
        let mut labels = Vec::with_capacity(count);
        for _ in 0..count {
            labels.push((*symbols.get(cursor.size()?)?, *symbols.get(cursor.size()?)?));
        }
        if !self.head.restore_row(number, (slot, generation), hash, labels.into()) {
            return None;
        }
        self.restore_runs(id, cursor)
    }

    fn restore_runs(&mut self, id: SeriesId, cursor: &mut Cursor<'_>) -> Option<()> {
        let (number, generation, slot) = split_id(id)?;
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
