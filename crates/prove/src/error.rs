//! What keeps a proof from being made.

/// The evidence or the tables cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A table of exporter facts is wrong.
    #[error("{0}")]
    Facts(config::Error),
    /// A saved page is not a page.
    #[error("{page}: {source}")]
    Page {
        /// The page's name.
        page: String,
        /// What is wrong with it.
        source: exposition::Error,
    },
    /// A rule file cannot be read as one.
    #[error("{0}")]
    File(config::Error),
}
