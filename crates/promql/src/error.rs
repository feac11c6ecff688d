//! Why a text is not an expression: every problem found, each with its place.

use std::fmt;

use model::text::{Span, caret};

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where, in bytes of the text.
    pub span: Span,
    /// Line of the first byte, from 1.
    pub line: usize,
    /// Column of the first byte, from 1, in bytes as Prometheus counts.
    pub column: usize,
    /// What, in Prometheus' words.
    pub message: String,
}

impl Problem {
    pub(crate) fn new(text: &str, span: Span, message: String) -> Self {
        let before = &text.as_bytes()[..span.start.min(text.len())];
        let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        Self {
            span,
            line: 1 + before.iter().filter(|b| **b == b'\n').count(),
            column: 1 + before.len() - line_start,
            message,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: parse error: {}", self.line, self.column, self.message)
    }
}

/// A text is not an expression. Shown, it is its first problem on one line: `1:5: parse error: unexpected "="`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.first())]
pub struct ParseError {
    /// The problems in the order found; never empty.
    problems: Vec<Problem>,
}

impl ParseError {
    pub(crate) fn new(mut problems: Vec<Problem>, fallback: impl FnOnce() -> Problem) -> Self {
        if problems.is_empty() {
            problems.push(fallback());
        }
        Self { problems }
    }

    fn first(&self) -> &Problem {
        &self.problems[0]
    }

    /// All problems found, the decisive one first.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Where the first problem stands.
    #[must_use]
    pub fn span(&self) -> Span {
        self.first().span
    }

    /// What the first problem is, without its place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.first().message
    }

    /// The first problem with its line of `text`, the text that was parsed, and carets below the place.
    #[must_use]
    pub fn render(&self, text: &str) -> String {
        format!("{self}\n{}", caret(text, self.span()))
    }
}
