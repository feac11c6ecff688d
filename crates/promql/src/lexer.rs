//! Text to tokens, one at a time, as the parser asks.
//!
//! The lexer knows three places: inside braces every word is a name, inside brackets only durations
//! and arithmetic on them stand, elsewhere reserved words have their meaning. It counts parentheses,
//! so that a missing one is named at the end of the text. After an error it stands still.

mod number;
pub(crate) mod quoted;

use model::text::Span;

use crate::ast::BinaryOp;
use crate::token::{Keyword, Token, TokenKind, reserved};

pub(crate) struct Lexer<'a> {
    text: &'a str,
    /// The next byte to read.
    at: usize,
    paren_depth: usize,
    in_braces: bool,
    in_brackets: bool,
    /// Whether the brackets so far held only what the stricter first part allows: no number yet.
    before_number: bool,
    has_colon: bool,
    /// Whether any brackets of the text held a number yet; as in Prometheus it is not reset.
    has_duration: bool,
    error: Option<String>,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            paren_depth: 0,
            in_braces: false,
            in_brackets: false,
            before_number: false,
            has_colon: false,
            has_duration: false,
            error: None,
        }
    }

    /// Why the last token was [`TokenKind::Error`].
    pub(crate) fn take_error(&mut self) -> Option<String> {
        self.error.take()
    }

    /// The next token; comments and spaces are passed over.
    pub(crate) fn next(&mut self) -> Token {
        self.skip_blank();
        let start = self.at;
        let read = if self.in_braces {
            self.inside_braces()
        } else if self.in_brackets && self.before_number {
            self.duration()
        } else {
            self.statement()
        };
        match read {
            Ok(kind) => Token {
                kind,
                span: Span::new(start, self.at),
            },
            Err(message) => {
                self.error = Some(message);
                Token {
                    kind: TokenKind::Error,
                    span: Span::new(start, self.text.len()),
                }
            }
        }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn char(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next()
    }

    fn accept(&mut self, wanted: u8) -> bool {
        let is_there = self.byte() == Some(wanted);
        self.at += usize::from(is_there);
        is_there
    }

    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.byte().is_some_and(&wanted) {
            self.at += 1;
        }
    }

    fn skip_blank(&mut self) {
        loop {
            self.skip_while(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r'));
            let comments_allowed = !(self.in_brackets && self.before_number);
            if !comments_allowed || self.byte() != Some(b'#') {
                return;
            }
            self.skip_while(|b| b != b'\n' && b != b'\r');
        }
    }

    fn statement(&mut self) -> Result<TokenKind, String> {
        let Some(byte) = self.byte() else { return self.end() };
        if byte.is_ascii_alphabetic() || byte == b'_' || byte == b':' {
            return self.word(byte);
        }
        if byte.is_ascii_digit() || (byte == b'.' && self.digit_follows()) {
            return self.number_or_duration();
        }
        let found = self.char().unwrap_or_default();
        self.at += found.len_utf8();
        let kind = match found {
            ',' => TokenKind::Comma,
            '@' => TokenKind::At,
            '=' if self.accept(b'=') => TokenKind::Op(BinaryOp::Eq),
            '=' if self.byte() == Some(b'~') => return Err("unexpected character after '=': '~'".to_owned()),
            '=' => TokenKind::Equal,
            '!' if self.accept(b'=') => TokenKind::Op(BinaryOp::Ne),
            '!' => return Err(format!("unexpected character after '!': {}", shown(self.char()))),
            '<' if self.accept(b'=') => TokenKind::Op(BinaryOp::Le),
            '<' if self.accept(b'/') => TokenKind::Op(BinaryOp::TrimUpper),
            '<' => TokenKind::Op(BinaryOp::Lt),
            '>' if self.accept(b'=') => TokenKind::Op(BinaryOp::Ge),
            '>' if self.accept(b'/') => TokenKind::Op(BinaryOp::TrimLower),
            '>' => TokenKind::Op(BinaryOp::Gt),
            '"' | '\'' | '`' => return self.quoted(found),
            '{' => {
                self.in_braces = true;
                TokenKind::LeftBrace
            }
            '[' if self.in_brackets => return Err("unexpected left bracket '['".to_owned()),
            '[' => {
                self.in_brackets = true;
                self.before_number = true;
                self.has_colon = false;
                TokenKind::LeftBracket
            }
            ']' if !self.in_brackets => return Err("unexpected right bracket ']'".to_owned()),
            ']' => {
                self.in_brackets = false;
                TokenKind::RightBracket
            }
            _ => return self.shared(found, "unexpected character: "),
        };
        Ok(kind)
    }

    /// What may stand both inside and outside brackets: parentheses and arithmetic.
    fn shared(&mut self, found: char, complaint: &str) -> Result<TokenKind, String> {
        Ok(match found {
            '+' => TokenKind::Op(BinaryOp::Add),
            '-' => TokenKind::Op(BinaryOp::Sub),
            '*' => TokenKind::Op(BinaryOp::Mul),
            '/' => TokenKind::Op(BinaryOp::Div),
            '%' => TokenKind::Op(BinaryOp::Mod),
            '^' => TokenKind::Op(BinaryOp::Pow),
            '(' => {
                self.paren_depth += 1;
                TokenKind::LeftParen
            }
            ')' => {
                let inner = self.paren_depth.checked_sub(1);
                self.paren_depth = inner.ok_or("unexpected right parenthesis ')'")?;
                TokenKind::RightParen
            }
            _ => return Err(format!("{complaint}{}", shown(Some(found)))),
        })
    }

    fn end(&self) -> Result<TokenKind, String> {
        if self.paren_depth != 0 {
            Err("unclosed left parenthesis".to_owned())
        } else if self.in_brackets {
            Err("unclosed left bracket".to_owned())
        } else {
            Ok(TokenKind::Eof)
        }
    }

    /// A name or reserved word; inside brackets only the duration words and the colon.
    fn word(&mut self, first: u8) -> Result<TokenKind, String> {
        if self.in_brackets {
            return self.word_in_brackets(first);
        }
        let start = self.at;
        self.skip_while(|b| is_alphanumeric(b) || b == b':');
        let word = &self.text[start..self.at];
        Ok(match reserved(word) {
            Some(TokenKind::Keyword(Keyword::Fill | Keyword::FillLeft | Keyword::FillRight))
                if !self.paren_follows() =>
            {
                TokenKind::Identifier
            }
            Some(kind) => kind,
            None if word.contains(':') => TokenKind::MetricIdentifier,
            None => TokenKind::Identifier,
        })
    }

    fn word_in_brackets(&mut self, first: u8) -> Result<TokenKind, String> {
        if first == b':' {
            self.at += 1;
            if std::mem::replace(&mut self.has_colon, true) {
                return Err("unexpected colon ':'".to_owned());
            }
            return Ok(TokenKind::Colon);
        }
        self.duration_word()
            .ok_or_else(|| format!("unexpected character: {}, expected ':'", shown(Some(char::from(first)))))
    }

    /// `step`, `range`, `max_of` or `min_of`.
    fn duration_word(&mut self) -> Option<TokenKind> {
        let start = self.at;
        self.skip_while(|b| b.is_ascii_alphabetic() || b == b'_');
        match reserved(&self.text[start..self.at]) {
            Some(kind @ TokenKind::Keyword(Keyword::Step | Keyword::Range | Keyword::MaxOf | Keyword::MinOf)) => {
                Some(kind)
            }
            _ => None,
        }
    }

    /// Inside brackets, before the first number.
    fn duration(&mut self) -> Result<TokenKind, String> {
        const COMPLAINT: &str = "unexpected character in duration expression: ";
        let Some(found) = self.char() else {
            return Err("unexpected end of input in duration expression".to_owned());
        };
        if found.is_ascii_digit() || (found == '.' && self.digit_follows()) {
            self.has_duration = true;
            self.before_number = false;
            return self.number_or_duration();
        }
        if matches!(found.to_ascii_lowercase(), 's' | 'r' | 'm') {
            let word = self.duration_word();
            return word.ok_or_else(|| format!("{COMPLAINT}{}", shown(Some(found))));
        }
        self.at += found.len_utf8();
        match found {
            ']' => {
                self.in_brackets = false;
                Ok(TokenKind::RightBracket)
            }
            ':' if !self.has_duration => Err("unexpected colon before duration in duration expression".to_owned()),
            ':' if self.has_colon => Err("unexpected repeated colon in duration expression".to_owned()),
            ':' => {
                self.has_colon = true;
                Ok(TokenKind::Colon)
            }
            ',' => Ok(TokenKind::Comma),
            _ => self.shared(found, COMPLAINT),
        }
    }

    /// Inside braces, where every word is a name.
    fn inside_braces(&mut self) -> Result<TokenKind, String> {
        let Some(found) = self.char() else {
            return Err("unexpected end of input inside braces".to_owned());
        };
        if found.is_ascii_alphabetic() || found == '_' {
            self.skip_while(is_alphanumeric);
            return Ok(TokenKind::Identifier);
        }
        self.at += found.len_utf8();
        match found {
            ',' => Ok(TokenKind::Comma),
            '"' | '\'' | '`' => self.quoted(found),
            '=' if self.accept(b'~') => Ok(TokenKind::EqualRegex),
            '=' => Ok(TokenKind::Equal),
            '!' if self.accept(b'~') => Ok(TokenKind::NotRegex),
            '!' if self.accept(b'=') => Ok(TokenKind::Op(BinaryOp::Ne)),
            '!' => Err(format!(
                "unexpected character after '!' inside braces: {}",
                shown(self.char())
            )),
            '{' => Err("unexpected left brace '{'".to_owned()),
            '}' => {
                self.in_braces = false;
                Ok(TokenKind::RightBrace)
            }
            other => Err(format!("unexpected character inside braces: {}", shown(Some(other)))),
        }
    }

    /// The rest of a quoted text; its opening quote has been read.
    fn quoted(&mut self, quote: char) -> Result<TokenKind, String> {
        self.at += quoted::scan(&self.text[self.at..], quote)?;
        Ok(TokenKind::Text)
    }

    fn number_or_duration(&mut self) -> Result<TokenKind, String> {
        let rest = &self.text[self.at..];
        let (kind, len) = number::scan(rest);
        let kind = kind.ok_or_else(|| {
            let shown = rest.get(..len).unwrap_or(rest);
            format!("bad number or duration syntax: {}", model::text::quote(shown))
        })?;
        self.at += len;
        Ok(kind)
    }

    fn digit_follows(&self) -> bool {
        self.text.as_bytes().get(self.at + 1).is_some_and(u8::is_ascii_digit)
    }

    fn paren_follows(&self) -> bool {
        self.text[self.at..]
            .trim_start_matches([' ', '\t', '\n', '\r'])
            .starts_with('(')
    }
}

pub(crate) const fn is_alphanumeric(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// A character in single quotes, as messages show it; the end of the text is no character.
fn shown(c: Option<char>) -> String {
    match c {
        None => "end of input".to_owned(),
        Some('\'') => r"'\''".to_owned(),
        Some(c) if c.is_control() => format!("'{}'", c.escape_default()),
        Some(c) => format!("'{c}'"),
    }
}
