//! Vector matching: which series of two sides meet, and what the result is called.

use hashbrown::HashMap;
use model::{Labels, LabelsBuilder, METRIC_NAME};

use super::series::{Series, is_metadata};
use crate::ast::{BinaryOp, Cardinality, Matching};

/// The series of both sides that agree in the labels that count.
#[derive(Debug, Default)]
pub(super) struct Meeting {
    /// Places on the left side.
    pub(super) left: Vec<usize>,
    /// Places on the right side.
    pub(super) right: Vec<usize>,
}

/// Sorts the series of both sides by the labels that count, in order of first sight.
pub(super) fn meetings(matching: &Matching, left: &[Series], right: &[Series]) -> Vec<Meeting> {
    let mut known: HashMap<Labels, usize, foldhash::fast::RandomState> = HashMap::default();
    let mut meetings: Vec<Meeting> = Vec::new();
    let mut place = |series: &Series| {
        *known.entry(signature(matching, &series.labels)).or_insert_with(|| {
            meetings.push(Meeting::default());
            meetings.len() - 1
        })
    };
    let places: Vec<usize> = left.iter().chain(right).map(&mut place).collect();
    for (i, place) in places.into_iter().enumerate() {
        match i.checked_sub(left.len()) {
            None => meetings[place].left.push(i),
            Some(i) => meetings[place].right.push(i),
        }
    }
    meetings
}

/// The labels that must agree.
pub(super) fn signature(matching: &Matching, labels: &Labels) -> Labels {
    if matching.on {
        labels.only(&matching.labels)
    } else {
        labels.retain(|name| name != METRIC_NAME && !matching.labels.iter().any(|l| l == name))
    }
}

/// Whether the operator makes a different quantity of its operand, so that the metric's name goes.
pub(super) const fn changes_meaning(op: BinaryOp) -> bool {
    matches!(
        op,
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Mod | BinaryOp::Pow | BinaryOp::Atan2
    )
}

/// The labels of the result for a series of the many side and one of the one side.
pub(super) fn result_labels(many: &Labels, one: &Labels, matching: &Matching, drop_name: bool) -> Labels {
    let one_to_one = matching.card == Cardinality::OneToOne;
    let listed = |name: &str| matching.labels.iter().any(|l| l == name);
    let kept = many.retain(|name| {
        let leaves = drop_name && is_metadata(name);
        let matched = !one_to_one || listed(name) == matching.on;
        !leaves && matched
    });
    if matching.include.is_empty() {
        return kept;
    }
    let mut builder = LabelsBuilder::from(&kept);
    for name in &matching.include {
        builder.set(name, one.get(name).unwrap_or(""));
    }
    builder.build()
}
