//! Series one after the other: an aggregation over a selector, a function of one, or either compared or
//! calculated with a number, holds a block of its series at a time and reads the next into the same memory.
//!
//! Threads work on blocks side by side and hand them over in the order of the series, so that the result is the
//! same to the last bit however many there are.

use model::{Column, METRIC_NAME, MatchOp, QueryError, StoredSeries};

use super::Evaluator;
use super::grid::Grid;
use super::note::Notes;
use super::over_time::Scratch;
use super::parallel;
use super::selector::{Take, latest};
use super::series::{ABSENT, Scalar, Series, is_metadata};
use super::window::Frame;
use crate::plan::{Binary, Grouping, Kind, Node, RangeCall, RangeFunction, Ranged, Select};

/// About how many values a block has: half a megabyte, so that it stays near the processor.
const CELLS: usize = 1 << 16;

/// The most series of a block.
const BLOCK: usize = 32;

/// A thread's own space.
#[derive(Default)]
struct Space {
    column: Column,
    scratch: Scratch,
    /// The block; the first `used` of them count.
    block: Vec<Series>,
    used: usize,
}

/// What is read, and what is done to each series of it.
struct Source<'n> {
    select: &'n Select,
    call: Option<&'n RangeCall>,
    /// Operations with a number on the right, innermost first.
    stages: Vec<(&'n Binary, f64)>,
}

impl<'n> Source<'n> {
    /// `None` where the argument is anything else.
    fn of(node: &'n Node) -> Option<Self> {
        let (links, first) = node.chain();
        let mut stages = Vec::with_capacity(links.len());
        for link in links.into_iter().rev() {
            let Kind::Number(number) = link.rhs.kind else {
                return None;
            };
            stages.push((link, number));
        }
        let (select, call) = match &first.kind {
            Kind::Select(select) => (select, None),
            Kind::Range(call) if call.function != RangeFunction::AbsentOverTime => match &call.arg {
                Ranged::Select { select, .. } => (select, Some(&**call)),
                Ranged::Subquery(_) => return None,
            },
            _ => return None,
        };
        let renames = call.is_some() || !stages.is_empty();
        let fine = select.extension.is_none() && (!renames || has_one_name(select));
        fine.then_some(Self { select, call, stages })
    }

    fn range(&self, lookback: model::Millis) -> model::Millis {
        match self.call.map(|call| &call.arg) {
            Some(Ranged::Select { range, .. }) => *range,
            _ => lookback,
        }
    }
}

impl Evaluator<'_> {
    /// Hands the series of `arg` to `each`. Those of a function or operation still have their name where
    /// `grouping` does not look at it.
    pub(super) fn each_series(
        &self,
        arg: &Node,
        grouping: &Grouping,
        grid: Grid,
        mut each: impl FnMut(&Series) -> Result<(), QueryError> + Send,
    ) -> Result<(), QueryError> {
        let blind = grouping.without || !grouping.labels.iter().any(|l| is_metadata(l));
        let source = Source::of(arg)
            .filter(|source| (source.call.is_none() && source.stages.is_empty()) || (blind && !self.delayed_names));
        let Some(source) = source else {
            return self.vector(arg, grid)?.iter().try_for_each(each);
        };
        let frame = Frame::of(source.select, source.range(self.lookback), grid);
        let params = source.call.map_or(Ok(Vec::new()), |call| self.params(call, grid))?;
        let found = self.select(source.select, frame.bounds())?;
        let block = (CELLS / grid.len.max(1)).clamp(1, BLOCK);
        let compute = |space: &mut Space, range: std::ops::Range<usize>| {
            space.used = 0;
            for stored in &found[range] {
                self.fill(&source, &**stored, &frame, &params, space)?;
            }
            Ok(())
        };
        let consume = |space: &mut Space| {
            let block = &space.block[..space.used];
            if let Some(call) = source.call {
                self.remark(call, &params, grid, block);
            }
            block.iter().try_for_each(&mut each)?;
            self.budget.give(block.iter().map(Series::cells).sum());
            Ok(())
        };
        parallel::in_order(
            self.threads_for(found.len(), grid),
            found.len(),
            block,
            compute,
            consume,
        )
    }

    /// Computes one series into the next place of the block; a series without a sample takes none.
    fn fill(
        &self,
        source: &Source<'_>,
        stored: &dyn StoredSeries,
        frame: &Frame,
        params: &[Scalar],
        space: &mut Space,
    ) -> Result<(), QueryError> {
        if space.block.len() == space.used {
            space.block.push(Series::new(stored.labels().clone(), Vec::new()));
        }
        let out = &mut space.block[space.used];
        out.labels = stored.labels().clone();
        out.drop_name = source.call.is_some_and(|call| !call.function.keeps_name());
        out.values.clear();
        out.values.resize(frame.grid.len, ABSENT);
        out.natives.clear();
        let held = self.read(stored, frame, source.call.is_none(), &mut space.column)?;
        match source.call {
            None => latest(frame, &space.column, Take::Value, out),
            Some(call) => self.windows_of(call, frame, params, &mut space.column, &mut space.scratch, out)?,
        }
        self.budget.give(held);
        let mut notes = Notes::default();
        for (binary, number) in &source.stages {
            self.series_with_scalar(binary, out, &Scalar::Const(*number), false, &mut notes);
        }
        self.note(notes);
        if out.any_present() {
            self.budget.take(out.cells())?;
            space.used += 1;
        }
        Ok(())
    }
}

/// Whether all series selected have the same name, so that none are the same without it.
fn has_one_name(select: &Select) -> bool {
    let pins = |m: &model::Matcher| m.name == METRIC_NAME && m.op == MatchOp::Equal;
    matches!(select.alternatives.as_slice(), [matchers] if matchers.iter().any(pins))
}
