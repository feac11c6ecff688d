//! The parsed template, and how its parts are written in messages.

use std::fmt;

use model::text::quote;

use crate::value::Value;

/// A sequence of nodes.
pub(crate) type Nodes = Vec<Node>;

/// A node and where it begins.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) at: usize,
    pub(crate) kind: NodeKind,
}

#[derive(Debug, Clone)]
pub(crate) enum NodeKind {
    Text(String),
    Action(Pipe),
    If(Branch),
    With(Branch),
    Range(Branch),
    Template { name: String, data: Option<Pipe> },
    Break,
    Continue,
}

/// A condition with what follows from it.
#[derive(Debug, Clone)]
pub(crate) struct Branch {
    pub(crate) pipe: Pipe,
    pub(crate) then: Nodes,
    pub(crate) otherwise: Nodes,
}

/// Commands, each given the result of the one before.
#[derive(Debug, Clone)]
pub(crate) struct Pipe {
    pub(crate) at: usize,
    /// Variables that take the result, `$` included.
    pub(crate) variables: Vec<String>,
    /// Whether they exist already.
    pub(crate) is_assign: bool,
    pub(crate) commands: Vec<Command>,
}

/// A function or value with arguments.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    pub(crate) at: usize,
    pub(crate) args: Vec<Operand>,
}

/// An operand and where it begins.
#[derive(Debug, Clone)]
pub(crate) struct Operand {
    pub(crate) at: usize,
    pub(crate) kind: OperandKind,
}

#[derive(Debug, Clone)]
pub(crate) enum OperandKind {
    Dot,
    Nil,
    /// A constant, and how it was written.
    Constant {
        value: Value,
        text: String,
    },
    /// `.a.b`
    Field(Vec<String>),
    /// `$x.a.b`: the variable and fields of it.
    Variable {
        name: String,
        fields: Vec<String>,
    },
    /// `(…).a.b`
    Chain {
        of: Box<Operand>,
        fields: Vec<String>,
    },
    /// A function.
    Function(String),
    Pipe(Box<Pipe>),
}

/// A part of the tree, to say where an error is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part<'t> {
    Node(&'t Node),
    Pipe(&'t Pipe),
    Command(&'t Command),
    Operand(&'t Operand),
}

impl Part<'_> {
    pub(crate) const fn at(&self) -> usize {
        match self {
            Self::Node(part) => part.at,
            Self::Pipe(part) => part.at,
            Self::Command(part) => part.at,
            Self::Operand(part) => part.at,
        }
    }
}

impl fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(part) => part.fmt(f),
            Self::Pipe(part) => part.fmt(f),
            Self::Command(part) => part.fmt(f),
            Self::Operand(part) => part.fmt(f),
        }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            NodeKind::Text(text) => f.write_str(&quote(text)),
            NodeKind::Action(pipe) => write!(f, "{{{{{pipe}}}}}"),
            NodeKind::If(branch) => write!(f, "{{{{if {}}}}}", branch.pipe),
            NodeKind::With(branch) => write!(f, "{{{{with {}}}}}", branch.pipe),
            NodeKind::Range(branch) => write!(f, "{{{{range {}}}}}", branch.pipe),
            NodeKind::Template { name, data: None } => write!(f, "{{{{template {}}}}}", quote(name)),
            NodeKind::Template { name, data: Some(pipe) } => write!(f, "{{{{template {} {pipe}}}}}", quote(name)),
            NodeKind::Break => f.write_str("{{break}}"),
            NodeKind::Continue => f.write_str("{{continue}}"),
        }
    }
}

impl fmt::Display for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.variables.is_empty() {
            let sign = if self.is_assign { "=" } else { ":=" };
            write!(f, "{} {sign} ", self.variables.join(", "))?;
        }
        join(&self.commands, " | ", f)
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, arg) in self.args.iter().enumerate() {
            if at > 0 {
                f.write_str(" ")?;
            }
            match &arg.kind {
                OperandKind::Pipe(pipe) => write!(f, "({pipe})")?,
                _ => arg.fmt(f)?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            OperandKind::Dot => f.write_str("."),
            OperandKind::Nil => f.write_str("nil"),
            OperandKind::Constant { text, .. } => f.write_str(text),
            OperandKind::Field(fields) => fmt_fields(fields, f),
            OperandKind::Variable { name, fields } => {
                f.write_str(name)?;
                fmt_fields(fields, f)
            }
            OperandKind::Chain { of, fields } => {
                match of.kind {
                    OperandKind::Pipe(_) => write!(f, "({of})")?,
                    _ => of.fmt(f)?,
                }
                fmt_fields(fields, f)
            }
            OperandKind::Function(name) => f.write_str(name),
            OperandKind::Pipe(pipe) => pipe.fmt(f),
        }
    }
}

fn fmt_fields(fields: &[String], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    fields.iter().try_for_each(|field| write!(f, ".{field}"))
}

fn join<T: fmt::Display>(parts: &[T], separator: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            f.write_str(separator)?;
        }
        part.fmt(f)?;
    }
    Ok(())
}
