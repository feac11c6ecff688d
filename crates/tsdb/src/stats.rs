//! What a store counts, for `/metrics` and the status page.

use std::sync::atomic::{AtomicU64, Ordering};

use model::{Appended, Millis};

/// The state of a store at one moment; counters run since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Whether the log is replayed.
    pub ready: bool,
    /// Series in the head.
    pub head_series: u64,
    /// Sealed runs in the head.
    pub head_chunks: u64,
    /// Earliest sample of the head, in milliseconds; `None` when it has none.
    pub head_mint: Option<Millis>,
    /// Latest sample of the head, in milliseconds.
    pub head_maxt: Option<Millis>,
    /// Examples of observations held.
    pub exemplars: u64,
    /// Examples refused: out of order, or with labels that are too long.
    pub exemplars_refused: u64,
    /// Blocks on disk.
    pub blocks: u64,
    /// Size of the blocks in bytes.
    pub blocks_bytes: u64,
    /// Samples in the blocks.
    pub blocks_samples: u64,
    /// Size of the log in bytes, checkpoint included.
    pub wal_bytes: u64,
    /// Bytes written to the log.
    pub wal_bytes_written: u64,
    /// Times the log was forced to disk.
    pub wal_syncs: u64,
    /// Writes and syncs of the log that failed.
    pub wal_failures: u64,
    /// Batches that never reached the log because the disk refused for too long.
    pub wal_lost: u64,
    /// Damaged places found in the log when it was replayed.
    pub wal_corruptions: u64,
    /// Blocks that could not be opened.
    pub blocks_broken: u64,
    /// Lists of deletions that could not be read.
    pub deletions_damaged: u64,
    /// Chunks that did not fit their checksum when read.
    pub chunk_corruptions: u64,
    /// Samples taken.
    pub samples_appended: u64,
    /// Samples taken although later ones were there.
    pub samples_out_of_order: u64,
    /// Samples refused because their time had another value.
    pub samples_duplicate: u64,
    /// Samples that were there already, with the same value.
    pub samples_repeated: u64,
    /// Samples refused because they came too late.
    pub samples_too_old: u64,
    /// Series made.
    pub series_created: u64,
    /// Series forgotten by the head because they had no samples left.
    pub series_removed: u64,
    /// New series refused because of the limit.
    pub series_refused: u64,
    /// Blocks cut from the head.
    pub cuts: u64,
    /// Compactions done.
    pub compactions: u64,
    /// Cuts and compactions that failed.
    pub maintenance_failures: u64,
    /// Blocks dropped by retention.
    pub blocks_dropped: u64,
    /// Times that nothing was written because the disk was nearly full.
    pub disk_refusals: u64,
    /// Spans of two hours that the head forgot because there was no room to write them.
    pub spans_lost: u64,
}

macro_rules! counters {
    ($($name:ident),* $(,)?) => {
        /// Counters that only grow.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: AtomicU64,)*
        }

        impl Counters {
            /// Puts the counts into `stats`.
            pub(crate) fn fill(&self, stats: &mut Stats) {
                $(stats.$name = self.$name.load(Ordering::Relaxed);)*
            }
        }
    };
}

counters!(
    wal_corruptions,
    blocks_broken,
    deletions_damaged,
    chunk_corruptions,
    samples_appended,
    samples_out_of_order,
    samples_duplicate,
    samples_repeated,
    samples_too_old,
    series_created,
    series_removed,
    series_refused,
    cuts,
    compactions,
    maintenance_failures,
    blocks_dropped,
    disk_refusals,
    spans_lost,
);

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, more: u64) {
        counter.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn note(&self, done: &Appended) {
        Self::add(&self.samples_appended, done.accepted);
        Self::add(&self.samples_out_of_order, done.out_of_order);
        Self::add(&self.samples_duplicate, done.duplicates);
        Self::add(&self.samples_repeated, done.repeated);
        Self::add(&self.samples_too_old, done.too_old);
    }
}
