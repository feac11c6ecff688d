//! What stands between a binary operator and its right side: `bool`, `on`, `group_left`, `fill`.

use super::{Parsed, Parser};
use crate::ast::{BinaryOp, Cardinality, Matching};
use crate::token::{Keyword, TokenKind};

impl Parser<'_> {
    /// Whether `bool` was written, and how the sides match.
    pub(super) fn modifiers(&mut self) -> Parsed<(bool, Matching)> {
        let mut matching = Matching::default();
        let return_bool = self.accept(TokenKind::Keyword(Keyword::Bool));
        if let TokenKind::Keyword(word @ (Keyword::On | Keyword::Ignoring)) = self.token.kind {
            self.bump();
            matching.on = word == Keyword::On;
            matching.labels = self.labels()?;
            self.group(&mut matching)?;
        }
        self.fill(&mut matching)?;
        Ok((return_bool, matching))
    }

    fn group(&mut self, matching: &mut Matching) -> Parsed<()> {
        matching.card = match self.token.kind {
            TokenKind::Keyword(Keyword::GroupLeft) => Cardinality::ManyToOne,
            TokenKind::Keyword(Keyword::GroupRight) => Cardinality::OneToMany,
            _ => return Ok(()),
        };
        self.bump();
        if self.token.kind == TokenKind::LeftParen {
            matching.include = self.labels()?;
        }
        Ok(())
    }

    /// `fill(1)`, or `fill_left(1)` and `fill_right(2)` in any order, each at most once.
    fn fill(&mut self, matching: &mut Matching) -> Parsed<()> {
        if self.accept(TokenKind::Keyword(Keyword::Fill)) {
            let value = self.fill_value()?;
            (matching.fill_left, matching.fill_right) = (Some(value), Some(value));
            return Ok(());
        }
        loop {
            let place = match self.token.kind {
                TokenKind::Keyword(Keyword::FillLeft) if matching.fill_left.is_none() => &mut matching.fill_left,
                TokenKind::Keyword(Keyword::FillRight) if matching.fill_right.is_none() => &mut matching.fill_right,
                _ => return Ok(()),
            };
            self.bump();
            *place = Some(self.fill_value()?);
        }
    }

    fn fill_value(&mut self) -> Parsed<f64> {
        self.expect(TokenKind::LeftParen)?;
        let minus = self.accept(TokenKind::Op(BinaryOp::Sub));
        if !minus {
            self.accept(TokenKind::Op(BinaryOp::Add));
        }
        let (TokenKind::Number | TokenKind::Duration) = self.token.kind else {
            return Err(self.unexpected());
        };
        let token = self.bump();
        let value = self.seconds(token);
        self.expect(TokenKind::RightParen)?;
        Ok(if minus { -value } else { value })
    }
}
