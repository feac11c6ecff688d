//! Why a reading is missing.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::State;
use crate::gpu::Fault;

/// Why a reading is missing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the machine cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of our own cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of the machine holds something else than it should.
    #[error("{}, line {line}: expected {expected}, got {got:?}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// The line, from 1; 0 when the whole file is meant.
        line: usize,
        /// What should stand there.
        expected: &'static str,
        /// What stands there, shortened.
        got: String,
    },
    /// A source did not answer in time. It is asked again when it comes back.
    #[error("{what} did not answer within {deadline:?}")]
    Hung {
        /// The source.
        what: String,
        /// How long it was given.
        deadline: Duration,
    },
    /// There is nothing of the kind on this machine.
    #[error("no {what} on this machine")]
    Nothing {
        /// What was looked for.
        what: &'static str,
    },
    /// The driver refuses an answer.
    #[error("{what}")]
    Driver {
        /// What was asked, and of which GPU.
        what: String,
        /// Why.
        source: Fault,
    },
    /// The driver is not there, or not in order; it is looked for again from time to time.
    #[error("no NVIDIA driver")]
    Driverless {
        /// Why.
        source: Fault,
    },
    /// The system refuses a thread.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    /// A table of `data/`, ours or the user's, does not hold what it should.
    #[error("{file}: {message}")]
    Data {
        /// The table.
        file: &'static str,
        /// Place and cause.
        message: String,
    },
    /// A counter list is not one that dcgm-exporter would take.
    #[error("{message}")]
    Counters {
        /// File, line and cause, a line of text for each.
        message: String,
    },
    /// A file that somebody left for us cannot be shown.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// How it stands with it.
        state: State,
        /// Why, in words.
        reason: String,
    },
    /// A source that another part reads for us cannot be read.
    #[error("{what}: {reason}")]
    Source {
        /// The source.
        what: &'static str,
        /// How it stands with it.
        state: State,
        /// Why, in words.
        reason: String,
    },
}

impl Error {
    /// The file cannot be read.
    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read {
            path: path.to_owned(),
            source,
        }
    }

    /// Line `line` of the file is not `expected`.
    pub(crate) fn form(path: &Path, line: usize, expected: &'static str, got: &str) -> Self {
        Self::Form {
            path: path.to_owned(),
            line,
            expected,
            got: got.chars().take(80).collect(),
        }
    }

    /// What this error says of the source as a whole.
    #[must_use]
    pub fn state(&self) -> State {
        match self {
            Self::Read { source, .. } | Self::Write { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => State::Absent,
                io::ErrorKind::PermissionDenied => State::Denied,
                io::ErrorKind::TimedOut => State::Hung,
                _ => State::Unsupported,
            },
            Self::Hung { .. } => State::Hung,
            Self::Nothing { .. } => State::Absent,
            Self::Form { .. } | Self::Data { .. } | Self::Counters { .. } | Self::Thread(_) => State::Unsupported,
            Self::Driver { source, .. } => crate::gpu::state_of(source),
            Self::Driverless { source } => crate::gpu::state_of(source),
            Self::Source { state, .. } | Self::File { state, .. } => *state,
        }
    }

    /// The error and its causes in one line, as the log and `doctor` show it.
    #[must_use]
    pub fn chain(&self) -> String {
        let mut out = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            out.push_str(": ");
            out.push_str(&error.to_string());
            cause = error.source();
        }
        out
    }
}
