//! Functions over windows in which native histograms occur.
//!
//! What a function makes of the numbers of a window stays what it is without histograms; windows that hold both
//! have a result only for functions that look at places and moments, and a remark for the others.

use std::ops::Range;
use std::sync::Arc;

use model::text::Span;
use model::{Column, Histogram, QueryError, ResetHint};

use super::Evaluator;
use super::native_group::hints;
use super::note::{Joining, Notes};
use super::over_time::Scratch;
use super::range_call::apply;
use super::series::{ABSENT, Scalar, Series};
use super::window::Frame;
use crate::native::{Incompatible, Mean, Total, equal, is_reset};
use crate::plan::{RangeCall, RangeFunction};

/// What stands in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Numbers,
    Natives,
    Both,
}

fn holds(column: &Column, window: &Range<usize>) -> Holds {
    let natives = column.histograms[window.clone()].iter().filter(|h| h.is_some()).count();
    match natives {
        0 => Holds::Numbers,
        n if n == window.len() => Holds::Natives,
        _ => Holds::Both,
    }
}

impl Evaluator<'_> {
    /// Runs a function over the windows of a column that has histograms.
    pub(super) fn native_windows(
        &self,
        call: &RangeCall,
        frame: &Frame,
        params: &[Scalar],
        column: &Column,
        scratch: &mut Scratch,
        out: &mut Series,
    ) -> Result<(), QueryError> {
        use RangeFunction as F;
        let mut notes = Notes::default();
        match call.function {
            F::AbsentOverTime | F::PresentOverTime | F::CountOverTime | F::TsOfFirstOverTime | F::TsOfLastOverTime => {
                apply(call.function, frame, params, column, scratch, &mut out.values);
            }
            F::FirstOverTime => frame.each(column, |step, window| put(column, window.start, step, out)),
            F::LastOverTime => frame.each(column, |step, window| put(column, window.end - 1, step, out)),
            F::Changes => pairs(frame, column, out, |a, b| match (a, b) {
                (Sample::Number(a), Sample::Number(b)) => a != b && !(a.is_nan() && b.is_nan()),
                (Sample::Native(a), Sample::Native(b)) => !equal(a, b),
                _ => true,
            }),
            F::Resets => pairs(frame, column, out, |a, b| match (a, b) {
                (Sample::Number(a), Sample::Number(b)) => b < a,
                (Sample::Native(a), Sample::Native(b)) => is_reset(a, b),
                _ => true,
            }),
            F::Irate | F::Idelta => {
                let change = Change::of(call, out.labels.name());
                frame.each(column, |step, window| {
                    if window.len() >= 2 {
                        change.between_last(column, window.end - 1, step, out, &mut notes);
                    }
                });
            }
            F::Rate | F::Increase | F::Delta | F::SumOverTime | F::AvgOverTime => {
                let numbers = numbers_of(column);
                apply(call.function, frame, params, &numbers, scratch, &mut out.values);
                let change = Change::of(call, out.labels.name());
                let mut failed = Ok(());
                frame.each(column, |step, window| {
                    match holds(column, &window) {
                        Holds::Numbers => return,
                        Holds::Both => {
                            out.values[step] = ABSENT;
                            notes.mixed_kinds(&change.metric, call.arg_span);
                            return;
                        }
                        Holds::Natives => out.values[step] = ABSENT,
                    }
                    if let Err(error) = self.budget.check() {
                        failed = Err(error);
                    }
                    let found = match call.function {
                        F::SumOverTime | F::AvgOverTime => change.joined(column, window, &mut notes),
                        _ => change.extrapolated(frame, column, step, window, &mut notes),
                    };
                    if let Some(histogram) = found {
                        out.set_native(step, Arc::new(histogram));
                    }
                });
                failed?;
            }
            // All others know numbers alone.
            _ => {
                let numbers = numbers_of(column);
                apply(call.function, frame, params, &numbers, scratch, &mut out.values);
                let name = out.labels.name();
                frame.each(column, |_, window| {
                    if holds(column, &window) == Holds::Both {
                        notes.ignored_in_range(name, call.arg_span);
                    }
                });
            }
        }
        self.note(notes);
        Ok(())
    }
}

/// The numbers of a column alone.
pub(super) fn numbers_of(column: &Column) -> Column {
    let mut numbers = column.clone();
    numbers.retain(|column, place| column.histogram(place).is_none());
    numbers.histograms.clear();
    numbers
}

/// A sample of either kind.
#[derive(Clone, Copy)]
enum Sample<'a> {
    Number(f64),
    Native(&'a Histogram),
}

fn sample(column: &Column, place: usize) -> Sample<'_> {
    match column.histogram(place) {
        Some(histogram) => Sample::Native(histogram),
        None => Sample::Number(column.values[place]),
    }
}

fn put(column: &Column, place: usize, step: usize, out: &mut Series) {
    match column.histogram(place) {
        Some(histogram) => out.set_native(step, Arc::clone(histogram)),
        None => out.values[step] = column.values[place],
    }
}

/// Counts the neighbours within each window for which `counts` holds.
fn pairs(frame: &Frame, column: &Column, out: &mut Series, counts: impl Fn(Sample<'_>, Sample<'_>) -> bool) {
    let mut total = 0_u32;
    let mut marks = vec![0];
    for place in 1..column.len() {
        total += u32::from(counts(sample(column, place - 1), sample(column, place)));
        marks.push(total);
    }
    frame.each(column, |step, window| {
        out.values[step] = f64::from(marks[window.end - 1] - marks[window.start]);
    });
}

/// How a function treats histograms, and where its argument stands.
struct Change {
    counter: bool,
    per_second: bool,
    mean: bool,
    span: Span,
    metric: String,
}

impl Change {
    fn of(call: &RangeCall, metric: &str) -> Self {
        use RangeFunction as F;
        Self {
            counter: matches!(call.function, F::Rate | F::Increase | F::Irate),
            per_second: matches!(call.function, F::Rate | F::Irate),
            mean: call.function == F::AvgOverTime,
            span: call.arg_span,
            metric: metric.to_owned(),
        }
    }

    /// The change from the sample before `last` to it.
    fn between_last(&self, column: &Column, last: usize, step: usize, out: &mut Series, notes: &mut Notes) {
        let seconds = (column.times[last] - column.times[last - 1]) as f64 / 1000.0;
        match (sample(column, last - 1), sample(column, last)) {
            (Sample::Number(from), Sample::Number(to)) => {
                let difference = if self.counter && to < from { to } else { to - from };
                out.values[step] = if self.per_second {
                    difference / seconds
                } else {
                    difference
                };
            }
            (Sample::Native(from), Sample::Native(to)) => {
                self.remark_kind(from, to, notes);
                let mut total = Total::of(to);
                if !self.counter || !is_reset(from, to) {
                    if total.subtract(from).is_err() {
                        notes.mixed_buckets(&self.metric, self.span);
                        return;
                    }
                    if total.met.reconciled {
                        notes.bounds_reconciled(Joining::Subtraction, self.span);
                    }
                }
                total.reset = ResetHint::Gauge;
                if self.per_second {
                    total.divide(seconds);
                }
                out.set_native(step, Arc::new(total.finish()));
            }
            _ => notes.mixed_kinds(&self.metric, self.span),
        }
    }

    /// Rates are of counters, differences of gauges.
    fn remark_kind(&self, first: &Histogram, last: &Histogram, notes: &mut Notes) {
        let gauges = [first, last].map(|h| h.reset == ResetHint::Gauge);
        if self.counter && gauges.contains(&true) {
            notes.native_no_counter(&self.metric, self.span);
        }
        if !self.counter && gauges.contains(&false) {
            notes.native_no_gauge(&self.metric, self.span);
        }
    }

    /// The change over a window of histograms, extrapolated to its ends.
    fn extrapolated(
        &self,
        frame: &Frame,
        column: &Column,
        step: usize,
        window: Range<usize>,
        notes: &mut Notes,
    ) -> Option<Histogram> {
        let natives: Vec<&Histogram> = column.histograms[window.clone()]
            .iter()
            .flatten()
            .map(|h| &**h)
            .collect();
        let [first, .., _] = natives.as_slice() else {
            return None;
        };
        let mut total = self.over(&natives, notes)?;
        let change = total.clone().finish();
        let seconds = |millis: model::Millis| millis as f64 / 1000.0;
        let end = frame.end(step);
        let (from, to) = (column.times[window.start], column.times[window.end - 1]);
        let sampled = seconds(to - from);
        let spacing = sampled / (natives.len() - 1) as f64;
        let near = spacing * 1.1;
        let mut to_start = seconds(from - (end - frame.range));
        let mut to_end = seconds(end - to);
        if to_start >= near {
            to_start = spacing / 2.0;
        }
        if self.counter && change.count > 0.0 && first.count >= 0.0 {
            to_start = to_start.min(sampled * (first.count / change.count));
        }
        if to_end >= near {
            to_end = spacing / 2.0;
        }
        let mut factor = (sampled + to_start + to_end) / sampled;
        if self.per_second {
            factor /= seconds(frame.range);
        }
        total.scale(factor);
        total.reset = ResetHint::Gauge;
        Some(total.finish())
    }

    /// The change over histograms, of which there are two or more.
    fn over(&self, natives: &[&Histogram], notes: &mut Notes) -> Option<Total> {
        let (mut before, last) = (natives[0], natives[natives.len() - 1]);
        if self.counter {
            self.remark_kind(before, last, notes);
        }
        let mut custom = before.is_custom();
        // What stood before a reset does not matter, and so neither does its layout.
        let nothing;
        if self.counter && is_reset(before, natives[1]) {
            custom = natives[1].is_custom();
            nothing = Histogram {
                schema: natives[1].schema,
                custom_values: natives[1].custom_values.clone(),
                zero_threshold: natives[1].zero_threshold,
                ..Histogram::default()
            };
            before = &nothing;
        }
        let mixed = |notes: &mut Notes| notes.mixed_buckets(&self.metric, self.span);
        if last.is_custom() != custom {
            mixed(notes);
            return None;
        }
        let mut coarsest = last.schema.min(before.schema);
        for native in &natives[1..natives.len() - 1] {
            if !self.counter {
                continue;
            }
            if native.reset == ResetHint::Gauge {
                notes.native_no_counter(&self.metric, self.span);
            }
            coarsest = coarsest.min(native.schema);
            if native.is_custom() != custom {
                mixed(notes);
                return None;
            }
        }
        let mut total = Total::of(last);
        total.coarsen(coarsest);
        let joined = self.total_over(&mut total, before, natives, notes);
        if joined.is_err() {
            mixed(notes);
            return None;
        }
        if !self.counter {
            self.remark_kind(natives[0], last, notes);
        }
        Some(total)
    }

    fn total_over(
        &self,
        total: &mut Total,
        first: &Histogram,
        natives: &[&Histogram],
        notes: &mut Notes,
    ) -> Result<(), Incompatible> {
        total.subtract(first)?;
        if std::mem::take(&mut total.met).reconciled {
            notes.bounds_reconciled(Joining::Subtraction, self.span);
        }
        let mut before = first;
        for native in natives[1..].iter().filter(|_| self.counter) {
            if is_reset(before, native) {
                total.add(before)?;
                if std::mem::take(&mut total.met).reconciled {
                    notes.bounds_reconciled(Joining::Addition, self.span);
                }
            }
            before = native;
        }
        Ok(())
    }

    /// The sum or mean of a window of histograms.
    fn joined(&self, column: &Column, window: Range<usize>, notes: &mut Notes) -> Option<Histogram> {
        let mut natives = column.histograms[window].iter().flatten();
        let first = natives.next()?;
        let mut seen = hints((false, false), first);
        let (met, joined) = if self.mean {
            let mut mean = Mean::of(first);
            let added = natives.try_for_each(|h| {
                seen = hints(seen, h);
                mean.add(h)
            });
            (mean.met(), added.map(|()| mean.finish()))
        } else {
            let mut total = Total::of(first);
            let added = natives.try_for_each(|h| {
                seen = hints(seen, h);
                total.add(h)
            });
            (total.met, added.map(|()| total.finish()))
        };
        if seen == (true, true) {
            notes.reset_collision(Joining::Aggregation, self.span);
        }
        if met.reconciled {
            notes.bounds_reconciled(Joining::Aggregation, self.span);
        }
        if joined.is_err() {
            notes.mixed_buckets(&self.metric, self.span);
        }
        joined.ok()
    }
}
