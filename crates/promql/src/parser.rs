//! Tokens to tree: precedence climbing over operators, with one token of lookahead.
//!
//! Loosest first: `or`; `and unless`; comparisons; `+ -`; `* / % atan2` and signs; `^`, which alone
//! groups to the right; then what follows an operand (`[5m]`, `offset`, `@`). The grammar is that of
//! Prometheus 3.14 with all its feature flags on.
//!
//! Invariants: the first syntax error ends the parse, other problems are collected; a tree higher than
//! [`DEPTH_MAX`] is refused, so that whoever walks it may recurse. A chain such as `a + b + c` nests to the
//! left and counts as one level however long it is: walkers go down it in a loop ([`Expr::chain`]).

mod aggregate;
mod call;
mod duration;
mod literal;
mod matching;
mod postfix;
mod selector;

use model::Matcher;
use model::text::Span;

use crate::ast::{Binary, BinaryOp, Expr, ExprKind};
use crate::check;
use crate::error::{ParseError, Problem};
use crate::lexer::Lexer;
use crate::token::{Token, TokenKind};

/// The longest text that is parsed, in bytes.
pub const TEXT_MAX: usize = 1 << 20;

/// The highest tree that is built: nested parentheses, calls, signs, and `^` in a row.
pub const DEPTH_MAX: u32 = 300;

/// The most binary operators in an expression.
pub const OPERATORS_MAX: u32 = 10_000;

/// Parses an expression and checks its types.
///
/// Experimental functions, duration arithmetic, `fill`, `anchored` and `smoothed` are understood here;
/// whether they may be used is the evaluator's question.
///
/// # Errors
///
/// [`ParseError`] with every problem found, in Prometheus' words.
pub fn parse(text: &str) -> Result<Expr, ParseError> {
    let mut parser = Parser::new(text)?;
    let parsed = parser.whole();
    if let (Ok(expr), true) = (parsed, parser.problems.is_empty()) {
        let mut expr = expr;
        check::check(&mut expr, text, &mut parser.problems);
        if parser.problems.is_empty() {
            return Ok(expr);
        }
    }
    Err(parser.into_error())
}

/// Parses a selector alone, as `match[]` parameters are: `up{job="node"}`, `{__name__=~"node_.*"}`.
///
/// A selector that accepts every series passes; whether that is wanted is the caller's question.
///
/// # Errors
///
/// [`ParseError`] when the text is anything but a selector.
pub fn parse_selector(text: &str) -> Result<Vec<Matcher>, ParseError> {
    let mut parser = Parser::new(text)?;
    match parser.whole_selector() {
        Ok(matchers) if parser.problems.is_empty() => Ok(matchers),
        _ => Err(parser.into_error()),
    }
}

/// A syntax error was noted: nothing more can be read.
pub(crate) struct Stop;

type Parsed<T> = Result<T, Stop>;

/// Where the parser is and what it would accept there, for messages; both may be empty.
type Context = (&'static str, &'static str);

struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    /// The token looked at, not yet taken.
    token: Token,
    /// The end of the token taken last.
    end: usize,
    /// The end of the last closing bracket or number read.
    last_closing: usize,
    context: Context,
    /// Whether the error stood among the arguments of an aggregation that has not reported it yet.
    lost_arguments: bool,
    /// How many calls deep the parser is.
    depth: u32,
    /// The height of the tree returned last.
    height: u32,
    /// Binary operators so far.
    operators: u32,
    /// Where a range was put on something that is no selector.
    bad_range: Option<Span>,
    problems: Vec<Problem>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self, ParseError> {
        if text.len() > TEXT_MAX {
            let message = format!("expression is longer than {TEXT_MAX} bytes");
            return Err(ParseError::new(Vec::new(), || {
                Problem::new(text, Span::new(0, 0), message)
            }));
        }
        let mut lexer = Lexer::new(text);
        let token = lexer.next();
        Ok(Self {
            text,
            lexer,
            token,
            end: 0,
            last_closing: 0,
            context: ("", ""),
            lost_arguments: false,
            depth: 0,
            height: 0,
            operators: 0,
            bad_range: None,
            problems: Vec::new(),
        })
    }

    fn into_error(self) -> ParseError {
        let text = self.text;
        ParseError::new(self.problems, || {
            Problem::new(text, Span::default(), "not an expression".to_owned())
        })
    }

    fn whole(&mut self) -> Parsed<Expr> {
        if self.token.kind == TokenKind::Eof {
            self.problem(Span::default(), "no expression found in input");
            return Err(Stop);
        }
        let expr = self.expr(LOOSEST)?;
        self.finish()?;
        Ok(expr)
    }

    fn whole_selector(&mut self) -> Parsed<Vec<Matcher>> {
        let selector = if self.token.is_metric_name() {
            let name = self.bump();
            self.named_selector(name)?
        } else if self.token.kind == TokenKind::LeftBrace {
            self.nameless_selector()?
        } else {
            return Err(self.unexpected());
        };
        self.finish()?;
        Ok(selector.matchers)
    }

    fn finish(&mut self) -> Parsed<()> {
        match self.token.kind {
            TokenKind::Eof => Ok(()),
            _ => Err(self.unexpected()),
        }
    }

    /// Operands joined by operators that bind at least as tightly as `min`.
    fn expr(&mut self, min: u8) -> Parsed<Expr> {
        self.enter()?;
        let mut lhs = self.operand()?;
        let mut highest = self.height;
        let mut levels = 0;
        while let TokenKind::Op(op) = self.token.kind {
            let binding = binding(op);
            if binding < min {
                break;
            }
            self.bump();
            self.count_operator()?;
            let (return_bool, matching) = self.modifiers()?;
            let rhs = self.expr(if op == BinaryOp::Pow { binding } else { binding + 1 })?;
            highest = highest.max(self.height);
            levels = 1;
            self.limit(highest + levels)?;
            let span = lhs.span.to(rhs.span);
            let kind = ExprKind::Binary(Box::new(Binary {
                op,
                lhs,
                rhs,
                return_bool,
                matching,
            }));
            lhs = Expr { kind, span };
        }
        self.height = highest + levels;
        self.depth -= 1;
        Ok(lhs)
    }

    fn operand(&mut self) -> Parsed<Expr> {
        if let TokenKind::Op(sign @ (BinaryOp::Add | BinaryOp::Sub)) = self.token.kind {
            return self.signed(sign == BinaryOp::Sub);
        }
        let expr = self.primary()?;
        self.postfix(expr)
    }

    /// A sign and its operand; the sign of a number becomes part of the number.
    fn signed(&mut self, minus: bool) -> Parsed<Expr> {
        let start = self.bump().span.start;
        let mut expr = self.expr(SIGN)?;
        let span = Span::new(start, expr.span.end);
        if let ExprKind::Number { value, .. } = &mut expr.kind {
            if minus {
                *value = -*value;
            }
            return Ok(Expr { span, ..expr });
        }
        self.grow_top()?;
        let kind = ExprKind::Unary {
            minus,
            expr: Box::new(expr),
        };
        Ok(Expr { kind, span })
    }

    fn primary(&mut self) -> Parsed<Expr> {
        self.height = 1;
        match self.token.kind {
            TokenKind::Number | TokenKind::Duration => Ok(self.number_literal()),
            TokenKind::Text => Ok(self.text_literal()),
            TokenKind::LeftParen => self.paren(),
            TokenKind::LeftBrace => {
                let start = self.token.span.start;
                let selector = self.nameless_selector()?;
                Ok(self.spanned(start, ExprKind::Vector(selector)))
            }
            TokenKind::Aggregate(op) => {
                let name = self.bump();
                match self.begins_aggregation() {
                    true => self.aggregate(op, name.span.start),
                    false => self.vector(name),
                }
            }
            TokenKind::Identifier => self.call_or_vector(),
            TokenKind::Keyword(word) if word.is_function() => self.call_or_vector(),
            _ if self.token.is_metric_name() => {
                let name = self.bump();
                self.vector(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn call_or_vector(&mut self) -> Parsed<Expr> {
        let name = self.bump();
        match self.token.kind {
            TokenKind::LeftParen => self.call(name),
            _ => self.vector(name),
        }
    }

    fn vector(&mut self, name: Token) -> Parsed<Expr> {
        let selector = self.named_selector(name)?;
        Ok(self.spanned(name.span.start, ExprKind::Vector(selector)))
    }

    fn paren(&mut self) -> Parsed<Expr> {
        let start = self.bump().span.start;
        let inner = self.expr(LOOSEST)?;
        self.expect(TokenKind::RightParen)?;
        self.grow_top()?;
        Ok(self.spanned(start, ExprKind::Paren(Box::new(inner))))
    }

    fn spanned(&self, start: usize, kind: ExprKind) -> Expr {
        Expr {
            kind,
            span: Span::new(start, self.end),
        }
    }

    /// Takes the token looked at.
    fn bump(&mut self) -> Token {
        use TokenKind::{Duration, Number, RightBrace, RightBracket, RightParen};
        let taken = std::mem::replace(&mut self.token, self.lexer.next());
        self.end = taken.span.end;
        if let RightBrace | RightParen | RightBracket | Duration | Number = self.token.kind {
            self.last_closing = self.token.span.end;
        }
        taken
    }

    /// Takes the token looked at if it is of this kind.
    fn accept(&mut self, kind: TokenKind) -> bool {
        let is_there = self.token.kind == kind;
        if is_there {
            self.bump();
        }
        is_there
    }

    fn expect(&mut self, kind: TokenKind) -> Parsed<()> {
        match self.accept(kind) {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    /// Parses something within which a syntax error is reported as being in `context`.
    fn within<T>(&mut self, context: Context, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let outer = std::mem::replace(&mut self.context, context);
        let result = read(self);
        self.context = outer;
        result
    }

    /// Notes that the token looked at cannot stand here.
    fn unexpected(&mut self) -> Stop {
        self.unexpected_in(self.context)
    }

    fn unexpected_in(&mut self, context: Context) -> Stop {
        let (place, expected) = context;
        self.lost_arguments = context == aggregate::AGGREGATION;
        if self.token.kind == TokenKind::Error {
            if let Some(message) = self.lexer.take_error() {
                self.problem(self.token.span, message);
            }
            return Stop;
        }
        let mut message = format!("unexpected {}", self.token.describe(self.text));
        for (word, part) in [(" in ", place), (", expected ", expected)] {
            if !part.is_empty() {
                message.push_str(word);
                message.push_str(part);
            }
        }
        self.problem(self.token.span, message);
        Stop
    }

    fn problem(&mut self, span: Span, message: impl Into<String>) {
        self.problems.push(Problem::new(self.text, span, message.into()));
    }

    fn enter(&mut self) -> Parsed<()> {
        self.depth += 1;
        self.limit(self.depth)
    }

    /// Counts one level more on top of the tree returned last.
    fn grow_top(&mut self) -> Parsed<()> {
        self.height += 1;
        self.limit(self.height)
    }

    fn grow(&mut self, height: &mut u32) -> Parsed<()> {
        *height += 1;
        self.limit(*height)
    }

    fn count_operator(&mut self) -> Parsed<()> {
        self.operators += 1;
        if self.operators <= OPERATORS_MAX {
            return Ok(());
        }
        let message = format!("expression has more than {OPERATORS_MAX} operators");
        self.problem(self.token.span, message);
        Err(Stop)
    }

    fn limit(&mut self, levels: u32) -> Parsed<()> {
        if levels <= DEPTH_MAX {
            return Ok(());
        }
        let message = format!("expression is nested deeper than {DEPTH_MAX} levels");
        self.problem(self.token.span, message);
        Err(Stop)
    }
}

const LOOSEST: u8 = 1;
/// A sign binds as `*` does, so its operand takes in only `^`.
const SIGN: u8 = 6;

/// How tightly an operator binds.
const fn binding(op: BinaryOp) -> u8 {
    match op {
        BinaryOp::Or => 1,
        BinaryOp::And | BinaryOp::Unless => 2,
        BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge
        | BinaryOp::TrimUpper
        | BinaryOp::TrimLower => 3,
        BinaryOp::Add | BinaryOp::Sub => 4,
        BinaryOp::Mul | BinaryOp::Div | BinaryOp::Mod | BinaryOp::Atan2 => 5,
        BinaryOp::Pow => SIGN,
    }
}

#[cfg(test)]
mod tests;
