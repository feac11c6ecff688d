//! The bridge from rules to alerts: neither knows the other.

use model::Millis;
use rules::{AlertSink, AlertState, LoadedRule};

/// Hands what rules tell to the alert manager.
pub struct Bridge {
    /// Where alerts go on to people.
    pub alerts: alerts::Manager,
    /// The address people reach this hub at.
    pub external_url: String,
}

impl AlertSink for Bridge {
    fn send(&self, rule: &LoadedRule, found: &[rules::Alert], valid_until: Millis) {
        let generator = format!("{}/alerts?rule={}", self.external_url, rule.name);
        let list = found
            .iter()
            .map(|alert| self.outgoing(alert, valid_until, &generator))
            .collect();
        self.alerts.send(list);
    }
}

impl Bridge {
    fn outgoing(&self, alert: &rules::Alert, valid_until: Millis, generator: &str) -> alerts::Alert {
        let ends_at = match alert.state {
            AlertState::Resolved => alert.resolved_at.unwrap_or(valid_until),
            AlertState::Pending | AlertState::Firing => valid_until,
        };
        alerts::Alert {
            annotations: alert.annotations.iter().cloned().collect(),
            ends_at: Some(ends_at),
            generator_url: generator.to_owned(),
            ..alerts::Alert::new(alert.labels.clone(), alert.fired_at.unwrap_or(alert.active_at))
        }
    }
}
