//! What follows an operand: ranges, subqueries, `offset`, `@`, `anchored`, `smoothed`.

use model::Millis;
use model::text::Span;

use super::{Context, Parsed, Parser};
use crate::ast::{At, BinaryOp, DurationExpr, DurationKind, Expr, ExprKind, RangeExtension, Selector, Subquery};
use crate::token::{Keyword, TokenKind};

const RANGE: Context = ("subquery or range selector", "number, duration, step(), or range()");
const AFTER_RANGE: Context = ("subquery or range", "\":\" or \"]\"");
const STEP: Context = ("subquery selector", "number, duration, step(), range(), or \"]\"");
const AFTER_STEP: Context = ("subquery selector", "\"]\"");
const OFFSET: Context = ("offset", "number, duration, step(), or range()");
const AT: Context = ("@", "timestamp");

/// The moments that `@` can name, in seconds: what 64 bits of seconds hold.
const AT_SECONDS_MAX: f64 = i64::MAX as f64;

impl Parser<'_> {
    pub(super) fn postfix(&mut self, mut expr: Expr) -> Parsed<Expr> {
        loop {
            expr = match self.token.kind {
                TokenKind::LeftBracket => self.brackets(expr)?,
                TokenKind::Keyword(Keyword::Offset) => self.offset(expr)?,
                TokenKind::Keyword(Keyword::Anchored) => self.extend(expr, RangeExtension::Anchored),
                TokenKind::Keyword(Keyword::Smoothed) => self.extend(expr, RangeExtension::Smoothed),
                TokenKind::At => self.at(expr)?,
                _ => return Ok(expr),
            }
        }
    }

    /// `[5m]` or `[1h:5m]`.
    fn brackets(&mut self, expr: Expr) -> Parsed<Expr> {
        let open = self.bump().span;
        let range = self.within(RANGE, Self::positive_duration)?;
        if self.accept(TokenKind::RightBracket) {
            return Ok(self.range(expr, Span::new(open.start, self.end), range));
        }
        if !self.accept(TokenKind::Colon) {
            return Err(self.unexpected_in(AFTER_RANGE));
        }
        let step = match self.token.kind {
            TokenKind::RightBracket => None,
            _ => Some(self.within(STEP, Self::positive_duration)?),
        };
        if !self.accept(TokenKind::RightBracket) {
            return Err(self.unexpected_in(AFTER_STEP));
        }
        self.grow_top()?;
        let start = expr.span.start;
        let kind = ExprKind::Subquery(Box::new(Subquery {
            expr,
            range,
            step,
            offset: None,
            at: None,
        }));
        Ok(self.spanned(start, kind))
    }

    /// A range on `expr`, which must be a selector without modifiers.
    fn range(&mut self, expr: Expr, brackets: Span, range: DurationExpr) -> Expr {
        let span = expr.span.to(brackets);
        let (selector, complaint) = match expr.kind {
            ExprKind::Vector(selector) => {
                let complaint = if selector.offset.is_some() {
                    "no offset modifiers allowed before range"
                } else if selector.at.is_some() {
                    "no @ modifiers allowed before range"
                } else {
                    ""
                };
                (selector, complaint)
            }
            kind => {
                self.problem(brackets, ONLY_SELECTORS);
                self.bad_range = Some(span);
                return Expr { kind, span };
            }
        };
        if !complaint.is_empty() {
            self.problem(brackets, complaint);
        }
        let kind = ExprKind::Matrix {
            extension: selector.extension,
            selector: Selector {
                extension: None,
                ..selector
            },
            range,
        };
        Expr { kind, span }
    }

    fn offset(&mut self, mut expr: Expr) -> Parsed<Expr> {
        self.bump();
        let offset = self.within(OFFSET, Self::offset_duration)?;
        match modifiers(&mut expr.kind) {
            _ if self.bad_range == Some(expr.span) => self.problem(expr.span, ONLY_SELECTORS),
            None => self.problem(expr.span, needs_selector("offset modifier")),
            // An offset of nothing counts as none.
            Some((Some(set), _)) if !is_zero(set) => {
                self.problem(expr.span, "offset may not be set multiple times");
            }
            Some((place, _)) => *place = Some(offset),
        }
        expr.span.end = self.end;
        Ok(expr)
    }

    fn at(&mut self, mut expr: Expr) -> Parsed<Expr> {
        self.bump();
        let at = self.within(AT, |parser| parser.moment(expr.span))?;
        match modifiers(&mut expr.kind) {
            _ if self.bad_range == Some(expr.span) => self.problem(expr.span, ONLY_SELECTORS),
            None => self.problem(expr.span, needs_selector("@ modifier")),
            Some((_, Some(_))) => self.problem(expr.span, "@ <timestamp> may not be set multiple times"),
            Some((_, place)) => *place = Some(at),
        }
        expr.span.end = self.end;
        Ok(expr)
    }

    /// `1700000000`, `-5`, `start()`, `end()`.
    fn moment(&mut self, whole: Span) -> Parsed<At> {
        let named = match self.token.kind {
            TokenKind::Keyword(Keyword::Start) => At::Start,
            TokenKind::Keyword(Keyword::End) => At::End,
            _ => return self.timestamp(whole),
        };
        self.bump();
        self.expect(TokenKind::LeftParen)?;
        self.expect(TokenKind::RightParen)?;
        Ok(named)
    }

    fn timestamp(&mut self, whole: Span) -> Parsed<At> {
        let minus = self.accept(TokenKind::Op(BinaryOp::Sub));
        if !minus {
            self.accept(TokenKind::Op(BinaryOp::Add));
        }
        let (TokenKind::Number | TokenKind::Duration) = self.token.kind else {
            return Err(self.unexpected());
        };
        let token = self.bump();
        let unsigned = self.seconds(token);
        let seconds = if minus { -unsigned } else { unsigned };
        if seconds.is_nan() || seconds.abs() >= AT_SECONDS_MAX {
            let shown = match seconds.is_finite() {
                true => format!("{seconds:.6}"),
                false => model::number::Plain(seconds).to_string(),
            };
            self.problem(whole, format!("timestamp out of bounds for @ modifier: {shown}"));
        }
        // Beyond the range of milliseconds the conversion stops at its ends.
        Ok(At::Time((seconds * 1000.0).round() as Millis))
    }

    fn extend(&mut self, mut expr: Expr, extension: RangeExtension) -> Expr {
        self.bump();
        let word = match extension {
            RangeExtension::Anchored => "anchored",
            RangeExtension::Smoothed => "smoothed",
        };
        let place = match &mut expr.kind {
            _ if self.bad_range == Some(expr.span) => return expr,
            ExprKind::Vector(selector) => &mut selector.extension,
            ExprKind::Matrix { extension, .. } => extension,
            ExprKind::Subquery(_) => {
                self.problem(expr.span, format!("{word} modifier is not supported for subqueries"));
                return expr;
            }
            _ => {
                self.problem(expr.span, format!("{word} modifier not implemented"));
                return expr;
            }
        };
        if place.is_some_and(|set| set != extension) {
            self.problem(expr.span, "anchored and smoothed modifiers cannot be used together");
        } else {
            *place = Some(extension);
        }
        expr.span.end = self.end;
        expr
    }
}

const ONLY_SELECTORS: &str = "ranges only allowed for vector selectors";

fn needs_selector(what: &str) -> String {
    format!("{what} must be preceded by an instant vector selector or range vector selector or a subquery")
}

/// The places of offset and `@` in a node that can have them.
fn modifiers(kind: &mut ExprKind) -> Option<(&mut Option<DurationExpr>, &mut Option<At>)> {
    match kind {
        ExprKind::Vector(selector) | ExprKind::Matrix { selector, .. } => {
            Some((&mut selector.offset, &mut selector.at))
        }
        ExprKind::Subquery(subquery) => Some((&mut subquery.offset, &mut subquery.at)),
        _ => None,
    }
}

fn is_zero(offset: &DurationExpr) -> bool {
    matches!(offset.kind, DurationKind::Literal { millis: 0, .. })
}
