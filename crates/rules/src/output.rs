//! What a rule wrote last time: the next evaluation ends each series that it does not write again.
//!
//! Invariant: a series leaves [`Output`] only with a staleness marker behind it, or because another rule writes it
//! now. A store that refuses a batch changes nothing here, so the marker is tried again.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use model::{Appender, Batch, Histogram, Labels, Millis, SeriesId, TargetId, stale_nan};

use crate::error::Error;

/// What a rule writes for one series.
#[derive(Debug, Clone, PartialEq)]
pub enum Point {
    /// A number.
    Float(f64),
    /// A native histogram.
    Native(Arc<Histogram>),
}

impl Point {
    /// What a query gave.
    pub fn of(sample: model::Sample) -> Self {
        match sample.histogram {
            Some(histogram) => Self::Native(histogram),
            None => Self::Float(sample.value),
        }
    }
}

/// The living series of a rule, and how the store calls them.
#[derive(Debug, Default)]
pub struct Output {
    written: HashSet<Labels>,
    ids: HashMap<Labels, SeriesId>,
}

impl Output {
    /// The series that the last evaluation wrote.
    pub fn written(&self) -> impl Iterator<Item = &Labels> {
        self.written.iter()
    }

    /// Whether no series waits for its end.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    /// Takes over the series of a rule that is gone.
    pub fn absorb(&mut self, other: Self) {
        self.written.extend(other.written);
        self.ids.extend(other.ids);
    }

    /// Leaves out series that somebody else writes now.
    pub fn release(&mut self, living: &HashSet<Labels>) {
        self.written.retain(|labels| !living.contains(labels));
        self.ids.retain(|labels, _| !living.contains(labels));
    }

    /// Adds `lines` to the store and ends what was written last time and is not part of them.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] when the store takes nothing.
    pub fn write(
        &mut self,
        time: Millis,
        target: TargetId,
        mut lines: Vec<(Labels, Point)>,
        appender: &dyn Appender,
    ) -> Result<(), Error> {
        let written: HashSet<Labels> = lines.iter().map(|(labels, _)| labels.clone()).collect();
        let ended: Vec<Labels> = self.written.difference(&written).cloned().collect();
        lines.extend(ended.iter().map(|labels| (labels.clone(), Point::Float(stale_nan()))));
        self.append(time, target, &lines, appender)?;
        for labels in &ended {
            self.ids.remove(labels);
        }
        self.written = written;
        Ok(())
    }

    fn append(
        &mut self,
        time: Millis,
        target: TargetId,
        lines: &[(Labels, Point)],
        appender: &dyn Appender,
    ) -> Result<(), Error> {
        let mut pending: Vec<&(Labels, Point)> = lines.iter().collect();
        // Twice at most: a store that forgot a series names it, and its labels are told again.
        for _ in 0..2 {
            if pending.is_empty() {
                break;
            }
            let mut batch = Batch::default();
            for (labels, value) in &pending {
                let id = self.id(labels, appender)?;
                match value {
                    Point::Float(value) => batch.samples.push((id, *value)),
                    Point::Native(histogram) => batch.histograms.push((id, None, Arc::clone(histogram))),
                }
            }
            let unknown: HashSet<SeriesId> = appender.append(target, time, &batch)?.unknown.into_iter().collect();
            pending.retain(|(labels, _)| self.ids.get(labels).is_some_and(|id| unknown.contains(id)));
            for (labels, _) in &pending {
                self.ids.remove(labels);
            }
        }
        Ok(())
    }

    fn id(&mut self, labels: &Labels, appender: &dyn Appender) -> Result<SeriesId, Error> {
        if let Some(id) = self.ids.get(labels) {
            return Ok(*id);
        }
        let id = appender.series(labels)?;
        self.ids.insert(labels.clone(), id);
        Ok(id)
    }
}
