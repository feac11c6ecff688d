//! Subqueries: an expression evaluated over a grid of its own, to be looked at through windows.

use model::QueryError;

use super::Evaluator;
use super::budget::too_many;
use super::grid::Grid;
use super::series::{Operand, Series};
use crate::plan::Subquery;

impl Evaluator<'_> {
    /// The series of the inner expression, and the steps they stand on.
    ///
    /// The inner steps are multiples of the subquery's step, whatever the outer ones are.
    pub(super) fn subquery(&self, subquery: &Subquery, outer: Grid) -> Result<(Grid, Vec<Series>), QueryError> {
        let first = subquery.at.unwrap_or(outer.start);
        let last = subquery.at.unwrap_or_else(|| outer.last());
        let open = first.saturating_sub(subquery.offset).saturating_sub(subquery.range);
        let mut start = open / subquery.step * subquery.step;
        if start <= open {
            start = start.saturating_add(subquery.step);
        }
        let end = last.saturating_sub(subquery.offset);
        let grid =
            Grid::new(start, end, subquery.step, self.budget.limit()).ok_or_else(|| too_many(self.budget.limit()))?;
        if grid.len == 0 {
            return Ok((grid, Vec::new()));
        }
        match self.eval(&subquery.inner, grid)? {
            Operand::Vector(series) => Ok((grid, series)),
            Operand::Scalar(_) | Operand::Text(_) => Err(super::mistyped("instant vector")),
        }
    }
}
