//! `topk`, `bottomk`, `limitk`, `limit_ratio`: some series of each group, chosen anew at every step.

use std::cmp::Ordering;

use model::number::General;
use model::{Labels, QueryError};

use super::Evaluator;
use super::aggregate::Groups;
use super::grid::Grid;
use super::note::Notes;
use super::series::{ABSENT, Scalar, Series, is_present};
use crate::ast::AggregateOp;
use crate::plan::Aggregate;

impl Evaluator<'_> {
    /// The chosen series; an instant query gets them in order of rank.
    pub(super) fn rank(
        &self,
        aggregate: &Aggregate,
        param: &Scalar,
        series: &[Series],
        grid: Grid,
    ) -> Result<Vec<Series>, QueryError> {
        let params = Params::of(param, grid);
        if aggregate.op == AggregateOp::LimitRatio {
            if !self.ratio_is_fine(aggregate, &params)? {
                return Ok(Vec::new());
            }
        } else if !count_is_fine(&params)? {
            return Ok(Vec::new());
        }
        if matches!(aggregate.op, AggregateOp::Topk | AggregateOp::Bottomk) {
            self.remark_ignored(aggregate, series);
        }
        let members = Groups::of(&aggregate.grouping, series).members();
        let mut chosen: Vec<Option<Series>> = vec![None; series.len()];
        let mut order = Vec::new();
        let mut picked = Vec::new();
        for step in 0..grid.len {
            if step % 64 == 0 {
                self.budget.check()?;
            }
            for group in &members {
                picked.clear();
                pick(aggregate.op, param.at(step), series, group, step, &mut picked);
                for (_, index) in &picked {
                    let from = &series[*index];
                    if chosen[*index].is_none() {
                        self.budget.take(grid.len)?;
                        order.push(*index);
                    }
                    let into = chosen[*index].get_or_insert_with(|| Series {
                        labels: from.labels.clone(),
                        drop_name: from.drop_name,
                        values: vec![ABSENT; grid.len],
                        natives: Vec::new(),
                    });
                    into.copy_step(step, from);
                }
            }
        }
        Ok(order.into_iter().filter_map(|index| chosen[index].take()).collect())
    }

    /// Whether any series can be chosen; notes ratios out of range.
    fn ratio_is_fine(&self, aggregate: &Aggregate, params: &Params) -> Result<bool, QueryError> {
        if params.nan {
            return Err(QueryError::Execution("Ratio value is NaN".to_owned()));
        }
        if params.most == 0.0 && params.least == 0.0 {
            return Ok(false);
        }
        let mut notes = Notes::default();
        if let Some(param) = &aggregate.param {
            if params.most > 1.0 {
                notes.ratio_outside(params.most, 1.0, param.span);
            }
            if params.least < -1.0 {
                notes.ratio_outside(params.least, -1.0, param.span);
            }
        }
        self.note(notes);
        Ok(true)
    }
}

/// The extremes of a parameter over all steps.
struct Params {
    most: f64,
    least: f64,
    nan: bool,
}

impl Params {
    fn of(param: &Scalar, grid: Grid) -> Self {
        let mut params = Self {
            most: f64::MIN,
            least: f64::MAX,
            nan: false,
        };
        for value in (0..grid.len).map(|i| param.at(i)) {
            params.most = params.most.max(value);
            params.least = params.least.min(value);
            params.nan |= value.is_nan();
        }
        params
    }
}

fn count_is_fine(params: &Params) -> Result<bool, QueryError> {
    // 2^63, the first float beyond 64 bits.
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    let error = |text: String| Err(QueryError::Execution(text));
    if params.nan {
        return error("Parameter value is NaN".to_owned());
    }
    if params.most < 1.0 {
        return Ok(false);
    }
    if params.least <= -BEYOND {
        return error(format!("Scalar value {} underflows int64", General(params.least)));
    }
    if params.most >= BEYOND {
        return error(format!("Scalar value {} overflows int64", General(params.most)));
    }
    Ok(true)
}

/// Chooses among the members of a group that have a sample at `step`.
fn pick(op: AggregateOp, param: f64, series: &[Series], group: &[usize], step: usize, picked: &mut Vec<(f64, usize)>) {
    let all = group.iter().map(|i| (series[*i].values[step], *i));
    let mut present = all.filter(|(value, i)| {
        is_present(*value) || (matches!(op, AggregateOp::Limitk | AggregateOp::LimitRatio) && series[*i].has(step))
    });
    // A fraction of a series is none; the count is below 2^63 here.
    let count = if param < 1.0 { 0 } else { param as usize };
    match op {
        AggregateOp::Topk => best(count, present, picked, descending),
        AggregateOp::Bottomk => best(count, present, picked, ascending),
        AggregateOp::Limitk => picked.extend(present.take(count)),
        _ => {
            let ratio = param.clamp(-1.0, 1.0);
            picked.extend(present.by_ref().filter(|(_, i)| in_ratio(ratio, &series[*i])));
        }
    }
}

/// Keeps the first `count` in `order`; of equal ones the earlier series.
fn best(
    count: usize,
    present: impl Iterator<Item = (f64, usize)>,
    picked: &mut Vec<(f64, usize)>,
    order: fn(f64, f64) -> Ordering,
) {
    /// Up to this many are kept sorted while they come.
    const FEW: usize = 64;
    if count == 0 {
        return;
    }
    if count > FEW {
        picked.extend(present);
        picked.sort_by(|a, b| order(a.0, b.0));
        picked.truncate(count);
        return;
    }
    for one in present {
        let full = picked.len() == count;
        if full && picked.last().is_some_and(|last| order(one.0, last.0) != Ordering::Less) {
            continue;
        }
        if full {
            picked.pop();
        }
        let at = picked.partition_point(|p| order(p.0, one.0) != Ordering::Greater);
        picked.insert(at, one);
    }
}

/// Smallest first, NaN last.
pub(super) fn ascending(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Largest first, NaN last.
pub(super) fn descending(a: f64, b: f64) -> Ordering {
    b.partial_cmp(&a).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// The hash by which Prometheus chooses, so that the same series are chosen here: each name and value in order
/// behind its length, a byte up to 254, else 255 and three bytes.
fn prometheus_hash(labels: &Labels) -> u64 {
    let mut bytes = Vec::with_capacity(256);
    for text in labels.iter().flat_map(|(name, value)| [name, value]) {
        match u8::try_from(text.len()) {
            Ok(length) if length < 255 => bytes.push(length),
            _ => {
                bytes.push(255);
                bytes.extend_from_slice(&text.len().to_le_bytes()[..3]);
            }
        }
        bytes.extend_from_slice(text.as_bytes());
    }
    xxhash_rust::xxh64::xxh64(&bytes, 0)
}

/// Whether the series' place between 0 and 1, which its labels fix, lies within the ratio: from the left
/// where it is positive, from the right where it is negative.
fn in_ratio(ratio: f64, series: &Series) -> bool {
    let place = prometheus_hash(&series.labels) as f64 / u64::MAX as f64;
    if ratio >= 0.0 {
        place < ratio
    } else {
        place >= 1.0 + ratio
    }
}
