//! The tree on many lines: a node too long for one line is split, two spaces a level.

use crate::ast::{Expr, ExprKind};
use crate::parser::DEPTH_MAX;
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
        let indent = indent(level);
        // A sign is no reason to split, and clings to the first line of its operand.
        if let ExprKind::Unary { minus, expr } = &expr.kind {
            return format!("{indent}{}{}", sign(*minus), self.node(expr, level).trim());
        }
        if let ExprKind::Binary(_) = &expr.kind {
            return self.chain(expr, level);
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
            ExprKind::Paren(inner) => format!("{indent}(\n{}\n{indent})", self.node(inner, level + 1)),
            ExprKind::Subquery(subquery) => {
                format!("{}{}", self.node(&subquery.expr, level), SubqueryRange(subquery))
            }
            _ => format!("{indent}{line}"),
        }
    }

    /// A chain of operations: as much of its left as fits a line, then an operator and an operand at a time,
    /// each a level further out.
    fn chain(&self, expr: &Expr, level: usize) -> String {
        let (links, first) = expr.chain();
        let mut line = first.to_string();
        let mut rest = links.len();
        while rest > 0 && line.len() <= self.width {
            let (link, _) = links[rest - 1];
            let longer = format!("{line} {} {}", Operator(link), link.rhs);
            if longer.len() > self.width {
                break;
            }
            line = longer;
            rest -= 1;
        }
        let mut out = match rest == links.len() {
            true => self.node(first, level + rest),
            false => format!("{}{line}", indent(level + rest)),
        };
        for (at, (link, _)) in links[..rest].iter().enumerate().rev() {
            let rhs = self.node(&link.rhs, level + at + 1);
            out.push_str(&format!("\n{}{}\n{rhs}", indent(level + at), Operator(link)));
        }
        out
    }

    fn list<'a>(&self, args: impl IntoIterator<Item = &'a Expr>, level: usize) -> String {
        let args: Vec<String> = args.into_iter().map(|arg| self.node(arg, level + 1)).collect();
        args.join(",\n")
    }
}

/// Two spaces a level; beyond the deepest nesting a long chain goes no further in, so that the text stays small.
fn indent(level: usize) -> String {
    "  ".repeat(level.min(DEPTH_MAX as usize))
}
