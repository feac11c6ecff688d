//! Aggregations: `sum by (job) (…)` and the others that make one series of a group.

use hashbrown::HashMap;
use model::{Labels, QueryError};

use super::Evaluator;
use super::grid::Grid;
use super::note::Notes;
use super::quantile::{nan_first, quantile};
use super::series::{ABSENT, Operand, Scalar, Series, is_present};
use super::sum::{Mean, Sum, no_distance};
use crate::ast::AggregateOp;
use crate::plan::{Aggregate, Grouping};

impl Evaluator<'_> {
    /// Evaluates an aggregation.
    pub(super) fn aggregate(&self, aggregate: &Aggregate, grid: Grid) -> Result<Operand, QueryError> {
        if aggregate.op == AggregateOp::CountValues {
            return self.count_values(aggregate, grid);
        }
        let param = aggregate.param.as_ref().map(|p| self.scalar(p, grid)).transpose()?;
        let series = self.vector(&aggregate.arg, grid)?;
        match aggregate.op {
            AggregateOp::Topk | AggregateOp::Bottomk | AggregateOp::Limitk | AggregateOp::LimitRatio => {
                let param = param.ok_or_else(|| super::mistyped("scalar"))?;
                return self.rank(aggregate, &param, &series, grid).map(Operand::Vector);
            }
            _ => {}
        }
        let groups = Groups::of(&aggregate.grouping, &series);
        self.budget.take(groups.labels.len().saturating_mul(grid.len))?;
        let values = match aggregate.op {
            AggregateOp::Sum => groups.fold::<Total>(&series, grid),
            AggregateOp::Avg => groups.fold::<Average>(&series, grid),
            AggregateOp::Min => groups.fold::<Least>(&series, grid),
            AggregateOp::Max => groups.fold::<Most>(&series, grid),
            AggregateOp::Count => groups.fold::<Count>(&series, grid),
            AggregateOp::Stdvar => groups.fold::<Variance<false>>(&series, grid),
            AggregateOp::Stddev => groups.fold::<Variance<true>>(&series, grid),
            AggregateOp::Quantile => {
                let q = param.ok_or_else(|| super::mistyped("scalar"))?;
                self.remark_quantile(aggregate, &q, grid);
                groups.quantiles(&series, &q, grid)
            }
            _ => groups.fold::<One>(&series, grid),
        };
        let named = groups.labels.into_iter().zip(groups.drop_name).zip(values);
        let series = named.map(|((labels, drop_name), values)| Series {
            labels,
            drop_name,
            values,
        });
        Ok(Operand::Vector(series.filter(Series::any_present).collect()))
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
pub(super) struct Groups {
    /// The labels of each group, in order of its first series.
    pub(super) labels: Vec<Labels>,
    /// Whether a member's metric name is still to be removed.
    drop_name: Vec<bool>,
    /// The group of each series.
    pub(super) member_of: Vec<usize>,
}

impl Groups {
    /// Sorts the series into groups.
    pub(super) fn of(grouping: &Grouping, series: &[Series]) -> Self {
        let mut groups = Self {
            labels: Vec::new(),
            drop_name: Vec::new(),
            member_of: Vec::with_capacity(series.len()),
        };
        let mut known: HashMap<Labels, usize, foldhash::fast::RandomState> = HashMap::default();
        for one in series {
            let labels = grouping.of(&one.labels);
            let group = *known.entry(labels).or_insert_with_key(|labels| {
                groups.labels.push(labels.clone());
                groups.drop_name.push(false);
                groups.labels.len() - 1
            });
            groups.drop_name[group] |= one.drop_name;
            groups.member_of.push(group);
        }
        groups
    }

    /// The series of each group.
    pub(super) fn members(&self) -> Vec<Vec<usize>> {
        let mut members = vec![Vec::new(); self.labels.len()];
        for (series, group) in self.member_of.iter().enumerate() {
            members[*group].push(series);
        }
        members
    }

    fn fold<A: Accumulate>(&self, series: &[Series], grid: Grid) -> Vec<Vec<f64>> {
        let mut states = vec![vec![A::default(); grid.len]; self.labels.len()];
        for (one, group) in series.iter().zip(&self.member_of) {
            for (state, value) in states[*group].iter_mut().zip(&one.values) {
                if is_present(*value) {
                    state.add(*value);
                }
            }
        }
        let finish = |states: Vec<A>| states.iter().map(|s| s.value().unwrap_or(ABSENT)).collect();
        states.into_iter().map(finish).collect()
    }

    fn quantiles(&self, series: &[Series], q: &Scalar, grid: Grid) -> Vec<Vec<f64>> {
        let mut sorted = Vec::new();
        let mut of_group = |members: Vec<usize>| {
            let at_step = |step: usize| {
                sorted.clear();
                sorted.extend(
                    members
                        .iter()
                        .map(|m| series[*m].values[step])
                        .filter(|v| is_present(*v)),
                );
                sorted.sort_unstable_by(nan_first);
                if sorted.is_empty() {
                    ABSENT
                } else {
                    quantile(q.at(step), &sorted)
                }
            };
            (0..grid.len).map(at_step).collect()
        };
        self.members().into_iter().map(&mut of_group).collect()
    }
}

/// What is remembered of the values of a group at a step; `default` has seen none.
trait Accumulate: Copy + Default {
    fn add(&mut self, value: f64);

    /// `None` when nothing was added.
    fn value(&self) -> Option<f64>;
}

#[derive(Debug, Clone, Copy, Default)]
struct Total(Option<Sum>);

impl Accumulate for Total {
    #[inline]
    fn add(&mut self, value: f64) {
        match &mut self.0 {
            Some(sum) => sum.add(value),
            None => self.0 = Some(Sum::of(value)),
        }
    }

    fn value(&self) -> Option<f64> {
        self.0.map(|s| s.sum + s.lost)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Average(Option<Mean>);

impl Accumulate for Average {
    #[inline]
    fn add(&mut self, value: f64) {
        self.0.get_or_insert_default().add(value);
    }

    fn value(&self) -> Option<f64> {
        self.0.map(|m| m.value())
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Least(Option<f64>);

impl Accumulate for Least {
    #[inline]
    fn add(&mut self, value: f64) {
        if self.0.is_none_or(|least| least > value || least.is_nan()) {
            self.0 = Some(value);
        }
    }

    fn value(&self) -> Option<f64> {
        self.0
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Most(Option<f64>);

impl Accumulate for Most {
    #[inline]
    fn add(&mut self, value: f64) {
        if self.0.is_none_or(|most| most < value || most.is_nan()) {
            self.0 = Some(value);
        }
    }

    fn value(&self) -> Option<f64> {
        self.0
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Count(u32);

impl Accumulate for Count {
    #[inline]
    fn add(&mut self, _: f64) {
        self.0 += 1;
    }

    fn value(&self) -> Option<f64> {
        (self.0 > 0).then_some(f64::from(self.0))
    }
}

/// `group`
#[derive(Debug, Clone, Copy, Default)]
struct One(bool);

impl Accumulate for One {
    #[inline]
    fn add(&mut self, _: f64) {
        self.0 = true;
    }

    fn value(&self) -> Option<f64> {
        self.0.then_some(1.0)
    }
}

/// Welford's running variance.
#[derive(Debug, Clone, Copy, Default)]
struct Variance<const ROOT: bool> {
    count: f64,
    mean: f64,
    squares: f64,
}

impl<const ROOT: bool> Accumulate for Variance<ROOT> {
    #[inline]
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        if self.count == 1.0 {
            self.mean = value;
            self.squares = no_distance(value);
            return;
        }
        let distance = value - self.mean;
        self.mean += distance / self.count;
        self.squares += distance * (value - self.mean);
    }

    fn value(&self) -> Option<f64> {
        let variance = self.squares / self.count;
        (self.count > 0.0).then(|| if ROOT { variance.sqrt() } else { variance })
    }
}
