//! What is wrong with a file, where, and the line it stands in.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use model::text::{Span, caret, line_column};

use crate::yaml::Fault;

/// The largest configuration file, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is larger than any configuration.
    #[error("{path} is too large for a configuration: more than {FILE_BYTES_MAX} bytes")]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file is not text.
    #[error("{path}: not valid UTF-8 at byte {offset}")]
    NotText {
        /// The file.
        path: PathBuf,
        /// The first bad byte.
        offset: usize,
    },
    /// The text is not a configuration.
    #[error("{path}:{line}:{column}: {message}\n{snippet}")]
    Invalid {
        /// The file, or what stands for it.
        path: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong.
        message: String,
        /// The line with a caret below the place, two spaces in. Secrets are masked.
        snippet: String,
    },
}

impl Error {
    /// Places a fault in its file.
    #[must_use]
    pub fn at(path: &str, text: &str, fault: &Fault) -> Self {
        let (line, column) = line_column(text, fault.at.start);
        Self::Invalid {
            path: path.to_owned(),
            line,
            column,
            message: fault.message.clone(),
            snippet: mask(&caret(text, one_line(text, fault.at))),
        }
    }

    /// The message without place and snippet, for tests and for tables.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Invalid { message, .. } => message.clone(),
            other => other.to_string(),
        }
    }
}

/// Reads a configuration file.
///
/// # Errors
///
/// [`Error::Read`], [`Error::TooLarge`] and [`Error::NotText`].
pub fn read(path: &Path) -> Result<String, Error> {
    let failed = |source| Error::Read {
        path: path.to_owned(),
        source,
    };
    if fs::metadata(path).map_err(failed)?.len() > FILE_BYTES_MAX {
        return Err(Error::TooLarge { path: path.to_owned() });
    }
    let bytes = fs::read(path).map_err(failed)?;
    String::from_utf8(bytes).map_err(|e| Error::NotText {
        path: path.to_owned(),
        offset: e.utf8_error().valid_up_to(),
    })
}

/// The part of a span that stands in its first line.
fn one_line(text: &str, span: Span) -> Span {
    let rest = text.get(span.range()).unwrap_or("");
    let end = rest.find('\n').map_or(span.end, |n| span.start + n);
    Span::new(span.start, end.max(span.start))
}

/// Keys whose values are never shown.
const SECRET_KEYS: [&str; 11] = [
    "password",
    "secret",
    "token",
    "credentials",
    "passphrase",
    "api_key",
    "routing_key",
    "service_key",
    "private_key",
    "webhook_url",
    "slack_api_url",
];

/// Hides the value beside a secret key in the first line of a snippet. Names of files stay.
fn mask(snippet: &str) -> String {
    let Some((line, rest)) = snippet.split_once('\n') else {
        return snippet.to_owned();
    };
    let lower = line.to_ascii_lowercase();
    let secret = SECRET_KEYS
        .iter()
        .filter_map(|key| lower.find(key).map(|at| (at, at + key.len())))
        .find(|(_, end)| !lower[*end..].starts_with("_file") && !lower[*end..].starts_with("_url"));
    let Some((_, end)) = secret else {
        return snippet.to_owned();
    };
    match line.get(end..).and_then(|tail| tail.find(':')) {
        Some(colon) => format!("{} <secret>\n{rest}", &line[..=end + colon]),
        None => snippet.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_hides_the_secret_beside_its_key() {
        assert_eq!(mask("  password: hunter2 x\n  ^"), "  password: <secret>\n  ^");
        assert_eq!(mask("  password_file: /x\n  ^"), "  password_file: /x\n  ^");
        assert_eq!(mask("  job_name: a\n  ^"), "  job_name: a\n  ^");
    }
}
