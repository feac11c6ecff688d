//! What `import` and `export` share: the store they work on, progress, moments.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use model::Millis;
use tsdb::{Db, Options};

use crate::failure::Hinted;

/// Which store.
#[derive(Debug, Args)]
pub struct DataArgs {
    /// The data folder of the hub, which must not be running.
    #[arg(long, value_name = "FOLDER", default_value = "watchfire-data")]
    pub data: PathBuf,
}

/// Opens the metric store below a data folder, made if `make` says so. Nothing expires while it is open.
///
/// # Errors
///
/// When there is none, a hub holds it, or it cannot be read.
pub fn open(data: &Path, make: bool) -> anyhow::Result<Db> {
    let dir = data.join("metrics");
    if !make && !dir.is_dir() {
        return Err(Hinted {
            message: format!("there is no store in {}", data.display()),
            hint: "name the hub's data folder with --data".into(),
        }
        .into());
    }
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot make the data folder {}", data.display()))?;
    let options = Options {
        keep_time: None,
        keep_bytes: None,
        ..Options::new(&dir)
    };
    let db = match Db::open(options) {
        Err(error @ tsdb::Error::Blocks(blocks::Error::Locked { .. })) => {
            return Err(Hinted {
                message: error.to_string(),
                hint: "a hub is running on it: stop it first, or work on a snapshot of its store".into(),
            }
            .into());
        }
        other => other.with_context(|| format!("cannot open the store in {}", dir.display()))?,
    };
    db.wait_ready().context("cannot replay the store's log")?;
    Ok(db)
}

/// Seconds since the epoch, or a date as RFC 3339.
///
/// # Errors
///
/// A text that is neither.
pub fn moment(flag: &str, text: &str) -> anyhow::Result<Millis> {
    let millis = match text.parse::<f64>() {
        Ok(seconds) if seconds.abs() < 9e12 => Some((seconds * 1000.0).round() as Millis),
        Ok(_) => None,
        Err(_) => text
            .parse::<jiff::Timestamp>()
            .ok()
            .map(jiff::Timestamp::as_millisecond),
    };
    millis.with_context(|| format!("{flag} {text}: neither seconds since the epoch nor a date as 2026-01-31T12:00:00Z"))
}

/// A line on a terminal that is written over again and again; nothing in a pipe.
pub struct Progress {
    shown: Option<Instant>,
    terminal: bool,
}

impl Progress {
    /// Nothing shown yet.
    pub fn new() -> Self {
        Self {
            shown: None,
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Shows a text, some times a second at most.
    pub fn show(&mut self, text: impl FnOnce() -> String) {
        const OFTEN: Duration = Duration::from_millis(200);
        if !self.terminal || self.shown.is_some_and(|at| at.elapsed() < OFTEN) {
            return;
        }
        self.shown = Some(Instant::now());
        // A terminal that went away needs no progress.
        drop(write!(std::io::stderr(), "\r\x1b[K{}", text()));
    }

    /// Takes the line away.
    pub fn end(&self) {
        if self.shown.is_some() {
            drop(write!(std::io::stderr(), "\r\x1b[K"));
        }
    }
}
