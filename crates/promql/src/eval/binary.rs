//! Binary operators: arithmetic and comparisons between scalars and vectors.

use std::sync::Arc;

use model::{Histogram, QueryError, ResetHint};

use super::Evaluator;
use super::grid::Grid;
use super::matching::{changes_meaning, meetings};
use super::meet::Sides;
use super::note::{Joining, Notes};
use super::series::{ABSENT, Operand, Scalar, Series, is_present, merge_same_labels, without_metadata};
use crate::ast::{BinaryOp, Cardinality};
use crate::native::{Total, equal, trim};
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
        let mut notes = Notes::default();
        for one in &mut series {
            self.series_with_scalar(binary, one, scalar, swapped, &mut notes);
            if renamed {
                self.rename(one);
            }
        }
        self.note(notes);
        series.retain(Series::any_present);
        if renamed {
            return self.merged(series);
        }
        Ok(Operand::Vector(series))
    }

    /// One series and a scalar.
    #[expect(clippy::unused_self, reason = "reads like its siblings")]
    pub(super) fn series_with_scalar(
        &self,
        binary: &Binary,
        one: &mut Series,
        scalar: &Scalar,
        swapped: bool,
        notes: &mut Notes,
    ) {
        let Binary { op, return_bool, .. } = *binary;
        if !one.natives.is_empty() {
            natives_with_scalar(binary, one, scalar, swapped, notes);
        }
        for (i, value) in one.values.iter_mut().enumerate() {
            if !is_present(*value) {
                continue;
            }
            let (a, b) = if swapped {
                (scalar.at(i), *value)
            } else {
                (*value, scalar.at(i))
            };
            if is_trim(op) {
                notes.incompatible_kinds("float", op, "float", binary.span);
            }
            // A comparison that holds keeps the vector's value, on whichever side it stands.
            *value = match apply(op, a, b) {
                Applied::Number(number) => number,
                Applied::Holds(holds) if return_bool => f64::from(u8::from(holds)),
                Applied::Holds(true) => *value,
                Applied::Holds(false) => ABSENT,
            };
        }
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
        let mut notes = Notes::default();
        for meeting in meetings(&binary.matching, &many, &one) {
            self.budget.check()?;
            sides.meet(&meeting, &mut out, &mut notes)?;
            self.budget.take(grid.len)?;
        }
        self.note(notes);
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

/// The histograms of a vector and a scalar.
fn natives_with_scalar(binary: &Binary, series: &mut Series, scalar: &Scalar, swapped: bool, notes: &mut Notes) {
    let natives = std::mem::take(&mut series.natives);
    for (step, native) in natives.iter().enumerate() {
        let Some(native) = native else { continue };
        let number = Side::Number(scalar.at(step));
        let applied = if swapped {
            between(binary, number, Side::Native(native), notes)
        } else {
            between(binary, Side::Native(native), number, notes)
        };
        if let Outcome::Native(histogram) = applied {
            series.set_native(step, histogram);
        }
    }
}

/// An operand at a step.
#[derive(Debug, Clone, Copy)]
pub(super) enum Side<'a> {
    /// A number.
    Number(f64),
    /// A native histogram.
    Native(&'a Arc<Histogram>),
}

/// What an operator makes of two operands.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    /// A number.
    Number(f64),
    /// A native histogram.
    Native(Arc<Histogram>),
    /// Whether a comparison holds.
    Holds(bool),
    /// Nothing: the operator has no meaning for the kinds, which has been noted.
    Nothing,
}

/// Applies the operator where native histograms are among the operands.
pub(super) fn between(binary: &Binary, a: Side<'_>, b: Side<'_>, notes: &mut Notes) -> Outcome {
    let (op, span) = (binary.op, binary.span);
    let changed = |histogram: &Histogram, change: &dyn Fn(&mut Total)| {
        let mut total = Total::of(histogram);
        change(&mut total);
        Outcome::Native(Arc::new(total.finish()))
    };
    match (a, b) {
        (Side::Number(a), Side::Number(b)) if !is_trim(op) => match apply(op, a, b) {
            Applied::Number(number) => Outcome::Number(number),
            Applied::Holds(holds) => Outcome::Holds(holds),
        },
        (Side::Number(factor), Side::Native(h)) | (Side::Native(h), Side::Number(factor)) if op == BinaryOp::Mul => {
            changed(h, &|total| total.scale(factor))
        }
        (Side::Native(h), Side::Number(by)) if op == BinaryOp::Div => changed(h, &|total| total.divide(by)),
        (Side::Native(h), Side::Number(limit)) if is_trim(op) => {
            Outcome::Native(Arc::new(trim(h, limit, op == BinaryOp::TrimUpper)))
        }
        (Side::Native(a), Side::Native(b)) if matches!(op, BinaryOp::Add | BinaryOp::Sub) => {
            let mut total = Total::of(a);
            let (joined, joining) = if op == BinaryOp::Add {
                (total.add(b), Joining::Addition)
            } else {
                (total.subtract(b), Joining::Subtraction)
            };
            if joined.is_err() {
                notes.incompatible_buckets(op, span);
                return Outcome::Nothing;
            }
            if total.met.collision {
                notes.reset_collision(joining, span);
            }
            if total.met.reconciled {
                notes.bounds_reconciled(joining, span);
            }
            if op == BinaryOp::Sub {
                total.reset = ResetHint::Gauge;
            }
            Outcome::Native(Arc::new(total.finish()))
        }
        (Side::Native(a), Side::Native(b)) if op == BinaryOp::Eq => Outcome::Holds(equal(a, b)),
        (Side::Native(a), Side::Native(b)) if op == BinaryOp::Ne => Outcome::Holds(!equal(a, b)),
        _ => {
            let kind = |side: Side<'_>| match side {
                Side::Number(_) => "float",
                Side::Native(_) => "histogram",
            };
            notes.incompatible_kinds(kind(a), op, kind(b), span);
            Outcome::Nothing
        }
    }
}

const fn is_trim(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::TrimUpper | BinaryOp::TrimLower)
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
