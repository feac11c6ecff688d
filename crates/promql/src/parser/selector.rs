//! Selectors: `name{label="value", other=~"pattern"}`.

use model::text::Span;
use model::{METRIC_NAME, MatchOp, Matcher};

use super::{Context, Parsed, Parser};
use crate::ast::{BinaryOp, Selector};
use crate::lexer::quoted::unquote;
use crate::token::{Token, TokenKind};

const FIRST: Context = ("label matching", "identifier or \"}\"");
const OPERATOR: Context = ("label matching", "label matching operator");
const VALUE: Context = ("label matching", "string");
const NEXT: Context = ("label matching", "\",\" or \"}\"");

impl Parser<'_> {
    /// What follows the name of a metric: matchers, or nothing.
    pub(super) fn named_selector(&mut self, name: Token) -> Parsed<Selector> {
        let mut matchers = match self.token.kind {
            TokenKind::LeftBrace => self.matchers()?,
            _ => Vec::with_capacity(1),
        };
        let name = name.text(self.text).to_owned();
        matchers.push(Matcher::equal(METRIC_NAME, name.clone()));
        Ok(Selector::new(name, matchers))
    }

    /// Matchers without a name before them.
    pub(super) fn nameless_selector(&mut self) -> Parsed<Selector> {
        Ok(Selector::new(String::new(), self.matchers()?))
    }

    fn matchers(&mut self) -> Parsed<Vec<Matcher>> {
        self.bump();
        let mut matchers = Vec::new();
        if self.accept(TokenKind::RightBrace) {
            return Ok(matchers);
        }
        loop {
            matchers.extend(self.matcher()?);
            if self.accept(TokenKind::Comma) {
                if self.accept(TokenKind::RightBrace) {
                    return Ok(matchers);
                }
            } else if self.accept(TokenKind::RightBrace) {
                return Ok(matchers);
            } else {
                return Err(self.unexpected_in(NEXT));
            }
        }
    }

    /// One matcher, or a quoted metric name; `None` for a pattern that does not compile, which is noted.
    fn matcher(&mut self) -> Parsed<Option<Matcher>> {
        let (TokenKind::Identifier | TokenKind::Text) = self.token.kind else {
            return Err(self.unexpected_in(FIRST));
        };
        let label = self.bump();
        let is_quoted = label.kind == TokenKind::Text;
        let name = match is_quoted {
            true => unquote(label.text(self.text)),
            false => label.text(self.text).to_owned(),
        };
        let op = match self.token.kind {
            TokenKind::Equal => MatchOp::Equal,
            TokenKind::Op(BinaryOp::Ne) => MatchOp::NotEqual,
            TokenKind::EqualRegex => MatchOp::Regex,
            TokenKind::NotRegex => MatchOp::NotRegex,
            _ if is_quoted => return Ok(Some(Matcher::equal(METRIC_NAME, name))),
            _ => return Err(self.unexpected_in(OPERATOR)),
        };
        self.bump();
        if self.token.kind != TokenKind::Text {
            return Err(self.unexpected_in(VALUE));
        }
        let value = self.bump();
        match Matcher::new(op, name, unquote(value.text(self.text))) {
            Ok(matcher) => Ok(Some(matcher)),
            Err(error) => {
                let span: Span = label.span.to(value.span);
                self.problem(span, error.to_string());
                Ok(None)
            }
        }
    }
}

impl Selector {
    fn new(name: String, matchers: Vec<Matcher>) -> Self {
        Self {
            name,
            matchers,
            or_matchers: Vec::new(),
            offset: None,
            at: None,
            extension: None,
        }
    }
}
