//! The demonstration end to end: faults of the simulated server become alerts that reach a person, over a crash too.

mod support;

use std::time::{Duration, Instant};

use support::{Process, Webhook};

#[test]
fn faults_reach_a_webhook_and_a_crash_tells_nothing_twice() {
    let data = tempfile::tempdir().expect("a temporary folder");
    let folder = data.path().to_str().expect("a path of text").to_owned();
    let webhook = Webhook::start();
    let args = ["run", "--demo", "--data", &folder, "--webhook", &webhook.url];
    let hub = Process::start(&args).wait_ready();

    // A day of history is there, and it is marked as simulated.
    let old = hub.query("count(DCGM_FI_DEV_GPU_TEMP{simulated=\"true\"} offset 23h)");
    assert_eq!(old[0]["value"][1], "8", "all GPUs had a temperature 23 hours ago");

    // A firing alert with its GPU and what to do, soon after the start.
    let ready = Instant::now();
    let first = hub.wait_for("a firing GPU alert", |hub| {
        let alerts = hub.json("/api/v1/alerts")["data"]["alerts"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        alerts
            .into_iter()
            .find(|a| a["state"] == "firing" && a["labels"]["UUID"].is_string())
    });
    assert!(
        ready.elapsed() < Duration::from_secs(45),
        "it took {:?}",
        ready.elapsed()
    );
    assert!(
        first["labels"]["gpu"].is_string() && first["annotations"]["action"].is_string(),
        "{first}"
    );

    // XID 79 from the simulated kernel reaches the webhook.
    let xid = hub.wait_for("XID 79 at the webhook", |_| {
        webhook.named("GpuXidFatal", "firing").into_iter().next()
    });
    assert_eq!(xid["labels"]["xid"], "79");
    assert_eq!(xid["labels"]["simulated"], "true");
    hub.wait_for("the lost GPU at the webhook", |_| {
        webhook.named("GpuLost", "firing").into_iter().next()
    });
    hub.wait_for("the OOM kill at the webhook", |_| {
        webhook.named("HostOomKill", "firing").into_iter().next()
    });
    let alive = hub.query("count(DCGM_FI_DEV_GPU_TEMP{simulated=\"true\"})");
    assert_eq!(alive[0]["value"][1], "7", "seven GPUs keep reporting");

    no_alert_on_our_own_series_is_dead(&hub);

    // A crash: history and the firing state come back, and what was told is not told again.
    let count = |hub: &Process| -> f64 {
        let rows = hub.query("sum(count_over_time(DCGM_FI_DEV_POWER_USAGE{simulated=\"true\"}[23h]))");
        rows[0]["value"][1]
            .as_str()
            .and_then(|v| v.parse().ok())
            .expect("a number")
    };
    let lost = |hub: &Process| {
        let rows = hub.query("watchfire_gpu_up{simulated=\"true\", state=\"lost\"}");
        rows.first()
            .map(|row| row["metric"].clone())
            .filter(|labels| labels["UUID"].is_string())
    };
    let who = hub.wait_for("the lost GPU's name", lost);
    let (samples, told) = (count(&hub), webhook.named("GpuLost", "firing").len());
    hub.kill();
    let hub = Process::start(&args).wait_ready();
    assert!(
        count(&hub) >= samples * 0.99,
        "the history is there again: {} of {samples}",
        count(&hub)
    );
    hub.wait_for("the firing state after the crash", |hub| {
        (!hub
            .query("ALERTS{alertname=\"GpuLost\", alertstate=\"firing\"}")
            .is_empty())
        .then_some(())
    });
    hub.wait_for("a scrape after the crash", |hub| {
        (!hub
            .query("timestamp(watchfire_gpus_present{simulated=\"true\"}) > time() - 10")
            .is_empty())
        .then_some(())
    });
    assert_eq!(
        lost(&hub).as_ref(),
        Some(&who),
        "a GPU that cannot tell its name any more keeps it"
    );
    // Long enough for a group that believed itself new to speak.
    std::thread::sleep(Duration::from_secs(20));
    assert_eq!(
        webhook.named("GpuLost", "firing").len(),
        told,
        "no second notification for the same firing"
    );
    assert!(
        webhook.named("GpuLost", "resolved").is_empty(),
        "nothing is resolved by a crash"
    );
    assert!(hub.stop().success());
}

/// Alerts on what Watchfire and its GPU page show can fire wherever they show it: a name that differs between the one who
/// counts and the rule is found here.
fn no_alert_on_our_own_series_is_dead(hub: &Process) {
    let address = format!("http://{}", hub.address);
    let output = support::answer(&["rules", "prove", "--hub", &address, "--json"]);
    let verdicts: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).expect("a list of verdicts");
    assert!(verdicts.len() > 50, "{}", support::stderr(&output));
    let ours = |file: &str| file.ends_with("watchfire.yml") || file.ends_with("gpu.yml");
    let dead: Vec<_> = verdicts
        .iter()
        .filter(|v| v["verdict"] == "cannot_fire" && v["file"].as_str().is_some_and(ours))
        .collect();
    assert!(dead.is_empty(), "{dead:#?}");
}
