//! Something the disk refuses: told once when it begins and once when it is over, however often it is tried.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::Counters;
use crate::{Error, chain};

pub(super) struct Trouble {
    /// What the log cannot be, and what that means.
    what: &'static str,
    failing: AtomicBool,
    /// Lost appends when it began.
    lost_before: AtomicU64,
}

impl Trouble {
    pub(super) const fn new(what: &'static str) -> Self {
        Self {
            what,
            failing: AtomicBool::new(false),
            lost_before: AtomicU64::new(0),
        }
    }

    pub(super) fn failed(&self, error: &Error, counters: &Counters) {
        if self.failing.swap(true, Ordering::Relaxed) {
            return;
        }
        self.lost_before
            .store(counters.lost.load(Ordering::Relaxed), Ordering::Relaxed);
        tracing::error!("the WAL cannot be {}: {}", self.what, chain(error));
    }

    /// It was done; `kept` bytes had waited in memory for it.
    pub(super) fn works(&self, kept: usize, counters: &Counters) {
        if !self.failing.load(Ordering::Relaxed) || !self.failing.swap(false, Ordering::Relaxed) {
            return;
        }
        let lost = counters.lost.load(Ordering::Relaxed) - self.lost_before.load(Ordering::Relaxed);
        let what = self.what.split(';').next().unwrap_or(self.what);
        tracing::warn!("the WAL can be {what} again: {kept} bytes kept in memory are in it, {lost} appends are lost");
    }
}
