//! What the engine shows: alerts, groups, silences and deliveries as they stand.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use model::labels::Labels;
use model::{Family, Kind, Millis};

use super::Engine;
use crate::alert::{Alert, order};
use crate::counts::way;
use crate::delivery::Delivery;
use crate::health::Health;
use crate::inhibit::Inhibitor;
use crate::pipeline::Muted;
use crate::silence::{Silence, SilenceState};

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
    /// The labels of the route; their values are templates.
    pub route_labels: BTreeMap<String, String>,
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
    /// Those of them that told of an end.
    pub received_resolved: u64,
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
                    route_labels: self.plan.routes.get(*route).route.labels.clone(),
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

    /// The silence of a name.
    #[must_use]
    pub fn silence(&self, id: &str) -> Option<Silence> {
        self.silences.get(id).cloned()
    }

    /// The deliveries that told of an alert, and whose last attempt ended at a moment or later; oldest first.
    #[must_use]
    pub fn deliveries_of(&self, fingerprint: u64, since: Millis) -> Vec<Delivery> {
        let all = self.history.iter().rev().filter(|d| d.at >= since);
        all.filter(|d| d.fingerprints.contains(&fingerprint)).cloned().collect()
    }

    /// Every way of every receiver, with how it is.
    #[must_use]
    pub fn health(&self) -> Vec<(String, String, Health)> {
        let mut all = Vec::new();
        for (name, _) in &self.plan.apart {
            for (at, channel) in self.plan.receivers.get(name).into_iter().flatten().enumerate() {
                let integration = super::integration_name(channel.kind, at);
                let health = self.healths.get(name, &integration).cloned();
                // The last resort is shown once it was needed.
                if health.is_some() || name != super::LAST_RESORT {
                    all.push((name.clone(), integration, health.unwrap_or_default()));
                }
            }
        }
        all
    }

    /// Everything counted, as metrics.
    #[must_use]
    pub fn families(&self, now: Millis) -> Vec<Family> {
        let mut all = self.counts.families();
        let stats = self.stats(now);
        let mut put = |name: &str, kind, help: &str, label: &'static str, values: &[(&str, f64)]| {
            let mut family = Family::new(name, kind, help);
            for (word, value) in values {
                let labels = if label.is_empty() {
                    Vec::new()
                } else {
                    vec![(label, (*word).to_owned())]
                };
                family.push(labels, *value);
            }
            all.push(family);
        };
        let (alerts, silences) = (self.alerts(now), self.silences());
        let standing = |state| alerts.iter().filter(|a| a.state == state).count() as f64;
        put(
            "alertmanager_alerts",
            Kind::Gauge,
            "Alerts that are not over, by where they stand.",
            "state",
            &[
                ("active", standing(AlertState::Active)),
                ("suppressed", standing(AlertState::Suppressed)),
                ("unprocessed", standing(AlertState::Unprocessed)),
            ],
        );
        let quiet = |state| silences.iter().filter(|s| s.state(now) == state).count() as f64;
        put(
            "alertmanager_silences",
            Kind::Gauge,
            "Silences, by where they stand.",
            "state",
            &[
                ("active", quiet(SilenceState::Active)),
                ("expired", quiet(SilenceState::Expired)),
                ("pending", quiet(SilenceState::Pending)),
            ],
        );
        put(
            "alertmanager_alerts_received_total",
            Kind::Counter,
            "Pieces of news of alerts taken in, of our rules and by the API.",
            "status",
            &[
                ("firing", (stats.received - stats.received_resolved) as f64),
                ("resolved", stats.received_resolved as f64),
            ],
        );
        let one = |value: f64| [("", value)];
        put(
            "alertmanager_alerts_invalid_total",
            Kind::Counter,
            "Pieces of news of alerts refused.",
            "",
            &one(stats.refused as f64),
        );
        put(
            "alertmanager_dispatcher_aggregation_groups",
            Kind::Gauge,
            "Groups there are.",
            "",
            &one(stats.groups as f64),
        );
        put(
            "watchfire_alert_groups_refused_total",
            Kind::Counter,
            "Groups that were not made because there are too many.",
            "",
            &one(stats.groups_refused as f64),
        );
        put(
            "watchfire_notifications_in_flight",
            Kind::Gauge,
            "Messages on their way.",
            "",
            &one(stats.in_flight as f64),
        );
        all.extend(self.health_families());
        all
    }

    fn health_families(&self) -> [Family; 2] {
        let mut up = Family::new(
            "watchfire_receiver_up",
            Kind::Gauge,
            "0 when the last message to a receiver failed for good, or again and again; else 1.",
        );
        let mut success = Family::new(
            "watchfire_receiver_last_success_timestamp_seconds",
            Kind::Gauge,
            "When a receiver last took a message, in seconds since the epoch.",
        );
        for (receiver, integration, health) in self.health() {
            let is_up = health.failing_since.is_none();
            up.push(way(&receiver, &integration), f64::from(u8::from(is_up)));
            let at = health.last_success.map(|at| at as f64 / 1_000.0);
            success.push_some(|| way(&receiver, &integration), at);
        }
        [up, success]
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
