//! Text to tokens: what stands outside `{{` and `}}` is text, inside are words.
//!
//! An error is the last token; the parser reports it when it gets there.

/// A token and where it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) text: &'a str,
}

/// The kinds of token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    LeftDelimiter,
    RightDelimiter,
    Space,
    Bool,
    /// A character without a meaning of its own, such as a comma.
    Other,
    Rune,
    Number,
    Quoted,
    Raw,
    Assign,
    Declare,
    Pipe,
    LeftParen,
    RightParen,
    Dot,
    Field,
    Variable,
    Identifier,
    Keyword(Keyword),
    Eof,
    /// The text cannot be read on, for this reason.
    Error(&'static str),
    /// A character that cannot stand there.
    BadCharacter(char),
    BadNumber,
}

/// Words that are no functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyword {
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

fn keyword(word: &str) -> Option<Keyword> {
    Some(match word {
        "block" => Keyword::Block,
        "break" => Keyword::Break,
        "continue" => Keyword::Continue,
        "define" => Keyword::Define,
        "else" => Keyword::Else,
        "end" => Keyword::End,
        "if" => Keyword::If,
        "nil" => Keyword::Nil,
        "range" => Keyword::Range,
        "template" => Keyword::Template,
        "with" => Keyword::With,
        _ => return None,
    })
}

const LEFT: &str = "{{";
const RIGHT: &str = "}}";
const COMMENT: &str = "/*";
const COMMENT_END: &str = "*/";

/// All tokens of `text`; the last is [`Kind::Eof`] or an error.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer {
        text,
        at: 0,
        parens: 0,
        tokens: Vec::new(),
    };
    if let Err(kind) = lexer.run() {
        let start = lexer.at;
        lexer.push(kind, start);
    }
    lexer.tokens
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    parens: usize,
    tokens: Vec<Token<'a>>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn push(&mut self, kind: Kind, start: usize) {
        let text = &self.text[start..self.at];
        self.tokens.push(Token { kind, start, text });
    }

    /// Takes `len` bytes as one token.
    fn take(&mut self, kind: Kind, len: usize) {
        let start = self.at;
        self.at += len;
        self.push(kind, start);
    }

    fn run(&mut self) -> Result<(), Kind> {
        let mut trim_left = false;
        loop {
            let rest = self.rest();
            let (text, found) = match rest.find(LEFT) {
                Some(at) => (&rest[..at], true),
                None => (rest, false),
            };
            let trim_right = found && has_left_trim(&rest[text.len() + LEFT.len()..]);
            self.outside(text, trim_left, trim_right);
            if !found {
                self.take(Kind::Eof, 0);
                return Ok(());
            }
            trim_left = self.action(trim_right)?;
        }
    }

    fn outside(&mut self, text: &'a str, trim_left: bool, trim_right: bool) {
        let mut kept = text;
        if trim_right {
            kept = kept.trim_end_matches(is_space);
        }
        if trim_left {
            kept = kept.trim_start_matches(is_space);
        }
        if !kept.is_empty() {
            let start = self.at + (text.len() - text.trim_start_matches(is_space).len()) * usize::from(trim_left);
            let kind = Kind::Text;
            self.tokens.push(Token {
                kind,
                start,
                text: kept,
            });
        }
        self.at += text.len();
    }

    /// From `{{` to `}}`; tells whether the text behind is trimmed.
    fn action(&mut self, has_trim: bool) -> Result<bool, Kind> {
        let trim = if has_trim { 2 } else { 0 };
        if self.rest()[LEFT.len() + trim..].starts_with(COMMENT) {
            return self.comment(LEFT.len() + trim);
        }
        self.take(Kind::LeftDelimiter, LEFT.len());
        self.at += trim;
        self.parens = 0;
        loop {
            if let Some((len, trims)) = right_delimiter(self.rest()) {
                if self.parens > 0 {
                    return Err(Kind::Error("unclosed left paren"));
                }
                self.at += len - RIGHT.len();
                self.take(Kind::RightDelimiter, RIGHT.len());
                return Ok(trims);
            }
            self.inside()?;
        }
    }

    fn comment(&mut self, open: usize) -> Result<bool, Kind> {
        let body = &self.rest()[open..];
        let end = body.find(COMMENT_END).ok_or(Kind::Error("unclosed comment"))?;
        let after = &body[end + COMMENT_END.len()..];
        let ends_early = Kind::Error("comment ends before closing delimiter");
        let (len, trims) = right_delimiter(after).ok_or(ends_early)?;
        self.at += open + end + COMMENT_END.len() + len;
        Ok(trims)
    }

    fn inside(&mut self) -> Result<(), Kind> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Err(Kind::Error("unclosed action"));
        };
        match first {
            c if is_space(c) => self.space(),
            '=' => self.take(Kind::Assign, 1),
            ':' if rest.starts_with(":=") => self.take(Kind::Declare, 2),
            ':' => return Err(Kind::Error("expected :=")),
            '|' => self.take(Kind::Pipe, 1),
            '"' => self.quoted('"', Kind::Quoted, "unterminated quoted string")?,
            '\'' => self.quoted('\'', Kind::Rune, "unterminated character constant")?,
            '`' => {
                let end = rest[1..]
                    .find('`')
                    .ok_or(Kind::Error("unterminated raw quoted string"))?;
                self.take(Kind::Raw, end + 2);
            }
            '.' if !rest[1..].starts_with(|c: char| c.is_ascii_digit()) => self.field(Kind::Dot, Kind::Field)?,
            '$' => self.field(Kind::Variable, Kind::Variable)?,
            '+' | '-' | '.' | '0'..='9' => self.number()?,
            c if is_alphanumeric(c) => self.word()?,
            '(' => {
                self.parens += 1;
                self.take(Kind::LeftParen, 1);
            }
            ')' => {
                self.parens = self
                    .parens
                    .checked_sub(1)
                    .ok_or(Kind::Error("unexpected right paren"))?;
                self.take(Kind::RightParen, 1);
            }
            c if c.is_ascii_graphic() => self.take(Kind::Other, 1),
            c => return Err(Kind::BadCharacter(c)),
        }
        Ok(())
    }

    /// A run of spaces, without the one that belongs to a trim mark.
    fn space(&mut self) {
        let rest = self.rest();
        let mut len = rest.len() - rest.trim_start_matches(is_space).len();
        if rest[len..].starts_with("-}}") {
            len -= 1;
        }
        if len > 0 {
            self.take(Kind::Space, len);
        }
    }

    fn quoted(&mut self, quote: char, kind: Kind, unterminated: &'static str) -> Result<(), Kind> {
        let mut escaped = false;
        for (at, c) in self.rest().char_indices().skip(1) {
            match c {
                '\n' => break,
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                c if c == quote => {
                    self.take(kind, at + 1);
                    return Ok(());
                }
                _ => {}
            }
        }
        Err(Kind::Error(unterminated))
    }

    /// `.name` or `$name`, or the mark alone.
    fn field(&mut self, alone: Kind, named: Kind) -> Result<(), Kind> {
        let name = self.rest()[1..].trim_start_matches(is_alphanumeric);
        let len = self.rest().len() - name.len();
        self.terminated(len)?;
        self.take(if len == 1 { alone } else { named }, len);
        Ok(())
    }

    fn word(&mut self) -> Result<(), Kind> {
        let len = self.rest().len() - self.rest().trim_start_matches(is_alphanumeric).len();
        self.terminated(len)?;
        let word = &self.rest()[..len];
        let kind = match (keyword(word), word) {
            (Some(keyword), _) => Kind::Keyword(keyword),
            (None, "true" | "false") => Kind::Bool,
            _ => Kind::Identifier,
        };
        self.take(kind, len);
        Ok(())
    }

    /// Whether a name may end after `len` bytes.
    fn terminated(&mut self, len: usize) -> Result<(), Kind> {
        let rest = &self.rest()[len..];
        match rest.chars().next() {
            None => Ok(()),
            Some(c) if is_space(c) || matches!(c, '.' | ',' | '|' | ':' | ')' | '(') => Ok(()),
            Some(_) if rest.starts_with(RIGHT) => Ok(()),
            Some(c) => {
                self.at += len;
                Err(Kind::BadCharacter(c))
            }
        }
    }

    fn number(&mut self) -> Result<(), Kind> {
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let mut len = usize::from(matches!(bytes[0], b'+' | b'-'));
        let prefix = bytes.get(len + 1).map(u8::to_ascii_lowercase);
        let is_digit: fn(&u8) -> bool = match (bytes.get(len), prefix) {
            (Some(b'0'), Some(b'x')) => |b| b.is_ascii_hexdigit() || *b == b'_',
            (Some(b'0'), Some(b'o')) => |b| matches!(b, b'0'..=b'7' | b'_'),
            (Some(b'0'), Some(b'b')) => |b| matches!(b, b'0' | b'1' | b'_'),
            _ => |b| b.is_ascii_digit() || *b == b'_',
        };
        let is_prefixed = bytes.get(len) == Some(&b'0') && matches!(prefix, Some(b'x' | b'o' | b'b'));
        len += if is_prefixed { 2 } else { 0 };
        let run = |from: usize, is_digit: fn(&u8) -> bool| bytes[from..].iter().take_while(|b| is_digit(b)).count();
        len += run(len, is_digit);
        if bytes.get(len) == Some(&b'.') {
            len += 1;
            len += run(len, is_digit);
        }
        let exponent: &[u8] = if prefix == Some(b'x') && is_prefixed {
            b"pP"
        } else {
            b"eE"
        };
        if bytes.get(len).is_some_and(|b| exponent.contains(b)) {
            len += 1;
            len += usize::from(bytes.get(len).is_some_and(|b| matches!(b, b'+' | b'-')));
            len += run(len, |b| b.is_ascii_digit() || *b == b'_');
        }
        if rest[len..].starts_with(is_alphanumeric) {
            return Err(Kind::BadNumber);
        }
        self.take(Kind::Number, len);
        Ok(())
    }
}

/// The length of a right delimiter with its trim mark, and whether it has one.
fn right_delimiter(rest: &str) -> Option<(usize, bool)> {
    if rest.starts_with(RIGHT) {
        return Some((RIGHT.len(), false));
    }
    let trimmed = rest.strip_prefix(is_space)?.strip_prefix('-')?;
    trimmed.starts_with(RIGHT).then_some((2 + RIGHT.len(), true))
}

fn has_left_trim(rest: &str) -> bool {
    rest.strip_prefix('-').is_some_and(|r| r.starts_with(is_space))
}

pub(crate) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}
