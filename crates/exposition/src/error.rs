//! Why a page is refused: the place, the line and the cause.

use model::text::{Span, caret};

/// A page is refused; nothing of it may be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {cause}", place(*line, *column))]
pub struct Error {
    /// Line, from 1; 0 in a page that has none, the protobuf format's.
    pub line: usize,
    /// Column, from 1, in characters; without lines, the byte, from 0.
    pub column: usize,
    /// What is wrong there.
    pub cause: Cause,
    /// The line, cut around the place, with a caret below it; bytes that are not UTF-8 stand as `�`.
    pub excerpt: String,
}

/// What is wrong with a page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The grammar wants something else here.
    #[error("expected {expected}, got {got}")]
    Expected {
        /// What the grammar wants.
        expected: &'static str,
        /// What stands there, quoted and cut.
        got: String,
    },
    /// A value or timestamp that is not a number, or in a form the format leaves out (`0x1p-3`, `1_000`).
    #[error("not a number: {0}")]
    Number(String),
    /// A timestamp that is a number but no moment.
    #[error("invalid timestamp {0}")]
    Timestamp(String),
    /// A name, label value or help text is not UTF-8.
    #[error("not valid UTF-8")]
    Utf8,
    /// Braces without a metric name before or inside them.
    #[error("metric name not set")]
    NameMissing,
    /// A second metric name inside the braces.
    #[error("metric name already set")]
    NameTwice,
    /// The same label twice in one series.
    #[error("label {0:?} is there twice")]
    LabelTwice(String),
    /// More labels than any exporter writes.
    #[error("a series has more than {} labels", crate::series::LABELS_MAX)]
    LabelsTooMany,
    /// A type word that the format does not know.
    #[error("invalid metric type {0}")]
    Type(String),
    /// A unit that is not the last word of the name.
    #[error("unit {unit:?} is not the suffix of metric {name:?}")]
    Unit {
        /// The metric.
        name: String,
        /// Its unit as written.
        unit: String,
    },
    /// An OpenMetrics page was cut short, or never was one.
    #[error("data does not end with # EOF")]
    EofMissing,
    /// Text behind the end.
    #[error("unexpected data after # EOF")]
    AfterEof,
    /// The protobuf format is broken.
    #[error("{0}")]
    Protobuf(&'static str),
    /// A rule that only the strict check knows.
    #[error("{0}")]
    Rule(String),
}

fn place(line: usize, column: usize) -> String {
    match line {
        0 => format!("byte {column}"),
        line => format!("line {line}, column {column}"),
    }
}

impl Error {
    /// An error at a byte of a page without lines.
    pub(crate) const fn in_bytes(at: usize, cause: Cause) -> Self {
        Self {
            line: 0,
            column: at,
            cause,
            excerpt: String::new(),
        }
    }

    /// An error at byte `at` of `page`; counting lines is left until now.
    pub(crate) fn at(page: &[u8], at: usize, cause: Cause) -> Self {
        const AROUND: usize = 2_000;
        let at = at.min(page.len());
        let before = &page[..at];
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        let start = memchr::memrchr(b'\n', before).map_or(0, |i| i + 1);
        let end = memchr::memchr(b'\n', &page[at..]).map_or(page.len(), |i| at + i);
        let column = String::from_utf8_lossy(&page[start..at]).chars().count() + 1;
        let from = start.max(at.saturating_sub(AROUND));
        let left = String::from_utf8_lossy(&page[from..at]);
        let right = String::from_utf8_lossy(&page[at..end.min(at + AROUND)]);
        let excerpt = caret(&format!("{left}{right}"), Span::new(left.len(), left.len() + 1));
        Self {
            line,
            column,
            cause,
            excerpt,
        }
    }

    /// "Expected this" at byte `at`.
    pub(crate) fn expected(page: &[u8], at: usize, expected: &'static str) -> Self {
        let got = got(page.get(at..).unwrap_or(&[]));
        Self::at(page, at, Cause::Expected { expected, got })
    }
}

/// The start of `rest`, quoted, for a message.
pub(crate) fn got(rest: &[u8]) -> String {
    const SHOWN: usize = 12;
    match rest.first() {
        None => "the end of the page".to_owned(),
        Some(b'\n') => "the end of the line".to_owned(),
        Some(_) => {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len()).min(SHOWN);
            model::text::quote(&String::from_utf8_lossy(&rest[..end]))
        }
    }
}
