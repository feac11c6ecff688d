//! Walks an expression and tells which series it can give, with which values, and what keeps the others away.
//!
//! It evaluates as PromQL does, on series whose labels and values are known in part: an operation gives every series that it could give
//! under some values. Where nothing is left, the rule can never fire, and the causes gathered on the way say why.
//!
//! Invariant: what cannot be known is taken as possible. Only what no value, no label and no time can bring about is ruled out.

mod absent;
mod aggregate;
mod binary;
mod call;
mod matching;
mod selector;
mod window;

use hashbrown::{HashMap, HashSet};
use model::Millis;
use model::text::Span;
use promql::ast::{BinaryOp, Expr, ExprKind};

use crate::evidence::Evidence;
use crate::facts::Facts;
use crate::interval::Interval;
use crate::line::Line;
use crate::verdict::Reason;

/// Recording rules that read recording rules that read …: further ones are taken as unknown.
const RECORDING_DEPTH_MAX: usize = 8;

/// Reasons kept of one rule.
const REASONS_MAX: usize = 24;

/// How often targets are scraped where nobody says: the default of this program.
pub(crate) const INTERVAL_DEFAULT: Millis = 15_000;

/// A series that a rule records.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    pub expr: Expr,
    pub text: String,
    pub labels: Vec<(String, String)>,
    pub interval: Option<Millis>,
}

/// What a judgement knows.
pub(crate) struct Judge<'a> {
    pub evidence: &'a Evidence,
    pub facts: &'a Facts,
    pub recorded: &'a HashMap<String, Vec<Recorded>>,
    pub alerts: &'a HashSet<String>,
    /// Recording rules above this expression.
    pub depth: usize,
    /// The expression's text.
    pub text: &'a str,
}

/// Series that an expression can give.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    pub lines: Vec<Line>,
    /// What keeps series away.
    pub causes: Vec<Reason>,
    /// What deserves a look though it keeps nothing away.
    pub notes: Vec<Reason>,
}

/// What an expression gives.
#[derive(Debug, Clone)]
pub(crate) enum Operand {
    /// One number; no range where it is never a number.
    Scalar(Option<Interval>, Found),
    Vector(Found),
    Text,
}

impl Found {
    pub fn of(lines: Vec<Line>) -> Self {
        Self {
            lines,
            ..Self::default()
        }
    }

    pub fn cause(reason: Reason) -> Self {
        Self {
            causes: vec![reason],
            ..Self::default()
        }
    }

    /// The same causes and notes around other series.
    pub fn with(self, lines: Vec<Line>) -> Self {
        Self { lines, ..self }
    }

    pub fn map(self, f: impl FnMut(Line) -> Line) -> Self {
        let Self { lines, causes, notes } = self;
        Self {
            lines: lines.into_iter().map(f).collect(),
            causes,
            notes,
        }
    }

    /// Takes over what was said of an operand.
    pub fn hear(&mut self, other: &mut Self) {
        merge(&mut self.causes, std::mem::take(&mut other.causes));
        merge(&mut self.notes, std::mem::take(&mut other.notes));
    }

    pub fn note(&mut self, reason: Reason) {
        merge(&mut self.notes, vec![reason]);
    }

    pub fn blame(&mut self, reason: Reason) {
        merge(&mut self.causes, vec![reason]);
    }
}

/// Adds what is not said yet.
fn merge(into: &mut Vec<Reason>, more: Vec<Reason>) {
    for reason in more {
        let is_new = !into
            .iter()
            .any(|r| r.code == reason.code && r.message == reason.message);
        if is_new && into.len() < REASONS_MAX {
            into.push(reason);
        }
    }
}

impl Judge<'_> {
    /// Whether a scrape may have added labels that the evidence does not show.
    pub fn is_open(&self) -> bool {
        !self.evidence.knows_targets()
    }

    /// How often targets are scraped.
    pub fn interval(&self) -> Millis {
        self.evidence.interval.unwrap_or(INTERVAL_DEFAULT)
    }

    /// The type of a metric, as told or as known.
    pub fn kind_of(&self, name: &str) -> Option<model::Kind> {
        self.kind(name)
    }

    /// The text of a place, shortened.
    pub fn quoted(&self, span: Span) -> String {
        let text = self.text.get(span.range()).unwrap_or("").split_whitespace();
        let text = text.collect::<Vec<_>>().join(" ");
        match text.char_indices().nth(80) {
            Some((at, _)) => format!("`{}…`", &text[..at]),
            None => format!("`{text}`"),
        }
    }

    /// What an expression can give.
    pub fn eval(&self, expr: &Expr) -> Operand {
        match &expr.kind {
            ExprKind::Number { value, .. } => Operand::scalar(Interval::one(*value), value.is_nan()),
            ExprKind::Text(_) => Operand::Text,
            ExprKind::Vector(selector) => Operand::Vector(self.selector(selector, expr.span)),
            ExprKind::Matrix { .. } | ExprKind::Subquery(_) => Operand::Vector(self.window(expr).found),
            ExprKind::Call { function, args } => self.call(function.name, args, expr.span),
            ExprKind::Aggregate(aggregate) => Operand::Vector(self.aggregate(aggregate, expr.span)),
            ExprKind::Binary(_) => self.chain(expr),
            ExprKind::Unary { minus, expr: inner } => match self.eval(inner) {
                operand if !minus => operand,
                Operand::Scalar(range, found) => Operand::Scalar(range.map(|r| Interval::new(-r.hi, -r.lo)), found),
                Operand::Vector(found) => Operand::Vector(found.map(|line| {
                    let range = Interval::new(-line.range.hi, -line.range.lo);
                    line.valued(range)
                })),
                Operand::Text => Operand::Text,
            },
            ExprKind::Paren(inner) => self.eval(inner),
        }
    }

    /// The series of an expression that gives some.
    pub fn vector(&self, expr: &Expr) -> Found {
        match self.eval(expr) {
            Operand::Vector(found) => found,
            Operand::Scalar(range, mut found) => {
                found.lines = range
                    .map(|range| Line {
                        sure: true,
                        ..Line::bare(range)
                    })
                    .into_iter()
                    .collect();
                found
            }
            Operand::Text => Found::default(),
        }
    }

    /// A chain such as `a + b + c` nests to the left, thousands deep at times.
    fn chain(&self, expr: &Expr) -> Operand {
        let mut links = Vec::new();
        let mut at = expr;
        while let ExprKind::Binary(binary) = &at.kind {
            links.push((&**binary, at.span));
            at = &binary.lhs;
        }
        let mut left = self.eval(at);
        for (binary, span) in links.into_iter().rev() {
            let right = self.eval(&binary.rhs);
            left = self.binary(binary, left, right, span);
        }
        left
    }
}

impl Operand {
    fn scalar(range: Interval, is_nan: bool) -> Self {
        Self::Scalar((!is_nan).then_some(range), Found::default())
    }
}

/// A comparison written the other way round.
pub(crate) const fn mirrored(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        other => other,
    }
}
