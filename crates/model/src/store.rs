//! How samples enter a store and how series leave it.
//!
//! `scrape` and `rules` write through [`Appender`]; `promql` reads through [`Queryable`]. `tsdb` implements
//! both, and so may anything else.

use std::sync::Arc;

use crate::histogram::Histogram;
use crate::labels::Labels;
use crate::matcher::Matcher;
use crate::sample::Column;
use crate::time::Millis;

/// A store cannot do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The disk or a file on it failed; the chain of causes as text.
    #[error("store: {0}")]
    Io(String),
    /// Data on disk is damaged; what can be read still is.
    #[error("store: damaged data: {0}")]
    Damaged(String),
    /// A limit was met; names the limit and the culprit.
    #[error("limit: {0}")]
    Limit(String),
    /// The store is still replaying its log.
    #[error("store is replaying its log, not ready yet")]
    NotReady,
    /// The store takes no more samples: shut down, or the disk is full.
    #[error("store is closed for writing: {0}")]
    Closed(String),
}

/// A series of the head, as long as the store knows it. A store that forgot it answers `unknown` on append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeriesId(pub u64);

/// The owner of a column of timestamps: all series of one target share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TargetId(pub u32);

/// What one scrape, rule evaluation or push adds: written to the log as one record, visible all at once.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Samples that share `time`.
    pub samples: Vec<(SeriesId, f64)>,
    /// Samples that came with a timestamp of their own.
    pub timed: Vec<(SeriesId, Millis, f64)>,
    /// Native histograms, at the batch's time where they have none of their own.
    pub histograms: Vec<(SeriesId, Option<Millis>, Arc<Histogram>)>,
    /// When a counter began, as its exporter says: a zero is stored there if the series has no sample at or after it.
    pub created: Vec<(SeriesId, Millis)>,
    /// Examples of observations.
    pub exemplars: Vec<(SeriesId, Exemplar)>,
}

/// An example of an observation: a value with labels that lead to its trace or log line.
#[derive(Debug, Clone, PartialEq)]
pub struct Exemplar {
    /// Where it leads, such as `trace_id`.
    pub labels: Labels,
    /// The value observed.
    pub value: f64,
    /// When; the batch's time where the page gave none.
    pub time: Millis,
}

/// What became of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Appended {
    /// Samples now in the store.
    pub accepted: u64,
    /// Samples with a timestamp already taken by another value; the first value stays.
    pub duplicates: u64,
    /// Samples that were there already, with this very value: sent twice, no refusal.
    pub repeated: u64,
    /// Samples of the accepted ones that came late, within the window.
    pub out_of_order: u64,
    /// Samples refused because they lie before the window.
    pub too_old: u64,
    /// Series the store no longer knows: resolve their labels again and append once more.
    pub unknown: Vec<SeriesId>,
}

/// The way in.
pub trait Appender: Send + Sync {
    /// Names the owner of a timestamp column; the same labels give the same id.
    fn target(&self, labels: &Labels) -> TargetId;

    /// The series of this label set, made if it is new.
    ///
    /// # Errors
    ///
    /// [`StoreError::Limit`] when the store may not grow by another series.
    fn series(&self, labels: &Labels) -> Result<SeriesId, StoreError>;

    /// Adds a batch of `target` at `time`.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when nothing of the batch was taken; single refused samples are counted in [`Appended`].
    fn append(&self, target: TargetId, time: Millis, batch: &Batch) -> Result<Appended, StoreError>;
}

/// A stored series that a selection found; its samples are decoded when read.
pub trait StoredSeries: Send + Sync {
    /// Its labels, the metric name among them.
    fn labels(&self) -> &Labels;

    /// Adds the samples with `mint <= time <= maxt` to `into` in order of time, staleness markers included.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when a chunk cannot be read.
    fn read(&self, mint: Millis, maxt: Millis, into: &mut Column) -> Result<(), StoreError>;
}

/// The examples of one series.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesExemplars {
    /// The series' labels, the metric name among them.
    pub labels: Labels,
    /// Its examples in order of time.
    pub exemplars: Vec<Exemplar>,
}

/// The way to examples of observations.
pub trait ExemplarQueryable: Send + Sync {
    /// The examples with `mint <= time <= maxt` of series that pass any of the `selectors` (each a list of
    /// matchers), sorted by labels; series without any are left out.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotReady`] while the log is replayed.
    fn exemplars(
        &self,
        selectors: &[Vec<Matcher>],
        mint: Millis,
        maxt: Millis,
    ) -> Result<Vec<SeriesExemplars>, StoreError>;
}

/// What an administrator may ask of a store.
pub trait StoreAdmin: Send + Sync {
    /// Takes the samples with `mint <= time <= maxt` out of the series that pass any of the `selectors`.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; a part may then be done, and asking again is safe.
    fn delete_series(&self, selectors: &[Vec<Matcher>], mint: Millis, maxt: Millis) -> Result<(), StoreError>;

    /// Gives the room of deleted samples back; gives the number of blocks rewritten.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the disk refuses.
    fn clean_tombstones(&self) -> Result<u64, StoreError>;

    /// Puts a copy of the store into `snapshots/NAME` of its folder; `head` says whether samples come along that
    /// are in no block yet.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when that folder exists or the disk refuses.
    fn snapshot(&self, name: &str, head: bool) -> Result<(), StoreError>;
}

/// What a selection found.
#[derive(Default)]
pub struct Selection {
    /// The series, sorted by labels.
    pub series: Vec<Arc<dyn StoredSeries>>,
    /// What could not be read, for the answer's warnings.
    pub warnings: Vec<String>,
}

/// The way out.
pub trait Queryable: Send + Sync {
    /// The series that pass all `matchers` and may have samples in `mint..=maxt`, sorted by labels.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the index cannot be read at all.
    fn select(&self, matchers: &[Matcher], mint: Millis, maxt: Millis) -> Result<Selection, StoreError>;

    /// The label names, sorted, of the series that pass `matchers` (all series when there is none).
    ///
    /// # Errors
    ///
    /// As [`Queryable::select`].
    fn label_names(&self, matchers: &[Matcher], mint: Millis, maxt: Millis) -> Result<Vec<String>, StoreError>;

    /// The values, sorted, of label `name` among the series that pass `matchers`.
    ///
    /// # Errors
    ///
    /// As [`Queryable::select`].
    fn label_values(
        &self,
        name: &str,
        matchers: &[Matcher],
        mint: Millis,
        maxt: Millis,
    ) -> Result<Vec<String>, StoreError>;

    /// The moment before which samples only change as [`Queryable::changed_since`] tells; answers that need later
    /// ones may differ the next time without a word. [`Millis::MIN`] where nobody watches for changes.
    fn settled(&self) -> Millis {
        Millis::MIN
    }

    /// Counts the changes of history: late samples, deletions, imports. Take it before the question whose answer
    /// is to be kept.
    fn revision(&self) -> u64 {
        0
    }

    /// The earliest moment whose samples may have changed since `revision`; `None` when none has.
    fn changed_since(&self, revision: u64) -> Option<Millis> {
        let _ = revision;
        Some(Millis::MIN)
    }
}
