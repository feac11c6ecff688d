//! The alerts that are active, and those that ended a short while ago.

use std::collections::HashMap;
use std::sync::Arc;

use model::Millis;

use crate::alert::Alert;

/// How long an ended alert is remembered, in milliseconds, so that late news about it can be joined.
const KEEP_ENDED: Millis = 900_000;

/// Alerts by fingerprint, bounded.
#[derive(Debug)]
pub struct Store {
    alerts: HashMap<u64, Arc<Alert>>,
    bound: usize,
    resolve_timeout: Millis,
    refused: u64,
}

impl Store {
    /// A store for at most `bound` alerts; an alert without end gets `resolve_timeout` milliseconds.
    #[must_use]
    pub fn new(bound: usize, resolve_timeout: Millis) -> Self {
        Self {
            alerts: HashMap::new(),
            bound,
            resolve_timeout,
            refused: 0,
        }
    }

    /// Changes the timeout for alerts that come from now on.
    pub fn set_resolve_timeout(&mut self, millis: Millis) {
        self.resolve_timeout = millis;
    }

    /// Takes news of an alert in and returns what now holds.
    ///
    /// `None` when it was refused: without labels, ending before its start, or because the store is full
    /// of others. Refusals are counted.
    pub fn put(&mut self, mut alert: Alert, now: Millis) -> Option<Arc<Alert>> {
        alert.updated_at = now;
        alert.timeout = alert.ends_at.is_none();
        if alert.starts_at <= 0 {
            alert.starts_at = alert.ends_at.unwrap_or(now);
        }
        let end = alert
            .ends_at
            .unwrap_or_else(|| now.saturating_add(self.resolve_timeout));
        alert.ends_at = Some(end);
        let id = alert.fingerprint();
        let known = self.alerts.get(&id);
        let full = known.is_none() && self.alerts.len() >= self.bound;
        if alert.labels.is_empty() || end < alert.starts_at || full {
            self.refused += 1;
            return None;
        }
        let alert = match known {
            Some(old) => alert.merge(old, now),
            None => alert,
        };
        let alert = Arc::new(alert);
        self.alerts.insert(id, Arc::clone(&alert));
        Some(alert)
    }

    /// Forgets alerts that ended long ago and returns them.
    pub fn sweep(&mut self, now: Millis) -> Vec<Arc<Alert>> {
        let old: Vec<u64> = self
            .alerts
            .iter()
            .filter(|(_, alert)| alert.resolved_at(now - KEEP_ENDED))
            .map(|(id, _)| *id)
            .collect();
        old.iter().filter_map(|id| self.alerts.remove(id)).collect()
    }

    /// The alert of a fingerprint.
    #[must_use]
    pub fn get(&self, fingerprint: u64) -> Option<&Arc<Alert>> {
        self.alerts.get(&fingerprint)
    }

    /// Every alert that is not over at a time.
    pub fn active(&self, now: Millis) -> impl Iterator<Item = &Arc<Alert>> {
        self.alerts.values().filter(move |alert| !alert.resolved_at(now))
    }

    /// Every alert, over or not.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Alert>> {
        self.alerts.values()
    }

    /// How many alerts were refused since the start.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use model::labels::Labels;

    use super::*;

    fn named(name: &str) -> Alert {
        Alert::new(Labels::from_pairs([("alertname", name)]), 10)
    }

    #[test]
    fn an_alert_without_news_times_out() {
        let mut store = Store::new(10, 1_000);
        let alert = store.put(named("a"), 100).expect("there is room");
        assert!(!alert.resolved_at(1_099) && alert.resolved_at(1_100));
        let alert = store.put(named("a"), 600).expect("known");
        assert!(!alert.resolved_at(1_599) && alert.resolved_at(1_600));
    }

    #[test]
    fn a_full_store_keeps_what_it_knows() {
        let mut store = Store::new(1, 1_000);
        assert!(store.put(named("a"), 100).is_some());
        assert!(store.put(named("b"), 100).is_none());
        assert!(store.put(named("a"), 200).is_some());
        assert_eq!(store.refused(), 1);
        store.sweep(10_000_000);
        assert!(store.put(named("b"), 10_000_000).is_some());
    }

    #[test]
    fn nonsense_is_refused_and_counted() {
        let mut store = Store::new(10, 1_000);
        assert!(store.put(Alert::new(Labels::empty(), 10), 100).is_none());
        let backwards = Alert {
            ends_at: Some(5),
            ..named("a")
        };
        assert!(store.put(backwards, 100).is_none());
        assert_eq!(store.refused(), 2);
    }
}
