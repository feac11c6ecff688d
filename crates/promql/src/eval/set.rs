//! `and`, `or`, `unless`: series kept or left out by the presence of others.

use model::QueryError;

use super::Evaluator;
use super::grid::Grid;
use super::matching::meetings;
use super::series::{ABSENT, Operand, Series, is_present, merge_same_labels};
use crate::ast::BinaryOp;
use crate::plan::Binary;

impl Evaluator<'_> {
    /// Evaluates a set operator.
    pub(super) fn set(
        &self,
        binary: &Binary,
        mut left: Vec<Series>,
        mut right: Vec<Series>,
        grid: Grid,
    ) -> Result<Operand, QueryError> {
        let mut present = vec![false; grid.len];
        for meeting in meetings(&binary.matching, &left, &right) {
            self.budget.check()?;
            let or = binary.op == BinaryOp::Or;
            let (judges, judged, of_judges, of_judged) = if or {
                (&left, &mut right, &meeting.left, &meeting.right)
            } else {
                (&right, &mut left, &meeting.right, &meeting.left)
            };
            if of_judged.is_empty() {
                continue;
            }
            present.fill(false);
            for judge in of_judges {
                for (seen, value) in present.iter_mut().zip(&judges[*judge].values) {
                    *seen |= is_present(*value);
                }
            }
            let keeps = binary.op == BinaryOp::And;
            for place in of_judged {
                for (value, seen) in judged[*place].values.iter_mut().zip(&present) {
                    if *seen != keeps {
                        *value = ABSENT;
                    }
                }
            }
        }
        if binary.op == BinaryOp::Or {
            left.append(&mut right);
        }
        left.retain(Series::any_present);
        if binary.op == BinaryOp::Or {
            left = merge_same_labels(left)?;
        }
        Ok(Operand::Vector(left))
    }
}
