//! Binary operators: arithmetic and comparisons between scalars and vectors.

use model::QueryError;

use super::Evaluator;
use super::grid::Grid;
use super::matching::{changes_meaning, meetings};
use super::meet::Sides;
use super::series::{ABSENT, Operand, Scalar, Series, is_present, merge_same_labels, without_metadata};
use crate::ast::{BinaryOp, Cardinality};
use crate::plan::{Binary, Node};

impl Evaluator<'_> {
    /// Evaluates a chain of binary operations from the left.
    pub(super) fn chain(&self, node: &Node, grid: Grid) -> Result<Operand, QueryError> {
        let held = self.budget.held();
        let (links, first) = node.chain();
        let mut value = self.eval(first, grid)?;
        for link in links.into_iter().rev() {
            self.budget.check()?;
            value = self.binary(value, link, grid)?;
            self.budget.settle(held + value.cells())?;
        }
        Ok(value)
    }

    fn binary(&self, lhs: Operand, binary: &Binary, grid: Grid) -> Result<Operand, QueryError> {
        let rhs = self.eval(&binary.rhs, grid)?;
        match (lhs, rhs) {
            (Operand::Scalar(a), Operand::Scalar(b)) => {
                Ok(Operand::Scalar(a.zip(&b, |a, b| between_scalars(binary.op, a, b))))
            }
            (Operand::Vector(a), Operand::Scalar(b)) => self.with_scalar(binary, a, &b, false),
            (Operand::Scalar(a), Operand::Vector(b)) => self.with_scalar(binary, b, &a, true),
            (Operand::Vector(a), Operand::Vector(b)) => match binary.op {
                BinaryOp::And | BinaryOp::Or | BinaryOp::Unless => self.set(binary, a, b, grid),
                _ => self.between_vectors(binary, a, b, grid),
            },
            _ => Err(super::mistyped("scalar or instant vector")),
        }
    }

    /// A vector and a scalar; `swapped` where the scalar stands on the left.
    fn with_scalar(
        &self,
        binary: &Binary,
        mut series: Vec<Series>,
        scalar: &Scalar,
        swapped: bool,
    ) -> Result<Operand, QueryError> {
        let Binary { op, return_bool, .. } = *binary;
        let renamed = changes_meaning(op) || return_bool;
        for one in &mut series {
            for (i, value) in one.values.iter_mut().enumerate() {
                if !is_present(*value) {
                    continue;
                }
                let (a, b) = if swapped {
                    (scalar.at(i), *value)
                } else {
                    (*value, scalar.at(i))
                };
                // A comparison that holds keeps the vector's value, on whichever side it stands.
                *value = match apply(op, a, b) {
                    Applied::Number(number) => number,
                    Applied::Holds(holds) if return_bool => f64::from(u8::from(holds)),
                    Applied::Holds(true) => *value,
                    Applied::Holds(false) => ABSENT,
                };
            }
            if renamed {
                self.rename(one);
            }
        }
        series.retain(Series::any_present);
        if renamed {
            return self.merged(series);
        }
        Ok(Operand::Vector(series))
    }

    /// Two vectors, series by series.
    fn between_vectors(
        &self,
        binary: &Binary,
        left: Vec<Series>,
        right: Vec<Series>,
        grid: Grid,
    ) -> Result<Operand, QueryError> {
        let swapped = binary.matching.card == Cardinality::OneToMany;
        let (many, one) = if swapped { (right, left) } else { (left, right) };
        let sides = Sides {
            binary,
            many: &many,
            one: &one,
            swapped,
            drop_name: changes_meaning(binary.op) || (binary.return_bool && !self.delayed_names),
            steps: grid.len,
        };
        let mut out = Vec::new();
        for meeting in meetings(&binary.matching, &many, &one) {
            self.budget.check()?;
            sides.meet(&meeting, &mut out)?;
            self.budget.take(grid.len)?;
        }
        for series in &mut out {
            series.drop_name = binary.return_bool;
        }
        out.retain(Series::any_present);
        Ok(Operand::Vector(merge_same_labels(out)?))
    }

    /// Takes the metric's name away, at once or by mark.
    pub(super) fn rename(&self, series: &mut Series) {
        series.drop_name = true;
        if !self.delayed_names {
            series.labels = without_metadata(&series.labels);
        }
    }

    /// Series whose names may have gone: those that are now the same become one.
    pub(super) fn merged(&self, series: Vec<Series>) -> Result<Operand, QueryError> {
        Ok(Operand::Vector(if self.delayed_names {
            series
        } else {
            merge_same_labels(series)?
        }))
    }
}

/// What an operator gives.
#[derive(Debug, Clone, Copy)]
pub(super) enum Applied {
    /// A number.
    Number(f64),
    /// Whether a comparison holds.
    Holds(bool),
}

#[inline]
pub(super) fn apply(op: BinaryOp, a: f64, b: f64) -> Applied {
    match op {
        BinaryOp::Add => Applied::Number(a + b),
        BinaryOp::Sub => Applied::Number(a - b),
        BinaryOp::Mul => Applied::Number(a * b),
        BinaryOp::Div => Applied::Number(a / b),
        BinaryOp::Mod => Applied::Number(a % b),
        BinaryOp::Pow => Applied::Number(a.powf(b)),
        BinaryOp::Atan2 => Applied::Number(a.atan2(b)),
        BinaryOp::Eq => Applied::Holds(a == b),
        BinaryOp::Ne => Applied::Holds(a != b),
        BinaryOp::Lt => Applied::Holds(a < b),
        BinaryOp::Le => Applied::Holds(a <= b),
        BinaryOp::Gt => Applied::Holds(a > b),
        BinaryOp::Ge => Applied::Holds(a >= b),
        // Set operators do not come here; trimming has no meaning for floats.
        BinaryOp::And | BinaryOp::Or | BinaryOp::Unless | BinaryOp::TrimUpper | BinaryOp::TrimLower => {
            Applied::Holds(false)
        }
    }
}

fn between_scalars(op: BinaryOp, a: f64, b: f64) -> f64 {
    match apply(op, a, b) {
        Applied::Number(number) => number,
        Applied::Holds(holds) => f64::from(u8::from(holds)),
    }
}
