//! Aggregations, and the label lists of `by`, `without`, `on`, `ignoring`, `group_left`, `group_right`.

use model::text::{Span, quote};

use super::{Context, Parsed, Parser, Stop};
use crate::ast::{Aggregate, AggregateOp, Expr, ExprKind};
use crate::lexer::quoted::unquote;
use crate::token::{Keyword, TokenKind};

pub(super) const AGGREGATION: Context = ("aggregation", "");
const GROUPING: Context = ("grouping opts", "\"(\"");
const LABEL: Context = ("grouping opts", "label");
const NEXT: Context = ("grouping opts", "\",\" or \")\"");

/// `by (…)` or `without (…)`.
struct Grouping {
    labels: Vec<String>,
    without: bool,
}

impl Parser<'_> {
    /// Whether the token looked at makes the operator just taken an aggregation and not a metric's name.
    pub(super) fn begins_aggregation(&self) -> bool {
        matches!(
            self.token.kind,
            TokenKind::LeftParen | TokenKind::Keyword(Keyword::By | Keyword::Without)
        )
    }

    /// The rest of an aggregation whose operator stands at `start`.
    pub(super) fn aggregate(&mut self, op: AggregateOp, start: usize) -> Parsed<Expr> {
        let before = self.grouping()?;
        let args = match self.within(AGGREGATION, Self::args) {
            Ok(args) => args,
            Err(Stop) => {
                // The innermost aggregation has lost its arguments with the error.
                if std::mem::take(&mut self.lost_arguments) {
                    let end = self.last_closing;
                    self.problem(Span::new(start.min(end), end), NO_ARGUMENTS);
                }
                return Err(Stop);
            }
        };
        let grouping = match before {
            Some(grouping) => Some(grouping),
            None => self.grouping()?,
        };
        let span = Span::new(start, self.end);
        let expr = self.aggregate_of(op, args, span);
        self.grow_top()?;
        let has_grouping = grouping.is_some();
        let grouping = grouping.unwrap_or(Grouping {
            labels: Vec::new(),
            without: false,
        });
        let (param, expr) = expr?;
        let kind = ExprKind::Aggregate(Box::new(Aggregate {
            op,
            expr,
            param,
            labels: grouping.labels,
            without: grouping.without,
            has_grouping,
        }));
        Ok(Expr { kind, span })
    }

    /// Parameter and operand among the arguments.
    fn aggregate_of(&mut self, op: AggregateOp, args: Vec<Expr>, span: Span) -> Parsed<(Option<Expr>, Expr)> {
        let (wanted, got) = (1 + usize::from(op.has_param()), args.len());
        let mut args = args.into_iter();
        match (wanted, got) {
            (1, 1) => args.next().map(|expr| (None, expr)).ok_or(Stop),
            (2, 2) => args.next().zip(args.next()).map(|(p, e)| (Some(p), e)).ok_or(Stop),
            (_, 0) => {
                self.problem(span, NO_ARGUMENTS);
                Ok((None, self.stand_in(span)))
            }
            _ => {
                let message = format!(
                    "wrong number of arguments for aggregate expression provided, expected {wanted}, got {got}"
                );
                self.problem(span, message);
                Ok((None, self.stand_in(span)))
            }
        }
    }

    /// `by (…)` or `without (…)`, if one stands here.
    fn grouping(&mut self) -> Parsed<Option<Grouping>> {
        let without = match self.token.kind {
            TokenKind::Keyword(Keyword::By) => false,
            TokenKind::Keyword(Keyword::Without) => true,
            _ => return Ok(None),
        };
        self.bump();
        let labels = self.labels()?;
        Ok(Some(Grouping { labels, without }))
    }

    /// A list of labels in parentheses; the last may be followed by a comma.
    pub(super) fn labels(&mut self) -> Parsed<Vec<String>> {
        if !self.accept(TokenKind::LeftParen) {
            return Err(self.unexpected_in(GROUPING));
        }
        let mut labels = Vec::new();
        if self.accept(TokenKind::RightParen) {
            return Ok(labels);
        }
        loop {
            labels.push(self.label()?);
            if self.accept(TokenKind::Comma) {
                if self.accept(TokenKind::RightParen) {
                    return Ok(labels);
                }
            } else if self.accept(TokenKind::RightParen) {
                return Ok(labels);
            } else {
                return Err(self.unexpected_in(NEXT));
            }
        }
    }

    fn label(&mut self) -> Parsed<String> {
        let is_quoted = self.token.kind == TokenKind::Text;
        if !is_quoted && !self.token.is_label_name() {
            return Err(self.unexpected_in(LABEL));
        }
        let token = self.bump();
        let text = token.text(self.text);
        let label = if is_quoted { unquote(text) } else { text.to_owned() };
        if label.is_empty() {
            self.problem(
                token.span,
                format!("invalid label name for grouping: {}", quote(&label)),
            );
        }
        Ok(label)
    }

    /// Stands where something could not be built; that has been noted.
    pub(super) fn stand_in(&self, span: Span) -> Expr {
        let kind = ExprKind::Text(String::new());
        Expr { kind, span }
    }
}

const NO_ARGUMENTS: &str = "no arguments for aggregate expression provided";

impl AggregateOp {
    /// Whether a parameter comes before the operand, as in `topk(5, x)`.
    #[must_use]
    pub const fn has_param(self) -> bool {
        use AggregateOp::{Bottomk, CountValues, LimitRatio, Limitk, Quantile, Topk};
        matches!(self, Topk | Bottomk | CountValues | Quantile | Limitk | LimitRatio)
    }
}
