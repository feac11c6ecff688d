//! `absent` and `absent_over_time`: a series where there is none.

use model::{Labels, LabelsBuilder, METRIC_NAME, MatchOp};

use super::grid::Grid;
use super::series::{ABSENT, Series};
use crate::plan::{Kind, Node, Ranged, Select};

/// `absent(arg)` given the series of `arg`.
pub(super) fn instant(arg: &Node, series: &[Series], grid: Grid) -> Vec<Series> {
    let labels = match &arg.unwrapped().kind {
        Kind::Select(select) => labels_of(select),
        _ => Labels::empty(),
    };
    gaps(labels, series, grid)
}

/// `absent_over_time(arg)` given a series of ones for each series of `arg`.
pub(super) fn over_time(arg: &Ranged, series: &[Series], grid: Grid) -> Vec<Series> {
    let labels = match arg {
        Ranged::Select { select, .. } => labels_of(select),
        Ranged::Subquery(_) => Labels::empty(),
    };
    gaps(labels, series, grid)
}

/// A series of ones at the steps where no series has a sample; none when there is no such step.
fn gaps(labels: Labels, series: &[Series], grid: Grid) -> Vec<Series> {
    let mut values = vec![1.0; grid.len];
    for one in series {
        for (step, gap) in values.iter_mut().enumerate() {
            if one.has(step) {
                *gap = ABSENT;
            }
        }
    }
    let found = Series::new(labels, values);
    if found.any_present() { vec![found] } else { Vec::new() }
}

/// The labels a selector pins to one value. A label matched twice is left out, as it always was.
fn labels_of(select: &Select) -> Labels {
    let [matchers] = select.alternatives.as_slice() else {
        return Labels::empty();
    };
    let mut builder = LabelsBuilder::new();
    let mut seen: Vec<&str> = Vec::new();
    for matcher in matchers.iter().filter(|m| m.name != METRIC_NAME) {
        if matcher.op == MatchOp::Equal && !seen.contains(&matcher.name.as_str()) {
            builder.set(&matcher.name, &matcher.value);
            seen.push(&matcher.name);
        } else {
            builder.remove(&matcher.name);
        }
    }
    builder.build()
}
