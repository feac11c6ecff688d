//! An intermediate result: one value per step of the grid for each series.
//!
//! A step without a sample holds [`ABSENT`], the bits of the staleness marker. That marker ends a series
//! and so can never be a value here, and arithmetic cannot produce it: its NaN is a signalling one, and
//! every operation gives quiet ones. Whoever copies or negates a value asks [`is_present`] first.
//!
//! Native histograms are a second column beside `values`, present only where `values` is absent, and empty where
//! a series has none, which is the common case.

use std::sync::Arc;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use model::{Histogram, Labels, METRIC_NAME, QueryError};

/// Fills a step at which the series has no sample.
pub(crate) const ABSENT: f64 = model::stale_nan();

/// Whether a step's value is a sample.
#[inline]
pub(crate) const fn is_present(value: f64) -> bool {
    !model::is_stale(value)
}

/// A series aligned to the grid.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// Its labels; the metric name may still be among them although `drop_name` is set.
    pub(crate) labels: Labels,
    /// Whether the metric name goes at the end of the query (delayed name removal).
    pub(crate) drop_name: bool,
    /// One value per step, [`ABSENT`] where there is none.
    pub(crate) values: Vec<f64>,
    /// The native histogram of each step that has one; empty when there is none.
    pub(crate) natives: Natives,
}

/// A column of native histograms.
pub(crate) type Natives = Vec<Option<Arc<Histogram>>>;

impl Series {
    /// A series that keeps its name.
    pub(crate) const fn new(labels: Labels, values: Vec<f64>) -> Self {
        Self {
            labels,
            drop_name: false,
            values,
            natives: Vec::new(),
        }
    }

    /// Whether any step has a sample.
    pub(crate) fn any_present(&self) -> bool {
        self.values.iter().any(|v| is_present(*v)) || self.natives.iter().any(Option::is_some)
    }

    /// The native histogram of a step.
    #[inline]
    pub(crate) fn native(&self, step: usize) -> Option<&Arc<Histogram>> {
        self.natives.get(step).and_then(Option::as_ref)
    }

    /// Whether a step has a sample of either kind.
    #[inline]
    pub(crate) fn has(&self, step: usize) -> bool {
        is_present(self.values[step]) || self.native(step).is_some()
    }

    /// Puts a histogram into a step that has no number.
    pub(crate) fn set_native(&mut self, step: usize, histogram: Arc<Histogram>) {
        put_native(&mut self.natives, self.values.len(), step, histogram);
    }

    /// Copies the sample of a step from another series.
    #[inline]
    pub(crate) fn copy_step(&mut self, step: usize, from: &Self) {
        self.values[step] = from.values[step];
        if let Some(histogram) = from.native(step) {
            self.set_native(step, Arc::clone(histogram));
        }
    }

    /// Takes the sample of a step away.
    #[inline]
    pub(crate) fn clear_step(&mut self, step: usize) {
        self.values[step] = ABSENT;
        if let Some(native) = self.natives.get_mut(step) {
            *native = None;
        }
    }

    /// How many values are held in memory, a histogram counting for its buckets.
    pub(crate) fn cells(&self) -> usize {
        self.values.len() + native_cells(&self.natives)
    }
}

/// Numbers that every step has: the value of a scalar expression.
#[derive(Debug, Clone)]
pub(crate) enum Scalar {
    /// The same at every step.
    Const(f64),
    /// One per step.
    Steps(Vec<f64>),
}

impl Scalar {
    /// The value at step `i`.
    #[inline]
    pub(crate) fn at(&self, i: usize) -> f64 {
        match self {
            Self::Const(value) => *value,
            Self::Steps(values) => values[i],
        }
    }

    /// The scalar with `f` applied.
    pub(crate) fn map(self, f: impl Fn(f64) -> f64) -> Self {
        match self {
            Self::Const(value) => Self::Const(f(value)),
            Self::Steps(mut values) => {
                values.iter_mut().for_each(|v| *v = f(*v));
                Self::Steps(values)
            }
        }
    }

    /// Both scalars combined step by step.
    pub(crate) fn zip(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Self {
        match (self, other) {
            (Self::Const(a), Self::Const(b)) => Self::Const(f(*a, *b)),
            (Self::Steps(a), _) => Self::Steps(a.iter().enumerate().map(|(i, a)| f(*a, other.at(i))).collect()),
            (_, Self::Steps(b)) => Self::Steps(b.iter().enumerate().map(|(i, b)| f(self.at(i), *b)).collect()),
        }
    }
}

/// What an expression evaluates to over the grid.
#[derive(Debug, Clone)]
pub(crate) enum Operand {
    /// A number per step.
    Scalar(Scalar),
    /// Series, in an order that matters to an instant query alone.
    Vector(Vec<Series>),
    /// A text.
    Text(String),
}

impl Operand {
    /// How many values are held in memory.
    pub(crate) fn cells(&self) -> usize {
        match self {
            Self::Scalar(Scalar::Const(_)) | Self::Text(_) => 1,
            Self::Scalar(Scalar::Steps(values)) => values.len(),
            Self::Vector(series) => series.iter().map(Series::cells).sum(),
        }
    }
}

/// Whether a label says what a metric is rather than whose it is; such labels leave with the name.
pub(crate) fn is_metadata(name: &str) -> bool {
    matches!(name, METRIC_NAME | "__type__" | "__unit__")
}

/// The labels without the metric name and its like.
pub(crate) fn without_metadata(labels: &Labels) -> Labels {
    labels.retain(|name| !is_metadata(name))
}

/// Joins series that have the same labels and no step in common; the first one's place counts.
///
/// # Errors
///
/// [`QueryError::Execution`] when two of them have a sample at the same step.
pub(crate) fn merge_same_labels(series: Vec<Series>) -> Result<Vec<Series>, QueryError> {
    if series.len() < 2 {
        return Ok(series);
    }
    let mut place: HashMap<Labels, usize, foldhash::fast::RandomState> =
        HashMap::with_capacity_and_hasher(series.len(), foldhash::fast::RandomState::default());
    let mut out: Vec<Series> = Vec::with_capacity(series.len());
    for one in series {
        match place.entry(one.labels.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(out.len());
                out.push(one);
            }
            Entry::Occupied(entry) => join(&mut out[*entry.get()], &one)?,
        }
    }
    Ok(out)
}

fn join(into: &mut Series, from: &Series) -> Result<(), QueryError> {
    for step in 0..from.values.len() {
        if !from.has(step) {
            continue;
        }
        if into.has(step) {
            return Err(same_labels());
        }
        into.copy_step(step, from);
    }
    Ok(())
}

/// Puts a histogram into a column of `steps`.
pub(crate) fn put_native(natives: &mut Natives, steps: usize, step: usize, histogram: Arc<Histogram>) {
    if natives.is_empty() {
        natives.resize(steps, None);
    }
    natives[step] = Some(histogram);
}

/// How many values histograms count for.
pub(crate) fn native_cells(natives: &[Option<Arc<Histogram>>]) -> usize {
    if natives.is_empty() {
        return 0;
    }
    natives.len() + natives.iter().flatten().map(|h| crate::native::cells(h)).sum::<usize>()
}

/// The error of two samples with the same labels at one moment.
pub(crate) fn same_labels() -> QueryError {
    QueryError::Execution("vector cannot contain metrics with the same labelset".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_on_the_marker_never_gives_the_marker() {
        let marker = std::hint::black_box(ABSENT);
        for value in [marker + 1.0, marker * 0.0, marker - marker, marker / 2.0, marker % 2.0] {
            assert!(is_present(value));
        }
    }

    #[test]
    fn series_of_one_label_set_join_unless_they_overlap() {
        let one = |values: &[f64]| Series::new(Labels::empty(), values.to_vec());
        let joined = merge_same_labels(vec![one(&[1.0, ABSENT]), one(&[ABSENT, 2.0])]).expect("no overlap");
        assert_eq!(joined.len(), 1);
        assert_eq!(joined[0].values, [1.0, 2.0]);
        assert_eq!(
            merge_same_labels(vec![one(&[1.0]), one(&[1.0])]).err(),
            Some(same_labels())
        );
    }
}
