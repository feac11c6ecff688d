//! The metric store of a hub: opened, tidied up, measured.

use std::sync::Arc;

use anyhow::Context as _;
use model::{Family, Kind, Millis};
use tsdb::{Db, Options};

use super::settings::Settings;

/// Opens the store below the data folder; its log is replayed from then on.
///
/// # Errors
///
/// The folder cannot be written, another process holds it, or a newer version wrote it.
pub fn open(settings: &Settings) -> anyhow::Result<Arc<Db>> {
    let dir = settings.data.join("metrics");
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot make the data folder {}", settings.data.display()))?;
    let config = &settings.config;
    let options = Options {
        keep_time: Some(config.retention.time),
        keep_bytes: Some(config.retention.bytes),
        series_max: config.limits.series,
        ..Options::new(&dir)
    };
    let db = Db::open(options).with_context(|| format!("cannot open the store in {}", dir.display()))?;
    Ok(Arc::new(db))
}

/// Waits until the log is replayed.
///
/// # Errors
///
/// The log cannot be read.
pub fn wait_replayed(db: &Db) -> anyhow::Result<()> {
    db.wait_ready().context("cannot replay the store's log")
}

/// Cuts, compacts and drops blocks as `now` asks; what fails is said and tried again at the next turn.
pub fn maintain(db: &Db, now: Millis) {
    if let Err(error) = db.maintain(now) {
        tracing::warn!(error = %chain(&error), "the store could not tidy up");
    }
}

/// An error and its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

/// Number of series in the head.
pub fn series(db: &Db) -> u64 {
    db.stats().series
}

/// What the store tells of itself.
pub fn families(db: &Db) -> Vec<Family> {
    let stats = db.stats();
    let mut out = Vec::new();
    let mut put = |name: &str, kind, help: &str, value: u64| {
        let mut family = Family::new(name, kind, help);
        family.push(Vec::new(), value as f64);
        out.push(family);
    };
    put("watchfire_tsdb_head_series", Kind::Gauge, "Series in the head.", stats.series);
    out
}
