//! YAML as the field's programs read it: a tree of nodes, each knowing where it was written.
//!
//! [`parse`] is the only door; `compose` builds the tree from parser events (aliases expanded, `<<`
//! merged, duplicate keys refused), [`Fields`] reads a mapping key by key and refuses what nobody asked
//! for, [`Decode`] turns a node into a value.
//!
//! The manners are those of Go's library, which the ecosystem's files were written against: a null is
//! the empty value of its type (`label:` is `""`), an unquoted `5` or `yes` may stand for a text, `yes`
//! and `on` are true, and the first document of a file is the file.
//!
//! This module and its children alone know the parser, so that another may replace it.

mod compose;
mod decode;
mod fields;

pub use compose::parse;
pub use decode::{Decode, Duration, Float};
pub use fields::{Fields, nearest};

use model::text::Span;

/// What is wrong, and where in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The place.
    pub at: Span,
    /// The sentence, lower case, without final stop.
    pub message: String,
}

impl Fault {
    /// A fault at a place.
    #[must_use]
    pub fn new(at: Span, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
        }
    }
}

/// What reading a part of a file gives.
pub type Result<T> = std::result::Result<T, Fault>;

/// One node of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it was written, in bytes of the text.
    pub at: Span,
    /// What it is.
    pub value: Value,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing, `~` or `null`.
    Null,
    /// A text or a number, as written.
    Scalar(Scalar),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order written; keys are distinct.
    Map(Vec<(Key, Node)>),
}

/// A scalar before it has a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar {
    /// The text, escapes resolved.
    pub text: String,
    /// Written without quotes, so that it may be a number or a truth value.
    pub plain: bool,
    /// A `!!binary` that is not UTF-8; `text` then shows the bytes escaped.
    pub binary: bool,
}

/// The key of a mapping's entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Where it was written.
    pub at: Span,
    /// The text.
    pub text: String,
    /// As for [`Scalar::binary`].
    pub binary: bool,
}

impl Node {
    /// A fault at this node.
    pub fn fault(&self, message: impl Into<String>) -> Fault {
        Fault::new(self.at, message)
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.value == Value::Null
    }

    /// The entries of a mapping; a null is an empty one.
    ///
    /// # Errors
    ///
    /// A fault where the node is neither.
    pub fn fields(&self) -> Result<Fields<'_>> {
        Fields::of(self)
    }

    /// The nodes of a sequence; a null is an empty one.
    ///
    /// # Errors
    ///
    /// A fault where the node is neither.
    pub fn list(&self) -> Result<&[Node]> {
        match &self.value {
            Value::List(nodes) => Ok(nodes),
            Value::Null => Ok(&[]),
            _ => Err(self.fault(format!("expected a list, got {}", self.kind()))),
        }
    }

    /// The pairs of a mapping whose keys are free; a null is an empty one.
    ///
    /// # Errors
    ///
    /// A fault where the node is neither.
    pub fn map(&self) -> Result<&[(Key, Node)]> {
        match &self.value {
            Value::Map(pairs) => Ok(pairs),
            Value::Null => Ok(&[]),
            _ => Err(self.fault(format!("expected a mapping, got {}", self.kind()))),
        }
    }

    /// The scalar, where it is one.
    #[must_use]
    pub fn scalar(&self) -> Option<&Scalar> {
        match &self.value {
            Value::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    /// Reads the node as a value.
    ///
    /// # Errors
    ///
    /// A fault where the node is not such a value.
    pub fn read<T: Decode>(&self) -> Result<T> {
        T::decode(self)
    }

    /// The node's kind in words, for messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Scalar(_) => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }
}
