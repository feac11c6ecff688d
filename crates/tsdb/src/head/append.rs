//! The way in: judged first, then logged, then visible.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use model::{Appended, Batch, Exemplar, Histogram, Labels, Millis, ResetHint, SeriesId, TargetId};

use super::series::{Series, Taken};
use super::target::{Place, Targets};
use super::{Head, SHARDS, make_id, split_id};
use crate::column::Value;
use crate::sync::write;

/// How late a sample may come.
#[derive(Debug, Clone, Copy)]
pub struct Windows {
    /// For samples at the batch's time: behind the series' latest, in milliseconds.
    pub scraped: Millis,
    /// For samples with a time of their own: behind the head's latest, in milliseconds.
    pub timed: Millis,
}

/// What of a batch goes into the log and the head.
#[derive(Debug, Default)]
pub struct Accepted<'a> {
    /// Zeros of counters that began.
    pub zeros: Cow<'a, [(SeriesId, Millis)]>,
    /// Samples at the batch's time.
    pub samples: Cow<'a, [(SeriesId, f64)]>,
    /// Samples with times of their own.
    pub timed: Cow<'a, [(SeriesId, Millis, f64)]>,
    /// Native histograms with their times.
    pub histograms: Cow<'a, [TimedHistogram]>,
    /// Examples of observations.
    pub exemplars: Cow<'a, [(SeriesId, Exemplar)]>,
}

/// A native histogram of a series at a time.
pub type TimedHistogram = (SeriesId, Millis, Arc<Histogram>);

impl Accepted<'_> {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.zeros.is_empty()
            && self.samples.is_empty()
            && self.timed.is_empty()
            && self.histograms.is_empty()
            && self.exemplars.is_empty()
    }

    /// The shards it meets, a bit each.
    fn shards(&self) -> u64 {
        let mut mask = 0;
        let mut meet = |id: SeriesId| mask |= 1_u64 << (shard_number(id) & 63);
        self.samples.iter().for_each(|s| meet(s.0));
        self.timed.iter().for_each(|s| meet(s.0));
        self.zeros.iter().for_each(|s| meet(s.0));
        self.histograms.iter().for_each(|s| meet(s.0));
        mask
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Take,
    Repeated,
    Duplicate,
    TooOld,
    Unknown,
}

impl Head {
    /// The series of these labels; `None` when it is not here.
    #[must_use]
    pub fn find(&self, labels: &Labels) -> Option<SeriesId> {
        let (number, hash) = (Self::shard_of(labels), labels.hash64());
        let shard = self.shard(number);
        let slot = shard.find(hash, labels)?;
        Some(make_id(number, shard.get(slot)?.generation, slot))
    }

    /// The series of these labels, made if it is new; then `made` is called before anyone else can know its id.
    /// `None` when a shard's symbols are full.
    pub fn series(&self, labels: &Labels, made: impl FnOnce(SeriesId)) -> Option<SeriesId> {
        if let Some(id) = self.find(labels) {
            return Some(id);
        }
        let (number, hash) = (Self::shard_of(labels), labels.hash64());
        let mut shard = self.shard_mut(number);
        if let Some(slot) = shard.find(hash, labels) {
            return Some(make_id(number, shard.get(slot)?.generation, slot));
        }
        let (slot, generation) = shard.insert(hash, labels)?;
        let id = make_id(number, generation, slot);
        made(id);
        self.count_series(1);
        Some(id)
    }

    /// Puts a series where a log says it was.
    pub fn restore_series(&self, id: SeriesId, labels: &Labels) -> bool {
        let Some((number, generation, slot)) = split_id(id) else {
            return false;
        };
        let mut shard = self.shard_mut(number);
        if number != Self::shard_of(labels) {
            return false;
        }
        let hash = labels.hash64();
        if shard.find(hash, labels).is_some_and(|have| have == slot)
            && shard.get(slot).is_some_and(|s| s.generation == generation)
        {
            return true;
        }
        let before = shard.len();
        // The same labels under another id, or another tenant of the slot: both were forgotten since.
        if let Some(other) = shard.find(hash, labels) {
            shard.remove(other);
        }
        let done = shard.insert_at(slot, generation, hash, labels);
        self.count_series(shard.len() as i64 - before as i64);
        done
    }

    /// Puts a series where a checkpoint says it was: its labels are symbols of the shard, and nobody else has them.
    /// Gives whether they are a label set.
    pub fn restore_row(&self, number: usize, place: (u32, u32), hash: u64, labels: Box<[(u32, u32)]>) -> bool {
        let mut shard = self.shard_mut(number);
        if !shard.is_label_set(&labels) {
            return false;
        }
        let before = shard.len();
        shard.insert_symbols(place.0, place.1, hash, labels);
        self.count_series(shard.len() as i64 - before as i64);
        true
    }

    /// Says what of a batch can be taken; refusals are counted. Series do not change by it.
    #[must_use]
    pub fn judge<'a>(&self, time: Millis, batch: &'a Batch, windows: Windows) -> (Accepted<'a>, Appended) {
        let floor = self.floor();
        let timed_floor = floor.max(self.maxt().map_or(floor, |maxt| maxt.saturating_sub(windows.timed)));
        let mut refused = Appended::default();
        let scraped_floor = |series: &Series| {
            if time > series.last {
                floor
            } else {
                floor.max(series.last.saturating_sub(windows.scraped))
            }
        };
        let scraped = |series: &Series, &(_, value): &(SeriesId, f64)| {
            if time > series.last && time >= floor {
                return Verdict::Take;
            }
            self.verdict(series, time, scraped_floor(series), &Value::Float(value))
        };
        let timed = |series: &Series, &(_, time, value): &(SeriesId, Millis, f64)| {
            self.verdict(series, time, timed_floor, &Value::Float(value))
        };
        let mut accepted = Accepted {
            samples: self.filter(&batch.samples, |s| s.0, scraped, &mut refused),
            timed: self.filter(&batch.timed, |s| s.0, timed, &mut refused),
            ..Accepted::default()
        };
        if !batch.histograms.is_empty() {
            let own = |(_, own, histogram): &(SeriesId, Option<Millis>, Arc<Histogram>), series: &Series| match own {
                Some(time) => self.verdict(series, *time, timed_floor, &Value::Histogram(Arc::clone(histogram))),
                None => {
                    let value = Value::Histogram(Arc::clone(histogram));
                    self.verdict(series, time, scraped_floor(series), &value)
                }
            };
            let kept = self.filter(&batch.histograms, |h| h.0, |s, h| own(h, s), &mut refused);
            let timed =
                |(id, own, h): &(SeriesId, Option<Millis>, Arc<Histogram>)| (*id, own.unwrap_or(time), Arc::clone(h));
            accepted.histograms = kept.iter().map(timed).collect();
        }
        if !batch.created.is_empty() {
            let oldest = floor.max(time.saturating_sub(windows.timed));
            self.judge_created(time, batch, oldest, &mut accepted);
        }
        if !batch.exemplars.is_empty() {
            let mut kept = batch.exemplars.clone();
            kept.retain(|(id, exemplar)| {
                let labels = self.labels(*id);
                labels.is_some_and(|labels| self.exemplars.takes(&labels, exemplar))
            });
            accepted.exemplars = kept.into();
        }
        (accepted, refused)
    }

    fn verdict(&self, series: &Series, time: Millis, oldest: Millis, value: &Value) -> Verdict {
        if time > series.last {
            return if time < oldest { Verdict::TooOld } else { Verdict::Take };
        }
        match series.value_at(time, &self.targets) {
            Some(have) if have.same(value) => Verdict::Repeated,
            _ if time < oldest => Verdict::TooOld,
            Some(_) => Verdict::Duplicate,
            None => Verdict::Take,
        }
    }

    /// The items to take.
    fn filter<'a, T: Clone>(
        &self,
        items: &'a [T],
        id: impl Fn(&T) -> SeriesId,
        judge: impl Fn(&Series, &T) -> Verdict,
        refused: &mut Appended,
    ) -> Cow<'a, [T]> {
        let mut kept: Option<Vec<T>> = None;
        let mut at = 0;
        while at < items.len() {
            let number = shard_number(id(&items[at]));
            let run = items[at..].iter().take_while(|i| shard_number(id(i)) == number).count();
            let shard = (number < SHARDS).then(|| self.shard(number));
            for (i, item) in (at..).zip(&items[at..at + run]) {
                let series = split_id(id(item)).and_then(|(_, generation, slot)| {
                    let series = shard.as_ref()?.get(slot)?;
                    (series.generation == generation).then_some(series)
                });
                let verdict = series.map_or(Verdict::Unknown, |s| judge(s, item));
                match verdict {
                    Verdict::Take => {
                        if let Some(kept) = &mut kept {
                            kept.push(item.clone());
                        }
                        continue;
                    }
                    Verdict::Repeated => refused.repeated += 1,
                    Verdict::Duplicate => refused.duplicates += 1,
                    Verdict::TooOld => refused.too_old += 1,
                    Verdict::Unknown => refused.unknown.push(id(item)),
                }
                kept.get_or_insert_with(|| items[..i].to_vec());
            }
            at += run;
        }
        kept.map_or(Cow::Borrowed(items), Cow::Owned)
    }

    /// A counter that began after its series' last sample, and before the sample it came with, gets a zero there.
    fn judge_created(&self, time: Millis, batch: &Batch, oldest: Millis, accepted: &mut Accepted<'_>) {
        let mut wanted: Vec<(SeriesId, Millis)> = Vec::new();
        self.each_read(
            &batch.created,
            |c| c.0,
            |series, &(id, created)| {
                if series.last < created && created >= oldest && !wanted.iter().any(|w| w.0 == id) {
                    wanted.push((id, created));
                }
            },
        );
        if wanted.is_empty() {
            return;
        }
        let own: HashMap<SeriesId, Millis> = batch.timed.iter().rev().map(|s| (s.0, s.1)).collect();
        let distributions: HashMap<SeriesId, &TimedHistogram> =
            accepted.histograms.iter().rev().map(|h| (h.0, h)).collect();
        let mut zeros = Vec::new();
        let mut empty: Vec<TimedHistogram> = Vec::new();
        for (id, created) in wanted {
            match distributions.get(&id) {
                Some((_, time, histogram)) if created < *time => {
                    empty.push((id, created, Arc::new(zero_like(histogram))));
                }
                None if created < own.get(&id).copied().unwrap_or(time) => zeros.push((id, created)),
                _ => {}
            }
        }
        accepted.zeros = zeros.into();
        if !empty.is_empty() {
            empty.extend(accepted.histograms.iter().cloned());
            accepted.histograms = empty.into();
        }
    }

    fn each_read<T>(&self, items: &[T], id: impl Fn(&T) -> SeriesId, mut visit: impl FnMut(&Series, &T)) {
        let mut at = 0;
        while at < items.len() {
            let number = shard_number(id(&items[at]));
            let run = items[at..].iter().take_while(|i| shard_number(id(i)) == number).count();
            let shard = (number < SHARDS).then(|| self.shard(number));
            for item in &items[at..at + run] {
                let series = split_id(id(item)).and_then(|(_, generation, slot)| {
                    let series = shard.as_ref()?.get(slot)?;
                    (series.generation == generation).then_some(series)
                });
                if let Some(series) = series {
                    visit(series, item);
                }
            }
            at += run;
        }
    }

    /// Makes a batch visible, all at once; counts go to `done`. Gives the earliest sample that came late or
    /// behind the others.
    pub fn apply(&self, target: TargetId, time: Millis, batch: &Accepted<'_>, done: &mut Appended) -> Option<Millis> {
        let alone = batch.shards().count_ones() <= 1;
        let _several = (!alone).then(|| write(&self.visible));
        let _steady = alone.then(|| self.steady());
        self.apply_unseen(target, time, batch, done)
    }

    /// The same where nobody reads: during a replay.
    pub fn apply_unseen(
        &self,
        target: TargetId,
        time: Millis,
        batch: &Accepted<'_>,
        done: &mut Appended,
    ) -> Option<Millis> {
        let place = if batch.samples.is_empty() {
            None
        } else {
            self.targets.get(target).and_then(|t| t.place(time))
        };
        let (mut mint, mut maxt) = (Millis::MAX, Millis::MIN);
        let mut count = |taken: Option<Taken>, id, time: Millis| match taken {
            None => done.unknown.push(id),
            Some(Taken::Duplicate) => done.duplicates += 1,
            Some(order) => {
                done.accepted += 1;
                done.out_of_order += u64::from(order == Taken::Late);
                mint = mint.min(time);
                maxt = maxt.max(time);
            }
        };
        self.each(
            &batch.zeros,
            |s| s.0,
            |series, &(id, time), targets| count(series.map(|s| s.push_zero(time, targets)), id, time),
        );
        self.each(
            &batch.samples,
            |s| s.0,
            |series, &(id, value), targets| {
                let taken = series.map(|s| push(s, target, place, time, value, targets));
                count(taken, id, time);
            },
        );
        self.each(
            &batch.timed,
            |s| s.0,
            |series, &(id, time, value), targets| {
                let taken = series.map(|s| s.push_timed(time, &Value::Float(value), targets));
                count(taken, id, time);
            },
        );
        self.each(
            &batch.histograms,
            |s| s.0,
            |series, (id, time, histogram), targets| {
                let value = Value::Histogram(Arc::clone(histogram));
                let taken = series.map(|s| s.push_timed(*time, &value, targets));
                count(taken, *id, *time);
            },
        );
        for (id, exemplar) in &*batch.exemplars {
            if let Some(labels) = self.labels(*id) {
                self.exemplars.push(&labels, exemplar);
            }
        }
        if mint > maxt {
            return None;
        }
        self.note_time(mint, maxt);
        Some(mint)
    }

    /// Takes the samples with `mint <= time <= maxt` out of these series; gives how many lost some, and how many.
    pub fn delete(&self, ids: &[SeriesId], mint: Millis, maxt: Millis) -> (u64, u64) {
        let (mut series_count, mut samples) = (0, 0);
        self.each(
            ids,
            |id| *id,
            |series, _, targets| {
                let gone = series.map_or(0, |s| s.delete(mint, maxt, targets));
                series_count += u64::from(gone > 0);
                samples += gone as u64;
            },
        );
        if !self.exemplars.is_empty() {
            let labels = ids.iter().filter_map(|id| self.labels(*id)).collect();
            self.exemplars.delete(&labels, mint, maxt);
        }
        (series_count, samples)
    }

    /// Visits the series of each item, taking each shard's lock once for a run of its items.
    fn each<T>(
        &self,
        items: &[T],
        id: impl Fn(&T) -> SeriesId,
        mut visit: impl FnMut(Option<&mut Series>, &T, &Targets),
    ) {
        let mut at = 0;
        while at < items.len() {
            let number = shard_number(id(&items[at]));
            let run = items[at..].iter().take_while(|i| shard_number(id(i)) == number).count();
            let mut shard = (number < SHARDS).then(|| self.shard_mut(number));
            for item in &items[at..at + run] {
                let series = split_id(id(item)).and_then(|(_, generation, slot)| {
                    let series = shard.as_mut()?.get_mut(slot)?;
                    (series.generation == generation).then_some(series)
                });
                visit(series, item, &self.targets);
            }
            at += run;
        }
    }
}

/// The empty histogram that a histogram counter began with: by its nature a reset.
fn zero_like(histogram: &Histogram) -> Histogram {
    Histogram {
        reset: ResetHint::Reset,
        schema: histogram.schema,
        zero_threshold: histogram.zero_threshold,
        custom_values: histogram.custom_values.clone(),
        ..Histogram::default()
    }
}

fn push(
    series: &mut Series,
    target: TargetId,
    place: Option<Place>,
    time: Millis,
    value: f64,
    targets: &Targets,
) -> Taken {
    match place {
        Some(place) => series.push_shared(target, place, time, value, targets),
        None => series.push_timed(time, &Value::Float(value), targets),
    }
}

const fn shard_number(id: SeriesId) -> usize {
    (id.0 >> 56) as usize
}
