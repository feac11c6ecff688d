//! The present syntax: any name, reserved signs in quotes. Messages begin with a place, in characters.

use model::{MatchOp, Matcher};

use super::is_reserved;

/// Reads a list of matchers in the present syntax.
///
/// # Errors
///
/// Why the text is not such a list: `5:8: unexpected bar: expected a comma or close brace`.
pub fn parse(text: &str) -> Result<Vec<Matcher>, String> {
    let mut parser = Parser {
        tokens: tokens(text),
        at: 0,
        column: 0,
    };
    parser.list()
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Token<'t> {
    kind: Kind,
    text: &'t str,
    /// First and one past the last character.
    columns: (usize, usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Open,
    Close,
    Comma,
    Operator(MatchOp),
    Quoted,
    Plain,
}

/// What was read, up to the first sign that is none; then why.
type Tokens<'t> = Vec<Result<Token<'t>, String>>;

fn tokens(text: &str) -> Tokens<'_> {
    let mut out = Vec::new();
    let mut rest = text;
    let mut column = 0;
    while let Some(c) = rest.chars().next() {
        if c.is_whitespace() {
            column += 1;
            rest = &rest[c.len_utf8()..];
            continue;
        }
        match token(rest, c) {
            Ok((kind, length)) => {
                let text = &rest[..length];
                let end = column + text.chars().count();
                out.push(Ok(Token {
                    kind,
                    text,
                    columns: (column, end),
                }));
                column = end;
                rest = &rest[length..];
            }
            Err((length, why)) => {
                let text = &rest[..length];
                let end = column + text.chars().count();
                out.push(Err(match why {
                    Wrong::End(expected) if length == rest.len() => {
                        format!("{column}:{end}: unexpected end of input, expected one of '{expected}'")
                    }
                    Wrong::End(expected) => format!("{column}:{end}: {text}: expected one of '{expected}'"),
                    Wrong::Quote => format!("{column}:{end}: {text}: missing end \""),
                    Wrong::Sign => format!("{column}:{end}: {text}: invalid input"),
                }));
                return out;
            }
        }
    }
    out
}

enum Wrong {
    End(&'static str),
    Quote,
    Sign,
}

/// The token at the start and its length in bytes.
fn token(rest: &str, first: char) -> Result<(Kind, usize), (usize, Wrong)> {
    let second = rest[first.len_utf8()..].chars().next();
    match (first, second) {
        ('{', _) => Ok((Kind::Open, 1)),
        ('}', _) => Ok((Kind::Close, 1)),
        (',', _) => Ok((Kind::Comma, 1)),
        ('!', Some('=')) => Ok((Kind::Operator(MatchOp::NotEqual), 2)),
        ('!', Some('~')) => Ok((Kind::Operator(MatchOp::NotRegex), 2)),
        ('!', _) => Err((1, Wrong::End("=~"))),
        ('=', Some('~')) => Ok((Kind::Operator(MatchOp::Regex), 2)),
        ('=', _) => Ok((Kind::Operator(MatchOp::Equal), 1)),
        ('"', _) => closing(&rest[1..])
            .map(|length| (Kind::Quoted, length + 2))
            .ok_or((rest.len(), Wrong::Quote)),
        _ if !is_reserved(first) => Ok((Kind::Plain, rest.find(is_reserved).unwrap_or(rest.len()))),
        _ => Err((first.len_utf8(), Wrong::Sign)),
    }
}

/// Bytes before the quote that ends a text.
fn closing(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at),
            _ => {}
        }
    }
    None
}

struct Parser<'t> {
    tokens: Tokens<'t>,
    at: usize,
    /// Where the last token taken ends.
    column: usize,
}

/// Why a token could not be taken.
enum Missing {
    /// The text has ended.
    End,
    /// There is something else.
    Other(String),
}

impl Missing {
    fn say(self, expected: &str) -> String {
        match self {
            Self::End => format!("end of input: {expected}"),
            Self::Other(message) => format!("{message}: {expected}"),
        }
    }
}

impl<'t> Parser<'t> {
    fn list(&mut self) -> Result<Vec<Matcher>, String> {
        let braced = match self.peek() {
            Err(Missing::End) => return Ok(Vec::new()),
            Err(Missing::Other(message)) => return Err(message),
            Ok(token) => token.kind == Kind::Open,
        };
        if braced {
            self.at += 1;
            self.column = 1;
        }
        let mut matchers = Vec::new();
        while !self.at_close()? {
            matchers.push(self.matcher()?);
            if !self.comma()? {
                break;
            }
        }
        self.close(braced)?;
        match self.peek() {
            Err(Missing::End) => Ok(matchers),
            Err(Missing::Other(message)) => Err(format!("{message}: expected end of input")),
            Ok(token) => {
                let (start, end) = token.columns;
                Err(format!("{start}:{end}: {}: expected end of input", token.text))
            }
        }
    }

    fn peek(&self) -> Result<Token<'t>, Missing> {
        match self.tokens.get(self.at) {
            None => Err(Missing::End),
            Some(Ok(token)) => Ok(token.clone()),
            Some(Err(message)) => Err(Missing::Other(message.clone())),
        }
    }

    fn take(&mut self, wanted: impl Fn(Kind) -> bool) -> Result<Token<'t>, Missing> {
        let token = self.peek()?;
        if !wanted(token.kind) {
            let (start, end) = token.columns;
            return Err(Missing::Other(format!("{start}:{end}: unexpected {}", token.text)));
        }
        self.at += 1;
        self.column = token.columns.1;
        Ok(token)
    }

    /// Whether matchers end here: at a brace, or at the end of the text.
    fn at_close(&self) -> Result<bool, String> {
        match self.peek() {
            Ok(token) => Ok(token.kind == Kind::Close),
            Err(Missing::End) => Ok(true),
            Err(Missing::Other(message)) => Err(message),
        }
    }

    fn matcher(&mut self) -> Result<Matcher, String> {
        let is_text = |kind| matches!(kind, Kind::Quoted | Kind::Plain);
        let name = self.take(is_text).map_err(|m| m.say("expected label name"))?;
        let name = plain(&name)?;
        let operator = self.take(|kind| matches!(kind, Kind::Operator(_)));
        let operator = operator.map_err(|m| m.say("expected an operator such as '=', '!=', '=~' or '!~'"))?;
        let value = self.take(is_text).map_err(|m| m.say("expected label value"))?;
        let value = plain(&value)?;
        let op = match operator.kind {
            Kind::Operator(op) => op,
            _ => MatchOp::Equal,
        };
        Matcher::new(op, name, value).map_err(|e| format!("failed to create matcher: {e}"))
    }

    /// Takes a comma; `false` where the list ends instead.
    fn comma(&mut self) -> Result<bool, String> {
        match self.take(|kind| kind == Kind::Comma) {
            Ok(_) => {}
            Err(Missing::End) => return Ok(false),
            Err(other) => {
                return match self.peek() {
                    Ok(token) if token.kind == Kind::Close => Ok(false),
                    _ => Err(other.say("expected a comma or close brace")),
                };
            }
        }
        match self.peek() {
            Err(Missing::End) => Ok(false),
            Ok(token) if matches!(token.kind, Kind::Close | Kind::Quoted | Kind::Plain) => Ok(true),
            Ok(token) => {
                let (start, end) = token.columns;
                Err(format!(
                    "{start}:{end}: unexpected {}: expected a matcher or close brace after comma",
                    token.text
                ))
            }
            Err(other) => Err(other.say("expected a matcher or close brace after comma")),
        }
    }

    fn close(&mut self, braced: bool) -> Result<(), String> {
        match (self.take(|kind| kind == Kind::Close), braced) {
            (Ok(_), true) | (Err(_), false) => Ok(()),
            (Ok(_), false) => Err(format!("0:{}: }}: expected opening brace", self.column)),
            (Err(missing), true) => Err(format!("0:{}: {}", self.column, missing.say("expected close brace"))),
        }
    }
}

/// The text of a token, quotes and escapes taken away.
fn plain(token: &Token<'_>) -> Result<String, String> {
    if token.kind != Kind::Quoted {
        return Ok(token.text.to_owned());
    }
    let (start, end) = token.columns;
    let inner = &token.text[1..token.text.len() - 1];
    unescape(inner).ok_or_else(|| format!("{start}:{end}: {}: invalid input", token.text))
}

/// Resolves Go's escapes; `None` for an unknown one, a line break, or bytes that are not UTF-8.
fn unescape(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\n' {
            return None;
        }
        if c != '\\' {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let simple = match chars.next()? {
            'a' => 7,
            'b' => 8,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            '\\' => b'\\',
            '"' => b'"',
            'x' => u8::try_from(digits(&mut chars, 2, 16)?).ok()?,
            'u' => {
                push_code(&mut out, digits(&mut chars, 4, 16)?)?;
                continue;
            }
            'U' => {
                push_code(&mut out, digits(&mut chars, 8, 16)?)?;
                continue;
            }
            first @ '0'..='7' => {
                let rest = digits(&mut chars, 2, 8)?;
                u8::try_from(first.to_digit(8)? * 64 + rest).ok()?
            }
            _ => return None,
        };
        out.push(simple);
    }
    String::from_utf8(out).ok()
}

fn digits(chars: &mut std::str::Chars<'_>, count: usize, radix: u32) -> Option<u32> {
    let mut value = 0_u32;
    for _ in 0..count {
        value = value.checked_mul(radix)?.checked_add(chars.next()?.to_digit(radix)?)?;
    }
    Some(value)
}

fn push_code(out: &mut Vec<u8>, code: u32) -> Option<()> {
    let c = char::from_u32(code)?;
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    Some(())
}
