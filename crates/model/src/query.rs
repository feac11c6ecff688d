//! What a query gives, and the trait by which rules, web and commands ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::labels::Labels;
use crate::matcher::Matcher;
use crate::meter::Meter;
use crate::sample::{Column, Sample};
use crate::time::Millis;

/// The value of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// One number at the evaluation time.
    Scalar(Sample),
    /// A text at the evaluation time.
    Text(Millis, String),
    /// One sample per series, all at the evaluation time.
    Vector(Vec<(Labels, Sample)>),
    /// Samples over a range per series.
    Matrix(Vec<(Labels, Column)>),
}

impl Value {
    /// The word that the HTTP API uses for this type.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Scalar(_) => "scalar",
            Self::Text(..) => "string",
            Self::Vector(_) => "vector",
            Self::Matrix(_) => "matrix",
        }
    }
}

/// A value with the remarks made on the way.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryOutcome {
    /// The value.
    pub value: Value,
    /// Something is wrong with the data or could not be read.
    pub warnings: Vec<String>,
    /// Something about the query deserves a look.
    pub infos: Vec<String>,
    /// Samples read to answer.
    pub samples_read: u64,
}

/// Why a query has no answer; the names are the HTTP API's error types.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The expression or a parameter is wrong: the message has line, column and caret.
    #[error("{0}")]
    BadData(String),
    /// The evaluation failed: labels that match twice, a limit met.
    #[error("{0}")]
    Execution(String),
    /// It took longer than allowed.
    #[error("query timed out in expression evaluation")]
    Timeout,
    /// The asker went away.
    #[error("query was canceled in expression evaluation")]
    Canceled,
    /// The engine cannot answer at present: replay, or the far side is down.
    #[error("{0}")]
    Unavailable(String),
    /// The store failed.
    #[error("{0}")]
    Internal(String),
}

/// Until when a query may run, and whether it is still wanted.
#[derive(Debug, Clone, Default)]
pub struct Deadline {
    at: Option<Instant>,
    canceled: Arc<AtomicBool>,
    meter: Arc<Meter>,
}

impl Deadline {
    /// No limit in time; can still be canceled.
    #[must_use]
    pub fn never() -> Self {
        Self::default()
    }

    /// Ends at `at`.
    #[must_use]
    pub fn at(at: Instant) -> Self {
        Self {
            at: Some(at),
            ..Self::default()
        }
    }

    /// How long is left; `None` without a limit.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        self.at.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// What the query costs.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Whether somebody ended the query.
    #[must_use]
    pub fn is_canceled(&self) -> bool {
        self.canceled.load(Ordering::Relaxed)
    }

    /// Ends the query at its next check.
    pub fn cancel(&self) {
        self.canceled.store(true, Ordering::Relaxed);
    }

    /// # Errors
    ///
    /// [`QueryError::Canceled`] or [`QueryError::Timeout`] when the query must end.
    pub fn check(&self) -> Result<(), QueryError> {
        if self.canceled.load(Ordering::Relaxed) {
            return Err(QueryError::Canceled);
        }
        match self.at {
            Some(at) if Instant::now() >= at => Err(QueryError::Timeout),
            _ => Ok(()),
        }
    }
}

/// Answers PromQL: `promql` over a store, or `remote` over somebody else's HTTP API.
///
/// Blocking: callers on an async runtime hand it to a thread.
pub trait QueryEngine: Send + Sync {
    /// The value of `expr` at `time`.
    ///
    /// # Errors
    ///
    /// See [`QueryError`].
    fn instant(&self, expr: &str, time: Millis, deadline: &Deadline) -> Result<QueryOutcome, QueryError>;

    /// The values of `expr` at `start`, `start + step`, … up to `end`; `step` is above zero.
    ///
    /// # Errors
    ///
    /// See [`QueryError`].
    fn range(
        &self,
        expr: &str,
        start: Millis,
        end: Millis,
        step: Millis,
        deadline: &Deadline,
    ) -> Result<QueryOutcome, QueryError>;

    /// The label sets of series that pass any of the `selectors` (each a list of matchers), sorted, each once.
    ///
    /// # Errors
    ///
    /// See [`QueryError`].
    fn series(
        &self,
        selectors: &[Vec<Matcher>],
        start: Millis,
        end: Millis,
        deadline: &Deadline,
    ) -> Result<Vec<Labels>, QueryError>;

    /// The label names among those series (all series when there is no selector), sorted.
    ///
    /// # Errors
    ///
    /// See [`QueryError`].
    fn label_names(
        &self,
        selectors: &[Vec<Matcher>],
        start: Millis,
        end: Millis,
        deadline: &Deadline,
    ) -> Result<Vec<String>, QueryError>;

    /// The values of one label among those series, sorted.
    ///
    /// # Errors
    ///
    /// See [`QueryError`].
    fn label_values(
        &self,
        name: &str,
        selectors: &[Vec<Matcher>],
        start: Millis,
        end: Millis,
        deadline: &Deadline,
    ) -> Result<Vec<String>, QueryError>;
}
