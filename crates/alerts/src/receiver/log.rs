//! Our own log as a receiver: one line per alert.

use crate::engine::Notification;
use crate::group::Told;

/// Writes one line per alert.
pub fn send(notification: &Notification) {
    for told in &notification.alerts {
        line(told, &notification.receiver);
    }
}

fn line(told: &Told, receiver: &str) {
    let alert = &told.alert;
    let annotation = |name: &str| alert.annotations.get(name).map_or("", String::as_str);
    let status = if told.resolved { "resolved" } else { "firing" };
    tracing::warn!(
        target: "watchfire::alert",
        status,
        alert = alert.name(),
        labels = %alert.labels,
        summary = annotation("summary"),
        description = annotation("description"),
        receiver,
        "alert {status}: {}",
        alert.name()
    );
}
