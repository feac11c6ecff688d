//! Tokens to tree.
//!
//! Functions and variables must be known when a template is read; fields are looked up when it is
//! executed. Parentheses and blocks nest no deeper than [`DEPTH_MAX`].

mod control;
mod operand;

use model::text::{Span, quote};

use crate::error::Error;
use crate::lexer::{Keyword, Kind, Token, tokens};
use crate::tree::{Command, Node, NodeKind, Nodes, Pipe};

/// The deepest nesting of blocks and parentheses.
pub(crate) const DEPTH_MAX: usize = 100;

/// The longest text that is parsed, in bytes.
pub const TEXT_MAX: usize = 1 << 20;

/// A text read: the templates it defines, and what stands outside definitions.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) main: Nodes,
    pub(crate) defined: Vec<(String, Nodes)>,
}

/// Reads `text`; `is_function` tells the functions, `variables` are there from the start.
pub(crate) fn parse(
    name: &str,
    text: &str,
    is_function: &dyn Fn(&str) -> bool,
    variables: &[&str],
) -> Result<Parsed, Error> {
    let mut parser = Parser {
        name,
        text,
        tokens: Vec::new(),
        at: 0,
        is_function,
        variables: variables.iter().map(|v| (*v).to_owned()).collect(),
        loops: 0,
        depth: 0,
        defined: Vec::new(),
    };
    if text.len() > TEXT_MAX {
        return Err(parser.error(format!("template is longer than {TEXT_MAX} bytes")));
    }
    parser.tokens = tokens(text);
    let main = parser.whole()?;
    Ok(Parsed {
        main,
        defined: parser.defined,
    })
}

type Read<T> = Result<T, Error>;

struct Parser<'a> {
    name: &'a str,
    text: &'a str,
    tokens: Vec<Token<'a>>,
    at: usize,
    is_function: &'a dyn Fn(&str) -> bool,
    /// Variables that can be seen here, `$` included.
    variables: Vec<String>,
    /// How many loops this place is in.
    loops: usize,
    depth: usize,
    defined: Vec<(String, Nodes)>,
}

/// What ended a list of nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    End,
    Else,
}

impl<'a> Parser<'a> {
    fn whole(&mut self) -> Read<Nodes> {
        let mut nodes = Nodes::new();
        while self.peek().kind != Kind::Eof {
            let token = self.next();
            match token.kind {
                Kind::Text => nodes.push(text_node(token)),
                Kind::LeftDelimiter if self.peek_word().kind == Kind::Keyword(Keyword::Define) => self.definition()?,
                Kind::LeftDelimiter => match self.action()? {
                    Ok(node) => nodes.push(node),
                    Err(Ending::End) => return Err(self.error("unexpected {{end}}")),
                    Err(Ending::Else) => return Err(self.error("unexpected {{else}}")),
                },
                _ => return Err(self.unexpected(token, "input")),
            }
        }
        Ok(nodes)
    }

    /// `{{define "name"}}…{{end}}`
    fn definition(&mut self) -> Read<()> {
        const CONTEXT: &str = "define clause";
        self.next_word();
        let name = self.template_name(CONTEXT)?;
        self.expect_end(CONTEXT)?;
        let outer = std::mem::replace(&mut self.variables, vec!["$".to_owned()]);
        let (nodes, ending) = self.list()?;
        if ending == Ending::Else {
            return Err(self.error(format!("unexpected {{{{else}}}} in {CONTEXT}")));
        }
        self.variables = outer;
        self.define(name, nodes)
    }

    fn define(&mut self, name: String, nodes: Nodes) -> Read<()> {
        let is_new = |(other, has): &(String, Nodes)| *other != name || is_empty(has) || is_empty(&nodes);
        if !self.defined.iter().all(is_new) {
            return Err(Error::Twice(name));
        }
        self.defined.push((name, nodes));
        Ok(())
    }

    /// Nodes up to `{{end}}` or `{{else`.
    fn list(&mut self) -> Read<(Nodes, Ending)> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error(format!("blocks are nested deeper than {DEPTH_MAX} levels")));
        }
        let mut nodes = Nodes::new();
        loop {
            let token = self.next_word();
            match token.kind {
                Kind::Text => nodes.push(text_node(token)),
                Kind::LeftDelimiter => match self.action()? {
                    Ok(node) => nodes.push(node),
                    Err(ending) => {
                        self.depth -= 1;
                        return Ok((nodes, ending));
                    }
                },
                Kind::Eof => return Err(self.error("unexpected EOF")),
                _ => return Err(self.unexpected(token, "input")),
            }
        }
    }

    /// A pipeline up to a token of kind `end`, which is taken.
    fn pipeline(&mut self, context: &str, end: Kind) -> Read<Pipe> {
        let mut pipe = Pipe {
            at: self.peek_word().start,
            variables: Vec::new(),
            is_assign: false,
            commands: Vec::new(),
        };
        self.declarations(&mut pipe, context)?;
        loop {
            let token = self.next_word();
            match token.kind {
                kind if kind == end => {
                    self.check_pipeline(&pipe, context)?;
                    return Ok(pipe);
                }
                Kind::Bool
                | Kind::Rune
                | Kind::Dot
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::Keyword(Keyword::Nil)
                | Kind::Raw
                | Kind::Quoted
                | Kind::Variable
                | Kind::LeftParen => {
                    self.back();
                    let command = self.command()?;
                    pipe.commands.push(command);
                }
                _ => return Err(self.unexpected(token, context)),
            }
        }
    }

    /// `$x :=`, `$x =`, and in loops `$i, $x :=`.
    fn declarations(&mut self, pipe: &mut Pipe, context: &str) -> Read<()> {
        while self.peek_word().kind == Kind::Variable {
            let before = self.at;
            let variable = self.next_word();
            let name = variable.text.to_owned();
            let sign = self.next_word();
            match sign.kind {
                Kind::Assign | Kind::Declare => {
                    pipe.is_assign = sign.kind == Kind::Assign;
                    pipe.variables.push(name.clone());
                    self.variables.push(name);
                    return Ok(());
                }
                Kind::Other if sign.text == "," => {
                    pipe.variables.push(name.clone());
                    self.variables.push(name);
                    if context != "range" || pipe.variables.len() >= 2 {
                        return Err(self.error(format!("too many declarations in {context}")));
                    }
                    let next = self.peek_word().kind;
                    if !matches!(next, Kind::Variable | Kind::RightDelimiter | Kind::RightParen) {
                        return Err(self.error("range can only initialize variables"));
                    }
                }
                _ => {
                    self.at = before;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn check_pipeline(&mut self, pipe: &Pipe, context: &str) -> Read<()> {
        use crate::tree::OperandKind::{Constant, Dot, Nil};
        if pipe.commands.is_empty() {
            return Err(self.error(format!("missing value for {context}")));
        }
        for (at, command) in pipe.commands.iter().enumerate().skip(1) {
            if let Some(Dot | Nil | Constant { .. }) = command.args.first().map(|arg| &arg.kind) {
                return Err(self.error(format!("non executable command in pipeline stage {}", at + 1)));
            }
        }
        Ok(())
    }

    /// Operands separated by spaces, up to a bar or the end of the pipeline.
    fn command(&mut self) -> Read<Command> {
        let at = self.peek_word().start;
        let mut args = Vec::new();
        loop {
            self.peek_word();
            if let Some(operand) = self.operand()? {
                args.push(operand);
            }
            let token = self.next();
            match token.kind {
                Kind::Space => {}
                Kind::RightDelimiter | Kind::RightParen => {
                    self.back();
                    break;
                }
                Kind::Pipe => break,
                _ => return Err(self.unexpected(token, "operand")),
            }
        }
        if args.is_empty() {
            return Err(self.error("empty command"));
        }
        Ok(Command { at, args })
    }

    fn template_name(&mut self, context: &str) -> Read<String> {
        let token = self.next_word();
        match token.kind {
            Kind::Quoted | Kind::Raw => self.unquote(token),
            _ => Err(self.unexpected(token, context)),
        }
    }

    fn expect_end(&mut self, context: &str) -> Read<()> {
        let token = self.next_word();
        match token.kind {
            Kind::RightDelimiter => Ok(()),
            _ => Err(self.unexpected(token, context)),
        }
    }

    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.at).copied().unwrap_or(Token {
            kind: Kind::Eof,
            start: self.text.len(),
            text: "",
        })
    }

    /// Takes a token; the last one stays.
    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at = (self.at + 1).min(self.tokens.len());
        token
    }

    fn back(&mut self) {
        self.at -= 1;
    }

    /// Passes over spaces and looks at the token behind them.
    fn peek_word(&mut self) -> Token<'a> {
        while self.peek().kind == Kind::Space {
            self.next();
        }
        self.peek()
    }

    fn next_word(&mut self) -> Token<'a> {
        self.peek_word();
        self.next()
    }

    fn error(&self, message: impl Into<String>) -> Error {
        let at = self.at.saturating_sub(1).min(self.tokens.len().saturating_sub(1));
        let span = self
            .tokens
            .get(at)
            .map_or(Span::default(), |t| Span::new(t.start, t.start + t.text.len()));
        Error::Parse {
            name: self.name.to_owned(),
            line: model::text::line_column(self.text, span.start).0,
            span,
            message: message.into(),
        }
    }

    /// Tells that `token`, the one taken last, cannot stand here.
    fn unexpected(&self, token: Token<'a>, context: &str) -> Error {
        let shown = match token.kind {
            Kind::Error(message) => return self.error(message),
            Kind::BadCharacter(c) => return self.error(format!("bad character U+{:04X} '{c}'", c as u32)),
            Kind::BadNumber => {
                let word = self.text[token.start..].split_whitespace().next().unwrap_or("");
                return self.error(format!("bad number syntax: {}", quote(word)));
            }
            Kind::Eof => "EOF".to_owned(),
            Kind::Keyword(_) => format!("<{}>", token.text),
            _ => match token.text.char_indices().nth(10) {
                Some((cut, _)) => format!("{}...", quote(&token.text[..cut])),
                None => quote(token.text),
            },
        };
        self.error(format!("unexpected {shown} in {context}"))
    }
}

fn text_node(token: Token<'_>) -> Node {
    let kind = NodeKind::Text(token.text.to_owned());
    Node { at: token.start, kind }
}

/// Whether nodes print nothing but spaces: such a definition does not replace another.
pub(crate) fn is_empty(nodes: &Nodes) -> bool {
    nodes
        .iter()
        .all(|node| matches!(&node.kind, NodeKind::Text(text) if text.trim().is_empty()))
}
