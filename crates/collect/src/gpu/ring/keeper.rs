//! Keeps the ring going: opens it with the first samples, and after a failure tries again.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::writer::{RingError, RingWriter};
use crate::gpu::sample::Sample;

/// How long after a failure the file is left alone.
const RETRY: Duration = Duration::from_secs(60);

/// The ring, or why there is none.
pub struct RingKeeper {
    path: Option<PathBuf>,
    interval_ms: u32,
    writer: Option<RingWriter>,
    /// GPUs that the writer was opened for.
    gpus: u32,
    failed: Option<Instant>,
    /// The failure that was told last, so that it is told once.
    told: String,
}

impl RingKeeper {
    /// Keeps samples of this interval at this path; without one, nowhere.
    pub fn new(path: Option<PathBuf>, interval_ms: u32) -> Self {
        Self {
            path,
            interval_ms,
            writer: None,
            gpus: 0,
            failed: None,
            told: String::new(),
        }
    }

    /// Takes the samples of one beat, of a machine with so many GPUs.
    pub fn keep<'a>(&mut self, samples: &[Sample], gpus: u32, name: impl Fn(u16) -> &'a str) {
        let is_resting = self.failed.is_some_and(|at| at.elapsed() < RETRY);
        if samples.is_empty() || self.path.is_none() || is_resting {
            return;
        }
        match self.write(samples, gpus, name) {
            Ok(()) => self.failed = None,
            Err(error) => {
                self.writer = None;
                self.failed = Some(Instant::now());
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                let text = format!("{error}: {}", cause.unwrap_or_default());
                if self.told != text {
                    tracing::warn!(reason = text, "GPU samples are not kept");
                    self.told = text;
                }
            }
        }
    }

    fn write<'a>(&mut self, samples: &[Sample], gpus: u32, name: impl Fn(u16) -> &'a str) -> Result<(), RingError> {
        let Some(path) = &self.path else { return Ok(()) };
        if gpus > self.gpus {
            // The same lock cannot be had twice.
            self.writer = None;
        }
        let writer = match self.writer.as_mut() {
            Some(writer) => writer,
            None => {
                self.gpus = gpus;
                self.writer.insert(RingWriter::open(path, gpus, self.interval_ms)?)
            }
        };
        writer.write(samples, name)
    }
}
