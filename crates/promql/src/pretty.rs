//! The tree on many lines: a node too long for one line is split, two spaces a level.

use crate::ast::{Expr, ExprKind};
use crate::print::{AggregateHead, Operator, SubqueryRange, sign};

/// The width that Prometheus splits at, in bytes.
pub const WIDTH: usize = 100;

/// The expression wrapped at [`WIDTH`] columns.
#[must_use]
pub fn pretty(expr: &Expr) -> String {
    pretty_at(expr, WIDTH)
}

/// The expression with every node split whose one-line form is longer than `width` bytes.
#[must_use]
pub fn pretty_at(expr: &Expr, width: usize) -> String {
    Printer { width }.node(expr, 0)
}

struct Printer {
    width: usize,
}

impl Printer {
    /// The node, its first line indented too.
    fn node(&self, expr: &Expr, level: usize) -> String {
        let indent = "  ".repeat(level);
        // A sign is no reason to split, and clings to the first line of its operand.
        if let ExprKind::Unary { minus, expr } = &expr.kind {
            return format!("{indent}{}{}", sign(*minus), self.node(expr, level).trim());
        }
        let line = expr.to_string();
        if line.len() <= self.width {
            return match expr.kind {
                // As in Prometheus.
                ExprKind::Subquery(_) => line,
                _ => format!("{indent}{line}"),
            };
        }
        match &expr.kind {
            ExprKind::Aggregate(aggregate) => {
                let args = aggregate.param.iter().chain([&aggregate.expr]);
                format!(
                    "{indent}{}(\n{}\n{indent})",
                    AggregateHead(aggregate),
                    self.list(args, level)
                )
            }
            ExprKind::Call { function, args } => {
                format!("{indent}{}(\n{}\n{indent})", function.name, self.list(args, level))
            }
            ExprKind::Binary(binary) => {
                let (lhs, rhs) = (self.node(&binary.lhs, level + 1), self.node(&binary.rhs, level + 1));
                format!("{lhs}\n{indent}{}\n{rhs}", Operator(binary))
            }
            ExprKind::Paren(inner) => format!("{indent}(\n{}\n{indent})", self.node(inner, level + 1)),
            ExprKind::Subquery(subquery) => {
                format!("{}{}", self.node(&subquery.expr, level), SubqueryRange(subquery))
            }
            _ => format!("{indent}{line}"),
        }
    }

    fn list<'a>(&self, args: impl IntoIterator<Item = &'a Expr>, level: usize) -> String {
        let args: Vec<String> = args.into_iter().map(|arg| self.node(arg, level + 1)).collect();
        args.join(",\n")
    }
}
