//! The syntax tree: what was written, with the place of every node.

use model::text::Span;
use model::{Matcher, Millis};

/// A node with its place in the text.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
}

/// The kinds of node.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// A number, or a duration used as one (`5m` is 300, printed as it was written).
    Number {
        /// The value; a duration counts in seconds.
        value: f64,
        /// Whether it was written as a duration.
        is_duration: bool,
    },
    /// A quoted text.
    Text(String),
    /// `up{job="node"} offset 5m @ 1700000000`
    Vector(Selector),
    /// `up[5m]`: a selector with a window.
    Matrix {
        /// The selector, its offset and `@` included.
        selector: Selector,
        /// The window.
        range: DurationExpr,
        /// Experimental `anchored` or `smoothed`.
        extension: Option<RangeExtension>,
    },
    /// `expr[1h:5m]`
    Subquery(Box<Subquery>),
    /// `rate(x[5m])`
    Call {
        /// The function.
        function: &'static crate::function::Function,
        /// Its arguments as written; left-out optional ones are not here.
        args: Vec<Expr>,
    },
    /// `sum by (job) (x)`
    Aggregate(Box<Aggregate>),
    /// `a + on (job) b`
    Binary(Box<Binary>),
    /// `-x`, `+x`
    Unary {
        /// Whether the sign is a minus.
        minus: bool,
        /// The operand.
        expr: Box<Expr>,
    },
    /// `(x)`
    Paren(Box<Expr>),
}

/// `name{matchers} offset d @ t`
#[derive(Debug, Clone, PartialEq)]
pub struct Selector {
    /// The metric name before the braces; empty if there is none. A name quoted inside is a matcher alone.
    pub name: String,
    /// All matchers in the order written, with `__name__="name"` last if a name was given.
    pub matchers: Vec<Matcher>,
    /// Further alternatives of `{a="1" or b="2"}`; PromQL has none, so the parser leaves it empty.
    pub or_matchers: Vec<Vec<Matcher>>,
    /// The offset.
    pub offset: Option<DurationExpr>,
    /// The `@` modifier.
    pub at: Option<At>,
    /// Experimental `anchored` or `smoothed` after an instant selector.
    pub extension: Option<RangeExtension>,
}

/// Experimental range selector modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeExtension {
    /// `anchored`
    Anchored,
    /// `smoothed`
    Smoothed,
}

/// The `@` modifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// A fixed moment.
    Time(Millis),
    /// `start()`: the first step of the query.
    Start,
    /// `end()`: the last step of the query.
    End,
}

/// A duration: mostly a literal, else arithmetic over literals, `step()` and `range()`.
#[derive(Debug, Clone, PartialEq)]
pub struct DurationExpr {
    /// What it is.
    pub kind: DurationKind,
    /// Where it stands.
    pub span: Span,
}

/// The kinds of duration expression.
#[derive(Debug, Clone, PartialEq)]
pub enum DurationKind {
    /// `5m`, or a number of seconds.
    Literal {
        /// Length; negative only under an offset or within arithmetic. A finer number is rounded.
        millis: Millis,
        /// Whether it was written as a plain number of seconds.
        is_number: bool,
    },
    /// `step()`: the step of the query.
    Step,
    /// `range()`: the whole range of the query.
    Range,
    /// `-d`, `+d`
    Unary {
        /// Whether the sign is a minus.
        minus: bool,
        /// The operand.
        expr: Box<DurationExpr>,
    },
    /// `a + b` and the other arithmetic operators.
    Binary {
        /// The operator, arithmetic only.
        op: BinaryOp,
        /// Left side.
        lhs: Box<DurationExpr>,
        /// Right side.
        rhs: Box<DurationExpr>,
    },
    /// `min_of(a, b)`, or `max_of(a, b)`.
    Extreme {
        /// Whether the larger one counts.
        max: bool,
        /// The first.
        lhs: Box<DurationExpr>,
        /// The second.
        rhs: Box<DurationExpr>,
    },
    /// `(d)`
    Paren(Box<DurationExpr>),
}

/// `expr[range:step] offset d @ t`
#[derive(Debug, Clone, PartialEq)]
pub struct Subquery {
    /// The inner expression.
    pub expr: Expr,
    /// The window.
    pub range: DurationExpr,
    /// The resolution; the default one if absent.
    pub step: Option<DurationExpr>,
    /// The offset.
    pub offset: Option<DurationExpr>,
    /// The `@` modifier.
    pub at: Option<At>,
}

/// An aggregation.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// The operator.
    pub op: AggregateOp,
    /// What is aggregated.
    pub expr: Expr,
    /// `k` of `topk(k, x)`, the quantile, the label of `count_values`.
    pub param: Option<Expr>,
    /// The labels of `by` or `without`.
    pub labels: Vec<String>,
    /// Whether `labels` are those to leave out.
    pub without: bool,
    /// Whether `by` or `without` was written at all (`sum(x)` and `sum by () (x)` mean the same, print differently).
    pub has_grouping: bool,
}

/// Aggregation operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the operator of that name")]
pub enum AggregateOp {
    Sum,
    Avg,
    Count,
    Min,
    Max,
    Group,
    Stddev,
    Stdvar,
    Topk,
    Bottomk,
    CountValues,
    Quantile,
    Limitk,
    LimitRatio,
}

/// A binary operation. Its left side may be a chain of thousands, so it is copied, compared and dropped in
/// a loop; only `Debug` recurses.
#[derive(Debug)]
pub struct Binary {
    /// The operator.
    pub op: BinaryOp,
    /// Left side.
    pub lhs: Expr,
    /// Right side.
    pub rhs: Expr,
    /// Whether a comparison gives 0 and 1 in place of filtering.
    pub return_bool: bool,
    /// How series of the two sides meet; `Matching::default()` between scalars or without modifiers.
    pub matching: Matching,
}

/// Binary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the operator of that name")]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Pow,
    Atan2,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
    Unless,
    /// `</`: native histograms only.
    TrimUpper,
    /// `>/`: native histograms only.
    TrimLower,
}

/// `on`/`ignoring`, `group_left`/`group_right`, `fill`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Matching {
    /// One to one, many to one, one to many; set operators are many to many.
    pub card: Cardinality,
    /// Whether `labels` are those of `on` (else of `ignoring`).
    pub on: bool,
    /// The labels.
    pub labels: Vec<String>,
    /// The labels that `group_left(…)` or `group_right(…)` copies from the one side.
    pub include: Vec<String>,
    /// Value for a missing left side (experimental `fill`).
    pub fill_left: Option<f64>,
    /// Value for a missing right side.
    pub fill_right: Option<f64>,
}

/// How many series of one side may meet one of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Cardinality {
    #[default]
    OneToOne,
    ManyToOne,
    OneToMany,
    ManyToMany,
}

impl Expr {
    /// Shows every selector, in the order written: those of ranges, subqueries and parameters too.
    pub fn each_selector<'a>(&'a self, see: &mut impl FnMut(&'a Selector)) {
        match &self.kind {
            ExprKind::Number { .. } | ExprKind::Text(_) => {}
            ExprKind::Vector(selector) | ExprKind::Matrix { selector, .. } => see(selector),
            ExprKind::Subquery(subquery) => subquery.expr.each_selector(see),
            ExprKind::Call { args, .. } => args.iter().for_each(|arg| arg.each_selector(see)),
            ExprKind::Aggregate(aggregate) => {
                aggregate.expr.each_selector(see);
                if let Some(param) = &aggregate.param {
                    param.each_selector(see);
                }
            }
            ExprKind::Binary(_) => {
                let (links, first) = self.chain();
                first.each_selector(see);
                links.iter().rev().for_each(|(link, _)| link.rhs.each_selector(see));
            }
            ExprKind::Unary { expr, .. } | ExprKind::Paren(expr) => expr.each_selector(see),
        }
    }

    /// The operations of a chain such as `a + b + c`, which nests to the left: outermost first, with their
    /// places, then the leftmost operand. No operation and the expression itself where it is none.
    pub(crate) fn chain(&self) -> (Vec<(&Binary, Span)>, &Self) {
        let mut links = Vec::new();
        let mut at = self;
        while let ExprKind::Binary(binary) = &at.kind {
            links.push((&**binary, at.span));
            at = &binary.lhs;
        }
        (links, at)
    }
}

impl ExprKind {
    /// What stands where something was taken out.
    pub(crate) const HOLE: Self = Self::Number {
        value: 0.0,
        is_duration: false,
    };
}

impl Binary {
    fn with_left(&self, lhs: Expr) -> Self {
        Self {
            op: self.op,
            lhs,
            rhs: self.rhs.clone(),
            return_bool: self.return_bool,
            matching: self.matching.clone(),
        }
    }

    fn same_but_left(&self, other: &Self) -> bool {
        self.op == other.op
            && self.return_bool == other.return_bool
            && self.matching == other.matching
            && self.rhs == other.rhs
    }
}

impl Clone for Binary {
    fn clone(&self) -> Self {
        let (links, first) = self.lhs.chain();
        let mut lhs = first.clone();
        for (link, span) in links.into_iter().rev() {
            let kind = ExprKind::Binary(Box::new(link.with_left(lhs)));
            lhs = Expr { kind, span };
        }
        self.with_left(lhs)
    }
}

impl PartialEq for Binary {
    fn eq(&self, other: &Self) -> bool {
        let ((ours, first), (theirs, their_first)) = (self.lhs.chain(), other.lhs.chain());
        self.same_but_left(other)
            && ours.len() == theirs.len()
            && first == their_first
            && ours
                .iter()
                .zip(&theirs)
                .all(|(a, b)| a.1 == b.1 && a.0.same_but_left(b.0))
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        let mut left = std::mem::replace(&mut self.lhs.kind, ExprKind::HOLE);
        while let ExprKind::Binary(mut link) = left {
            left = std::mem::replace(&mut link.lhs.kind, ExprKind::HOLE);
        }
    }
}
