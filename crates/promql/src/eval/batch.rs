//! Series in batches: an aggregation over a selector, or over a function of one, need not hold all of its
//! series at once. Batches come in the order of the series, so the result is the same to the last bit.

use model::{METRIC_NAME, MatchOp, QueryError};

use super::Evaluator;
use super::grid::Grid;
use super::selector::Take;
use super::series::Series;
use super::window::Frame;
use crate::plan::{Kind, Node, RangeFunction, Ranged, Select};

/// About how many values a batch has; eight megabytes.
const CELLS: usize = 1 << 20;

impl Evaluator<'_> {
    /// Hands the series of `arg` to `each`, all at once or in batches.
    pub(super) fn batches(
        &self,
        arg: &Node,
        grid: Grid,
        mut each: impl FnMut(&[Series]) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let size = (CELLS / grid.len.max(1)).max(64);
        let mut pass = |series: Vec<Series>| {
            each(&series)?;
            self.budget.give(series.iter().map(Series::cells).sum());
            Ok(())
        };
        match &arg.kind {
            Kind::Select(select) if select.extension.is_none() => {
                let frame = Frame::of(select, self.lookback, grid);
                let found = self.select(select, frame.bounds())?;
                let mut batches = found.chunks(size);
                batches.try_for_each(|batch| pass(self.instant_of(batch, &frame, Take::Value)?))
            }
            Kind::Range(call) => match &call.arg {
                Ranged::Select { select, range }
                    if select.extension.is_none()
                        && call.function != RangeFunction::AbsentOverTime
                        && has_one_name(select) =>
                {
                    let frame = Frame::of(select, *range, grid);
                    let params = self.params(call, grid)?;
                    let found = self.select(select, frame.bounds())?;
                    found.chunks(size).try_for_each(|batch| {
                        let series = self.over_windows(call, &frame, &params, batch)?;
                        self.remark(call, &params, grid, &series);
                        pass(self.renamed_range(call.function, series)?)
                    })
                }
                _ => each(&self.vector(arg, grid)?),
            },
            _ => each(&self.vector(arg, grid)?),
        }
    }
}

/// Whether all series selected have the same name, so that none are the same without it.
fn has_one_name(select: &Select) -> bool {
    let pins = |m: &model::Matcher| m.name == METRIC_NAME && m.op == MatchOp::Equal;
    matches!(select.alternatives.as_slice(), [matchers] if matchers.iter().any(pins))
}
