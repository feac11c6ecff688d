//! `sort` and its kin: the order of an instant query's answer.

use std::cmp::Ordering;

use model::QueryError;

use super::Evaluator;
use super::grid::Grid;
use super::note::Notes;
use super::rank::{ascending, descending};
use super::series::{Operand, Series, is_present};
use crate::plan::{Node, SortBy};

impl Evaluator<'_> {
    /// Sorts the series of an instant query; a range query is ordered by labels whatever is asked.
    pub(super) fn sort(&self, by: SortBy, node: &Node, args: &[Node], grid: Grid) -> Result<Operand, QueryError> {
        let [vector, labels @ ..] = args else {
            return Err(super::mistyped("instant vector"));
        };
        let mut series = self.vector(vector, grid)?;
        let labels = labels.iter().map(|l| self.text(l)).collect::<Result<Vec<_>, _>>()?;
        if grid.len != 1 {
            let mut notes = Notes::default();
            notes.sort_in_range(node.span);
            self.note(notes);
            return Ok(Operand::Vector(series));
        }
        if matches!(by, SortBy::Value { .. }) {
            // Histograms have no order: they are left out.
            series.retain(|s| is_present(s.values[0]));
        }
        let value = |s: &Series| s.values[0];
        match by {
            SortBy::Value { descending: false } => series.sort_by(|a, b| ascending(value(a), value(b))),
            SortBy::Value { descending: true } => series.sort_by(|a, b| descending(value(a), value(b))),
            SortBy::Label { descending: false } => series.sort_by(|a, b| by_labels(&labels, a, b)),
            SortBy::Label { descending: true } => series.sort_by(|a, b| by_labels(&labels, b, a)),
        }
        Ok(Operand::Vector(series))
    }
}

/// By the labels named, then by all of them.
fn by_labels(names: &[&str], a: &Series, b: &Series) -> Ordering {
    let value = |s: &Series, name: &str| s.labels.get(name).unwrap_or("").to_owned();
    let named = names.iter().map(|name| natural(&value(a, name), &value(b, name)));
    named
        .into_iter()
        .find(|o| o.is_ne())
        .unwrap_or_else(|| a.labels.cmp(&b.labels))
}

/// Compares so that `a10` comes after `a2`: runs of digits count as numbers.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a_rest, mut b_rest) = (a, b);
    while !a_rest.is_empty() && !b_rest.is_empty() {
        let (x, y) = (run(a_rest), run(b_rest));
        let ordering = if is_digits(x) && is_digits(y) {
            by_number(x, y)
        } else {
            x.cmp(y)
        };
        if ordering.is_ne() {
            return ordering;
        }
        a_rest = &a_rest[x.len()..];
        b_rest = &b_rest[y.len()..];
    }
    a_rest.len().cmp(&b_rest.len()).then_with(|| a.cmp(b))
}

/// The leading digits, or what stands before the first digit.
fn run(text: &str) -> &str {
    let digits = is_digits(text);
    let end = text.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(text.len());
    &text[..end]
}

fn is_digits(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// Numbers of any length: the longer one is larger, leading zeros apart.
fn by_number(a: &str, b: &str) -> Ordering {
    let (x, y) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    x.len().cmp(&y.len()).then_with(|| x.cmp(y))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_within_names_count_as_numbers() {
        for (a, b) in [
            ("a2", "a10"),
            ("", "a"),
            ("2", "10"),
            ("1.2.9", "1.2.10"),
            ("a", "a1"),
            ("01", "2"),
        ] {
            assert_eq!(natural(a, b), Ordering::Less, "{a} {b}");
            assert_eq!(natural(b, a), Ordering::Greater, "{b} {a}");
        }
        assert_eq!(natural("a1b2", "a1b2"), Ordering::Equal);
    }
}
