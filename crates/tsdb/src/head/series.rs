//! One series in memory: a tail that grows, sealed runs before it, and late samples beside them.
//!
//! The tail is either *shared* (values only; the timestamps are a page of the target) or *own* (timestamps too:
//! pushed samples, or a series that two targets write). A shared tail that has not changed yet is one number.
//! A run is [sealed](super::sealed) when its page is full or its two-hour span is over, so every run belongs to one
//! block.

use model::{Column, Millis, TargetId};

use super::sealed::{JOIN, Sealed, by_span};
use super::shared::Shared;
use super::snapshot::{PageCache, Run, Snapshot};
use super::target::{PAGE, Place, Targets};
use crate::codec::Scratch;
use crate::column::{Value, drop_front, insert, retain};
use crate::times::span_start;

/// See the module.
#[derive(Debug)]
pub struct Series {
    /// Of its labels.
    pub hash: u64,
    /// Which tenant of its slot it is.
    pub generation: u32,
    /// Symbols of names and values, sorted by name.
    pub labels: Box<[(u32, u32)]>,
    /// The latest sample in order; [`Millis::MIN`] before the first.
    pub last: Millis,
    tail: Tail,
    sealed: Vec<Sealed>,
    late: Option<Box<Late>>,
}

#[derive(Debug, Default)]
enum Tail {
    #[default]
    Empty,
    Shared(Shared),
    Own(Box<Column>),
}

/// Samples that came after later ones.
#[derive(Debug, Default)]
struct Late {
    tail: Column,
    sealed: Vec<Sealed>,
}

/// What became of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// Later than all before.
    InOrder,
    /// Earlier than the latest.
    Late,
    /// The timestamp had a value.
    Duplicate,
}

impl Series {
    /// A series without samples.
    #[must_use]
    pub fn new(hash: u64, generation: u32, labels: Box<[(u32, u32)]>) -> Self {
        Self {
            hash,
            generation,
            labels,
            last: Millis::MIN,
            tail: Tail::Empty,
            sealed: Vec::new(),
            late: None,
        }
    }

    /// Adds a sample whose timestamp is at `place` of `target`.
    pub fn push_shared(
        &mut self,
        target: TargetId,
        place: Place,
        time: Millis,
        value: f64,
        targets: &Targets,
    ) -> Taken {
        if time <= self.last {
            return self.push_late(time, &Value::Float(value), targets);
        }
        self.last = time;
        match &mut self.tail {
            Tail::Shared(tail) if tail.target == target && tail.page == place.page => tail.push(place.slot, value),
            Tail::Own(column) if own_takes(column, time) => column.push(time, value),
            Tail::Shared(tail) if tail.target != target && tail.count() < PAGE / 4 => {
                // Two targets write this series in turn: it keeps timestamps of its own from now on.
                self.make_own(targets);
                self.push_own(time, &Value::Float(value), targets);
            }
            _ => {
                self.seal(targets);
                self.tail = Tail::Shared(Shared::new(target, place, value));
            }
        }
        Taken::InOrder
    }

    /// Adds a sample with a timestamp of its own.
    pub fn push_timed(&mut self, time: Millis, value: &Value, targets: &Targets) -> Taken {
        if time <= self.last {
            return self.push_late(time, value, targets);
        }
        self.last = time;
        self.push_own(time, value, targets);
        Taken::InOrder
    }

    /// Adds the zero of a counter that began at `time`, as a run of its own: the tail stays as small as it is.
    pub fn push_zero(&mut self, time: Millis, targets: &Targets) -> Taken {
        if time <= self.last {
            return self.push_late(time, &Value::Float(0.0), targets);
        }
        self.last = time;
        self.seal(targets);
        let mut column = Column::default();
        column.push(time, 0.0);
        self.push_sealed(Sealed::inline(&column));
        Taken::InOrder
    }

    fn push_own(&mut self, time: Millis, value: &Value, targets: &Targets) {
        match &mut self.tail {
            Tail::Own(column) if own_takes(column, time) => insert(column, column.len(), time, value),
            _ => {
                self.seal(targets);
                let mut column = Column::default();
                insert(&mut column, 0, time, value);
                self.tail = Tail::Own(Box::new(column));
            }
        }
    }

    fn make_own(&mut self, targets: &Targets) {
        if let Tail::Shared(shared) = &self.tail {
            let page = PageCache::new(targets).get(shared.target, shared.page, shared.end());
            let mut column = Column::default();
            shared.decode(&page, &mut Scratch::default(), &mut column);
            self.tail = Tail::Own(Box::new(column));
        }
    }

    fn push_late(&mut self, time: Millis, value: &Value, targets: &Targets) -> Taken {
        if time == self.last || self.has(time, targets) {
            return Taken::Duplicate;
        }
        let late = self.late.get_or_insert_default();
        let at = late.tail.times.partition_point(|&t| t < time);
        insert(&mut late.tail, at, time, value);
        if late.tail.len() >= PAGE {
            late.seal();
        }
        Taken::Late
    }

    /// Whether the timestamp has a value.
    #[must_use]
    pub fn has(&self, time: Millis, targets: &Targets) -> bool {
        self.value_at(time, targets).is_some()
    }

    /// What the sample of this very time says; `None` when there is none.
    #[must_use]
    pub fn value_at(&self, time: Millis, targets: &Targets) -> Option<Value> {
        let mut column = Column::default();
        let snapshot = self.snapshot(time, time, &mut PageCache::new(targets));
        snapshot.read(time, time, &mut Scratch::default(), &mut column);
        (!column.is_empty()).then(|| Value::at(&column, 0))
    }

    /// Whether there is no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self.tail, Tail::Empty) && self.sealed.is_empty() && self.late.is_none()
    }

    /// The earliest sample; `None` when there is none.
    #[must_use]
    pub fn first(&self, targets: &Targets) -> Option<Millis> {
        let in_order = match (self.sealed.first(), &self.tail) {
            (Some(sealed), _) => Some(sealed.first),
            (None, Tail::Empty) => None,
            (None, Tail::Own(column)) => column.times.first().copied(),
            (None, Tail::Shared(tail)) => tail.first(targets),
        };
        let late = self
            .late
            .iter()
            .flat_map(|l| l.sealed.iter().map(|s| s.first).chain(l.tail.times.first().copied()));
        in_order.into_iter().chain(late).min()
    }

    /// Number of sealed runs.
    #[must_use]
    pub fn sealed_count(&self) -> usize {
        self.sealed.len() + self.late.as_ref().map_or(0, |l| l.sealed.len())
    }

    /// Encodes the tail and begins anew.
    fn seal(&mut self, targets: &Targets) {
        if let Some(sealed) = self.tail_sealed(targets) {
            self.push_sealed(sealed);
            self.join();
        }
        self.tail = Tail::Empty;
    }

    fn push_sealed(&mut self, sealed: Sealed) {
        if self.sealed.len() == self.sealed.capacity() {
            self.sealed.reserve_exact(2);
        }
        self.sealed.push(sealed);
    }

    /// Encodes the last four runs as one, when they are whole pages one after the other: a run has its costs.
    fn join(&mut self) {
        let Some(from) = self.sealed.len().checked_sub(JOIN) else {
            return;
        };
        if let Some(joined) = Sealed::joined(&self.sealed[from..]) {
            self.sealed.truncate(from);
            self.sealed.push(joined);
        }
    }

    /// The tail as a sealed run; `None` when it is empty.
    #[must_use]
    pub fn tail_sealed(&self, targets: &Targets) -> Option<Sealed> {
        match &self.tail {
            Tail::Empty => None,
            Tail::Own(column) => Some(Sealed::inline(column)),
            Tail::Shared(tail) => tail.sealed(targets),
        }
    }

    /// All samples as sealed runs, those in order first; late ones apart.
    #[must_use]
    pub fn all_sealed(&self, targets: &Targets) -> (Vec<Sealed>, Vec<Sealed>) {
        let mut runs = self.sealed.clone();
        runs.extend(self.tail_sealed(targets));
        let mut late = Vec::new();
        if let Some(beside) = &self.late {
            late.extend(beside.sealed.iter().cloned());
            late.extend(by_span(beside.tail.clone()));
        }
        (runs, late)
    }

    /// Puts back runs that [`Series::all_sealed`] gave, into a series that has no sample.
    pub fn restore(&mut self, runs: Vec<Sealed>, late: Vec<Sealed>, last: Millis) {
        if !self.is_empty() || self.last != Millis::MIN {
            return;
        }
        self.sealed = runs;
        if !late.is_empty() {
            self.late = Some(Box::new(Late {
                tail: Column::default(),
                sealed: late,
            }));
        }
        self.last = last;
    }

    /// A copy of what holds samples in `mint..=maxt`, to be decoded when needed.
    #[must_use]
    pub fn snapshot(&self, mint: Millis, maxt: Millis, pages: &mut PageCache<'_>) -> Snapshot {
        let mut snapshot = Snapshot::default();
        if self.last >= mint {
            let from = self.sealed.partition_point(|s| s.first <= mint).saturating_sub(1);
            let runs = self.sealed[from..].iter().take_while(|s| s.first <= maxt);
            snapshot.runs.extend(runs.map(|s| s.run(pages)));
            match &self.tail {
                Tail::Empty => {}
                Tail::Own(column) if column.times.first().is_none_or(|&t| t > maxt) => {}
                Tail::Own(column) => snapshot.runs.push(Run::Own(Column::clone(column))),
                Tail::Shared(tail) => {
                    let page = pages.get(tail.target, tail.page, tail.end());
                    if tail.first_in(&page).is_some_and(|t| t <= maxt) {
                        snapshot.runs.push(Run::Tail(tail.clone(), page));
                    }
                }
            }
        }
        if let Some(late) = &self.late {
            let runs = late.sealed.iter().filter(|s| s.first <= maxt);
            snapshot.late.extend(runs.map(|s| s.run(pages)));
            let within = |c: &Column| c.times.first().is_some_and(|&t| t <= maxt) && c.times.last() >= Some(&mint);
            if within(&late.tail) {
                snapshot.late.push(Run::Own(late.tail.clone()));
            }
        }
        snapshot
    }

    /// Takes the samples with `mint <= time <= maxt` out; gives how many there were. The rest is encoded anew.
    pub fn delete(&mut self, mint: Millis, maxt: Millis, targets: &Targets) -> usize {
        let mut all = Column::default();
        let snapshot = self.snapshot(Millis::MIN, Millis::MAX, &mut PageCache::new(targets));
        snapshot.read(Millis::MIN, Millis::MAX, &mut Scratch::default(), &mut all);
        let before = all.len();
        retain(&mut all, |t| !(mint..=maxt).contains(&t));
        if all.len() == before {
            return 0;
        }
        let gone = before - all.len();
        self.last = all.times.last().copied().unwrap_or(Millis::MIN);
        self.tail = Tail::Empty;
        self.late = None;
        self.sealed = by_span(all);
        gone
    }

    /// Forgets samples before `boundary`, the start of a span.
    pub fn trim(&mut self, boundary: Millis) {
        if self.sealed.first().is_some_and(|s| s.first < boundary) {
            self.sealed.retain(|s| s.first >= boundary);
            self.sealed.shrink_to_fit();
        }
        if self.last < boundary {
            // A tail lies within one span, so it goes as a whole.
            self.tail = Tail::Empty;
        }
        if let Some(late) = &mut self.late {
            late.trim(boundary);
            if late.tail.is_empty() && late.sealed.is_empty() {
                self.late = None;
            }
        }
    }
}

/// Whether an own tail goes on with `time`.
fn own_takes(column: &Column, time: Millis) -> bool {
    column.len() < PAGE && column.times.first().is_some_and(|&f| span_start(f) == span_start(time))
}

impl Late {
    /// Encodes the tail.
    fn seal(&mut self) {
        self.sealed.extend(by_span(std::mem::take(&mut self.tail)));
    }

    fn trim(&mut self, boundary: Millis) {
        self.sealed.retain(|s| span_start(s.first) >= boundary);
        let gone = self.tail.times.partition_point(|&t| t < boundary);
        drop_front(&mut self.tail, gone);
    }
}
