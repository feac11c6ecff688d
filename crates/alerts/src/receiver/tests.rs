//! Every kind against a server that records what it is told.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::config::alertmanager::Config;
use model::labels::Labels;
use serde_json::{Value, json};

use super::*;
use crate::alert::Alert;
use crate::delivery::Reason;
use crate::pipeline;

mod fake;
mod kinds;
mod mail;
mod policy;
mod texts;

use fake::{Asked, Fake};

/// 2023-11-14T22:13:20Z
const NOW: Millis = 1_700_000_000_000;

fn told(gpu: &str, resolved: bool) -> Told {
    let labels = Labels::from_pairs([
        ("alertname", "GpuHot"),
        ("gpu", gpu),
        ("severity", "critical"),
        ("instance", "node-1"),
    ]);
    let annotations = [
        ("summary", "GPU <b>is</b> hot"),
        ("description", "It is at 91 °C."),
        ("action", "Look at the fans."),
        ("runbook_url", "https://run.example/GpuHot"),
    ];
    let alert = Alert {
        annotations: annotations.map(|(n, v)| (n.to_owned(), v.to_owned())).into(),
        ends_at: Some(NOW - 1_000),
        generator_url: "http://hub.example/g".to_owned(),
        ..Alert::new(labels, NOW - 60_000)
    };
    Told {
        fingerprint: alert.fingerprint(),
        alert: Arc::new(alert),
        resolved,
    }
}

fn notification(alerts: Vec<Told>) -> Notification {
    Notification {
        id: 7,
        receiver: "r".into(),
        integration: 0,
        attempt: 1,
        group_key: "{}:{alertname=\"GpuHot\"}".into(),
        group_labels: Labels::from_pairs([("alertname", "GpuHot")]),
        alerts,
        reason: pipeline::Reason::First,
        at: NOW,
        route_labels: BTreeMap::new(),
        last_at: 0,
    }
}

fn firing() -> Notification {
    notification(vec![told("0", false), told("1", false)])
}

fn resolved() -> Notification {
    notification(vec![told("0", true)])
}

/// The first way of a receiver configured so; `URL` is the fake's.
fn sender(integration: &str, url: &str) -> Arc<Sender> {
    let text = format!(
        "route: {{receiver: r}}\nreceivers:\n- name: r\n  {}\n",
        integration.replace("URL", url)
    );
    let config = Config::parse("test", &text).unwrap_or_else(|e| panic!("{e}"));
    let senders = build(&config, "http://hub.example").expect("built");
    Arc::clone(&senders["r"][0])
}

/// What a receiver asks when it tells a message, and how it went.
async fn tell(integration: &str, answers: &[(u16, &str)], notification: &Notification) -> (Vec<Asked>, Receipt) {
    let fake = Fake::start(answers).await;
    let receipt = sender(integration, &fake.url).send(notification).await;
    (fake.asked(), receipt)
}

/// Whether `got` has everything that `want` says; lists must be of one length.
fn holds(got: &Value, want: &Value) -> bool {
    match (got, want) {
        (Value::Object(got), Value::Object(want)) => want
            .iter()
            .all(|(key, want)| got.get(key).is_some_and(|got| holds(got, want))),
        (Value::Array(got), Value::Array(want)) => {
            got.len() == want.len() && got.iter().zip(want).all(|(got, want)| holds(got, want))
        }
        (got, want) => got == want,
    }
}

#[track_caller]
fn assert_holds(got: &Value, want: &Value) {
    assert!(holds(got, want), "got {got:#}\nwant {want:#}");
}
