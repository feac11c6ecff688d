//! The queries that run now, each with a way to end it, and a log line for each that took long.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::{Deadline, Millis};

/// Queries that take longer than this are logged, unless told otherwise.
pub const SLOW: Duration = Duration::from_secs(10);

/// A query as its asker wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The expression.
    pub text: String,
    /// Its moments, in milliseconds: start, end and step; the latter zero for an instant query.
    pub moments: (Millis, Millis, Millis),
}

/// A query that runs.
#[derive(Debug, Clone)]
pub struct Active {
    /// Its number, by which it can be ended.
    pub id: u64,
    /// What is asked.
    pub asked: Asked,
    /// How long it has been running or waiting.
    pub age: Duration,
    /// Samples read so far are told when it is done; whether somebody ended it.
    pub canceled: bool,
}

/// The running queries.
#[derive(Debug)]
pub struct Queries {
    slow: Duration,
    next: AtomicU64,
    slow_total: AtomicU64,
    active: Mutex<BTreeMap<u64, (Asked, Instant, Deadline)>>,
}

impl Default for Queries {
    fn default() -> Self {
        Self::new(SLOW)
    }
}

impl Queries {
    /// None yet; those that take longer than `slow` will be logged.
    #[must_use]
    pub fn new(slow: Duration) -> Self {
        Self {
            slow,
            next: AtomicU64::new(1),
            slow_total: AtomicU64::new(0),
            active: Mutex::default(),
        }
    }

    /// Counts a query among the running ones for as long as what is returned lives.
    #[must_use]
    pub fn begin(self: &Arc<Self>, asked: Asked, deadline: &Deadline) -> Running {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(id, (asked, Instant::now(), deadline.clone()));
        Running {
            queries: Arc::clone(self),
            id,
        }
    }

    /// The running queries, the oldest first.
    #[must_use]
    pub fn active(&self) -> Vec<Active> {
        let of = |(id, (asked, began, deadline)): (&u64, &(Asked, Instant, Deadline))| Active {
            id: *id,
            asked: asked.clone(),
            age: began.elapsed(),
            canceled: deadline.is_canceled(),
        };
        self.lock().iter().map(of).collect()
    }

    /// Ends a query at its next check; `false` when there is none of that number.
    pub fn cancel(&self, id: u64) -> bool {
        let active = self.lock();
        let found = active.get(&id);
        if let Some((_, _, deadline)) = found {
            deadline.cancel();
        }
        found.is_some()
    }

    /// Queries so far that took longer than is fine.
    #[must_use]
    pub fn slow_total(&self) -> u64 {
        self.slow_total.load(Ordering::Relaxed)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, (Asked, Instant, Deadline)>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A query's place among the running ones.
#[derive(Debug)]
pub struct Running {
    queries: Arc<Queries>,
    id: u64,
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some((asked, began, deadline)) = self.queries.lock().remove(&self.id) else {
            return;
        };
        let took = began.elapsed();
        if took < self.queries.slow {
            return;
        }
        self.queries.slow_total.fetch_add(1, Ordering::Relaxed);
        let (start, end, step) = asked.moments;
        tracing::warn!(
            query = asked.text,
            start,
            end,
            step,
            seconds = took.as_secs_f64(),
            samples = deadline.meter().read(),
            canceled = deadline.is_canceled(),
            "slow query"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Asked {
        Asked {
            text: text.to_owned(),
            moments: (0, 0, 0),
        }
    }

    #[test]
    fn a_query_is_listed_while_it_runs_and_can_be_ended() {
        let queries = Arc::new(Queries::new(Duration::ZERO));
        let (first, second) = (Deadline::never(), Deadline::never());
        let running = queries.begin(asked("up"), &first);
        let other = queries.begin(asked("down"), &second);
        let texts: Vec<String> = queries.active().into_iter().map(|a| a.asked.text).collect();
        assert_eq!(texts, ["up", "down"]);
        assert!(queries.cancel(running.id) && !queries.cancel(99));
        assert!(first.is_canceled() && !second.is_canceled());
        drop(running);
        assert_eq!(queries.active().len(), 1);
        drop(other);
        assert!(queries.active().is_empty());
        assert_eq!(queries.slow_total(), 2);
    }
}
