//! The store as [`Appender`].

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use model::{Appended, Appender, Batch, Labels, Millis, SeriesId, StoreError, TargetId};

use super::{Db, Inner};
use crate::changes::SETTLE;
use crate::head::append::Windows;
use crate::head::{Head, SHARDS};
use crate::stats::Counters;
use crate::sync::{lock, read};
use crate::wal_record;

/// Refusals between two looks for the culprit, which visits all label names.
const CULPRIT_EVERY: u64 = 10_000;

/// The text that names what grew when the series limit was met.
#[derive(Default)]
pub(super) struct Culprit {
    refusals: AtomicU64,
    text: Mutex<String>,
}

impl Appender for Db {
    fn target(&self, labels: &Labels) -> TargetId {
        self.inner.head.targets.id(labels)
    }

    fn series(&self, labels: &Labels) -> Result<SeriesId, StoreError> {
        self.inner.check_open()?;
        self.inner.series(labels)
    }

    fn append(&self, target: TargetId, time: Millis, batch: &Batch) -> Result<Appended, StoreError> {
        self.inner.check_open()?;
        self.inner.append(target, time, batch)
    }
}

impl Inner {
    fn series(&self, labels: &Labels) -> Result<SeriesId, StoreError> {
        if let Some(id) = self.head.find(labels) {
            return Ok(id);
        }
        if self.head.series_count() >= self.options.series_max {
            return Err(self.refuse_series());
        }
        let made = |id| {
            wal_record::put_series(&mut lock(&self.pending), id, labels);
            Counters::add(&self.counters.series_created, 1);
        };
        let full = || StoreError::Limit("four gigabytes of label texts in one shard of the head".into());
        self.head.series(labels, made).ok_or_else(full)
    }

    fn append(&self, id: TargetId, time: Millis, batch: &Batch) -> Result<Appended, StoreError> {
        let target = self.head.targets.get(id);
        let target = target.ok_or_else(|| StoreError::Closed(format!("target {} was never named", id.0)))?;
        let windows = Windows {
            scraped: self.options.late_scraped,
            timed: self.options.late_timed,
        };
        let _appending = read(&self.appending);
        // Batches of a target come one by one: their order in the log is their order in the head.
        let mut layouts = lock(&target.log);
        let (accepted, mut done) = self.head.judge(time, batch, windows);
        if !accepted.is_empty() {
            self.log(&target, id, time, &accepted, &mut layouts);
            let front = self.head.maxt();
            let earliest = self.head.apply(id, time, &accepted, &mut done);
            if let (Some(earliest), Some(front)) = (earliest, front)
                && earliest < front.saturating_sub(SETTLE)
            {
                self.changes.note(earliest);
            }
        }
        drop(layouts);
        self.counters.note(&done);
        Ok(done)
    }

    fn refuse_series(&self) -> StoreError {
        Counters::add(&self.counters.series_refused, 1);
        let before = self.culprit.refusals.fetch_add(1, Ordering::Relaxed);
        let mut text = lock(&self.culprit.text);
        if before.is_multiple_of(CULPRIT_EVERY) {
            *text = match self.label_cardinality().first() {
                Some((name, values)) => format!("label {name:?} has most values: {values}"),
                None => "no series has a label".into(),
            };
        }
        let max = self.options.series_max;
        StoreError::Limit(format!("the store holds {max} series, the most it may; {text}"))
    }

    /// Label names with the number of their values, most first.
    pub(super) fn label_cardinality(&self) -> Vec<(String, u64)> {
        // Shards share values; a hash of each stands for it here.
        let mut values = BTreeMap::<String, HashSet<u64>>::new();
        for number in 0..SHARDS {
            for (name, value) in self.head.shard(number).label_pairs() {
                let hash = xxhash_rust::xxh3::xxh3_64(value.as_bytes());
                match values.get_mut(name) {
                    Some(set) => drop(set.insert(hash)),
                    None => drop(values.insert(name.to_owned(), HashSet::from([hash]))),
                }
            }
        }
        let mut counts: Vec<_> = values.into_iter().map(|(name, set)| (name, set.len() as u64)).collect();
        counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        counts
    }
}

impl Head {
    /// Number of sealed runs.
    #[must_use]
    pub fn sealed_count(&self) -> u64 {
        let count = |number| {
            self.shard(number)
                .iter()
                .map(|(_, s)| s.sealed_count() as u64)
                .sum::<u64>()
        };
        (0..SHARDS).map(count).sum()
    }
}
