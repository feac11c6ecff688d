//! What a query costs, counted while it runs: the asker hands the meter in with the deadline and reads it after,
//! also where the query failed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::time::Millis;

/// Counters of one query.
#[derive(Debug, Default)]
pub struct Meter {
    wants_steps: AtomicBool,
    avoids_cache: AtomicBool,
    from_cache: AtomicBool,
    read: AtomicU64,
    peak: AtomicU64,
    prepared_ns: AtomicU64,
    evaluated_ns: AtomicU64,
    sorted_ns: AtomicU64,
    steps: Mutex<Vec<(Millis, u64)>>,
}

impl Meter {
    /// Asks for the samples looked at by step, which costs a little.
    pub fn want_steps(&self) {
        self.wants_steps.store(true, Ordering::Relaxed);
    }

    /// Whether samples are to be counted by step.
    #[must_use]
    pub fn wants_steps(&self) -> bool {
        self.wants_steps.load(Ordering::Relaxed)
    }

    /// Asks for an answer that is computed anew.
    pub fn avoid_cache(&self) {
        self.avoids_cache.store(true, Ordering::Relaxed);
    }

    /// Whether the answer must be computed anew.
    #[must_use]
    pub fn avoids_cache(&self) -> bool {
        self.avoids_cache.load(Ordering::Relaxed)
    }

    /// Notes that a part of the answer was known already.
    pub fn note_cached(&self) {
        self.from_cache.store(true, Ordering::Relaxed);
    }

    /// Whether a part of the answer was known already.
    #[must_use]
    pub fn from_cache(&self) -> bool {
        self.from_cache.load(Ordering::Relaxed)
    }

    /// Counts samples read from the store.
    pub fn count_read(&self, samples: u64) {
        self.read.fetch_add(samples, Ordering::Relaxed);
    }

    /// Samples read from the store.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Notes how many values are held in memory.
    pub fn note_held(&self, values: u64) {
        self.peak.fetch_max(values, Ordering::Relaxed);
    }

    /// The most values held in memory at a time.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Notes the time from the text to the plan.
    pub fn note_prepared(&self, took: Duration) {
        add(&self.prepared_ns, took);
    }

    /// Notes the time from the plan to the values.
    pub fn note_evaluated(&self, took: Duration) {
        add(&self.evaluated_ns, took);
    }

    /// Notes the time that sorting the answer took.
    pub fn note_sorted(&self, took: Duration) {
        add(&self.sorted_ns, took);
    }

    /// The time from the text to the plan.
    #[must_use]
    pub fn prepared(&self) -> Duration {
        Duration::from_nanos(self.prepared_ns.load(Ordering::Relaxed))
    }

    /// The time from the plan to the values.
    #[must_use]
    pub fn evaluated(&self) -> Duration {
        Duration::from_nanos(self.evaluated_ns.load(Ordering::Relaxed))
    }

    /// The time that sorting the answer took.
    #[must_use]
    pub fn sorted(&self) -> Duration {
        Duration::from_nanos(self.sorted_ns.load(Ordering::Relaxed))
    }

    /// Notes the samples looked at by step.
    pub fn note_steps(&self, steps: impl IntoIterator<Item = (Millis, u64)>) {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).extend(steps);
    }

    /// The samples looked at by step; empty where nobody asked.
    #[must_use]
    pub fn steps(&self) -> Vec<(Millis, u64)> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn add(to: &AtomicU64, took: Duration) {
    to.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
}
