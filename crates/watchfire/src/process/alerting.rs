//! The bridge from rules to alerts: neither knows the other.

use std::collections::BTreeMap;

use model::Millis;
use rules::{AlertSink, AlertState, LoadedRule};

/// The annotation of a firing alert whose data is missing: why nobody can say whether it still holds.
const UNKNOWN: &str = "unknown";

/// Hands what rules tell to the alert manager.
pub struct Bridge {
    /// Where alerts go on to people.
    pub alerts: alerts::Manager,
    /// Foreign Alertmanagers, which are told too.
    pub foreign: alerts::foreign::Notifier,
    /// The address people reach this hub at.
    pub external_url: String,
}

impl AlertSink for Bridge {
    fn send(&self, rule: &LoadedRule, found: &[rules::Alert], valid_until: Millis) {
        let generator = format!("{}/alerts?rule={}", self.external_url, rule.name);
        let list: Vec<alerts::Alert> = found
            .iter()
            .map(|alert| self.outgoing(alert, valid_until, &generator))
            .collect();
        self.foreign.send(&list);
        self.alerts.send(list);
    }
}

impl Bridge {
    fn outgoing(&self, alert: &rules::Alert, valid_until: Millis, generator: &str) -> alerts::Alert {
        let ends_at = match alert.state {
            AlertState::Resolved => alert.resolved_at.unwrap_or(valid_until),
            AlertState::Pending | AlertState::Firing => valid_until,
        };
        let mut annotations: BTreeMap<String, String> = alert.annotations.iter().cloned().collect();
        if let Some(unknown) = &alert.unknown {
            annotations.insert(UNKNOWN.to_owned(), unknown.reason.clone());
        }
        alerts::Alert {
            annotations,
            ends_at: Some(ends_at),
            generator_url: generator.to_owned(),
            urgent: alert.by_event,
            ..alerts::Alert::new(alert.labels.clone(), alert.fired_at.unwrap_or(alert.active_at))
        }
    }
}
