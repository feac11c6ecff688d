//! What was told, counted in Alertmanager's families, so that its dashboards and rules read ours.

use std::collections::BTreeMap;

use model::{Family, Kind, Metric, Millis};

use crate::delivery::{Delivery, DeliveryStatus, Reason};
use crate::pipeline::Muted;

/// The bounds of Alertmanager's latency buckets, in milliseconds.
const BUCKETS: [Millis; 5] = [1_000, 5_000, 10_000, 15_000, 20_000];
/// Why an alert is kept out of a message, in the words of Alertmanager's metric.
const SUPPRESSED: [&str; 4] = ["silence", "inhibition", "mute_time_interval", "active_time_interval"];

/// Counts since the start.
#[derive(Debug, Default)]
pub struct Counts {
    kinds: BTreeMap<&'static str, OfKind>,
    broken_templates: BTreeMap<(String, String), u64>,
    suppressed: [u64; 4],
}

#[derive(Debug, Default, Clone, Copy)]
struct OfKind {
    messages: u64,
    failed: [u64; Reason::ALL.len()],
    attempts: u64,
    attempts_failed: u64,
    within: [u64; BUCKETS.len()],
    latency: Millis,
}

impl Counts {
    /// Knows a kind, so that its zeros stand from the start.
    pub fn know(&mut self, kind: &'static str) {
        self.kinds.entry(kind).or_default();
    }

    /// Takes an attempt in.
    pub fn note(&mut self, kind: &'static str, delivery: &Delivery, reason: Option<Reason>) {
        let of = self.kinds.entry(kind).or_default();
        of.attempts += 1;
        of.messages += u64::from(delivery.attempts <= 1);
        of.attempts_failed += u64::from(delivery.status != DeliveryStatus::Sent);
        if delivery.status == DeliveryStatus::Failed {
            let at = Reason::ALL.iter().position(|r| Some(*r) == reason);
            of.failed[at.unwrap_or(0)] += 1;
        }
        of.latency = of.latency.saturating_add(delivery.latency);
        for (count, bound) in of.within.iter_mut().zip(BUCKETS) {
            *count += u64::from(delivery.latency <= bound);
        }
        if !delivery.remark.is_empty() {
            let key = (delivery.receiver.clone(), delivery.integration.clone());
            *self.broken_templates.entry(key).or_default() += 1;
        }
    }

    /// Takes an alert in that is kept out of a message; `active` are the times in which its route speaks.
    pub fn suppress(&mut self, muted: &Muted, active: &[String]) {
        let is_outside = muted.muted_by.first().is_some_and(|name| active.contains(name));
        let at = if !muted.silenced_by.is_empty() {
            0
        } else if muted.inhibited_by.is_some() {
            1
        } else if is_outside {
            3
        } else {
            2
        };
        self.suppressed[at] += 1;
    }

    /// The families.
    pub fn families(&self) -> Vec<Family> {
        let mut all = vec![
            self.of_kinds(
                "alertmanager_notifications_total",
                "Messages, each with all its attempts.",
                |k| k.messages,
            ),
            self.failed(),
            self.of_kinds(
                "alertmanager_notification_requests_total",
                "Attempts at messages.",
                |k| k.attempts,
            ),
            self.of_kinds(
                "alertmanager_notification_requests_failed_total",
                "Attempts at messages that failed.",
                |k| k.attempts_failed,
            ),
            self.latency(),
        ];
        let mut suppressed = Family::new(
            "alertmanager_notifications_suppressed_total",
            Kind::Counter,
            "Alerts kept out of messages.",
        );
        for (reason, count) in SUPPRESSED.iter().zip(self.suppressed) {
            suppressed.push(vec![("reason", (*reason).to_owned())], count as f64);
        }
        let mut templates = Family::new(
            "watchfire_notification_template_errors_total",
            Kind::Counter,
            "Attempts whose template failed, so that another text was sent.",
        );
        for ((receiver, integration), count) in &self.broken_templates {
            templates.push(way(receiver, integration), *count as f64);
        }
        all.extend([suppressed, templates]);
        all
    }

    fn of_kinds(&self, name: &str, help: &str, count: impl Fn(&OfKind) -> u64) -> Family {
        let mut family = Family::new(name, Kind::Counter, help);
        for (kind, of) in &self.kinds {
            family.push(vec![("integration", (*kind).to_owned())], count(of) as f64);
        }
        family
    }

    fn failed(&self) -> Family {
        let help = "Messages that failed for good, by the kind of reason.";
        let mut family = Family::new("alertmanager_notifications_failed_total", Kind::Counter, help);
        for (kind, of) in &self.kinds {
            for (reason, count) in Reason::ALL.iter().zip(of.failed) {
                let labels = vec![
                    ("integration", (*kind).to_owned()),
                    ("reason", reason.as_str().to_owned()),
                ];
                family.push(labels, count as f64);
            }
        }
        family
    }

    fn latency(&self) -> Family {
        let help = "How long attempts at messages took, in seconds.";
        let mut family = Family::new("alertmanager_notification_latency_seconds", Kind::Histogram, help);
        for (kind, of) in &self.kinds {
            let mut put = |suffix, bound: Option<String>, value: f64| {
                let mut labels = vec![("integration", (*kind).to_owned())];
                labels.extend(bound.map(|bound| ("le", bound)));
                family.metrics.push(Metric { suffix, labels, value });
            };
            for (count, bound) in of.within.iter().zip(BUCKETS) {
                put("_bucket", Some((bound / 1_000).to_string()), *count as f64);
            }
            put("_bucket", Some("+Inf".to_owned()), of.attempts as f64);
            put("_sum", None, of.latency as f64 / 1_000.0);
            put("_count", None, of.attempts as f64);
        }
        family
    }
}

/// The labels of one way of a receiver.
pub fn way(receiver: &str, integration: &str) -> Vec<(&'static str, String)> {
    vec![
        ("receiver", receiver.to_owned()),
        ("integration", integration.to_owned()),
    ]
}
