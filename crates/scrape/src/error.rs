//! Why a scrape failed, in words for the targets page.

use model::StoreError;
use model::time::DurationText;

/// A scrape failed, or cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The page is not in its format.
    #[error("cannot read the page: {0}")]
    Page(#[from] exposition::Error),
    /// The server answers with something else than 200.
    #[error("server returned HTTP status {0}")]
    Status(String),
    /// No answer: refused, reset, no such host, a bad certificate.
    #[error("no answer: {0}")]
    Request(String),
    /// The whole fetch took too long.
    #[error("no complete answer within {}", DurationText(*.0))]
    Timeout(model::Millis),
    /// The page, decompressed, is larger than allowed.
    #[error("body size limit of {0} bytes exceeded")]
    BodySize(u64),
    /// An answer without a single byte: no page at all.
    #[error("empty answer")]
    Empty,
    /// The content type is none of a page, and no fallback is configured.
    #[error("unsupported content type {0:?} and no fallback_scrape_protocol for this target")]
    ContentType(String),
    /// A collector of this process failed.
    #[error("collector failed: {0}")]
    Local(String),
    /// The store took nothing.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file with a secret or certificate cannot be read.
    #[error("cannot read {path}: {cause}")]
    File {
        /// The file.
        path: String,
        /// Why.
        cause: String,
    },
    /// The HTTP client cannot be made from its settings.
    #[error("HTTP settings: {0}")]
    Settings(String),
    /// The target's labels say nothing that can be scraped.
    #[error("{0}")]
    Target(String),
    /// A panic in our own code while reading the page.
    #[error("BUG: reading the page panicked")]
    Panic,
}

/// An error with its causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut out = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let text = inner.to_string();
        if !out.ends_with(&text) {
            out.push_str(": ");
            out.push_str(&text);
        }
        cause = inner.source();
    }
    out
}
