//! A message that says that it is a test: what `watchfire alert test` sends.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::Millis;
use model::labels::Labels;

use crate::alert::Alert;
use crate::delivery::{Delivery, DeliveryStatus};
use crate::engine::Notification;
use crate::group::Told;
use crate::pipeline::Reason;

/// Kinds at which a message opens something that would stay open.
pub const OPENING: [&str; 5] = ["pagerduty", "opsgenie", "victorops", "jira", "incidentio"];

/// A message about one alert that is none.
pub fn notification(receiver: &str, integration: usize, now: Millis, resolved: bool) -> Notification {
    let labels = Labels::from_pairs([("alertname", "WatchfireTest"), ("severity", "none"), ("test", "true")]);
    let annotations = BTreeMap::from([
        (
            "summary".to_owned(),
            format!("This is a test of the receiver {receiver}"),
        ),
        (
            "description".to_owned(),
            "Someone asked Watchfire to send it. Nothing is wrong.".to_owned(),
        ),
    ]);
    let alert = Alert {
        annotations,
        ends_at: Some(now),
        ..Alert::new(labels.clone(), now)
    };
    let told = Told {
        fingerprint: alert.fingerprint(),
        alert: Arc::new(alert),
        resolved,
    };
    Notification {
        id: 0,
        receiver: receiver.to_owned(),
        integration,
        attempt: 1,
        group_key: format!("{{}}:{}", labels.only(&["alertname", "test"])),
        group_labels: labels.only(&["alertname"]),
        alerts: vec![told],
        reason: Reason::First,
        at: now,
        route_labels: BTreeMap::new(),
        last_at: now,
    }
}

/// What is remembered of it, before its outcome is known; `now` is when the attempt ended.
pub fn delivery(kind: &str, notification: &Notification, now: Millis) -> Delivery {
    let resolved = notification.alerts.iter().filter(|t| t.resolved).count();
    Delivery {
        id: 0,
        at: now,
        receiver: notification.receiver.clone(),
        integration: format!("{kind}[{}]", notification.integration),
        address: String::new(),
        group_key: notification.group_key.clone(),
        fingerprints: notification.alerts.iter().map(|t| t.fingerprint).collect(),
        firing: notification.alerts.len() - resolved,
        resolved,
        status: DeliveryStatus::Retrying,
        attempts: 1,
        latency: (now - notification.at).max(0),
        error: String::new(),
        remark: String::new(),
        test: true,
    }
}
