//! A store in memory, for tests of queries and rules: it forgets nothing and has no limits but memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::native::appended_hint;
use model::store::Selection;
use model::{
    Appended, Appender, Batch, Column, Histogram, Labels, Matcher, Millis, Queryable, SeriesId, StoreError,
    StoredSeries, TargetId,
};

/// A store in memory.
#[derive(Debug, Default)]
pub struct MemStore {
    inner: RwLock<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    by_labels: BTreeMap<Labels, Arc<MemSeries>>,
    /// Handed out as ids, by position.
    by_id: Vec<Arc<MemSeries>>,
    targets: Vec<Labels>,
}

/// One series of a [`MemStore`].
#[derive(Debug)]
pub struct MemSeries {
    labels: Labels,
    id: SeriesId,
    column: RwLock<Column>,
}

impl MemStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a sample. Returns whether it was taken: the first sample at a moment stays.
    pub fn add(&self, labels: &Labels, time: Millis, value: f64) -> bool {
        let series = self.series_of(labels);
        series.add(time, value, None)
    }

    /// Adds a native histogram, likewise. What it knows of a counter's reset is what a store could know: nothing
    /// at the start and where the layout changes or a count shrinks, else that there was none.
    pub fn add_histogram(&self, labels: &Labels, time: Millis, histogram: &Arc<Histogram>) -> bool {
        let series = self.series_of(labels);
        series.add(time, histogram.sum, Some(Arc::clone(histogram)))
    }

    /// Adds the samples of a column, in any order.
    pub fn add_column(&self, labels: &Labels, column: &Column) {
        let series = self.series_of(labels);
        for sample in column.iter() {
            series.add(sample.time, sample.value, sample.histogram);
        }
    }

    /// Forgets everything.
    pub fn clear(&self) {
        *self.write() = Inner::default();
    }

    fn series_of(&self, labels: &Labels) -> Arc<MemSeries> {
        if let Some(series) = self.read().by_labels.get(labels) {
            return Arc::clone(series);
        }
        let mut inner = self.write();
        let id = SeriesId(inner.by_id.len() as u64);
        let series = inner.by_labels.entry(labels.clone()).or_insert_with(|| {
            Arc::new(MemSeries {
                labels: labels.clone(),
                id,
                column: RwLock::default(),
            })
        });
        let series = Arc::clone(series);
        if series.id == id {
            inner.by_id.push(Arc::clone(&series));
        }
        series
    }

    /// The series that pass, sorted, with samples within the bounds.
    fn passing(&self, matchers: &[Matcher], mint: Millis, maxt: Millis) -> Vec<Arc<MemSeries>> {
        let passes = |labels: &Labels| matchers.iter().all(|m| m.matches(labels.get(&m.name).unwrap_or("")));
        let inner = self.read();
        let passing = inner
            .by_labels
            .values()
            .filter(|s| passes(&s.labels) && s.within(mint, maxt));
        passing.cloned().collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemSeries {
    fn add(&self, time: Millis, value: f64, histogram: Option<Arc<Histogram>>) -> bool {
        let mut column = self.column.write().unwrap_or_else(PoisonError::into_inner);
        let at = match column.times.last() {
            Some(last) if *last >= time => match column.times.binary_search(&time) {
                Ok(_) => return false,
                Err(at) => at,
            },
            _ => column.len(),
        };
        let histogram = histogram.map(|h| known(&column, at, h));
        if histogram.is_some() && column.histograms.is_empty() {
            let len = column.len();
            column.histograms.resize(len, None);
        }
        column.times.insert(at, time);
        column.values.insert(at, value);
        if histogram.is_some() || !column.histograms.is_empty() {
            column.histograms.insert(at, histogram);
        }
        true
    }

    fn within(&self, mint: Millis, maxt: Millis) -> bool {
        let column = self.column.read().unwrap_or_else(PoisonError::into_inner);
        column.times.partition_point(|t| *t < mint) < column.times.partition_point(|t| *t <= maxt)
    }
}

/// The histogram with what is known of its reset given the sample before it.
fn known(column: &Column, at: usize, histogram: Arc<Histogram>) -> Arc<Histogram> {
    let before = at.checked_sub(1).and_then(|before| column.histogram(before));
    let hint = appended_hint(before.map(|h| &**h), &histogram);
    if histogram.reset == hint {
        return histogram;
    }
    let mut histogram = (*histogram).clone();
    histogram.reset = hint;
    Arc::new(histogram)
}

impl StoredSeries for MemSeries {
    fn labels(&self) -> &Labels {
        &self.labels
    }

    fn read(&self, mint: Millis, maxt: Millis, into: &mut Column) -> Result<(), StoreError> {
        let column = self.column.read().unwrap_or_else(PoisonError::into_inner);
        let from = column.times.partition_point(|t| *t < mint);
        let to = column.times.partition_point(|t| *t <= maxt).max(from);
        if !column.histograms.is_empty() {
            into.histograms.resize(into.times.len(), None);
            into.histograms.extend_from_slice(&column.histograms[from..to]);
        } else if !into.histograms.is_empty() {
            into.histograms.resize(into.times.len() + to - from, None);
        }
        into.times.extend_from_slice(&column.times[from..to]);
        into.values.extend_from_slice(&column.values[from..to]);
        Ok(())
    }
}

impl Queryable for MemStore {
    fn select(&self, matchers: &[Matcher], mint: Millis, maxt: Millis) -> Result<Selection, StoreError> {
        let passing = self.passing(matchers, mint, maxt);
        Ok(Selection {
            series: passing.into_iter().map(|s| s as Arc<dyn StoredSeries>).collect(),
            warnings: Vec::new(),
        })
    }

    fn label_names(&self, matchers: &[Matcher], mint: Millis, maxt: Millis) -> Result<Vec<String>, StoreError> {
        let passing = self.passing(matchers, mint, maxt);
        let names = passing
            .iter()
            .flat_map(|s| s.labels.iter().map(|(name, _)| name.to_owned()));
        Ok(names.collect::<BTreeSet<_>>().into_iter().collect())
    }

    fn label_values(
        &self,
        name: &str,
        matchers: &[Matcher],
        mint: Millis,
        maxt: Millis,
    ) -> Result<Vec<String>, StoreError> {
        let passing = self.passing(matchers, mint, maxt);
        let values = passing.iter().filter_map(|s| s.labels.get(name).map(str::to_owned));
        Ok(values.collect::<BTreeSet<_>>().into_iter().collect())
    }
}

impl Appender for MemStore {
    fn target(&self, labels: &Labels) -> TargetId {
        let mut inner = self.write();
        let at = inner.targets.iter().position(|t| t == labels).unwrap_or_else(|| {
            inner.targets.push(labels.clone());
            inner.targets.len() - 1
        });
        TargetId(u32::try_from(at).unwrap_or(u32::MAX))
    }

    fn series(&self, labels: &Labels) -> Result<SeriesId, StoreError> {
        Ok(self.series_of(labels).id)
    }

    fn append(&self, _: TargetId, time: Millis, batch: &Batch) -> Result<Appended, StoreError> {
        let mut appended = Appended::default();
        let own = batch.samples.iter().map(|(id, value)| (*id, time, *value, None));
        let timed = batch.timed.iter().map(|(id, at, value)| (*id, *at, *value, None));
        let natives = batch.histograms.iter();
        let natives = natives.map(|(id, at, h)| (*id, at.unwrap_or(time), h.sum, Some(Arc::clone(h))));
        for (id, time, value, histogram) in own.chain(timed).chain(natives) {
            let place = usize::try_from(id.0).unwrap_or(usize::MAX);
            let series = self.read().by_id.get(place).cloned();
            match series.map(|s| s.add(time, value, histogram)) {
                Some(true) => appended.accepted += 1,
                Some(false) => appended.duplicates += 1,
                None => appended.unknown.push(id),
            }
        }
        Ok(appended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_is_found_in_order() {
        let store = MemStore::new();
        let up = Labels::from_pairs([("__name__", "up"), ("job", "a")]);
        let id = Appender::series(&store, &up).expect("no limit");
        let target = store.target(&Labels::empty());
        let batch = |samples: Vec<(SeriesId, f64)>| Batch {
            samples,
            timed: Vec::new(),
            ..Default::default()
        };
        for (time, value) in [(20, 2.0), (10, 1.0), (20, 3.0)] {
            store.append(target, time, &batch(vec![(id, value)])).expect("memory");
        }
        let unknown = store
            .append(target, 0, &batch(vec![(SeriesId(9), 0.0)]))
            .expect("memory");
        assert_eq!(unknown.unknown, [SeriesId(9)]);
        let found = store.select(&[], 0, 100).expect("memory");
        let mut column = Column::default();
        found.series[0].read(0, 100, &mut column).expect("memory");
        assert_eq!((column.times, column.values), (vec![10, 20], vec![1.0, 2.0]));
        assert_eq!(store.label_values("job", &[], 0, 100).ok(), Some(vec!["a".to_owned()]));
        assert!(store.select(&[], 30, 100).expect("memory").series.is_empty());
    }
}
