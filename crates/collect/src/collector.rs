//! One source of readings.

use std::fmt;

use model::{Family, Millis};

use crate::Error;

/// Reads one source.
pub trait Collector: Send {
    /// The word in `watchfire_collector_up{collector}`, in the log and in `doctor`.
    fn name(&self) -> &'static str;

    /// Reads the source once. `now` is the moment the readings stand for.
    fn collect(&mut self, now: Millis) -> Readings;
}

/// What a source gave, and what it failed to give.
#[derive(Debug)]
pub struct Readings {
    /// What was read; families without a line are not written.
    pub families: Vec<Family>,
    /// What was not, each beside the readings that were.
    pub errors: Vec<Error>,
    /// Whether the source as a whole is there.
    pub state: State,
}

impl Readings {
    /// Readings of a source that is there.
    #[must_use]
    pub const fn of(families: Vec<Family>) -> Self {
        Self {
            families,
            errors: Vec::new(),
            state: State::Present,
        }
    }

    /// Nothing, and why.
    #[must_use]
    pub fn failed(error: Error) -> Self {
        Self {
            families: Vec::new(),
            state: error.state(),
            errors: vec![error],
        }
    }
}

impl From<Result<Vec<Family>, Error>> for Readings {
    fn from(result: Result<Vec<Family>, Error>) -> Self {
        result.map_or_else(Self::failed, Self::of)
    }
}

/// How it stands with a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// It answers.
    Present,
    /// It is there, and what it says cannot be used: another format, a failing device.
    Unsupported,
    /// We may not read it.
    Denied,
    /// The configuration leaves it out.
    Disabled,
    /// It did not answer within its deadline.
    Hung,
    /// This machine does not have it.
    Absent,
}

impl State {
    /// The word in `watchfire_collector_state{state}`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Unsupported => "unsupported",
            Self::Denied => "denied",
            Self::Disabled => "disabled",
            Self::Hung => "hung",
            Self::Absent => "absent",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
