//! A cache of range queries: a dashboard that refreshes asks for the same steps and a few new ones.
//!
//! A step's value depends on samples up to its moment (later still under a negative offset), so what was computed
//! for a step stays true until a sample there changes: one that comes late, a deletion, an import. The store
//! counts those ([`Queryable::revision`]) and says from which moment on a revision may have changed samples; steps
//! that need none of those are served again, the others are computed anew. Steps that need samples which are not
//! settled yet are never kept.
//!
//! Deliberately absent: instant queries, queries whose steps depend on the range asked for (`@`, `start()`,
//! `step()` and the like), and answers with warnings.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use model::{Column, Deadline, Labels, Matcher, Millis, QueryEngine, QueryError, QueryOutcome, Queryable, Value};

use crate::ast::{DurationExpr, DurationKind, Expr, ExprKind, Selector};
use crate::engine::Engine;

/// What the cache has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Range queries answered from what was known, whole or in part.
    pub hits: u64,
    /// Range queries that could be cached and were computed whole.
    pub misses: u64,
    /// Steps served again.
    pub steps: u64,
    /// Answers kept now.
    pub entries: u64,
    /// What they take, in bytes.
    pub bytes: u64,
}

/// An engine with a cache before it. Cheap to clone.
#[derive(Clone)]
pub struct CachedEngine {
    engine: Engine,
    storage: Arc<dyn Queryable>,
    kept: Arc<Mutex<Kept>>,
    hits: Arc<AtomicU64>,
    misses: Arc<AtomicU64>,
    steps: Arc<AtomicU64>,
}

/// The answers kept.
#[derive(Default)]
struct Kept {
    entries: HashMap<Key, Entry>,
    bytes: usize,
    bytes_max: usize,
    /// Grows with every use.
    clock: u64,
}

/// Queries whose steps can coincide.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    text: String,
    step: Millis,
    phase: Millis,
}

/// An answer.
struct Entry {
    start: Millis,
    end: Millis,
    series: Arc<Vec<(Labels, Column)>>,
    infos: Vec<String>,
    revision: u64,
    bytes: usize,
    used: u64,
}

impl std::fmt::Debug for CachedEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CachedEngine")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl CachedEngine {
    /// A cache of at most `bytes_max` before `engine`, which answers over `storage`.
    #[must_use]
    pub fn new(engine: Engine, storage: Arc<dyn Queryable>, bytes_max: usize) -> Self {
        let kept = Kept {
            bytes_max,
            ..Kept::default()
        };
        Self {
            engine,
            storage,
            kept: Arc::new(Mutex::new(kept)),
            hits: Arc::default(),
            misses: Arc::default(),
            steps: Arc::default(),
        }
    }

    /// What the cache has done.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        CacheStats {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            steps: self.steps.load(Ordering::Relaxed),
            entries: kept.entries.len() as u64,
            bytes: kept.bytes as u64,
        }
    }

    /// The part of an answer that still holds: its last step and the series.
    fn known(&self, key: &Key, start: Millis, end: Millis, ahead: Millis) -> Option<Known> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let clock = kept.clock;
        let entry = kept.entries.get_mut(key)?;
        if entry.start > start || entry.end < start {
            return None;
        }
        let mut last = entry.end.min(end);
        if let Some(changed) = self.storage.changed_since(entry.revision) {
            last = last.min(before(changed, ahead));
        }
        last = start.saturating_add(
            (last.saturating_sub(start))
                .div_euclid(key.step)
                .saturating_mul(key.step),
        );
        if last < start {
            return None;
        }
        entry.used = clock;
        Some(Known {
            last,
            series: Arc::clone(&entry.series),
            infos: entry.infos.clone(),
        })
    }

    /// Keeps what is settled of an answer.
    fn keep(&self, key: Key, start: Millis, end: Millis, ahead: Millis, revision: u64, outcome: &QueryOutcome) {
        let Value::Matrix(series) = &outcome.value else { return };
        let told_by_step = outcome.infos.iter().any(|info| info.contains("monotonicity"));
        let end = end.min(before(self.storage.settled(), ahead));
        if end < start || !outcome.warnings.is_empty() || told_by_step {
            return;
        }
        let series: Vec<(Labels, Column)> = series
            .iter()
            .map(|(labels, column)| (labels.clone(), cut(column, start, end)))
            .filter(|(_, column)| !column.is_empty())
            .collect();
        let bytes = key.text.len()
            + 200
            + series
                .iter()
                .map(|(labels, column)| size(labels, column))
                .sum::<usize>();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes > kept.bytes_max / 4 {
            return;
        }
        kept.clock += 1;
        let entry = Entry {
            start,
            end,
            series: Arc::new(series),
            infos: outcome.infos.clone(),
            revision,
            bytes,
            used: kept.clock,
        };
        kept.bytes += bytes;
        if let Some(old) = kept.entries.insert(key, entry) {
            kept.bytes -= old.bytes;
        }
        while kept.bytes > kept.bytes_max {
            let oldest = kept.entries.iter().min_by_key(|(_, entry)| entry.used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else {
                break;
            };
            if let Some(old) = kept.entries.remove(&key) {
                kept.bytes -= old.bytes;
            }
        }
    }
}

struct Known {
    last: Millis,
    series: Arc<Vec<(Labels, Column)>>,
    infos: Vec<String>,
}

/// The last moment a step may have so that it needs no sample at `moment` or later.
fn before(moment: Millis, ahead: Millis) -> Millis {
    moment.saturating_sub(1).saturating_sub(ahead)
}

/// About how many bytes a series takes.
fn size(labels: &Labels, column: &Column) -> usize {
    let natives = column.histograms.len() * 8;
    let buckets: usize = column
        .histograms
        .iter()
        .flatten()
        .map(|h| 8 * crate::native::cells(h))
        .sum();
    labels.encoded().len() + 120 + column.len() * 16 + natives + buckets
}

/// The samples from `start` to `end`.
fn cut(column: &Column, start: Millis, end: Millis) -> Column {
    let from = column.times.partition_point(|t| *t < start);
    let to = column.times.partition_point(|t| *t <= end).max(from);
    Column {
        times: column.times[from..to].to_vec(),
        values: column.values[from..to].to_vec(),
        histograms: column.histograms.get(from..to).map_or_else(Vec::new, <[_]>::to_vec),
    }
}

/// Puts later samples behind earlier ones, both sorted by labels.
fn joined(
    early: &[(Labels, Column)],
    late: Vec<(Labels, Column)>,
    start: Millis,
    last: Millis,
) -> Vec<(Labels, Column)> {
    let mut out = Vec::with_capacity(early.len().max(late.len()));
    let mut late = late.into_iter().peekable();
    for (labels, column) in early {
        while let Some(other) = late.next_if(|(other, _)| other < labels) {
            out.push(other);
        }
        let mut column = cut(column, start, last);
        if let Some((_, more)) = late.next_if(|(other, _)| other == labels) {
            for sample in more.iter() {
                match sample.histogram {
                    None => column.push(sample.time, sample.value),
                    Some(histogram) => column.push_histogram(sample.time, histogram),
                }
            }
        }
        if !column.is_empty() {
            out.push((labels.clone(), column));
        }
    }
    out.extend(late);
    out
}

impl QueryEngine for CachedEngine {
    fn instant(&self, expr: &str, time: Millis, deadline: &Deadline) -> Result<QueryOutcome, QueryError> {
        self.engine.instant(expr, time, deadline)
    }

    fn range(
        &self,
        expr: &str,
        start: Millis,
        end: Millis,
        step: Millis,
        deadline: &Deadline,
    ) -> Result<QueryOutcome, QueryError> {
        let ahead = crate::parse(expr).ok().filter(|_| step > 0).and_then(|e| ahead(&e));
        let (Some(ahead), false) = (ahead, deadline.meter().avoids_cache()) else {
            return self.engine.range(expr, start, end, step, deadline);
        };
        let key = Key {
            text: expr.to_owned(),
            step,
            phase: start.rem_euclid(step),
        };
        // Taken first: what changes while the query runs counts as a change.
        let revision = self.storage.revision();
        let Some(known) = self.known(&key, start, end, ahead) else {
            self.misses.fetch_add(1, Ordering::Relaxed);
            let outcome = self.engine.range(expr, start, end, step, deadline)?;
            self.keep(key, start, end, ahead, revision, &outcome);
            return Ok(outcome);
        };
        self.hits.fetch_add(1, Ordering::Relaxed);
        let steps = (known.last - start) / step + 1;
        self.steps.fetch_add(steps.unsigned_abs(), Ordering::Relaxed);
        deadline.meter().note_cached();
        let next = known.last.saturating_add(step);
        let mut outcome = if next > end {
            QueryOutcome {
                value: Value::Matrix(Vec::new()),
                warnings: Vec::new(),
                infos: Vec::new(),
                samples_read: 0,
            }
        } else {
            self.engine.range(expr, next, end, step, deadline)?
        };
        let Value::Matrix(late) = outcome.value else {
            return Ok(outcome);
        };
        outcome.value = Value::Matrix(joined(&known.series, late, start, known.last));
        for info in known.infos {
            if !outcome.infos.contains(&info) {
                outcome.infos.push(info);
            }
        }
        if next <= end {
            self.keep(key, start, end, ahead, revision, &outcome);
        }
        Ok(outcome)
    }

    fn series(
        &self,
        selectors: &[Vec<Matcher>],
        start: Millis,
        end: Millis,
        deadline: &Deadline,
    ) -> Result<Vec<Labels>, QueryError> {
        self.engine.series(selectors, start, end, deadline)
    }

    fn label_names(
        &self,
        selectors: &[Vec<Matcher>],
        start: Millis,
        end: Millis,
        deadline: &Deadline,
    ) -> Result<Vec<String>, QueryError> {
        self.engine.label_names(selectors, start, end, deadline)
    }

    fn label_values(
        &self,
        name: &str,
        selectors: &[Vec<Matcher>],
        start: Millis,
        end: Millis,
        deadline: &Deadline,
    ) -> Result<Vec<String>, QueryError> {
        self.engine.label_values(name, selectors, start, end, deadline)
    }
}

/// How far behind its moment a step may look for samples, in milliseconds; `None` where a step's value depends on
/// more than its moment.
fn ahead(expr: &Expr) -> Option<Millis> {
    match &expr.kind {
        ExprKind::Number { .. } | ExprKind::Text(_) => Some(0),
        ExprKind::Vector(selector) => selector_ahead(selector),
        ExprKind::Matrix {
            selector,
            range,
            extension,
        } => {
            literal(range)?;
            extension.is_none().then(|| selector_ahead(selector))?
        }
        ExprKind::Subquery(subquery) => {
            literal(&subquery.range)?;
            if let Some(step) = &subquery.step {
                literal(step)?;
            }
            let own = match (&subquery.at, &subquery.offset) {
                (Some(_), _) => return None,
                (None, None) => 0,
                (None, Some(offset)) => literal(offset)?.saturating_neg().max(0),
            };
            Some(own.saturating_add(ahead(&subquery.expr)?))
        }
        ExprKind::Call { function, args } => {
            if matches!(function.name, "start" | "end" | "range" | "step" | "info") {
                return None;
            }
            furthest(args.iter())
        }
        ExprKind::Aggregate(aggregate) => furthest(std::iter::once(&aggregate.expr).chain(&aggregate.param)),
        ExprKind::Binary(_) => {
            let (links, first) = expr.chain();
            furthest(std::iter::once(first).chain(links.iter().map(|(link, _)| &link.rhs)))
        }
        ExprKind::Unary { expr, .. } => ahead(expr),
        ExprKind::Paren(inner) => ahead(inner),
    }
}

fn furthest<'e>(mut all: impl Iterator<Item = &'e Expr>) -> Option<Millis> {
    all.try_fold(0, |most: Millis, expr| Some(most.max(ahead(expr)?)))
}

fn selector_ahead(selector: &Selector) -> Option<Millis> {
    if selector.at.is_some() || selector.extension.is_some() {
        return None;
    }
    match &selector.offset {
        None => Some(0),
        Some(offset) => Some(literal(offset)?.saturating_neg().max(0)),
    }
}

/// The length of a duration that was written as such.
fn literal(duration: &DurationExpr) -> Option<Millis> {
    match &duration.kind {
        DurationKind::Literal { millis, .. } => Some(*millis),
        DurationKind::Unary { minus, expr } => {
            let millis = literal(expr)?;
            Some(if *minus { millis.saturating_neg() } else { millis })
        }
        DurationKind::Paren(inner) => literal(inner),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, want: Option<Millis>) {
        assert_eq!(ahead(&crate::parse(query).expect("an expression")), want, "{query}");
    }

    #[test]
    fn a_step_may_look_ahead_or_depend_on_more_than_its_moment() {
        check("sum(rate(x[5m])) + time()", Some(0));
        check("x offset -5m + y offset 1h", Some(300_000));
        check("max_over_time((x offset -1m)[5m:1m] offset -2m)", Some(180_000));
        check("x @ 100", None);
        check("x @ end()", None);
        check("rate(x[step()])", None);
        check("max_over_time(x[5m:1m] @ start())", None);
        check("vector(end())", None);
    }
}
