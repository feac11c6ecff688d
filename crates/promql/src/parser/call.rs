//! Function calls.

use model::text::quote;

use super::{LOOSEST, Parsed, Parser};
use crate::ast::{Expr, ExprKind};
use crate::function;
use crate::token::{Token, TokenKind};

impl Parser<'_> {
    /// The arguments of the function whose name was taken.
    pub(super) fn call(&mut self, name: Token) -> Parsed<Expr> {
        let args = self.args()?;
        self.grow_top()?;
        let text = name.text(self.text);
        let Some(function) = function::get(text) else {
            self.problem(name.span, format!("unknown function with name {}", quote(text)));
            return Ok(self.stand_in(name.span));
        };
        Ok(self.spanned(name.span.start, ExprKind::Call { function, args }))
    }

    /// Expressions in parentheses, separated by commas; a comma too many is noted.
    pub(super) fn args(&mut self) -> Parsed<Vec<Expr>> {
        self.expect(TokenKind::LeftParen)?;
        let mut args = Vec::new();
        let mut height = 0;
        if !self.accept(TokenKind::RightParen) {
            args.push(self.expr(LOOSEST)?);
            height = self.height;
            while !self.accept(TokenKind::RightParen) {
                let comma = self.token.span;
                self.expect(TokenKind::Comma)?;
                if let TokenKind::Comma | TokenKind::RightParen = self.token.kind {
                    self.problem(comma, "trailing commas not allowed in function call args");
                } else {
                    args.push(self.expr(LOOSEST)?);
                    height = height.max(self.height);
                }
            }
        }
        self.height = height;
        Ok(args)
    }
}
