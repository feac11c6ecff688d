//! The JSON that a webhook gets, version 4 of Alertmanager's.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::Millis;
use model::labels::Labels;
use serde_json::{Map, Value, json};
use template::moment::Moment;
use template::notification::{Alert, Data};

use crate::engine::Notification;
use crate::group::Told;

/// The time Go writes for "not set".
const NO_TIME: &str = "0001-01-01T00:00:00Z";

/// Builds the body; `max_alerts` of 0 is no bound.
#[must_use]
pub fn webhook(notification: &Notification, external_url: &str, max_alerts: u64) -> Value {
    let all = &notification.alerts;
    let bound = usize::try_from(max_alerts).unwrap_or(usize::MAX);
    let shown = if bound == 0 { all.len() } else { all.len().min(bound) };
    let alerts = &all[..shown];
    let firing = alerts.iter().any(|told| !told.resolved);
    json!({
        "receiver": notification.receiver,
        "status": if firing { "firing" } else { "resolved" },
        "alerts": alerts.iter().map(alert).collect::<Vec<_>>(),
        "groupLabels": labels(&notification.group_labels),
        "commonLabels": labels(&common_labels(alerts)),
        "commonAnnotations": common_annotations(alerts),
        "externalURL": external_url,
        "version": "4",
        "groupKey": notification.group_key,
        "truncatedAlerts": all.len() - shown,
    })
}

/// What templates see of a message.
#[must_use]
pub fn data(notification: &Notification, external_url: &str) -> Data {
    let alerts = &notification.alerts;
    let firing = alerts.iter().any(|told| !told.resolved);
    let texts = |map: &BTreeMap<String, String>| Labels::from_pairs(map.iter().map(|(n, v)| (n.as_str(), v.as_str())));
    Data {
        receiver: notification.receiver.clone(),
        status: if firing { "firing" } else { "resolved" }.to_owned(),
        alerts: alerts.iter().map(alert_data).collect(),
        notification_reason: notification.reason.as_str().to_owned(),
        group_labels: notification.group_labels.clone(),
        common_labels: common_labels(alerts),
        common_annotations: texts(&common_annotations(alerts)),
        route_labels: texts(&notification.route_labels),
        external_url: external_url.to_owned(),
    }
}

fn alert_data(told: &Told) -> Alert {
    let alert = &told.alert;
    let annotations = alert.annotations.iter().map(|(n, v)| (n.as_str(), v.as_str()));
    let ends_at = alert.ends_at.filter(|_| told.resolved);
    Alert {
        status: if told.resolved { "resolved" } else { "firing" }.to_owned(),
        labels: alert.labels.clone(),
        annotations: Labels::from_pairs(annotations),
        starts_at: Moment::from_millis(alert.starts_at),
        ends_at: ends_at.map_or_else(Moment::zero, Moment::from_millis),
        generator_url: alert.generator_url.clone(),
        fingerprint: format!("{:016x}", told.fingerprint),
    }
}

fn alert(told: &Told) -> Value {
    let alert = &told.alert;
    let ends_at = alert.ends_at.filter(|_| told.resolved);
    json!({
        "status": if told.resolved { "resolved" } else { "firing" },
        "labels": labels(&alert.labels),
        "annotations": alert.annotations,
        "startsAt": time(alert.starts_at),
        "endsAt": ends_at.map_or_else(|| NO_TIME.to_owned(), time),
        "generatorURL": alert.generator_url,
        "fingerprint": format!("{:016x}", told.fingerprint),
    })
}

fn labels(set: &Labels) -> Value {
    let pairs: Map<String, Value> = set.iter().map(|(n, v)| (n.to_owned(), v.into())).collect();
    Value::Object(pairs)
}

/// A moment as RFC 3339 in UTC; one outside of the calendar is "not set".
#[must_use]
pub fn time(at: Millis) -> String {
    Timestamp::from_millisecond(at).map_or_else(|_| NO_TIME.to_owned(), |t| t.to_string())
}

fn common_labels(alerts: &[Told]) -> Labels {
    let Some((first, rest)) = alerts.split_first() else {
        return Labels::empty();
    };
    let first = &first.alert.labels;
    first.retain(|name| rest.iter().all(|t| t.alert.labels.get(name) == first.get(name)))
}

fn common_annotations(alerts: &[Told]) -> BTreeMap<String, String> {
    let Some((first, rest)) = alerts.split_first() else {
        return BTreeMap::new();
    };
    let mut common = first.alert.annotations.clone();
    common.retain(|name, value| rest.iter().all(|t| t.alert.annotations.get(name) == Some(value)));
    common
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::alert::Alert;
    use crate::pipeline::Reason;

    fn told(name: &str, resolved: bool) -> Told {
        let labels = Labels::from_pairs([("alertname", "A"), ("gpu", name)]);
        let alert = Alert {
            annotations: BTreeMap::from([("summary".to_owned(), "hot".to_owned())]),
            ends_at: Some(1_500),
            ..Alert::new(labels, 1_000)
        };
        Told {
            fingerprint: alert.fingerprint(),
            alert: Arc::new(alert),
            resolved,
        }
    }

    fn notification(alerts: Vec<Told>) -> Notification {
        Notification {
            id: 1,
            receiver: "r".into(),
            integration: 0,
            attempt: 1,
            group_key: "{}:{alertname=\"A\"}".into(),
            group_labels: Labels::from_pairs([("alertname", "A")]),
            alerts,
            reason: Reason::First,
            at: 1_600,
            route_labels: BTreeMap::new(),
            last_at: 0,
        }
    }

    #[test]
    fn the_body_is_alertmanagers() {
        let body = webhook(&notification(vec![told("0", false), told("1", true)]), "http://x", 0);
        let fingerprint = format!("{:016x}", told("0", false).fingerprint);
        let want = format!(
            r#"{{"receiver":"r","status":"firing","alerts":[{{"status":"firing","labels":{{"alertname":"A","gpu":"0"}},"annotations":{{"summary":"hot"}},"startsAt":"1970-01-01T00:00:01Z","endsAt":"0001-01-01T00:00:00Z","generatorURL":"","fingerprint":"{fingerprint}"}},"#
        );
        let text = body.to_string();
        assert!(text.starts_with(&want), "{text}");
        assert_eq!(body["alerts"][1]["endsAt"], "1970-01-01T00:00:01.5Z");
        assert_eq!(body["commonLabels"], json!({"alertname": "A"}));
        assert_eq!(body["commonAnnotations"], json!({"summary": "hot"}));
        assert!(text.ends_with(
            r#""externalURL":"http://x","version":"4","groupKey":"{}:{alertname=\"A\"}","truncatedAlerts":0}"#
        ));
    }

    #[test]
    fn alerts_beyond_the_bound_are_counted() {
        let body = webhook(&notification(vec![told("0", true), told("1", true)]), "", 1);
        assert_eq!(
            (body["truncatedAlerts"].as_u64(), body["status"].as_str()),
            (Some(1), Some("resolved"))
        );
        assert_eq!(body["commonLabels"]["gpu"], "0");
    }
}
