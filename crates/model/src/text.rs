//! Places in a text, and a message that points at one: used by every language that people write by hand.

use std::fmt::Write as _;
use std::ops::Range;

/// Bytes of the source text, start included, end excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The bytes `start..end`.
    #[must_use]
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// The smallest span that covers both.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    /// The span as a byte range, for slicing the text it came from.
    #[must_use]
    pub const fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// Line and column (both from 1, columns in characters) of byte `at` in `text`.
#[must_use]
pub fn line_column(text: &str, at: usize) -> (usize, usize) {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
    (line, column)
}

/// Draws the line that holds `span` with carets below it, two spaces in; a long line is cut around the place.
#[must_use]
pub fn caret(text: &str, span: Span) -> String {
    const CONTEXT_CHARS: usize = 100;
    let (line_no, column) = line_column(text, span.start);
    let line: Vec<char> = text
        .lines()
        .nth(line_no - 1)
        .unwrap_or("")
        .chars()
        .map(|c| if c == '\t' { ' ' } else { c })
        .collect();
    let from = (column - 1).saturating_sub(CONTEXT_CHARS / 2);
    let to = line.len().min(from + CONTEXT_CHARS);
    let shown: String = line.get(from..to).unwrap_or(&[]).iter().collect();
    let spanned = text
        .get(span.range())
        .unwrap_or("")
        .split('\n')
        .next()
        .unwrap_or("")
        .chars()
        .count();
    let room = (from + CONTEXT_CHARS).saturating_sub(column - 1).max(1);
    let carets = spanned.clamp(1, room);
    let mut out = String::new();
    let _ = write!(
        out,
        "  {shown}\n  {}{}",
        " ".repeat(column - 1 - from),
        "^".repeat(carets)
    );
    out
}

/// Writes `text` in double quotes with Go's escapes, as label values and matchers are printed.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caret_points_at_its_word() {
        let text = "sum(up)\nby (job) oops";
        assert_eq!(caret(text, Span::new(17, 21)), "  by (job) oops\n           ^^^^");
        assert_eq!(line_column(text, 17), (2, 10));
        assert_eq!(caret("", Span::new(0, 0)), "  \n  ^");
    }

    #[test]
    fn quotes_escape_what_go_escapes() {
        assert_eq!(quote("a\"b\\c\n\u{1}"), r#""a\"b\\c\n\x01""#);
    }
}
