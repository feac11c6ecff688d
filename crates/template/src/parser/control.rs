//! Actions: a pipeline to print, or a control word with its blocks.

use super::{Ending, Parser, Read};
use crate::lexer::{Keyword, Kind, Token};
use crate::tree::{Branch, Node, NodeKind, Nodes};

impl Parser<'_> {
    /// What stands between the delimiters; an ending is given as such.
    pub(super) fn action(&mut self) -> Read<Result<Node, Ending>> {
        let token = self.next_word();
        let at = token.start;
        let kind = match token.kind {
            Kind::Keyword(Keyword::If) => NodeKind::If(self.branch(Keyword::If)?),
            Kind::Keyword(Keyword::With) => NodeKind::With(self.branch(Keyword::With)?),
            Kind::Keyword(Keyword::Range) => NodeKind::Range(self.branch(Keyword::Range)?),
            Kind::Keyword(Keyword::Template) => self.template()?,
            Kind::Keyword(Keyword::Block) => self.block()?,
            Kind::Keyword(Keyword::Break) => self.leave(token, NodeKind::Break)?,
            Kind::Keyword(Keyword::Continue) => self.leave(token, NodeKind::Continue)?,
            Kind::Keyword(Keyword::End) => {
                self.expect_end("end")?;
                return Ok(Err(Ending::End));
            }
            Kind::Keyword(Keyword::Else) => {
                let next = self.peek_word().kind;
                if !matches!(next, Kind::Keyword(Keyword::If | Keyword::With)) {
                    self.expect_end("else")?;
                }
                return Ok(Err(Ending::Else));
            }
            _ => {
                self.back();
                NodeKind::Action(self.pipeline("command", Kind::RightDelimiter)?)
            }
        };
        Ok(Ok(Node { at, kind }))
    }

    fn branch(&mut self, word: Keyword) -> Read<Branch> {
        let context = match word {
            Keyword::If => "if",
            Keyword::With => "with",
            _ => "range",
        };
        let outer = self.variables.len();
        let pipe = self.pipeline(context, Kind::RightDelimiter)?;
        let is_loop = usize::from(word == Keyword::Range);
        self.loops += is_loop;
        let (then, ending) = self.list()?;
        self.loops -= is_loop;
        let otherwise = match ending {
            Ending::End => Nodes::new(),
            Ending::Else => self.otherwise(word)?,
        };
        self.variables.truncate(outer);
        Ok(Branch { pipe, then, otherwise })
    }

    /// What follows `{{else`: a block, or for `if` and `with` one more of the kind.
    fn otherwise(&mut self, word: Keyword) -> Read<Nodes> {
        let next = self.peek_word();
        if word != Keyword::Range && next.kind == Kind::Keyword(word) {
            self.next();
            self.depth += 1;
            if self.depth > super::DEPTH_MAX {
                return Err(self.error("too many else branches"));
            }
            let branch = self.branch(word)?;
            self.depth -= 1;
            let kind = match word {
                Keyword::If => NodeKind::If(branch),
                _ => NodeKind::With(branch),
            };
            return Ok(vec![Node { at: next.start, kind }]);
        }
        if let Kind::Keyword(Keyword::If | Keyword::With) = next.kind {
            self.next();
            return Err(self.unexpected(next, "else"));
        }
        match self.list()? {
            (nodes, Ending::End) => Ok(nodes),
            (_, Ending::Else) => Err(self.error("expected end; found {{else}}")),
        }
    }

    /// `{{template "name" pipeline}}`
    fn template(&mut self) -> Read<NodeKind> {
        const CONTEXT: &str = "template clause";
        let name = self.template_name(CONTEXT)?;
        if self.peek_word().kind == Kind::RightDelimiter {
            self.next();
            return Ok(NodeKind::Template { name, data: None });
        }
        let data = Some(self.pipeline(CONTEXT, Kind::RightDelimiter)?);
        Ok(NodeKind::Template { name, data })
    }

    /// `{{block "name" pipeline}}…{{end}}`: a definition, used where it stands.
    fn block(&mut self) -> Read<NodeKind> {
        const CONTEXT: &str = "block clause";
        let name = self.template_name(CONTEXT)?;
        let data = Some(self.pipeline(CONTEXT, Kind::RightDelimiter)?);
        let outer = std::mem::replace(&mut self.variables, vec!["$".to_owned()]);
        let loops = std::mem::take(&mut self.loops);
        let (nodes, ending) = self.list()?;
        if ending == Ending::Else {
            return Err(self.error(format!("unexpected {{{{else}}}} in {CONTEXT}")));
        }
        self.variables = outer;
        self.loops = loops;
        self.define(name.clone(), nodes)?;
        Ok(NodeKind::Template { name, data })
    }

    fn leave(&mut self, word: Token<'_>, kind: NodeKind) -> Read<NodeKind> {
        let end = self.next_word();
        if end.kind != Kind::RightDelimiter {
            return Err(self.unexpected(end, &format!("{{{{{}}}}}", word.text)));
        }
        if self.loops == 0 {
            return Err(self.error(format!("{{{{{}}}}} outside {{{{range}}}}", word.text)));
        }
        Ok(kind)
    }
}
