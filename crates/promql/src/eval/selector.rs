//! Selectors: from the store to columns, and from columns to the latest sample at each step.

use std::sync::Arc;

use model::{Column, Histogram, Labels, QueryError, ResetHint, StoreError, StoredSeries, is_stale};

use super::grid::Grid;
use super::parallel;
use super::series::{ABSENT, Series, is_present, native_cells};
use super::window::Frame;
use super::{Evaluator, over_time};
use crate::native::is_reset;
use crate::plan::Select;

/// What an instant selector puts into a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Take {
    /// The sample's value.
    Value,
    /// The sample's moment, in seconds.
    Moment,
    /// The sample's moment, in milliseconds.
    Millis,
}

/// Damaged series that are told one by one; a whole damaged block must not drown the answer.
const DAMAGED_TOLD_MAX: usize = 20;

impl Evaluator<'_> {
    /// The latest sample of each series at each step, not older than the lookback.
    pub(super) fn instant(&self, select: &Select, grid: Grid, take: Take) -> Result<Vec<Series>, QueryError> {
        let frame = Frame::of(select, self.lookback, grid);
        let found = self.select(select, frame.bounds())?;
        self.instant_of(&found, &frame, take)
    }

    /// The same for series already selected.
    pub(super) fn instant_of(
        &self,
        found: &[Arc<dyn StoredSeries>],
        frame: &Frame,
        take: Take,
    ) -> Result<Vec<Series>, QueryError> {
        parallel::map::<Column, Series>(self.threads_for(found.len(), frame.grid), found.len(), |column, i| {
            let cells = self.read(&*found[i], frame, true, column)?;
            let mut series = Series::new(found[i].labels().clone(), vec![ABSENT; frame.grid.len]);
            latest(frame, column, take, &mut series);
            self.budget.give(cells);
            self.kept(series)
        })
    }

    /// Runs `f` over the samples that windows of `frame` can see, series by series, staleness markers left out.
    pub(super) fn over_columns<T: Send>(
        &self,
        found: &[Arc<dyn StoredSeries>],
        frame: &Frame,
        f: impl Fn(&Labels, &Column, &mut over_time::Scratch) -> Result<Option<T>, QueryError> + Sync,
    ) -> Result<Vec<T>, QueryError> {
        type Space = (Column, over_time::Scratch);
        parallel::map::<Space, T>(self.threads_for(found.len(), frame.grid), found.len(), |space, i| {
            let (column, scratch) = space;
            let cells = self.read(&*found[i], frame, false, column)?;
            drop_stale(column);
            let result = f(found[i].labels(), column, scratch);
            self.budget.give(cells);
            result
        })
    }

    /// The stored series that pass, sorted by labels, each once.
    pub(super) fn select(
        &self,
        select: &Select,
        (mint, maxt): (model::Millis, model::Millis),
    ) -> Result<Vec<Arc<dyn StoredSeries>>, QueryError> {
        let mut all = Vec::new();
        for matchers in &select.alternatives {
            let selection = self.storage.select(matchers, mint, maxt).map_err(store_error)?;
            parallel::lock(&self.store_warnings).extend(selection.warnings);
            self.budget.count_series(selection.series.len())?;
            all.extend(selection.series);
        }
        if select.alternatives.len() > 1 {
            all.sort_by(|a, b| a.labels().cmp(b.labels()));
            all.dedup_by(|a, b| a.labels() == b.labels());
        }
        Ok(all)
    }

    /// A series with its room taken, or nothing where it has no sample.
    pub(super) fn kept(&self, series: Series) -> Result<Option<Series>, QueryError> {
        if !series.any_present() {
            return Ok(None);
        }
        self.budget.take(series.cells())?;
        Ok(Some(series))
    }

    /// Reads a series into `column`, taking room for its samples; the caller gives back what is returned. Damage
    /// costs the samples that it covers and is told as a warning: what could be read is there.
    pub(super) fn read(
        &self,
        series: &dyn StoredSeries,
        frame: &Frame,
        is_instant: bool,
        column: &mut Column,
    ) -> Result<usize, QueryError> {
        self.budget.check()?;
        let (mint, maxt) = frame.bounds();
        column.clear();
        match series.read(mint, maxt, column) {
            Err(StoreError::Damaged(what)) => self.damaged(series.labels(), &what),
            done => done.map_err(store_error)?,
        }
        self.budget.count_read(column.len());
        if frame.stats && !column.histograms.is_empty() {
            leave_stats(column);
        }
        if let Some(looked_at) = &self.looked_at {
            looked_at.count(frame, column, is_instant);
        }
        let cells = column.len() + native_cells(&column.histograms);
        self.budget.take(cells)?;
        Ok(cells)
    }

    fn damaged(&self, labels: &Labels, what: &str) {
        let mut warning = format!("samples of {labels} are missing, their data is damaged: {what}");
        let mut warnings = parallel::lock(&self.store_warnings);
        if warnings.len() >= DAMAGED_TOLD_MAX && !warnings.contains(&warning) {
            "samples of further series are missing, their data is damaged".clone_into(&mut warning);
        }
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    /// How many threads are worth starting for this many series.
    pub(super) const fn threads_for(&self, series: usize, grid: Grid) -> usize {
        let few = if grid.len > 1 { 32 } else { 512 };
        if series < few { 1 } else { self.threads }
    }
}

/// A store's failure as a query's.
#[expect(clippy::needless_pass_by_value, reason = "handed to `map_err`")]
pub(crate) fn store_error(error: StoreError) -> QueryError {
    match error {
        StoreError::NotReady => QueryError::Unavailable(error.to_string()),
        StoreError::Limit(_) => QueryError::Execution(error.to_string()),
        StoreError::Io(_) | StoreError::Damaged(_) | StoreError::Closed(_) => {
            QueryError::Internal(format!("expanding series: {error}"))
        }
    }
}

/// Fills each step with the latest sample that is young enough and no staleness marker.
pub(super) fn latest(frame: &Frame, column: &Column, take: Take, out: &mut Series) {
    frame.each(column, |step, window| {
        let last = window.end - 1;
        let value = column.values[last];
        if !is_present(value) {
            return;
        }
        match column.histogram(last) {
            Some(histogram) if take != Take::Moment => out.set_native(step, Arc::clone(histogram)),
            _ => {
                out.values[step] = match take {
                    Take::Value => value,
                    Take::Moment => over_time::seconds(column.times[last]),
                    Take::Millis => column.times[last] as f64,
                }
            }
        }
    });
}

/// Leaves of histograms what counts and sums need, and what is known of resets: that is found out here, while
/// there still are buckets, where the store does not know it.
fn leave_stats(column: &mut Column) {
    let mut before: Option<Arc<Histogram>> = None;
    for native in column.histograms.iter_mut().flatten() {
        if is_stale(native.sum) {
            continue;
        }
        let reset = match (native.reset, &before) {
            (ResetHint::Unknown, Some(before)) if is_reset(before, native) => ResetHint::Reset,
            (ResetHint::Unknown, Some(_)) => ResetHint::NotReset,
            (known, _) => known,
        };
        let stats = Histogram {
            reset,
            schema: native.schema,
            count: native.count,
            sum: native.sum,
            ..Histogram::default()
        };
        before = Some(std::mem::replace(native, Arc::new(stats)));
    }
}

/// Removes staleness markers; a column mostly has none.
pub(super) fn drop_stale(column: &mut Column) {
    if !column.values.iter().any(|v| is_stale(*v)) {
        return;
    }
    column.retain(|column, place| !is_stale(column.values[place]));
}
