//! Evaluation: a plan over a grid of moments, series by series.
//!
//! Every expression gives one value per step of the grid for each of its series ([`series`]); an instant
//! query is a grid of one step. Selectors and functions over windows read one series at a time into a
//! column that is used again ([`selector`], [`range_call`]), so that memory holds results, not samples.
//! What does not change from step to step is evaluated once ([`crate::plan::Kind::Invariant`]).
//!
//! Native histograms are a second column in [`series::Series`]; what is done to them stands in `native_*` files, so
//! that the arithmetic of numbers stays plain.

mod absent;
mod accumulate;
mod aggregate;
mod binary;
mod bucket;
mod budget;
mod call;
mod count_values;
mod extended;
mod grid;
mod histogram_quantile;
mod info;
mod label;
mod matching;
mod meet;
mod native_group;
mod native_range;
mod note;
mod over_time;
mod parallel;
mod quantile;
mod range_call;
mod rank;
mod rate;
mod regression;
mod selector;
mod series;
mod set;
mod sort;
mod stream;
mod subquery;
mod sum;
mod time_fn;
mod window;

use std::sync::{Arc, Mutex};

use model::text::Span;
use model::{Column, Labels, Millis, QueryError, Queryable};

pub(crate) use budget::{Budget, LookedAt, too_many, too_many_series};
pub(crate) use grid::Grid;
pub(crate) use note::Notes;
pub(crate) use series::{Operand, Scalar, Series, is_present};
pub(crate) use sum::Sum;

pub(crate) use selector::store_error;

use selector::Take;
use series::{merge_same_labels, without_metadata};
use window::Frame;

use crate::ast::RangeExtension;
use crate::native::Total;
use crate::plan::{Kind, Node, Ranged};

/// One query being evaluated.
pub(crate) struct Evaluator<'a> {
    /// Where samples come from.
    pub(crate) storage: &'a dyn Queryable,
    /// The query's text, for messages.
    pub(crate) text: &'a str,
    /// How old a sample an instant selector takes may be, in milliseconds.
    pub(crate) lookback: Millis,
    /// Whether metric names are removed at the end of the query.
    pub(crate) delayed_names: bool,
    /// The most threads to use.
    pub(crate) threads: usize,
    /// What the query may use.
    pub(crate) budget: Budget<'a>,
    /// The samples looked at by step, where the asker wants to know.
    pub(crate) looked_at: Option<LookedAt>,
    /// Remarks so far.
    pub(crate) notes: Mutex<Notes>,
    /// What the store could not read.
    pub(crate) store_warnings: Mutex<Vec<String>>,
}

impl Evaluator<'_> {
    /// The value of a whole query, names removed.
    ///
    /// # Errors
    ///
    /// See [`QueryError`].
    pub(crate) fn query(&self, node: &Node, grid: Grid) -> Result<Operand, QueryError> {
        match self.eval(node, grid)? {
            Operand::Vector(mut series) if self.delayed_names => {
                for one in series.iter_mut().filter(|s| s.drop_name) {
                    one.labels = without_metadata(&one.labels);
                }
                Ok(Operand::Vector(merge_same_labels(series)?))
            }
            operand => Ok(operand),
        }
    }

    /// The samples of a range selector or subquery that is the whole of an instant query.
    ///
    /// # Errors
    ///
    /// See [`QueryError`].
    pub(crate) fn matrix(&self, ranged: &Ranged, grid: Grid) -> Result<Vec<(Labels, Column)>, QueryError> {
        match ranged {
            Ranged::Select { select, range } => {
                let frame = Frame::of(select, *range, grid);
                if let Some(extension) = select.extension {
                    return self.extended_matrix(select, extension, &frame);
                }
                let found = self.select(select, frame.bounds())?;
                self.over_columns(&found, &frame, |labels, column, _| {
                    self.budget
                        .take(column.len() + series::native_cells(&column.histograms))?;
                    Ok((!column.is_empty()).then(|| (labels.clone(), column.clone())))
                })
            }
            Ranged::Subquery(subquery) => {
                let (inner, mut series) = self.subquery(subquery, grid)?;
                if self.delayed_names {
                    for one in series.iter_mut().filter(|s| s.drop_name) {
                        one.labels = without_metadata(&one.labels);
                    }
                    series = merge_same_labels(series)?;
                }
                Ok(series.into_iter().map(|s| column_of(s, inner)).collect())
            }
        }
    }

    /// The value of a part of a query.
    fn eval(&self, node: &Node, grid: Grid) -> Result<Operand, QueryError> {
        self.budget.check()?;
        let held = self.budget.held();
        let operand = self.eval_kind(node, grid)?;
        self.budget.settle(held + operand.cells())?;
        Ok(operand)
    }

    fn eval_kind(&self, node: &Node, grid: Grid) -> Result<Operand, QueryError> {
        match &node.kind {
            Kind::Number(value) => Ok(Operand::Scalar(Scalar::Const(*value))),
            Kind::Text(text) => Ok(Operand::Text(text.clone())),
            Kind::Select(select) => Ok(Operand::Vector(match select.extension {
                Some(RangeExtension::Smoothed) => self.smoothed(select, grid)?,
                _ => self.instant(select, grid, Take::Value)?,
            })),
            Kind::Ranged(_) => Err(mistyped("instant vector")),
            Kind::Range(call) => self.range_call(call, grid),
            Kind::Call(function, args) => self.call(*function, node, args, grid),
            Kind::Aggregate(aggregate) => self.aggregate(aggregate, grid),
            Kind::Binary(_) => self.chain(node, grid),
            Kind::Negate(inner) => self.negate(inner, grid),
            Kind::Invariant(inner) => self.invariant(inner, grid),
        }
    }

    fn negate(&self, inner: &Node, grid: Grid) -> Result<Operand, QueryError> {
        let mut series = match self.eval(inner, grid)? {
            Operand::Scalar(scalar) => return Ok(Operand::Scalar(scalar.map(|v| -v))),
            Operand::Vector(series) => series,
            Operand::Text(_) => return Err(mistyped("scalar or instant vector")),
        };
        for one in &mut series {
            one.values.iter_mut().filter(|v| is_present(**v)).for_each(|v| *v = -*v);
            for native in one.natives.iter_mut().flatten() {
                let mut total = Total::of(native);
                total.scale(-1.0);
                *native = Arc::new(total.finish());
            }
            self.rename(one);
        }
        self.merged(series)
    }

    /// Evaluates at the first step and repeats the value at all others.
    fn invariant(&self, inner: &Node, grid: Grid) -> Result<Operand, QueryError> {
        let once = self.eval(inner, Grid::instant(grid.start))?;
        Ok(match once {
            Operand::Scalar(scalar) => Operand::Scalar(Scalar::Const(scalar.at(0))),
            Operand::Vector(mut series) => {
                self.budget.take(series.len().saturating_mul(grid.len))?;
                for one in &mut series {
                    let value = one.values[0];
                    one.values.resize(grid.len, value);
                    if let [native] = one.natives.as_slice() {
                        let native = native.clone();
                        one.natives.resize(grid.len, native);
                    }
                }
                Operand::Vector(series)
            }
            text @ Operand::Text(_) => text,
        })
    }

    /// The value of a part that is a vector.
    fn vector(&self, node: &Node, grid: Grid) -> Result<Vec<Series>, QueryError> {
        match self.eval(node, grid)? {
            Operand::Vector(series) => Ok(series),
            Operand::Scalar(_) | Operand::Text(_) => Err(mistyped("instant vector")),
        }
    }

    /// The value of a part that is a scalar.
    fn scalar(&self, node: &Node, grid: Grid) -> Result<Scalar, QueryError> {
        match self.eval(node, grid)? {
            Operand::Scalar(scalar) => Ok(scalar),
            Operand::Vector(_) | Operand::Text(_) => Err(mistyped("scalar")),
        }
    }

    /// The text that an argument is.
    #[expect(clippy::unused_self, reason = "reads like its siblings `vector` and `scalar`")]
    fn text<'n>(&self, node: &'n Node) -> Result<&'n str, QueryError> {
        match &node.unwrapped().kind {
            Kind::Text(text) => Ok(text),
            _ => Err(mistyped("string")),
        }
    }

    /// What stands at a place of the query.
    fn written(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or("")
    }

    fn note(&self, notes: Notes) {
        if !notes.is_empty() {
            parallel::lock(&self.notes).extend(notes);
        }
    }
}

/// A series without its gaps.
pub(crate) fn column_of(series: Series, grid: Grid) -> (Labels, Column) {
    let mut column = Column::default();
    fill_column(&series, grid, &mut column);
    (series.labels, column)
}

/// Adds the samples of a series to a column.
fn fill_column(series: &Series, grid: Grid, column: &mut Column) {
    for (i, value) in series.values.iter().enumerate() {
        if is_present(*value) {
            column.push(grid.time(i), *value);
        } else if let Some(histogram) = series.native(i) {
            column.push_histogram(grid.time(i), Arc::clone(histogram));
        }
    }
}

/// The error of an operand of the wrong type, which the parser lets nobody see.
fn mistyped(expected: &str) -> QueryError {
    QueryError::Internal(format!("expected {expected} in evaluation"))
}
