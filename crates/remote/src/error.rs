//! Why a request is refused, in the classes that senders tell apart.

use exposition::wire::WireError;
use model::StoreError;

/// A request is refused, or something of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The body is broken: sending it again would not help.
    #[error("cannot read the body: {0}")]
    Broken(String),
    /// The body is in a form that this server does not read.
    #[error("{0}")]
    Unsupported(String),
    /// The body is larger than allowed.
    #[error("the body has {size} bytes {what}, at most {most} are taken")]
    Size {
        /// Its size, as it says.
        size: u64,
        /// `compressed` or `decompressed`.
        what: &'static str,
        /// The bound.
        most: u64,
    },
    /// Something of the body was refused, and the rest stored; sending it again would not help.
    #[error("{0}")]
    Partial(String),
    /// The store cannot take it now: to be sent again later.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<WireError> for Error {
    fn from(error: WireError) -> Self {
        Self::Broken(error.to_string())
    }
}

impl Error {
    /// Whether the same request may be taken later.
    #[must_use]
    pub const fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Store(StoreError::NotReady | StoreError::Io(_) | StoreError::Closed(_))
        )
    }
}
