//! The metric store: what was measured stays, small and quick to read, over crashes and full disks.
//!
//! Reading order: [`db`] is the store as others see it, [`head`] the last hours in memory, [`wal_record`] what is
//! logged before it shows, [`codec`] and [`times`] how chunks become small, [`block`] what lies on disk,
//! [`compact`] how blocks grow together, [`querier`] how both are read as one.
//!
//! What is deliberately absent: the network, PromQL, the clock ([`Db::maintain`] is told what time it is) and
//! JSON. The files below are `blocks`'.
//!
//! Invariant: a sample that was acknowledged is read back to the bit until retention takes it, over any crash of
//! the process, and over a power cut but for what the last sync interval brought.

pub mod block;
pub mod changes;
pub mod codec;
pub mod column;
pub mod compact;
pub mod db;
pub mod exchange;
pub mod exemplars;
pub mod head;
pub mod options;
pub mod querier;
pub mod stats;
mod sync;
pub mod times;
pub mod wal_record;

pub use db::{Db, Deleted, Export, Exported, Imported, prometheus_blocks};
pub use options::Options;
pub use stats::Stats;

use model::StoreError;

/// The store cannot do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder.
    #[error(transparent)]
    Blocks(#[from] blocks::Error),
    /// The replay thread could not be started.
    #[error("cannot start the replay thread")]
    Thread(#[source] std::io::Error),
    /// The log could not be replayed; the text is the chain of causes.
    #[error("cannot replay the log: {0}")]
    Replay(String),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        match error {
            Error::Closed => Self::Closed("it was shut down".into()),
            Error::Blocks(blocks::Error::Damaged { .. }) => Self::Damaged(blocks::chain(&error)),
            _ => Self::Io(blocks::chain(&error)),
        }
    }
}
