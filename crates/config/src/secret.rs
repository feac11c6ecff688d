//! Texts that are never printed.

use std::fmt;

use crate::yaml::{Decode, Node, Result};

/// A password, key or token. `Debug` and `Display` show `<secret>`; equality compares the text.
#[derive(Clone, PartialEq, Eq, Default, Hash)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself: for the wire, never for a log or a page.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether nothing was given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "" } else { "<secret>" })
    }
}

impl Decode for Secret {
    fn decode(node: &Node) -> Result<Self> {
        node.read().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?} {secret}"), "<secret> <secret>");
        assert_eq!(secret.expose(), "hunter2");
    }
}
