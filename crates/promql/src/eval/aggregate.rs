//! Aggregations: `sum by (job) (…)` and the others that make one series of a group.

use std::hash::{BuildHasher as _, Hash as _, Hasher as _};

use hashbrown::HashTable;
use model::{Labels, QueryError};

use super::Evaluator;
use super::accumulate::{Accumulate, Average, Count, Least, Most, One, Total, Variance};
use super::budget::Budget;
use super::grid::Grid;
use super::native_group::NativeGroups;
use super::note::Notes;
use super::quantile::{nan_first, quantile};
use super::series::{ABSENT, Natives, Operand, Scalar, Series, is_present};
use crate::ast::AggregateOp;
use crate::plan::{Aggregate, Grouping};

impl Evaluator<'_> {
    /// Evaluates an aggregation.
    pub(super) fn aggregate(&self, aggregate: &Aggregate, grid: Grid) -> Result<Operand, QueryError> {
        if aggregate.op == AggregateOp::CountValues {
            return self.count_values(aggregate, grid);
        }
        let param = aggregate.param.as_ref().map(|p| self.scalar(p, grid)).transpose()?;
        let series = match aggregate.op {
            AggregateOp::Topk | AggregateOp::Bottomk | AggregateOp::Limitk | AggregateOp::LimitRatio => {
                let param = param.ok_or_else(|| super::mistyped("scalar"))?;
                let series = self.vector(&aggregate.arg, grid)?;
                self.rank(aggregate, &param, &series, grid)
            }
            AggregateOp::Quantile => {
                let q = param.ok_or_else(|| super::mistyped("scalar"))?;
                let series = self.vector(&aggregate.arg, grid)?;
                self.remark_quantile(aggregate, &q, grid);
                self.remark_ignored(aggregate, &series);
                let groups = Groups::of(&aggregate.grouping, &series);
                self.budget.take(groups.labels.len().saturating_mul(grid.len))?;
                let values = groups.quantiles(&series, &q, grid, &self.budget)?;
                Ok(groups.with(values.into_iter().map(|v| (v, Vec::new())).collect()))
            }
            AggregateOp::Sum => self.fold::<Total>(aggregate, grid),
            AggregateOp::Avg => self.fold::<Average>(aggregate, grid),
            AggregateOp::Min => self.fold::<Least>(aggregate, grid),
            AggregateOp::Max => self.fold::<Most>(aggregate, grid),
            AggregateOp::Count => self.fold::<Count>(aggregate, grid),
            AggregateOp::Stdvar => self.fold::<Variance<false>>(aggregate, grid),
            AggregateOp::Stddev => self.fold::<Variance<true>>(aggregate, grid),
            AggregateOp::Group | AggregateOp::CountValues => self.fold::<One>(aggregate, grid),
        };
        series.map(Operand::Vector)
    }

    /// Folds the values of each group at each step.
    fn fold<A: Accumulate>(&self, aggregate: &Aggregate, grid: Grid) -> Result<Vec<Series>, QueryError> {
        let mut groups = Groups::new(&aggregate.grouping);
        let mut states: Vec<Vec<A>> = Vec::new();
        let mut natives = NativeGroups::new(aggregate.op == AggregateOp::Avg, aggregate.arg.span);
        self.each_series(&aggregate.arg, &aggregate.grouping, grid, |one| {
            let group = groups.place(one);
            if group == states.len() {
                self.budget.take(grid.len)?;
                states.push(vec![A::default(); grid.len]);
            }
            for (state, value) in states[group].iter_mut().zip(&one.values) {
                if is_present(*value) {
                    state.add(*value);
                }
            }
            if one.natives.is_empty() {
                return Ok(());
            }
            match aggregate.op {
                AggregateOp::Sum | AggregateOp::Avg => {
                    if !natives.knows(group) {
                        self.budget.take(grid.len)?;
                    }
                    natives.add(group, one);
                }
                AggregateOp::Count | AggregateOp::Group => {
                    let present = one.natives.iter().zip(&mut states[group]).filter(|(h, _)| h.is_some());
                    present.for_each(|(_, state)| state.add(1.0));
                }
                _ => self.remark_ignored(aggregate, std::slice::from_ref(one)),
            }
            Ok(())
        })?;
        let mut finished = Vec::with_capacity(states.len());
        for (group, states) in states.into_iter().enumerate() {
            let mut values: Vec<f64> = states.iter().map(|s| s.value().unwrap_or(ABSENT)).collect();
            let natives = natives.finish(group, &mut values);
            finished.push((values, natives));
        }
        self.note(natives.notes);
        Ok(groups.with(finished))
    }

    /// Notes histograms that an operator leaves out.
    pub(super) fn remark_ignored(&self, aggregate: &Aggregate, series: &[Series]) {
        if series.iter().any(|s| s.natives.iter().any(Option::is_some)) {
            let mut notes = Notes::default();
            notes.ignored_in_aggregation(aggregate.op.name(), aggregate.arg.span);
            self.note(notes);
        }
    }

    fn remark_quantile(&self, aggregate: &Aggregate, q: &Scalar, grid: Grid) {
        let Some(param) = &aggregate.param else { return };
        let (mut most, mut least, mut nan) = (f64::MIN, f64::MAX, false);
        for value in (0..grid.len).map(|i| q.at(i)) {
            nan |= value.is_nan();
            most = most.max(value);
            least = least.min(value);
        }
        let mut notes = Notes::default();
        if nan {
            notes.quantile_outside(f64::NAN, param.span);
        }
        if most > 1.0 {
            notes.quantile_outside(most, param.span);
        }
        if least < 0.0 {
            notes.quantile_outside(least, param.span);
        }
        self.note(notes);
    }
}

/// Which series belong together.
pub(super) struct Groups<'a> {
    grouping: &'a Grouping,
    /// The place of each group by its labels.
    known: HashTable<usize>,
    hasher: foldhash::fast::RandomState,
    /// The labels of each group, in order of its first series.
    labels: Vec<Labels>,
    /// Whether a member's metric name is still to be removed.
    drop_name: Vec<bool>,
    /// The group of each series.
    member_of: Vec<usize>,
}

impl<'a> Groups<'a> {
    fn new(grouping: &'a Grouping) -> Self {
        Self {
            grouping,
            known: HashTable::new(),
            hasher: foldhash::fast::RandomState::default(),
            labels: Vec::new(),
            drop_name: Vec::new(),
            member_of: Vec::new(),
        }
    }

    /// Sorts all series into groups.
    pub(super) fn of(grouping: &'a Grouping, series: &[Series]) -> Self {
        let mut groups = Self::new(grouping);
        for one in series {
            let group = groups.place(one);
            groups.member_of.push(group);
        }
        groups
    }

    /// The group of a series, a new one where there is none yet.
    fn place(&mut self, series: &Series) -> usize {
        let hash_of = |hasher: &foldhash::fast::RandomState, kept: &mut dyn Iterator<Item = (&str, &str)>| {
            let mut state = hasher.build_hasher();
            kept.for_each(|pair| pair.hash(&mut state));
            state.finish()
        };
        let grouping = self.grouping;
        let hash = hash_of(&self.hasher, &mut grouping.kept(&series.labels));
        let same = |group: &usize| grouping.kept(&series.labels).eq(self.labels[*group].iter());
        let group = match self.known.find(hash, same) {
            Some(group) => *group,
            None => {
                let group = self.labels.len();
                self.labels.push(grouping.of(&series.labels));
                self.drop_name.push(false);
                let (labels, hasher) = (&self.labels, &self.hasher);
                let rehash = |group: &usize| hash_of(hasher, &mut labels[*group].iter());
                self.known.insert_unique(hash, group, rehash);
                group
            }
        };
        self.drop_name[group] |= series.drop_name;
        group
    }

    /// The groups as series with these values, those without any left out.
    fn with(self, values: Vec<(Vec<f64>, Natives)>) -> Vec<Series> {
        let named = self.labels.into_iter().zip(self.drop_name).zip(values);
        let series = named.map(|((labels, drop_name), (values, natives))| Series {
            labels,
            drop_name,
            values,
            natives,
        });
        series.filter(Series::any_present).collect()
    }

    /// The series of each group.
    pub(super) fn members(&self) -> Vec<Vec<usize>> {
        let mut members = vec![Vec::new(); self.labels.len()];
        for (series, group) in self.member_of.iter().enumerate() {
            members[*group].push(series);
        }
        members
    }

    fn quantiles(
        &self,
        series: &[Series],
        q: &Scalar,
        grid: Grid,
        budget: &Budget<'_>,
    ) -> Result<Vec<Vec<f64>>, QueryError> {
        let mut sorted = Vec::new();
        let mut of_groups = Vec::with_capacity(self.labels.len());
        for members in self.members() {
            let mut values = vec![ABSENT; grid.len];
            for (step, value) in values.iter_mut().enumerate() {
                if step % 64 == 0 {
                    budget.check()?;
                }
                let all = members.iter().map(|m| series[*m].values[step]);
                sorted.clear();
                sorted.extend(all.filter(|v| is_present(*v)));
                sorted.sort_unstable_by(nan_first);
                if !sorted.is_empty() {
                    *value = quantile(q.at(step), &sorted);
                }
            }
            of_groups.push(values);
        }
        Ok(of_groups)
    }
}
