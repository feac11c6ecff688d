//! The metric store of a hub: opened, tidied up, measured.

use std::sync::Arc;

use anyhow::Context as _;
use model::{Family, Kind, Millis, Queryable};
use tsdb::{Db, Options};

use super::settings::Settings;

/// Opens the store below the data folder; its log is replayed from then on.
///
/// # Errors
///
/// The folder cannot be written, another process holds it, or a newer version wrote it.
pub fn open(settings: &Settings) -> anyhow::Result<Arc<Db>> {
    let dir = settings.data.join("metrics");
    std::fs::create_dir_all(&dir)
        .with_context(|| format!("cannot make the data folder {}", settings.data.display()))?;
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

/// The store with every metric answering to all its names, as the tables say that this program carries.
///
/// # Errors
///
/// A table is wrong; a test keeps that from being shipped.
pub fn with_aliases(db: &Arc<Db>) -> anyhow::Result<Arc<dyn Queryable>> {
    let mut table = aliases::Table::default();
    table.add_gpu_fields("gpu_fields.yml", include_str!("../../../../data/gpu_fields.yml"))?;
    table.add_aliases("aliases.yml", include_str!("../../../../data/aliases.yml"))?;
    let store: Arc<dyn Queryable> = Arc::clone(db) as _;
    Ok(Arc::new(aliases::Aliased::new(store, Arc::new(table))))
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
    db.stats().head_series
}

/// What the store tells of itself.
pub fn families(db: &Db) -> Vec<Family> {
    let stats = db.stats();
    let mut out = Vec::new();
    let mut put = |kind, name: &str, help: &str, value: u64| {
        let mut family = Family::new(name, kind, help);
        family.push(Vec::new(), value as f64);
        out.push(family);
    };
    let (gauge, counter) = (Kind::Gauge, Kind::Counter);
    put(
        gauge,
        "watchfire_tsdb_head_series",
        "Series in the head.",
        stats.head_series,
    );
    put(
        gauge,
        "watchfire_tsdb_head_chunks",
        "Sealed runs of samples in the head.",
        stats.head_chunks,
    );
    put(gauge, "watchfire_tsdb_blocks", "Blocks on disk.", stats.blocks);
    put(
        gauge,
        "watchfire_tsdb_blocks_bytes",
        "Size of the blocks, in bytes.",
        stats.blocks_bytes,
    );
    put(
        gauge,
        "watchfire_tsdb_blocks_samples",
        "Samples in the blocks.",
        stats.blocks_samples,
    );
    put(
        gauge,
        "watchfire_tsdb_wal_bytes",
        "Size of the write-ahead log, in bytes.",
        stats.wal_bytes,
    );
    put(
        counter,
        "watchfire_tsdb_wal_written_bytes_total",
        "Bytes written to the write-ahead log.",
        stats.wal_bytes_written,
    );
    put(
        counter,
        "watchfire_tsdb_wal_failures_total",
        "Writes and syncs of the write-ahead log that failed.",
        stats.wal_failures,
    );
    put(
        counter,
        "watchfire_wal_corruptions_total",
        "Damaged places found in the write-ahead log.",
        stats.wal_corruptions,
    );
    put(
        counter,
        "watchfire_tsdb_chunk_corruptions_total",
        "Chunks that did not fit their checksum when read.",
        stats.chunk_corruptions,
    );
    put(
        counter,
        "watchfire_tsdb_samples_appended_total",
        "Samples taken.",
        stats.samples_appended,
    );
    put(
        counter,
        "watchfire_tsdb_samples_out_of_order_total",
        "Samples taken although later ones were there.",
        stats.samples_out_of_order,
    );
    put(
        counter,
        "watchfire_tsdb_samples_duplicate_total",
        "Samples refused because their time had a value.",
        stats.samples_duplicate,
    );
    put(
        counter,
        "watchfire_tsdb_samples_too_old_total",
        "Samples refused because they came too late.",
        stats.samples_too_old,
    );
    put(
        counter,
        "watchfire_tsdb_series_created_total",
        "Series made.",
        stats.series_created,
    );
    put(
        counter,
        "watchfire_tsdb_series_removed_total",
        "Series forgotten by the head.",
        stats.series_removed,
    );
    put(
        counter,
        "watchfire_tsdb_series_refused_total",
        "New series refused because of the limit.",
        stats.series_refused,
    );
    put(
        counter,
        "watchfire_tsdb_compactions_total",
        "Compactions done.",
        stats.compactions,
    );
    put(
        counter,
        "watchfire_tsdb_maintenance_failures_total",
        "Cuts and compactions that failed.",
        stats.maintenance_failures,
    );
    put(
        counter,
        "watchfire_tsdb_blocks_dropped_total",
        "Blocks dropped by retention.",
        stats.blocks_dropped,
    );
    put(
        counter,
        "watchfire_tsdb_disk_refusals_total",
        "Times nothing was written because the disk was nearly full.",
        stats.disk_refusals,
    );
    out
}
