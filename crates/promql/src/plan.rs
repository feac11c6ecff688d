//! From the syntax tree to what is evaluated: durations, `start()` and `end()` have become numbers,
//! parentheses are gone, functions are known by kind, and what does not change from step to step is
//! marked, so that it is evaluated once.

mod build;
mod duration;
mod function;

pub(crate) use build::{Query, Refusal, build};
pub(crate) use function::{Calendar, HistogramFunction, InstantFunction, RangeFunction, SortBy};

use model::text::Span;
use model::{Labels, METRIC_NAME, Matcher, Millis};

use crate::ast::{AggregateOp, BinaryOp, Matching, RangeExtension};

/// A planned expression with its place in the text.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// What it is.
    pub(crate) kind: Kind,
    /// Where it stands, for remarks.
    pub(crate) span: Span,
}

/// The kinds of planned expression.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// An instant selector.
    Select(Select),
    /// A range selector or subquery on its own: only the whole of an instant query may be one.
    Ranged(Ranged),
    /// A function over windows.
    Range(Box<RangeCall>),
    /// A function over instant vectors, scalars and texts.
    Call(InstantFunction, Vec<Node>),
    /// An aggregation.
    Aggregate(Box<Aggregate>),
    /// A binary operation.
    Binary(Box<Binary>),
    /// `-x`
    Negate(Box<Node>),
    /// The same at every step: evaluated at the first one.
    Invariant(Box<Node>),
}

/// Which series, and when they are looked at.
#[derive(Debug, Clone)]
pub(crate) struct Select {
    /// Lists of matchers; a series passes when it passes all of any list.
    pub(crate) alternatives: Vec<Vec<Matcher>>,
    /// How far the look goes back, in milliseconds.
    pub(crate) offset: Millis,
    /// The fixed moment of an `@` modifier.
    pub(crate) at: Option<Millis>,
    /// Experimental: `anchored` or `smoothed`.
    pub(crate) extension: Option<RangeExtension>,
    /// Whether count and sum are all that is asked of native histograms.
    pub(crate) stats: bool,
}

/// What has samples over a range.
#[derive(Debug, Clone)]
pub(crate) enum Ranged {
    /// `x[5m]`
    Select {
        /// The selector.
        select: Select,
        /// The window, in milliseconds.
        range: Millis,
    },
    /// `expr[1h:5m]`
    Subquery(Box<Subquery>),
}

/// A subquery.
#[derive(Debug, Clone)]
pub(crate) struct Subquery {
    /// The inner expression.
    pub(crate) inner: Node,
    /// The window, in milliseconds.
    pub(crate) range: Millis,
    /// The inner step, in milliseconds, above zero.
    pub(crate) step: Millis,
    /// The offset, in milliseconds.
    pub(crate) offset: Millis,
    /// The fixed moment of an `@` modifier.
    pub(crate) at: Option<Millis>,
}

/// A function over windows with its scalar arguments.
#[derive(Debug, Clone)]
pub(crate) struct RangeCall {
    /// The function.
    pub(crate) function: RangeFunction,
    /// Its name as the language has it.
    pub(crate) name: &'static str,
    /// The samples.
    pub(crate) arg: Ranged,
    /// Where the range argument stands.
    pub(crate) arg_span: Span,
    /// The scalar arguments in order.
    pub(crate) params: Vec<Node>,
}

/// An aggregation.
#[derive(Debug, Clone)]
pub(crate) struct Aggregate {
    /// The operator.
    pub(crate) op: AggregateOp,
    /// What is aggregated.
    pub(crate) arg: Node,
    /// The parameter.
    pub(crate) param: Option<Node>,
    /// Which series belong together.
    pub(crate) grouping: Grouping,
}

/// `by (…)` or `without (…)`.
#[derive(Debug, Clone)]
pub(crate) struct Grouping {
    /// The labels.
    pub(crate) labels: Vec<String>,
    /// Whether those are left out.
    pub(crate) without: bool,
}

impl Grouping {
    /// The labels that stand for the group of a series, one by one.
    pub(crate) fn kept<'l>(&'l self, labels: &'l Labels) -> impl Iterator<Item = (&'l str, &'l str)> {
        labels.iter().filter(|(name, _)| {
            let listed = self.labels.iter().any(|l| l == name);
            listed != self.without && !(self.without && *name == METRIC_NAME)
        })
    }

    /// The labels that stand for the group of a series.
    pub(crate) fn of(&self, labels: &Labels) -> Labels {
        if self.without {
            labels.retain(|name| name != METRIC_NAME && !self.labels.iter().any(|l| l == name))
        } else {
            labels.only(&self.labels)
        }
    }
}

/// A binary operation.
#[derive(Debug, Clone)]
pub(crate) struct Binary {
    /// The operator.
    pub(crate) op: BinaryOp,
    /// Left side.
    pub(crate) lhs: Node,
    /// Right side.
    pub(crate) rhs: Node,
    /// Whether a comparison gives 0 and 1.
    pub(crate) return_bool: bool,
    /// How series meet.
    pub(crate) matching: Matching,
    /// Where it stands.
    pub(crate) span: Span,
}

impl Node {
    /// The operations of a chain such as `a + b + c`, outermost first, and its leftmost operand.
    pub(crate) fn chain(&self) -> (Vec<&Binary>, &Self) {
        let mut links = Vec::new();
        let mut at = self;
        while let Kind::Binary(binary) = &at.kind {
            links.push(&**binary);
            at = &binary.lhs;
        }
        (links, at)
    }

    /// The node itself where it is only marked as invariant.
    pub(crate) fn unwrapped(&self) -> &Self {
        match &self.kind {
            Kind::Invariant(inner) => inner.unwrapped(),
            _ => self,
        }
    }
}

impl Drop for Binary {
    /// A chain may be thousands long: it is dropped in a loop.
    fn drop(&mut self) {
        let mut left = std::mem::replace(&mut self.lhs.kind, Kind::Number(0.0));
        while let Kind::Binary(mut link) = left {
            left = std::mem::replace(&mut link.lhs.kind, Kind::Number(0.0));
        }
    }
}
