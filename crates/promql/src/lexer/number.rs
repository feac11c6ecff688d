//! Where a number or a duration ends, and whether it is one; its value is read later.

use super::is_alphanumeric;
use crate::token::TokenKind;

/// The kind of the literal that `text` begins with and its length, or `None` and how far it was read.
pub(super) fn scan(text: &str) -> (Option<TokenKind>, usize) {
    let mut cursor = Cursor {
        bytes: text.as_bytes(),
        at: 0,
    };
    if cursor.number() {
        return (Some(TokenKind::Number), cursor.at);
    }
    if cursor.rest_of_duration() {
        return (Some(TokenKind::Duration), cursor.at);
    }
    // The character that spoils it is shown too; it may be longer than a byte.
    let mut end = cursor.at.min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    (None, end)
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn accept(&mut self, any_of: &[u8]) -> bool {
        let is_there = self.peek().is_some_and(|b| any_of.contains(&b));
        self.at += usize::from(is_there);
        is_there
    }

    fn skip_digits(&mut self, is_hex: bool) {
        while self.peek().is_some_and(|b| is_digit(b, is_hex)) {
            self.at += 1;
        }
    }

    /// Digits with at most one point, one exponent, and single underscores between digits.
    fn number(&mut self) -> bool {
        let is_hex = self.accept(b"0") && self.accept(b"xX");
        if is_hex {
            self.accept(b"_");
        }
        let (mut has_point, mut has_exponent) = (false, false);
        loop {
            self.skip_digits(is_hex);
            if self.accept(b".") {
                if has_point || self.accept(b"_.") || is_hex {
                    return false;
                }
                has_point = true;
            } else if self.accept(b"eE") {
                if has_exponent {
                    return false;
                }
                has_exponent = true;
                self.accept(b"+-");
                if self.accept(b"._eE") || self.peek().is_none() {
                    return false;
                }
            } else if self.accept(b"_") {
                if self.accept(b"._eE") || self.peek().is_none() {
                    return false;
                }
            } else {
                break;
            }
        }
        self.at > 0 && !self.peek().is_some_and(is_alphanumeric)
    }

    /// A unit, then further numbers with units; which units there are is checked when the value is read.
    fn rest_of_duration(&mut self) -> bool {
        if !self.accept(b"smhdwy") {
            return false;
        }
        self.accept(b"s");
        while self.accept(b"0123456789") {
            self.skip_digits(false);
            if !self.accept(b"smhdw") {
                return false;
            }
            self.accept(b"s");
        }
        if self.peek().is_some_and(is_alphanumeric) {
            self.at += 1;
            return false;
        }
        true
    }
}

const fn is_digit(b: u8, is_hex: bool) -> bool {
    if is_hex {
        b.is_ascii_hexdigit()
    } else {
        b.is_ascii_digit()
    }
}
