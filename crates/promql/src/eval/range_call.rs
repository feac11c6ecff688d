//! Functions over windows: reads the samples, runs the function's arithmetic, names the result.

use std::sync::Arc;

use model::{Column, Labels, QueryError, ResetHint, StoredSeries};

use super::Evaluator;
use super::absent;
use super::extended;
use super::grid::Grid;
use super::note::Notes;
use super::over_time::{self, Facet, Scratch, seconds};
use super::parallel;
use super::rate::{self, Change};
use super::regression;
use super::selector::drop_stale;
use super::series::{ABSENT, Operand, Scalar, Series, is_present, same_labels, without_metadata};
use super::window::Frame;
use crate::plan::{RangeCall, RangeFunction, Ranged};

impl Evaluator<'_> {
    /// Evaluates a call such as `rate(x[5m])`.
    pub(super) fn range_call(&self, call: &RangeCall, grid: Grid) -> Result<Operand, QueryError> {
        let params = self.params(call, grid)?;
        let series = match &call.arg {
            Ranged::Select { select, range } => {
                let frame = Frame::of(select, *range, grid);
                if let Some(extension) = select.extension {
                    extended::check(call, extension)?;
                    self.extended_range(call, select, extension, &frame)?
                } else {
                    let found = self.select(select, frame.bounds())?;
                    self.over_windows(call, &frame, &params, &found)?
                }
            }
            Ranged::Subquery(subquery) => {
                let (inner_grid, inner) = self.subquery(subquery, grid)?;
                let frame = Frame {
                    grid,
                    at: subquery.at,
                    offset: subquery.offset,
                    range: subquery.range,
                    stats: false,
                };
                type Space = (Column, Scratch);
                parallel::map::<Space, Series>(self.threads_for(inner.len(), grid), inner.len(), |space, i| {
                    let (column, scratch) = space;
                    self.budget.check()?;
                    column.clear();
                    super::fill_column(&inner[i], inner_grid, column);
                    forget_resets(column);
                    let name = (&inner[i].labels, inner[i].drop_name);
                    self.windowed(call, &frame, &params, name, column, scratch)
                })?
            }
        };
        self.remark(call, &params, grid, &series);
        if call.function == RangeFunction::AbsentOverTime {
            return Ok(Operand::Vector(absent::over_time(&call.arg, &series, grid)));
        }
        self.renamed_range(call.function, series).map(Operand::Vector)
    }

    /// The scalar arguments.
    pub(super) fn params(&self, call: &RangeCall, grid: Grid) -> Result<Vec<Scalar>, QueryError> {
        call.params.iter().map(|p| self.scalar(p, grid)).collect()
    }

    /// Applies the function to the windows of stored series; names are still on.
    pub(super) fn over_windows(
        &self,
        call: &RangeCall,
        frame: &Frame,
        params: &[Scalar],
        found: &[Arc<dyn StoredSeries>],
    ) -> Result<Vec<Series>, QueryError> {
        self.over_columns(found, frame, |labels, column, scratch| {
            self.windowed(call, frame, params, (labels, false), column, scratch)
        })
    }

    /// Applies the function to one series; `None` when no window gave a value.
    fn windowed(
        &self,
        call: &RangeCall,
        frame: &Frame,
        params: &[Scalar],
        (labels, drop_name): (&Labels, bool),
        column: &Column,
        scratch: &mut Scratch,
    ) -> Result<Option<Series>, QueryError> {
        if column.is_empty() {
            return Ok(None);
        }
        let mut series = Series {
            labels: labels.clone(),
            drop_name,
            values: vec![ABSENT; frame.grid.len],
            natives: Vec::new(),
        };
        self.windows(call, frame, params, column, scratch, &mut series)?;
        self.kept(series)
    }

    /// The same into a series whose steps are all absent, from a column that may hold staleness markers.
    pub(super) fn windows_of(
        &self,
        call: &RangeCall,
        frame: &Frame,
        params: &[Scalar],
        column: &mut Column,
        scratch: &mut Scratch,
        out: &mut Series,
    ) -> Result<(), QueryError> {
        drop_stale(column);
        if column.is_empty() {
            return Ok(());
        }
        self.windows(call, frame, params, column, scratch, out)
    }

    fn windows(
        &self,
        call: &RangeCall,
        frame: &Frame,
        params: &[Scalar],
        column: &Column,
        scratch: &mut Scratch,
        out: &mut Series,
    ) -> Result<(), QueryError> {
        check_factors(call.function, params, frame.grid)?;
        if column.histograms.is_empty() {
            apply(call.function, frame, params, column, scratch, &mut out.values);
            return Ok(());
        }
        self.native_windows(call, frame, params, column, scratch, out)
    }

    /// Removes metric names, at once or by mark, and refuses series that are the same without them.
    pub(super) fn renamed_range(
        &self,
        function: RangeFunction,
        mut series: Vec<Series>,
    ) -> Result<Vec<Series>, QueryError> {
        for one in &mut series {
            if !function.keeps_name() {
                one.drop_name = true;
            }
            if one.drop_name && !self.delayed_names {
                one.labels = without_metadata(&one.labels);
            }
        }
        if !self.delayed_names && !function.keeps_name() {
            let mut seen = hashbrown::HashSet::with_capacity(series.len());
            if !series.iter().all(|s| seen.insert(&s.labels)) {
                return Err(same_labels());
            }
        }
        Ok(series)
    }

    /// Notes what the call's series or parameters give reason for.
    pub(super) fn remark(&self, call: &RangeCall, params: &[Scalar], grid: Grid, series: &[Series]) {
        if series.is_empty() {
            return;
        }
        let mut notes = Notes::default();
        match call.function {
            RangeFunction::Rate | RangeFunction::Increase => {
                let mut last = "";
                let has_numbers = |s: &&Series| s.natives.is_empty() || s.values.iter().any(|v| is_present(*v));
                for name in series.iter().filter(has_numbers).map(|s| s.labels.name()) {
                    if name != last && !name.is_empty() && !is_counter_name(name) {
                        notes.maybe_not_a_counter(name, call.arg_span);
                    }
                    last = name;
                }
            }
            RangeFunction::QuantileOverTime => {
                let steps = match params[0] {
                    Scalar::Const(_) => 1,
                    Scalar::Steps(_) => grid.len,
                };
                for q in (0..steps).map(|i| params[0].at(i)) {
                    if !(0.0..=1.0).contains(&q) {
                        notes.quantile_outside(q, call.params[0].span);
                    }
                }
            }
            _ => {}
        }
        self.note(notes);
    }
}

/// What is known of resets is known of neighbours in the store, not of the steps of a subquery.
fn forget_resets(column: &mut Column) {
    for native in column.histograms.iter_mut().flatten() {
        if matches!(native.reset, ResetHint::Reset | ResetHint::NotReset) {
            let mut histogram = (**native).clone();
            histogram.reset = ResetHint::Unknown;
            *native = Arc::new(histogram);
        }
    }
}

fn is_counter_name(name: &str) -> bool {
    ["_total", "_sum", "_count", "_bucket"]
        .iter()
        .any(|suffix| name.ends_with(suffix))
}

fn check_factors(function: RangeFunction, params: &[Scalar], grid: Grid) -> Result<(), QueryError> {
    if function != RangeFunction::DoubleExponentialSmoothing {
        return Ok(());
    }
    for (param, what, short) in [(&params[0], "smoothing", "sf"), (&params[1], "trend", "tf")] {
        let steps = if matches!(param, Scalar::Const(_)) { 1 } else { grid.len };
        for value in (0..steps).map(|i| param.at(i)) {
            if value <= 0.0 || value >= 1.0 {
                return Err(QueryError::Execution(format!(
                    "invalid {what} factor. Expected: 0 < {short} < 1, got: {value:.6}"
                )));
            }
        }
    }
    Ok(())
}

/// Runs the arithmetic of `function` over the windows of one series.
pub(super) fn apply(
    function: RangeFunction,
    frame: &Frame,
    params: &[Scalar],
    column: &Column,
    scratch: &mut Scratch,
    out: &mut [f64],
) {
    use RangeFunction as F;
    let change = |counter, per_second| Change { counter, per_second };
    match function {
        F::Rate => rate::extrapolated(change(true, true), frame, column, out),
        F::Increase => rate::extrapolated(change(true, false), frame, column, out),
        F::Delta => rate::extrapolated(change(false, false), frame, column, out),
        F::Irate => rate::instant(change(true, true), frame, column, out),
        F::Idelta => rate::instant(change(false, false), frame, column, out),
        F::SumOverTime => over_time::sum(frame, column, scratch, out),
        F::AvgOverTime => over_time::avg(frame, column, scratch, out),
        F::MaxOverTime => over_time::max(Facet::Value, frame, column, scratch, out),
        F::MinOverTime => over_time::min(Facet::Value, frame, column, scratch, out),
        F::TsOfMaxOverTime => over_time::max(Facet::Moment, frame, column, scratch, out),
        F::TsOfMinOverTime => over_time::min(Facet::Moment, frame, column, scratch, out),
        F::StdvarOverTime => over_time::variance(false, frame, column, scratch, out),
        F::StddevOverTime => over_time::variance(true, frame, column, scratch, out),
        F::QuantileOverTime => over_time::quantiles(|i| params[0].at(i), frame, column, scratch, out),
        F::MadOverTime => over_time::median_distance(frame, column, scratch, out),
        F::Changes => over_time::changes(frame, column, scratch, out),
        F::Resets => over_time::resets(frame, column, scratch, out),
        F::Deriv => regression::slope(frame, column, scratch, out),
        F::PredictLinear => regression::predict(|i| params[0].at(i), frame, column, scratch, out),
        F::DoubleExponentialSmoothing => {
            over_time::smooth(|i| (params[0].at(i), params[1].at(i)), frame, column, out);
        }
        F::CountOverTime => over_time::each(frame, column, out, |_, window| window.len() as f64),
        F::AbsentOverTime | F::PresentOverTime => over_time::each(frame, column, out, |_, _| 1.0),
        F::FirstOverTime => over_time::each(frame, column, out, |c, window| c.values[window.start]),
        F::LastOverTime => over_time::each(frame, column, out, |c, window| c.values[window.end - 1]),
        F::TsOfFirstOverTime => over_time::each(frame, column, out, |c, window| seconds(c.times[window.start])),
        F::TsOfLastOverTime => over_time::each(frame, column, out, |c, window| seconds(c.times[window.end - 1])),
    }
}
