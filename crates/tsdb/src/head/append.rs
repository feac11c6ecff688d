//! The way in: judged first, then logged, then visible.

use std::collections::BTreeSet;

use model::{Appended, Batch, Labels, Millis, SeriesId, TargetId};

use super::series::{Series, Taken};
use super::target::{Place, Targets};
use super::{Head, SHARDS, make_id, split_id};
use crate::sync::write;

/// How late a sample may come.
#[derive(Debug, Clone, Copy)]
pub struct Windows {
    /// For samples at the batch's time: behind the series' latest, in milliseconds.
    pub scraped: Millis,
    /// For samples with a time of their own: behind the head's latest, in milliseconds.
    pub timed: Millis,
}

/// What a batch comes to before it is logged.
#[derive(Debug, Default)]
pub struct Judged {
    /// The samples that will be taken; `None` when it is the whole batch.
    pub batch: Option<Batch>,
    /// Refusals so far.
    pub refused: Appended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Take,
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

    /// Says what of a batch can be taken. Series do not change by it.
    #[must_use]
    pub fn judge(&self, time: Millis, batch: &Batch, windows: Windows) -> Judged {
        let floor = self.floor();
        let timed_floor = floor.max(self.maxt().map_or(floor, |maxt| maxt.saturating_sub(windows.timed)));
        let mut refused = Appended::default();
        let scraped = |series: &Series, &(_, _): &(SeriesId, f64)| {
            let oldest = floor.max(series.last.saturating_sub(windows.scraped));
            self.verdict(series, time, if time > series.last { floor } else { oldest })
        };
        let timed = |series: &Series, &(_, time, _): &(SeriesId, Millis, f64)| self.verdict(series, time, timed_floor);
        let samples = self.filter(&batch.samples, |s| s.0, scraped, &mut refused);
        let own = self.filter(&batch.timed, |s| s.0, timed, &mut refused);
        if samples.is_none() && own.is_none() {
            return Judged { batch: None, refused };
        }
        let batch = Batch {
            samples: samples.unwrap_or_else(|| batch.samples.clone()),
            timed: own.unwrap_or_else(|| batch.timed.clone()),
            ..Default::default()
        };
        Judged {
            batch: Some(batch),
            refused,
        }
    }

    fn verdict(&self, series: &Series, time: Millis, oldest: Millis) -> Verdict {
        if time < oldest {
            Verdict::TooOld
        } else if time <= series.last && (time == series.last || series.has(time, &self.targets)) {
            Verdict::Duplicate
        } else {
            Verdict::Take
        }
    }

    /// The items to take; `None` when it is all of them.
    fn filter<T: Clone>(
        &self,
        items: &[T],
        id: impl Fn(&T) -> SeriesId,
        judge: impl Fn(&Series, &T) -> Verdict,
        refused: &mut Appended,
    ) -> Option<Vec<T>> {
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
                    Verdict::Duplicate => refused.duplicates += 1,
                    Verdict::TooOld => refused.too_old += 1,
                    Verdict::Unknown => refused.unknown.push(id(item)),
                }
                kept.get_or_insert_with(|| items[..i].to_vec());
            }
            at += run;
        }
        kept
    }

    /// Makes a batch visible, all at once; counts go to `done`.
    pub fn apply(&self, target: TargetId, time: Millis, batch: &Batch, done: &mut Appended) {
        let place = if batch.samples.is_empty() {
            None
        } else {
            self.targets.get(target).and_then(|t| t.place(time))
        };
        let numbers: BTreeSet<usize> = batch
            .samples
            .iter()
            .map(|s| shard_number(s.0))
            .chain(batch.timed.iter().map(|s| shard_number(s.0)))
            .collect();
        let alone = numbers.len() <= 1;
        let several = (!alone).then(|| write(&self.visible));
        let steady = alone.then(|| self.steady());
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
                let taken = series.map(|s| s.push_timed(time, value, targets));
                count(taken, id, time);
            },
        );
        drop((several, steady));
        if mint <= maxt {
            self.note_time(mint, maxt);
        }
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
        None => series.push_timed(time, value, targets),
    }
}

const fn shard_number(id: SeriesId) -> usize {
    (id.0 >> 56) as usize
}
