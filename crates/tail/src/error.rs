//! Why a log cannot be followed.

use std::io;
use std::path::{Path, PathBuf};

/// Why a log cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such file.
    #[error("{} does not exist", path.display())]
    Absent {
        /// The file.
        path: PathBuf,
    },
    /// We may not read it. The kernel's messages need root, `CAP_SYSLOG`, or `kernel.dmesg_restrict=0`.
    #[error("no permission to read {}", path.display())]
    Denied {
        /// The file.
        path: PathBuf,
    },
    /// It is there and gives no entry.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The system refuses what is needed to wait.
    #[error("cannot wait for log entries")]
    Wait(#[source] io::Error),
}

impl Error {
    pub(crate) fn at(path: &Path, source: impl Into<io::Error>) -> Self {
        let (path, source) = (path.to_owned(), source.into());
        match source.kind() {
            io::ErrorKind::NotFound => Self::Absent { path },
            io::ErrorKind::PermissionDenied => Self::Denied { path },
            _ => Self::Read { path, source },
        }
    }
}
