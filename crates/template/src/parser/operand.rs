//! Operands: constants, fields, variables, functions, parenthesised pipelines.

use model::text::quote;

use super::{Parser, Read};
use crate::lexer::{Keyword, Kind, Token};
use crate::number::read_float;
use crate::quoted::{unquote, unquote_char};
use crate::tree::{Operand, OperandKind};
use crate::value::Value;

impl Parser<'_> {
    /// A term and the fields behind it; `None` if there is no term.
    pub(super) fn operand(&mut self) -> Read<Option<Operand>> {
        let Some(mut operand) = self.term()? else {
            return Ok(None);
        };
        let mut chain = Vec::new();
        // As in Go, such an operand stands where its first further field does.
        let at = self.peek().start;
        while self.peek().kind == Kind::Field {
            chain.push(self.next().text[1..].to_owned());
        }
        if chain.is_empty() {
            return Ok(Some(operand));
        }
        match &mut operand.kind {
            OperandKind::Field(fields) | OperandKind::Variable { fields, .. } => {
                fields.append(&mut chain);
                operand.at = at;
            }
            OperandKind::Constant { .. } | OperandKind::Nil | OperandKind::Dot => {
                let message = format!("unexpected . after term {}", quote(&operand.to_string()));
                return Err(self.error(message));
            }
            _ => {
                let of = Box::new(operand);
                let kind = OperandKind::Chain { of, fields: chain };
                return Ok(Some(Operand { at, kind }));
            }
        }
        Ok(Some(operand))
    }

    fn term(&mut self) -> Read<Option<Operand>> {
        let token = self.next_word();
        let kind = match token.kind {
            Kind::Identifier if (self.is_function)(token.text) => OperandKind::Function(token.text.to_owned()),
            Kind::Identifier => {
                let name = quote(token.text);
                return Err(self.error(format!("function {name} not defined")));
            }
            Kind::Dot => OperandKind::Dot,
            Kind::Keyword(Keyword::Nil) => OperandKind::Nil,
            Kind::Variable if self.variables.iter().any(|v| v == token.text) => OperandKind::Variable {
                name: token.text.to_owned(),
                fields: Vec::new(),
            },
            Kind::Variable => {
                let name = quote(token.text);
                return Err(self.error(format!("undefined variable {name}")));
            }
            Kind::Field => OperandKind::Field(vec![token.text[1..].to_owned()]),
            Kind::Bool => constant(Value::Bool(token.text == "true"), token),
            Kind::Rune | Kind::Number => constant(self.number(token)?, token),
            Kind::Quoted | Kind::Raw => constant(Value::from(self.unquote(token)?), token),
            Kind::LeftParen => self.paren()?,
            _ => {
                self.back();
                return Ok(None);
            }
        };
        Ok(Some(Operand { at: token.start, kind }))
    }

    fn paren(&mut self) -> Read<OperandKind> {
        self.depth += 1;
        if self.depth > super::DEPTH_MAX {
            return Err(self.error("parentheses are nested too deep"));
        }
        let pipe = self.pipeline("parenthesized pipeline", Kind::RightParen)?;
        self.depth -= 1;
        Ok(OperandKind::Pipe(Box::new(pipe)))
    }

    pub(super) fn unquote(&self, token: Token<'_>) -> Read<String> {
        unquote(token.text).ok_or_else(|| self.error("invalid syntax"))
    }

    /// A number is an integer unless it is written with a point or an exponent.
    fn number(&self, token: Token<'_>) -> Read<Value> {
        let text = token.text;
        if token.kind == Kind::Rune {
            let c = unquote_char(text).ok_or_else(|| self.error(format!("malformed character constant: {text}")))?;
            return Ok(Value::Int(i64::from(u32::from(c))));
        }
        let digits = text.replace('_', "");
        let unsigned = digits.trim_start_matches(['+', '-']);
        let is_hex = unsigned.starts_with("0x") || unsigned.starts_with("0X");
        let is_float = match is_hex {
            true => unsigned.contains(['.', 'p', 'P']),
            false => unsigned.contains(['.', 'e', 'E']),
        };
        if is_float {
            return read_float(&digits)
                .map(Value::Float)
                .map_err(|_| self.error(format!("illegal number syntax: {}", quote(text))));
        }
        let (body, base) = match unsigned.get(..2).map(str::to_ascii_lowercase).as_deref() {
            Some("0x") => (&unsigned[2..], 16),
            Some("0o") => (&unsigned[2..], 8),
            Some("0b") => (&unsigned[2..], 2),
            _ if unsigned.len() > 1 && unsigned.starts_with('0') => (&unsigned[1..], 8),
            _ => (unsigned, 10),
        };
        let sign = if digits.starts_with('-') { "-" } else { "" };
        i64::from_str_radix(&format!("{sign}{body}"), base)
            .map(Value::Int)
            .map_err(|error| match error.kind() {
                std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                    self.error(format!("integer overflow: {}", quote(text)))
                }
                _ => self.error(format!("illegal number syntax: {}", quote(text))),
            })
    }
}

fn constant(value: Value, token: Token<'_>) -> OperandKind {
    OperandKind::Constant {
        value,
        text: token.text.to_owned(),
    }
}
