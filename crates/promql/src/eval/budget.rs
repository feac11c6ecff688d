//! What a query may use: values in memory, time, and the patience of its asker.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use model::{Deadline, QueryError};

/// The message that Prometheus gives too; its clients look for it.
const TOO_MANY: &str = "query processing would load too many samples into memory in query execution";

/// Counts values held and samples read, and knows when the query must end.
#[derive(Debug)]
pub(crate) struct Budget<'a> {
    limit: usize,
    held: AtomicUsize,
    read: AtomicU64,
    /// The asker's deadline and the engine's own.
    deadlines: [&'a Deadline; 2],
}

impl<'a> Budget<'a> {
    /// A budget of `limit` values at a time.
    pub(crate) const fn new(limit: usize, deadlines: [&'a Deadline; 2]) -> Self {
        Self {
            limit,
            held: AtomicUsize::new(0),
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
        if before.saturating_add(cells) > self.limit {
            return Err(too_many());
        }
        Ok(())
    }

    /// Gives room back.
    pub(crate) fn give(&self, cells: usize) {
        self.held.fetch_sub(cells, Ordering::Relaxed);
    }

    /// Values held now.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Says that exactly `cells` values are held: the operands of a node are gone, its result stays.
    ///
    /// # Errors
    ///
    /// [`QueryError::Execution`] when that is too many.
    pub(crate) fn settle(&self, cells: usize) -> Result<(), QueryError> {
        self.held.store(cells, Ordering::Relaxed);
        if cells > self.limit {
            return Err(too_many());
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

/// The error of a query over its limit of values.
pub(crate) fn too_many() -> QueryError {
    QueryError::Execution(TOO_MANY.to_owned())
}
