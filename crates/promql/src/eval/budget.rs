//! What a query may use: values and bytes in memory, series, time, and the patience of its asker.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use model::{Deadline, Millis, QueryError};

use super::grid::Grid;
use super::window::Frame;
use crate::engine::EngineOptions;

/// The message that Prometheus gives too; its clients look for it.
const TOO_MANY: &str = "query processing would load too many samples into memory in query execution";

/// Bytes of a value.
const VALUE_BYTES: usize = 8;

/// Counts values held and samples read, and knows when the query must end.
#[derive(Debug)]
pub(crate) struct Budget<'a> {
    limit: usize,
    bytes_max: usize,
    series_max: usize,
    held: AtomicUsize,
    peak: AtomicUsize,
    series: AtomicUsize,
    read: AtomicU64,
    /// The asker's deadline and the engine's own.
    deadlines: [&'a Deadline; 2],
}

impl<'a> Budget<'a> {
    /// The budget that the options allow.
    pub(crate) const fn new(options: &EngineOptions, deadlines: [&'a Deadline; 2]) -> Self {
        Self {
            limit: options.samples_max,
            bytes_max: options.bytes_max,
            series_max: options.series_max,
            held: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            series: AtomicUsize::new(0),
            read: AtomicU64::new(0),
            deadlines,
        }
    }

    /// The most values held at a time.
    pub(crate) const fn limit(&self) -> usize {
        self.limit
    }

    /// Takes room for `cells` values.
    ///
    /// # Errors
    ///
    /// [`QueryError::Execution`] when there is none.
    pub(crate) fn take(&self, cells: usize) -> Result<(), QueryError> {
        let before = self.held.fetch_add(cells, Ordering::Relaxed);
        self.judge(before.saturating_add(cells))
    }

    /// Gives room back.
    pub(crate) fn give(&self, cells: usize) {
        self.held.fetch_sub(cells, Ordering::Relaxed);
    }

    /// Values held now.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// The most values held so far.
    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed) as u64
    }

    /// Says that exactly `cells` values are held: the operands of a node are gone, its result stays.
    ///
    /// # Errors
    ///
    /// [`QueryError::Execution`] when that is too many.
    pub(crate) fn settle(&self, cells: usize) -> Result<(), QueryError> {
        self.held.store(cells, Ordering::Relaxed);
        self.judge(cells)
    }

    fn judge(&self, held: usize) -> Result<(), QueryError> {
        self.peak.fetch_max(held, Ordering::Relaxed);
        if held > self.limit {
            return Err(too_many(self.limit));
        }
        let labels = self.series.load(Ordering::Relaxed).saturating_mul(LABELS_BYTES);
        if held.saturating_mul(VALUE_BYTES).saturating_add(labels) > self.bytes_max {
            return Err(QueryError::Execution(format!(
                "query needs more than {} bytes of memory (limits.query_memory)",
                self.bytes_max
            )));
        }
        Ok(())
    }

    /// Counts series selected.
    ///
    /// # Errors
    ///
    /// [`QueryError::Execution`] when they are too many.
    pub(crate) fn count_series(&self, count: usize) -> Result<(), QueryError> {
        let before = self.series.fetch_add(count, Ordering::Relaxed);
        if before.saturating_add(count) > self.series_max {
            return Err(too_many_series(self.series_max));
        }
        Ok(())
    }

    /// Counts samples read from the store.
    pub(crate) fn count_read(&self, samples: usize) {
        self.read.fetch_add(samples as u64, Ordering::Relaxed);
    }

    /// Samples read from the store so far.
    pub(crate) fn samples_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// # Errors
    ///
    /// [`QueryError::Timeout`] or [`QueryError::Canceled`] when the query must end.
    pub(crate) fn check(&self) -> Result<(), QueryError> {
        self.deadlines.iter().try_for_each(|d| d.check())
    }
}

/// About what a selected series takes beside its values.
const LABELS_BYTES: usize = 64;

/// The error of a query over its limit of values.
pub(crate) fn too_many(limit: usize) -> QueryError {
    QueryError::Execution(format!("{TOO_MANY}: more than {limit} values (limits.query_samples)"))
}

/// The error of a query over its limit of series.
pub(crate) fn too_many_series(limit: usize) -> QueryError {
    QueryError::Execution(format!("query selects more than {limit} series (limits.query_series)"))
}

/// The samples that each step of a query looked at.
#[derive(Debug)]
pub(crate) struct LookedAt {
    grid: Grid,
    steps: Vec<AtomicU64>,
}

impl LookedAt {
    pub(crate) fn new(grid: Grid) -> Self {
        Self {
            grid,
            steps: (0..grid.len).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Counts what windows of `frame` see of a column; of an instant selector the last sample alone.
    pub(super) fn count(&self, frame: &Frame, column: &model::Column, is_instant: bool) {
        frame.each(column, |step, window| {
            let seen = if is_instant { 1 } else { window.len() as u64 };
            // Steps inside a subquery count for the step of the query that is not before them.
            let at = if frame.grid == self.grid {
                step
            } else {
                let distance = frame.grid.time(step).saturating_sub(self.grid.start);
                usize::try_from(distance.div_euclid(self.grid.step.max(1))).unwrap_or(0)
            };
            if let Some(count) = self.steps.get(at.min(self.steps.len().saturating_sub(1))) {
                count.fetch_add(seen, Ordering::Relaxed);
            }
        });
    }

    pub(crate) fn by_step(&self) -> impl Iterator<Item = (Millis, u64)> + '_ {
        let steps = self.steps.iter().enumerate();
        steps.map(|(i, count)| (self.grid.time(i), count.load(Ordering::Relaxed)))
    }
}
