//! Why a template cannot be read or cannot be executed, in Go's words.

use model::text::{Span, caret};

/// A template fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is no template.
    #[error("template: {name}:{line}: {message}")]
    Parse {
        /// The template.
        name: String,
        /// Line, from 1.
        line: usize,
        /// Where in the text.
        span: Span,
        /// What is wrong.
        message: String,
    },
    /// The template is one, but not for this data.
    #[error(transparent)]
    Execute(#[from] Box<Failure>),
    /// There is no template of this name.
    #[error("template: no template {0:?} associated with this set")]
    Unknown(String),
    /// Two definitions within one text.
    #[error("template: multiple definition of template {0:?}")]
    Twice(String),
}

/// Where and why the execution of a template ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("template: {name}:{line}:{column}: executing {template:?} at <{context}>: {message}")]
pub struct Failure {
    /// The text that defines the template.
    pub name: String,
    /// Line, from 1.
    pub line: usize,
    /// Bytes before the place on its line, as Go counts.
    pub column: usize,
    /// Where in the text.
    pub span: Span,
    /// The template that was executed.
    pub template: String,
    /// What was evaluated.
    pub context: String,
    /// What is wrong.
    pub message: String,
}

impl Error {
    /// Where in the text it is, if it is somewhere.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        match self {
            Self::Parse { span, .. } => Some(*span),
            Self::Execute(failure) => Some(failure.span),
            Self::Unknown(_) | Self::Twice(_) => None,
        }
    }

    /// The message with the line of `text`, the text that was parsed, and carets below the place.
    #[must_use]
    pub fn render(&self, text: &str) -> String {
        match self.span() {
            Some(span) => format!("{self}\n{}", caret(text, span)),
            None => self.to_string(),
        }
    }
}
