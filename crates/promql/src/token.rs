//! Tokens: what the lexer hands to the parser, and how an unexpected one is named.

use std::fmt::Write as _;

use model::text::{Span, quote};

use crate::ast::{AggregateOp, BinaryOp};

/// A token with its place; its text is a slice of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Span,
}

/// The kinds of token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// The end of the text.
    Eof,
    /// The text cannot be read on; the lexer holds the reason.
    Error,
    /// A name without a colon.
    Identifier,
    /// A name with a colon: only a metric can have it.
    MetricIdentifier,
    /// A quoted text, quotes included.
    Text,
    Number,
    Duration,
    LeftParen,
    RightParen,
    LeftBrace,
    RightBrace,
    LeftBracket,
    RightBracket,
    Comma,
    Colon,
    /// `=`
    Equal,
    /// `=~`
    EqualRegex,
    /// `!~`
    NotRegex,
    At,
    /// A binary operator; `!=` is a matcher's too, `+` and `-` are signs too.
    Op(BinaryOp),
    Aggregate(AggregateOp),
    Keyword(Keyword),
}

/// Words with a meaning of their own in some places, and names in all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyword {
    Anchored,
    Bool,
    By,
    End,
    Fill,
    FillLeft,
    FillRight,
    GroupLeft,
    GroupRight,
    Ignoring,
    MaxOf,
    MinOf,
    Offset,
    On,
    Range,
    Smoothed,
    Start,
    Step,
    Without,
}

/// Length of the longest reserved word, `count_values`.
const WORD_MAX: usize = 12;

/// The meaning of a reserved word, in any case of letters; `None` for an ordinary name.
pub(crate) fn reserved(word: &str) -> Option<TokenKind> {
    use TokenKind::{Aggregate, Keyword as Key, Number, Op};
    let mut buffer = [0; WORD_MAX];
    let lower = buffer.get_mut(..word.len())?;
    lower.copy_from_slice(word.as_bytes());
    lower.make_ascii_lowercase();
    Some(match &*lower {
        b"and" => Op(BinaryOp::And),
        b"or" => Op(BinaryOp::Or),
        b"unless" => Op(BinaryOp::Unless),
        b"atan2" => Op(BinaryOp::Atan2),
        b"sum" => Aggregate(AggregateOp::Sum),
        b"avg" => Aggregate(AggregateOp::Avg),
        b"count" => Aggregate(AggregateOp::Count),
        b"min" => Aggregate(AggregateOp::Min),
        b"max" => Aggregate(AggregateOp::Max),
        b"group" => Aggregate(AggregateOp::Group),
        b"stddev" => Aggregate(AggregateOp::Stddev),
        b"stdvar" => Aggregate(AggregateOp::Stdvar),
        b"topk" => Aggregate(AggregateOp::Topk),
        b"bottomk" => Aggregate(AggregateOp::Bottomk),
        b"count_values" => Aggregate(AggregateOp::CountValues),
        b"quantile" => Aggregate(AggregateOp::Quantile),
        b"limitk" => Aggregate(AggregateOp::Limitk),
        b"limit_ratio" => Aggregate(AggregateOp::LimitRatio),
        b"offset" => Key(Keyword::Offset),
        b"smoothed" => Key(Keyword::Smoothed),
        b"anchored" => Key(Keyword::Anchored),
        b"by" => Key(Keyword::By),
        b"without" => Key(Keyword::Without),
        b"on" => Key(Keyword::On),
        b"ignoring" => Key(Keyword::Ignoring),
        b"group_left" => Key(Keyword::GroupLeft),
        b"group_right" => Key(Keyword::GroupRight),
        b"fill" => Key(Keyword::Fill),
        b"fill_left" => Key(Keyword::FillLeft),
        b"fill_right" => Key(Keyword::FillRight),
        b"bool" => Key(Keyword::Bool),
        b"start" => Key(Keyword::Start),
        b"end" => Key(Keyword::End),
        b"step" => Key(Keyword::Step),
        b"range" => Key(Keyword::Range),
        b"max_of" => Key(Keyword::MaxOf),
        b"min_of" => Key(Keyword::MinOf),
        b"inf" | b"nan" => Number,
        _ => return None,
    })
}

impl Keyword {
    /// Whether the word is also the name of a function, and shown as a name when unexpected.
    pub(crate) const fn is_function(self) -> bool {
        use Keyword::{End, MaxOf, MinOf, Range, Start, Step};
        matches!(self, Start | End | Step | Range | MaxOf | MinOf)
    }
}

impl Token {
    /// The token's text within its source.
    pub(crate) fn text(self, source: &str) -> &str {
        source.get(self.span.range()).unwrap_or("")
    }

    /// Whether the token can stand alone as a metric's name.
    pub(crate) const fn is_metric_name(self) -> bool {
        use Keyword::{Bool, GroupLeft, GroupRight, Ignoring, On};
        match self.kind {
            TokenKind::Identifier | TokenKind::MetricIdentifier | TokenKind::Aggregate(_) => true,
            TokenKind::Op(op) => matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Unless),
            TokenKind::Keyword(word) => !matches!(word, Bool | GroupLeft | GroupRight | Ignoring | On),
            _ => false,
        }
    }

    /// Whether the token can be a label in `by (…)` and the like. `without` cannot, as in Prometheus.
    pub(crate) const fn is_label_name(self) -> bool {
        match self.kind {
            TokenKind::Op(op) => matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Unless | BinaryOp::Atan2),
            TokenKind::Keyword(word) => !matches!(word, Keyword::Without),
            TokenKind::Identifier | TokenKind::MetricIdentifier | TokenKind::Aggregate(_) => true,
            _ => false,
        }
    }

    /// The token as an error message names it: `identifier "x"`, `<op:*>`, `end of input`.
    pub(crate) fn describe(self, source: &str) -> String {
        let text = self.text(source);
        let kind = match self.kind {
            TokenKind::Eof => return "end of input".to_owned(),
            TokenKind::Keyword(word) if !word.is_function() => return format!("<{text}>"),
            TokenKind::Op(_) | TokenKind::At | TokenKind::EqualRegex | TokenKind::NotRegex => {
                return format!("<op:{text}>");
            }
            TokenKind::Aggregate(_) => return format!("<aggr:{text}>"),
            TokenKind::Identifier => "identifier ",
            TokenKind::MetricIdentifier => "metric identifier ",
            TokenKind::Text => "string ",
            TokenKind::Number => "number ",
            TokenKind::Duration => "duration ",
            _ => "",
        };
        let mut out = String::from(kind);
        let is_name = matches!(self.kind, TokenKind::Identifier | TokenKind::MetricIdentifier);
        match text.char_indices().nth(10) {
            Some((cut, _)) if !is_name => {
                let _ = write!(out, "{}...", quote(&text[..cut]));
            }
            _ => out.push_str(&quote(text)),
        }
        out
    }
}
