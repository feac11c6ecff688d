//! What the engine shows: alerts, groups, silences and deliveries as they stand.

use std::collections::HashMap;
use std::sync::Arc;

use model::Millis;
use model::labels::Labels;

use super::Engine;
use crate::alert::{Alert, order};
use crate::delivery::Delivery;
use crate::inhibit::Inhibitor;
use crate::pipeline::Muted;
use crate::silence::Silence;

/// An alert with where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct AlertView {
    /// The alert.
    pub alert: Arc<Alert>,
    /// Its fingerprint.
    pub fingerprint: u64,
    /// Receivers of its routes, by name, sorted.
    pub receivers: Vec<String>,
    /// Where it stands.
    pub state: AlertState,
    /// What keeps it out of messages.
    pub muted: Muted,
}

/// Where an alert stands, in the API's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AlertState {
    /// It has not been looked at yet.
    Unprocessed,
    /// It is told.
    Active,
    /// Something keeps it out of messages.
    Suppressed,
}

impl AlertState {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unprocessed => "unprocessed",
            Self::Active => "active",
            Self::Suppressed => "suppressed",
        }
    }
}

/// A group with its alerts.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupView {
    /// The key, as Alertmanager writes it.
    pub key: String,
    /// The labels in common.
    pub labels: Labels,
    /// The receiver's name.
    pub receiver: String,
    /// When it is looked at next, in milliseconds since the epoch.
    pub next_flush: Millis,
    /// Its alerts that are not over.
    pub alerts: Vec<AlertView>,
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Pieces of news taken in.
    pub received: u64,
    /// Pieces of news refused.
    pub refused: u64,
    /// Messages that reached their receiver.
    pub sent: u64,
    /// Attempts that failed.
    pub failed_attempts: u64,
    /// Groups that were not made because there are too many.
    pub groups_refused: u64,
    /// Groups there are now.
    pub groups: usize,
    /// Alerts that are not over.
    pub active: usize,
    /// Messages on their way.
    pub in_flight: usize,
}

impl Engine {
    /// The groups with alerts that are not over, by labels, then receiver.
    #[must_use]
    pub fn groups(&self, now: Millis) -> Vec<GroupView> {
        let inhibitor = Inhibitor::new(&self.plan.inhibit_rules, &self.store, now);
        let mut views: Vec<GroupView> = self
            .groups
            .iter()
            .map(|((route, labels), group)| {
                let receiver = &self.plan.routes.get(*route).route.receiver;
                let judged = self.judge(*route, group, &inhibitor, now);
                let view = |(told, muted): (crate::group::Told, Muted)| AlertView {
                    state: state(group.flushed, &muted),
                    fingerprint: told.fingerprint,
                    receivers: vec![receiver.clone()],
                    alert: told.alert,
                    muted,
                };
                GroupView {
                    key: group.key.clone(),
                    labels: labels.clone(),
                    receiver: receiver.clone(),
                    next_flush: group.next_flush,
                    alerts: judged.into_iter().filter(|(t, _)| !t.resolved).map(view).collect(),
                }
            })
            .filter(|view| !view.alerts.is_empty())
            .collect();
        views.sort_by(|a, b| (&a.labels, &a.receiver).cmp(&(&b.labels, &b.receiver)));
        views
    }

    /// The alerts that are not over, each once, in the order people see them.
    #[must_use]
    pub fn alerts(&self, now: Millis) -> Vec<AlertView> {
        let mut found: HashMap<u64, AlertView> = HashMap::new();
        for alert in self.groups(now).into_iter().flat_map(|g| g.alerts) {
            match found.get_mut(&alert.fingerprint) {
                Some(known) => {
                    known.receivers.extend(alert.receivers);
                    known.receivers.sort();
                    known.receivers.dedup();
                }
                None => {
                    found.insert(alert.fingerprint, alert);
                }
            }
        }
        let mut all: Vec<AlertView> = found.into_values().collect();
        all.sort_by(|a, b| order(&a.alert.labels, &b.alert.labels));
        all
    }

    /// Every silence, over or not.
    #[must_use]
    pub fn silences(&self) -> Vec<Silence> {
        self.silences.iter().cloned().collect()
    }

    /// The last deliveries, newest first.
    #[must_use]
    pub fn deliveries(&self) -> Vec<Delivery> {
        self.history.iter().cloned().collect()
    }

    /// Counts since the start.
    #[must_use]
    pub fn stats(&self, now: Millis) -> Stats {
        Stats {
            refused: self.store.refused(),
            groups: self.groups.len(),
            active: self.store.active(now).count(),
            in_flight: self.on_the_way.len(),
            ..self.stats
        }
    }
}

fn state(flushed: bool, muted: &Muted) -> AlertState {
    match (flushed, muted.is_clear()) {
        (_, false) => AlertState::Suppressed,
        (true, true) => AlertState::Active,
        (false, true) => AlertState::Unprocessed,
    }
}
