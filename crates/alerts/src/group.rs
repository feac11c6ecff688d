//! Groups: the alerts of one route that share labels and are told together.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::Millis;
use model::labels::Labels;

use crate::alert::{Alert, order};

/// Which group: a route's number and the labels in common.
pub type GroupId = (usize, Labels);

/// One group.
#[derive(Debug)]
pub struct Group {
    /// The key, as Alertmanager writes it.
    pub key: String,
    /// Its alerts, by fingerprint.
    pub alerts: BTreeMap<u64, Arc<Alert>>,
    /// When it is looked at next.
    pub next_flush: Millis,
    /// Whether it has been looked at.
    pub flushed: bool,
    /// The alerts of the last look that nothing kept out.
    pub told: Arc<Vec<Told>>,
    /// The ended alerts of the last look, with the time of their last news: gone once everyone knows.
    pub ended: Vec<(u64, Millis)>,
    /// Where each integration of the receiver stands.
    pub sending: Vec<Sending>,
    /// Whether a delivery since the last look failed for good.
    pub failed: bool,
}

/// An alert in a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// The alert.
    pub alert: Arc<Alert>,
    /// Its fingerprint.
    pub fingerprint: u64,
    /// Whether it is told as ended.
    pub resolved: bool,
}

/// Where one integration of a group stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sending {
    /// Nothing to do.
    #[default]
    Idle,
    /// A message is on its way.
    InFlight {
        /// Which attempt, from 1.
        attempt: u32,
        /// The number under which all attempts at this message are remembered.
        chain: u64,
        /// Whether the group changed meanwhile.
        stale: bool,
    },
    /// The last attempt failed; the next comes later.
    Waiting {
        /// Which attempt comes next.
        attempt: u32,
        /// The number under which all attempts at this message are remembered.
        chain: u64,
        /// When.
        at: Millis,
    },
}

impl Group {
    /// A group without alerts.
    #[must_use]
    pub fn new(key: String, next_flush: Millis, integrations: usize) -> Self {
        Self {
            key,
            alerts: BTreeMap::new(),
            next_flush,
            flushed: false,
            told: Arc::new(Vec::new()),
            ended: Vec::new(),
            sending: vec![Sending::Idle; integrations],
            failed: false,
        }
    }

    /// When something is to be done with it.
    #[must_use]
    pub fn due(&self) -> Millis {
        let waiting = self.sending.iter().filter_map(|s| match s {
            Sending::Waiting { at, .. } => Some(*at),
            _ => None,
        });
        waiting.chain([self.next_flush]).min().unwrap_or(self.next_flush)
    }

    /// Whether every integration has nothing to do.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.sending.iter().all(|s| *s == Sending::Idle)
    }

    /// Its alerts as they stand at a moment, in the order people see them.
    #[must_use]
    pub fn list(&self, now: Millis) -> Vec<Told> {
        let mut list: Vec<Told> = self
            .alerts
            .iter()
            .map(|(fingerprint, alert)| Told {
                resolved: alert.resolved_at(now),
                fingerprint: *fingerprint,
                alert: Arc::clone(alert),
            })
            .collect();
        list.sort_by(|a, b| order(&a.alert.labels, &b.alert.labels));
        list
    }

    /// Lets go of alerts that have ended and had no news since.
    pub fn drop_ended(&mut self) {
        for (fingerprint, updated_at) in std::mem::take(&mut self.ended) {
            if self
                .alerts
                .get(&fingerprint)
                .is_some_and(|a| a.updated_at == updated_at)
            {
                self.alerts.remove(&fingerprint);
            }
        }
    }
}
