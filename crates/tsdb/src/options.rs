//! How a store behaves.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use blocks::vfs::{RealFs, Vfs};
use model::Millis;

/// See each field; [`Options::new`] gives what the product ships with.
#[derive(Clone)]
pub struct Options {
    /// The store's own folder.
    pub dir: PathBuf,
    /// The file layer.
    pub vfs: Arc<dyn Vfs>,
    /// Blocks whose latest sample is older than this go, in milliseconds; `None` keeps them.
    pub keep_time: Option<Millis>,
    /// The oldest blocks go while blocks and log are larger than this, in bytes; `None` keeps them.
    pub keep_bytes: Option<u64>,
    /// How often the log is forced to disk; zero forces each append.
    pub wal_sync: Duration,
    /// A log segment is followed by a new one at this size, in bytes.
    pub wal_segment_bytes: u64,
    /// How far behind its series' latest a scraped sample may come, in milliseconds.
    pub late_scraped: Millis,
    /// How far behind the head's latest a sample with a time of its own may come, in milliseconds.
    pub late_timed: Millis,
    /// The most series in the head; new ones beyond are refused.
    pub series_max: u64,
    /// The most examples of observations kept in memory.
    pub exemplars_max: usize,
    /// Below this much free disk (or below 1 % of it) nothing but the log is written, in bytes.
    pub free_bytes_min: u64,
    /// Without room for blocks, the head keeps this span and forgets what is older, in milliseconds.
    pub head_span_max: Millis,
}

impl Options {
    /// The defaults: 30 days or 20 GB, a second of log at risk on power loss.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        const HOUR: Millis = 3600 * 1000;
        Self {
            dir: dir.into(),
            vfs: Arc::new(RealFs),
            keep_time: Some(30 * 24 * HOUR),
            keep_bytes: Some(20_000_000_000),
            wal_sync: Duration::from_secs(1),
            wal_segment_bytes: 64 << 20,
            late_scraped: HOUR / 6,
            late_timed: HOUR,
            series_max: 10_000_000,
            exemplars_max: 100_000,
            free_bytes_min: 500_000_000,
            head_span_max: 12 * HOUR,
        }
    }
}
