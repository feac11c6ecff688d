//! What both stores rest on: files that survive a crash, a log before the memory, blocks that never change.
//!
//! Reading order: [`vfs`] is the file layer (with one for tests that records, fails and forgets what was
//! not synced), [`wal`] the write-ahead log, [`index`] labels to series, [`block`] the folder that holds an
//! index and its data, [`retention`] which blocks go, [`folder`] the lock and the format number of a store.
//! `docs/format/*.md` draws the bytes.
//!
//! What is deliberately absent: samples and log lines (a block's data and a series' payload are bytes here),
//! the clock, the network, and any answer to a damaged file other than "set aside, say so, go on".

pub mod block;
pub mod bytes;
pub mod folder;
pub mod index;
pub mod mmap;
pub mod retention;
pub mod vfs;
pub mod wal;

use std::io;
use std::path::{Path, PathBuf};

/// A store's files cannot do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused; `action` completes "cannot …".
    #[error("cannot {action} {path}")]
    Io {
        /// What was attempted, such as `write`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The bytes of a file are not what was written.
    #[error("{path}, offset {offset}: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in it, in bytes.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// Another process holds the folder.
    #[error("folder {path} is in use by another process (its LOCK file is held)")]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// A newer program wrote the folder.
    #[error("folder {path} has format {found}, this program knows formats up to {known}: use the newer program")]
    Newer {
        /// The folder.
        path: PathBuf,
        /// The number in its VERSION file.
        found: u64,
        /// The largest number known here.
        known: u64,
    },
    /// More than a format can hold.
    #[error("{what} exceeds what the format holds")]
    TooLarge {
        /// What is too large.
        what: String,
    },
}

impl Error {
    /// An [`Error::Io`], made in a `map_err`.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }

    /// An [`Error::Damaged`].
    #[must_use]
    pub fn damaged(path: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.to_path_buf(),
            offset,
            what: what.into(),
        }
    }

    /// Whether the disk is full.
    #[must_use]
    pub fn is_full_disk(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull)
    }
}

/// The checksum of all files here.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// An error with its causes on one line: `cannot write a/b: No space left on device`.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(": ");
        text.push_str(&next.to_string());
        cause = next.source();
    }
    text
}
