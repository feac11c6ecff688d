//! Drills of the real binary: every shipped alert is fired and received, real alerts notice nothing, and what is left alone ends.

mod support;

use std::time::Duration;

use serde_json::Value;
use support::{Process, Webhook, answer, stdout};

/// A hub that tells a webhook, and where it listens.
fn hub(webhook: &Webhook) -> (Process, String, tempfile::TempDir) {
    let data = tempfile::tempdir().expect("a folder");
    let port = support::free_port();
    let folder = data.path().display().to_string();
    let hub = Process::start_on(port, &["hub", "--data", &folder, "--webhook", &webhook.url]).wait_ready();
    (hub, format!("127.0.0.1:{port}"), data)
}

fn json(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", support::stderr(output)))
}

#[test]
fn every_shipped_alert_is_fired_and_received_and_then_proven() {
    let webhook = Webhook::start();
    let (hub, address, _data) = hub(&webhook);
    let real = |name: &str| {
        webhook
            .named(name, "firing")
            .into_iter()
            .filter(|a| a["labels"]["drill"].is_null())
            .count()
    };
    hub.wait_for("the real watchdog", |_| (real("Watchdog") == 1).then_some(()));
    let output = answer(&["drill", "--all", "--json", "--hub", &address]);
    let state = json(&output);
    let failed: Vec<_> = state["alerts"]
        .as_array()
        .expect("alerts")
        .iter()
        .filter(|a| a["state"] != "passed")
        .collect();
    assert!(failed.is_empty() && output.status.success(), "{failed:#?}");
    let alerts = state["alerts"].as_array().expect("alerts");
    assert!(alerts.len() >= 90, "{} alerts", alerts.len());
    let stages: Vec<_> = alerts[0]["stages"]
        .as_array()
        .expect("stages")
        .iter()
        .map(|s| s["stage"].clone())
        .collect();
    assert_eq!(stages, ["inject", "collect", "store", "rule", "route", "receive"]);
    for alert in alerts {
        let name = alert["alert"].as_str().expect("a name");
        let told = webhook.named(name, "firing");
        let drilled = told.iter().find(|a| a["labels"]["drill"] == "true");
        let drilled = drilled.unwrap_or_else(|| panic!("{name} was not received"));
        let summary = drilled["annotations"]["summary"].as_str().unwrap_or("");
        assert!(summary.starts_with("[DRILL] "), "{name}: {summary}");
        assert!(
            webhook
                .named(name, "resolved")
                .iter()
                .any(|a| a["labels"]["drill"] == "true"),
            "{name}: nobody was told that the drill is over"
        );
    }
    // The real alert was told once, and not that it ended.
    assert_eq!(real("Watchdog"), 1);
    let ended = webhook
        .named("Watchdog", "resolved")
        .into_iter()
        .filter(|a| a["labels"]["drill"].is_null())
        .count();
    assert_eq!(ended, 0);
    // The hub's own alerts know nothing of it.
    let text = hub.json("/api/v1/alerts").to_string();
    assert!(!text.contains("\"drill\""), "{text}");
    let proof = answer(&["rules", "prove", "--json", "--hub", &address]);
    let findings = json(&proof);
    let watchdog = findings
        .as_array()
        .expect("a list")
        .iter()
        .find(|f| f["alert"] == "Watchdog");
    assert_eq!(watchdog.expect("the watchdog")["verdict"], "proven", "{findings:#}");
}

#[test]
fn a_drill_that_nobody_receives_is_no_pass() {
    let webhook = Webhook::start();
    let (hub, address, _data) = hub(&webhook);
    drop(hub);
    let gone = answer(&["drill", "Watchdog", "--hub", &address]);
    assert_eq!(gone.status.code(), Some(2), "no hub there: {}", stdout(&gone));
    let data = tempfile::tempdir().expect("a folder");
    let port = support::free_port();
    let folder = data.path().display().to_string();
    let _deaf = Process::start_on(port, &["hub", "--data", &folder]).wait_ready();
    let address = format!("127.0.0.1:{port}");
    let output = answer(&["drill", "Watchdog", "--hub", &address]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("reaches nobody"), "{}", stdout(&output));
    let unknown = answer(&["drill", "GpuLots", "--hub", &address]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(
        support::stderr(&unknown).contains("did you mean GpuLost"),
        "{}",
        support::stderr(&unknown)
    );
}

#[test]
fn a_drill_whose_client_is_killed_ends_by_itself_and_is_cleaned_up() {
    let webhook = Webhook::start();
    let (hub, address, _data) = hub(&webhook);
    // It waits for a person, who never comes.
    let mut client = support::watchfire()
        .args(["drill", "GpuLost", "--acknowledge", "10m", "--hub", &address])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the program starts");
    let drilled = |status: &str| webhook.named("GpuLost", status).into_iter().next();
    let told = hub.wait_for("the message", |_| drilled("firing"));
    let link = told["annotations"]["acknowledge_url"].as_str().expect("a link");
    assert!(link.contains("/api/watchfire/v1/drill/"), "{link}");
    client.kill().expect("it runs");
    client.wait().expect("it ends");
    hub.wait_for("the word that the drill is over", |_| drilled("resolved"));
}

#[test]
fn a_person_acknowledges_by_the_button_behind_the_link() {
    let webhook = Webhook::start();
    let (hub, address, _data) = hub(&webhook);
    let client = support::watchfire()
        .args(["drill", "GpuLost", "--acknowledge", "2m", "--json", "--hub", &address])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    let told = hub.wait_for("the message", |_| webhook.named("GpuLost", "firing").into_iter().next());
    let link = told["annotations"]["acknowledge_url"].as_str().expect("a link");
    let path = &link[link.find("/api/").expect("a path")..];
    let page = hub.get(path).expect("an answer");
    assert_eq!(page.status, 200);
    std::thread::sleep(Duration::from_millis(600));
    // Looking is no answer; pressing the button is.
    let socket = address.parse().expect("an address");
    assert_eq!(support::post(socket, path).expect("an answer").status, 200);
    let state = json(&client.wait_with_output().expect("it ends"));
    assert_eq!(state["alerts"][0]["acknowledged"], true, "{state:#}");
    assert_eq!(state["state"], "passed");
}
