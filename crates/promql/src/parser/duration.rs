//! Durations in brackets and after `offset`: literals, and arithmetic over them.
//!
//! As in Prometheus, a plain operand after `offset` ends the offset (`x offset 5m - 3` subtracts from
//! the series), while an offset that begins with a parenthesis takes arithmetic in.

use model::text::Span;
use model::time::DURATION_MAX;

use super::{LOOSEST, Parsed, Parser, SIGN, binding};
use crate::ast::{BinaryOp, DurationExpr, DurationKind};
use crate::token::{Keyword, TokenKind};

impl Parser<'_> {
    /// A duration that, where it is a literal, is longer than nothing.
    pub(super) fn positive_duration(&mut self) -> Parsed<DurationExpr> {
        let before = self.problems.len();
        let duration = self.duration(LOOSEST)?;
        if let DurationKind::Literal { millis, .. } = duration.kind {
            // Less than a millisecond is still more than nothing.
            let is_written_zero = millis < 0 || self.is_zero_text(duration.span) || self.problems.len() > before;
            if millis <= 0 && is_written_zero {
                self.problem(duration.span, "duration must be greater than 0");
            }
        }
        Ok(duration)
    }

    /// What may follow `offset`.
    pub(super) fn offset_duration(&mut self) -> Parsed<DurationExpr> {
        let TokenKind::Op(sign @ (BinaryOp::Add | BinaryOp::Sub)) = self.token.kind else {
            return match self.token.kind {
                TokenKind::LeftParen => self.duration(LOOSEST),
                _ => self.duration_operand(),
            };
        };
        let minus = sign == BinaryOp::Sub;
        let start = self.bump().span.start;
        let operand = match self.token.kind {
            TokenKind::Op(_) => {
                let inner = self.duration(SIGN)?;
                let signed = self.sign(minus, start, inner);
                return self.duration_rest(signed, LOOSEST);
            }
            TokenKind::Keyword(_) => {
                let inner = self.duration_operand()?;
                let span = Span::new(start, inner.span.end);
                let kind = DurationKind::Unary {
                    minus,
                    expr: Box::new(inner),
                };
                return Ok(DurationExpr { kind, span });
            }
            _ => self.duration_operand()?,
        };
        Ok(self.sign(minus, start, operand))
    }

    fn duration(&mut self, min: u8) -> Parsed<DurationExpr> {
        self.enter()?;
        let lhs = match self.token.kind {
            TokenKind::Op(sign @ (BinaryOp::Add | BinaryOp::Sub)) => {
                let start = self.bump().span.start;
                let inner = self.duration(SIGN)?;
                self.sign(sign == BinaryOp::Sub, start, inner)
            }
            _ => self.duration_operand()?,
        };
        let whole = self.duration_rest(lhs, min)?;
        self.depth -= 1;
        Ok(whole)
    }

    /// The arithmetic after an operand.
    fn duration_rest(&mut self, mut lhs: DurationExpr, min: u8) -> Parsed<DurationExpr> {
        let mut chain = self.depth;
        while let TokenKind::Op(op) = self.token.kind {
            let binding = binding(op);
            if binding < min || !is_arithmetic(op) {
                break;
            }
            let sign = self.bump().span;
            let rhs = self.duration(if op == BinaryOp::Pow { binding } else { binding + 1 })?;
            self.grow(&mut chain)?;
            lhs = self.combine(op, sign, lhs, rhs);
        }
        Ok(lhs)
    }

    fn combine(&mut self, op: BinaryOp, sign: Span, lhs: DurationExpr, rhs: DurationExpr) -> DurationExpr {
        let complaint = match op {
            BinaryOp::Div => "division by zero",
            BinaryOp::Mod => "modulo by zero",
            _ => "",
        };
        let by_zero = matches!(rhs.kind, DurationKind::Literal { millis: 0, .. }) && self.is_zero_text(rhs.span);
        if by_zero && !complaint.is_empty() {
            self.problem(sign, complaint);
            return nothing();
        }
        let span = lhs.span.to(rhs.span);
        let (lhs, rhs) = (Box::new(lhs), Box::new(rhs));
        DurationExpr {
            kind: DurationKind::Binary { op, lhs, rhs },
            span,
        }
    }

    fn duration_operand(&mut self) -> Parsed<DurationExpr> {
        let start = self.token.span.start;
        let kind = match self.token.kind {
            TokenKind::Number | TokenKind::Duration => return Ok(self.duration_literal()),
            TokenKind::LeftParen => {
                self.bump();
                let inner = self.duration(LOOSEST)?;
                self.expect(TokenKind::RightParen)?;
                // Further parentheses around these mean nothing and are not printed.
                match inner.kind {
                    kind @ DurationKind::Paren(_) => kind,
                    _ => DurationKind::Paren(Box::new(inner)),
                }
            }
            TokenKind::Keyword(Keyword::Step) => self.nullary(DurationKind::Step)?,
            TokenKind::Keyword(Keyword::Range) => self.nullary(DurationKind::Range)?,
            TokenKind::Keyword(word @ (Keyword::MaxOf | Keyword::MinOf)) => {
                self.bump();
                self.expect(TokenKind::LeftParen)?;
                let lhs = Box::new(self.duration(LOOSEST)?);
                self.expect(TokenKind::Comma)?;
                let rhs = Box::new(self.duration(LOOSEST)?);
                self.expect(TokenKind::RightParen)?;
                let max = word == Keyword::MaxOf;
                DurationKind::Extreme { max, lhs, rhs }
            }
            _ => return Err(self.unexpected()),
        };
        Ok(DurationExpr {
            kind,
            span: Span::new(start, self.end),
        })
    }

    fn nullary(&mut self, kind: DurationKind) -> Parsed<DurationKind> {
        self.bump();
        self.expect(TokenKind::LeftParen)?;
        self.expect(TokenKind::RightParen)?;
        Ok(kind)
    }

    fn duration_literal(&mut self) -> DurationExpr {
        let token = self.bump();
        let millis = (self.seconds(token) * 1000.0).round();
        if millis.is_nan() || millis > DURATION_MAX as f64 {
            self.problem(token.span, "duration out of range");
            return nothing();
        }
        let kind = DurationKind::Literal {
            millis: millis as i64,
            is_number: token.kind == TokenKind::Number,
        };
        DurationExpr { kind, span: token.span }
    }

    /// A sign before `inner`: it becomes part of a literal, and a plus before anything else means nothing.
    fn sign(&mut self, minus: bool, start: usize, inner: DurationExpr) -> DurationExpr {
        let span = Span::new(start, inner.span.end);
        let kind = match inner.kind {
            DurationKind::Literal { millis, is_number } => DurationKind::Literal {
                millis: if minus { -millis } else { millis },
                is_number,
            },
            kind if !minus => kind,
            _ => DurationKind::Unary {
                minus,
                expr: Box::new(inner),
            },
        };
        DurationExpr { kind, span }
    }

    /// Whether the text at `span` has no digit but zeros; an empty one stands for what had no value.
    fn is_zero_text(&self, span: Span) -> bool {
        let text = self.text.get(span.range()).unwrap_or("");
        !text.bytes().any(|b| matches!(b, b'1'..=b'9'))
    }
}

/// Stands where a literal had no value; that has been noted.
fn nothing() -> DurationExpr {
    DurationExpr {
        kind: DurationKind::Literal {
            millis: 0,
            is_number: true,
        },
        span: Span::default(),
    }
}

const fn is_arithmetic(op: BinaryOp) -> bool {
    use BinaryOp::{Add, Div, Mod, Mul, Pow, Sub};
    matches!(op, Add | Sub | Mul | Div | Mod | Pow)
}
