//! An agent and a hub in two processes, and the clients that the field uses.

mod support;

use std::io::Write as _;
use std::process::{Command, Stdio};

use support::{Process, root, tool};

/// A hub that scrapes this address.
fn hub_of(agent: &Process, data: &tempfile::TempDir) -> Process {
    let config = data.path().join("prometheus.yml");
    let text = format!(
        "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs:\n  - job_name: box\n    static_configs: [{{targets: [\"{}\"]}}]\n",
        agent.address
    );
    std::fs::write(&config, text).expect("a file");
    let store = data.path().join("store");
    Process::start(&[
        "hub",
        "--prometheus",
        config.to_str().expect("text"),
        "--data",
        store.to_str().expect("text"),
    ])
    .wait_ready()
}

/// The target that is not the hub itself.
fn box_target(targets: &serde_json::Value) -> &serde_json::Value {
    let active = targets["data"]["activeTargets"].as_array().expect("a list");
    active
        .iter()
        .find(|t| t["scrapePool"] == "box")
        .expect("the agent is a target")
}

#[test]
fn an_agent_and_a_hub_give_what_one_process_gives() {
    let data = tempfile::tempdir().expect("a temporary folder");
    let agent = Process::start(&["agent"]).wait_ready();
    let hub = hub_of(&agent, &data);
    let rows = hub.wait_for("a scrape", |hub| {
        Some(hub.query("node_memory_MemTotal_bytes")).filter(|r| !r.is_empty())
    });
    assert_eq!(rows[0]["metric"]["job"], "box");
    assert_eq!(hub.query("up{job=\"box\"}")[0]["value"][1], "1");
    let targets = hub.json("/api/v1/targets");
    assert_eq!(box_target(&targets)["health"], "up", "{targets}");

    // The agent goes: the target is down with its reason, its series end, nothing is a zero.
    let address = agent.address;
    agent.kill();
    hub.wait_for("the target to be down", |hub| {
        (hub.query("up{job=\"box\"} == 0").len() == 1).then_some(())
    });
    assert!(
        hub.query("node_memory_MemTotal_bytes").is_empty(),
        "a series whose target is gone has ended"
    );
    let targets = hub.json("/api/v1/targets");
    let error = box_target(&targets)["lastError"].as_str().unwrap_or("").to_owned();
    assert!(!error.is_empty(), "{targets}");
    let _again = Process::start_on(address.port(), &["agent"]).wait_ready();
    hub.wait_for("the target to come back", |hub| {
        (hub.query("up{job=\"box\"} == 1").len() == 1).then_some(())
    });
}

#[test]
fn promtool_reads_our_pages_and_asks_our_api() {
    let Some(promtool) = tool("promtool") else { return };
    let data = tempfile::tempdir().expect("a temporary folder");
    let agent = Process::start(&["agent"]).wait_ready();
    let hub = hub_of(&agent, &data);
    hub.wait_for("a scrape", |hub| (!hub.query("up == 1").is_empty()).then_some(()));
    for (process, path) in [(&agent, "/metrics"), (&hub, "/metrics")] {
        let page = process.get(path).expect("a page").body;
        let mut child = Command::new(&promtool)
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("promtool runs");
        child
            .stdin
            .take()
            .expect("its input")
            .write_all(page.as_bytes())
            .expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        let text = support::stderr(&output);
        // 3 is "it parses, and something could be named better": the peers' own names among them.
        assert!(matches!(output.status.code(), Some(0 | 3)), "{text}\n{page}");
        assert!(
            !text.contains("error while linting") && !text.contains("parsing"),
            "{text}"
        );
    }
    let url = format!("http://{}", hub.address);
    for args in [
        &["query", "instant", &url, "up"][..],
        &["query", "range", &url, "sum(up)"],
        &["query", "series", "--match=up", &url],
        &["query", "labels", &url, "job"],
    ] {
        let output = Command::new(&promtool).args(args).output().expect("promtool runs");
        assert!(output.status.success(), "{args:?}: {}", support::stderr(&output));
        assert!(!support::stdout(&output).trim().is_empty(), "{args:?} prints something");
    }
}

#[test]
fn a_wrong_rule_file_refuses_the_reload_and_keeps_the_old_rules() {
    let data = tempfile::tempdir().expect("a temporary folder");
    let rules = data.path().join("rules.yml");
    let config = data.path().join("watchfire.yml");
    std::fs::write(&rules, "groups: [{name: g, rules: [{alert: Old, expr: vector(1)}]}]\n").expect("a file");
    std::fs::write(&config, "prometheus: {rule_files: [rules.yml]}\n").expect("a file");
    let store = data.path().join("store");
    let hub = Process::start(&[
        "hub",
        "--config",
        config.to_str().expect("text"),
        "--data",
        store.to_str().expect("text"),
    ])
    .wait_ready();
    let names = |hub: &Process| hub.json("/api/v1/rules").to_string();
    assert!(names(&hub).contains("\"Old\""));

    std::fs::write(&rules, "groups: [{name: g, rules: [{alert: New, expr: 'vector('}]}]\n").expect("a file");
    let answer = support::post(hub.address, "/-/reload").expect("an answer");
    assert_eq!(answer.status, 500, "{}", answer.body);
    assert!(answer.body.contains("rules.yml:1:"), "{}", answer.body);
    assert!(names(&hub).contains("\"Old\"") && !names(&hub).contains("\"New\""));

    std::fs::write(&rules, "groups: [{name: g, rules: [{alert: New, expr: vector(2)}]}]\n").expect("a file");
    assert_eq!(support::post(hub.address, "/-/reload").expect("an answer").status, 200);
    assert!(names(&hub).contains("\"New\"") && !names(&hub).contains("\"Old\""));
}

#[test]
fn the_shipped_rules_pass_their_tests_here_and_in_promtool() {
    let folder = root().join("data/rules");
    for file in [
        "gpu_test.yml",
        "host_test.yml",
        "serving_test.yml",
        "watchfire_test.yml",
    ] {
        let path = folder.join(file);
        let output = support::answer(&["test", "rules", path.to_str().expect("text")]);
        assert!(
            output.status.success(),
            "{file}:\n{}{}",
            support::stdout(&output),
            support::stderr(&output)
        );
        if let Some(promtool) = tool("promtool") {
            let output = Command::new(promtool)
                .args(["test", "rules", file])
                .current_dir(&folder)
                .output()
                .expect("promtool runs");
            assert!(output.status.success(), "{file}:\n{}", support::stderr(&output));
        }
    }
}
