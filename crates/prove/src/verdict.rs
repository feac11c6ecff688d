//! What is said of an alert: one of four words, and why.

use std::fmt;

use model::text::Span;

/// Whether an alert can fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// A drill fired it and a receiver took it.
    Proven,
    /// Nothing stands in its way.
    CanFire,
    /// It stays silent whatever happens, or it cannot mean what it says.
    CannotFire,
    /// The evidence does not tell.
    Unknown,
}

impl Verdict {
    /// The word in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::CanFire => "can_fire",
            Self::CannotFire => "cannot_fire",
            Self::Unknown => "unknown",
        }
    }

    /// The words for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::CanFire => "can fire",
            Self::CannotFire => "cannot fire",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// One thing found in a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// What kind of thing, a word that stays the same between versions.
    pub code: &'static str,
    /// What is the matter, in a sentence.
    pub message: String,
    /// What to do about it; empty where nothing is to be done.
    pub mend: String,
    /// Where in the expression; absent for what concerns the rule as a whole.
    pub span: Option<Span>,
}

impl Reason {
    /// A reason at a place of the expression.
    #[must_use]
    pub fn at(span: Span, code: &'static str, message: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            mend: mend.into(),
            span: Some(span),
        }
    }

    /// A reason that concerns the whole rule.
    #[must_use]
    pub fn whole(code: &'static str, message: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            mend: mend.into(),
            span: None,
        }
    }
}

/// What is said of one alert.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The file it stands in.
    pub file: String,
    /// Its group.
    pub group: String,
    /// Its name.
    pub alert: String,
    /// Its expression.
    pub expr: String,
    /// The word.
    pub verdict: Verdict,
    /// Why, the decisive one first; remarks follow.
    pub reasons: Vec<Reason>,
}
