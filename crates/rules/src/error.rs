//! What can be wrong with rules: in the file, or when they are evaluated.

use std::path::PathBuf;

/// A rule file cannot be used, or a rule cannot be evaluated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read rule file {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not a rule file.
    #[error("{0}")]
    File(config::Error),
    /// A rule of the file is wrong.
    #[error("{file}:{line}: group {group:?}, rule {index}, {rule:?}: {reason}")]
    Rule {
        /// The file.
        file: String,
        /// The line of the rule, from 1.
        line: usize,
        /// Its group.
        group: String,
        /// Its number in the group, from 1.
        index: usize,
        /// Its name.
        rule: String,
        /// What is wrong; for an expression with line, column and caret.
        reason: String,
    },
    /// The query of a rule failed.
    #[error(transparent)]
    Query(#[from] model::QueryError),
    /// The store refused the result.
    #[error(transparent)]
    Store(#[from] model::StoreError),
    /// The result cannot become alerts or series.
    #[error("{0}")]
    Result(String),
}
