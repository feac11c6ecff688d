//! What can be wrong with a scenario, or with writing what it produces.

use std::io;
use std::path::PathBuf;

/// Why a scenario cannot be played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read scenario {path}", path = .path.display())]
    Read {
        /// The scenario file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The text is not a scenario; the message has line and column.
    #[error("scenario does not parse: {message}")]
    Parse {
        /// The YAML reader's message.
        message: String,
    },
    /// The text parses and makes no sense.
    #[error("scenario: {message}")]
    Invalid {
        /// What and where.
        message: String,
    },
    /// The loaded library is not the simulator.
    #[error("cannot steer {path}: {message}", path = .path.display())]
    Control {
        /// The library.
        path: PathBuf,
        /// The loader's message.
        message: String,
    },
    /// A simulated file cannot be written.
    #[error("cannot write {path}", path = .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid {
            message: message.into(),
        }
    }
}
