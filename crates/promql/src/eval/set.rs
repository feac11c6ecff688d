//! `and`, `or`, `unless`: series kept or left out by the presence of others.

use model::QueryError;

use super::Evaluator;
use super::grid::Grid;
use super::matching::meetings;
use super::series::{Operand, Series, merge_same_labels};
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
                for (step, seen) in present.iter_mut().enumerate() {
                    *seen |= judges[*judge].has(step);
                }
            }
            let keeps = binary.op == BinaryOp::And;
            for place in of_judged {
                for (step, seen) in present.iter().enumerate() {
                    if *seen != keeps {
                        judged[*place].clear_step(step);
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
