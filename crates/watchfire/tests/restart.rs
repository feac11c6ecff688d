//! A hub killed while many alerts fire goes on as if nothing had been: nothing is lost, nothing is told twice.

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use support::{Process, Webhook};

const ALERTS: usize = 500;

/// A target with as many series as there are to be alerts.
fn exporter() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address").to_string();
    let page: String = (0..ALERTS).map(|n| format!("broken{{part=\"{n}\"}} 1\n")).collect();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let page = page.clone();
            std::thread::spawn(move || {
                let mut reader = BufReader::new(&stream);
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                    line.clear();
                }
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                    page.len()
                );
                let _ = (&stream).write_all(head.as_bytes());
                let _ = (&stream).write_all(page.as_bytes());
            });
        }
    });
    address
}

fn config(target: &str, webhook: &str) -> String {
    format!(
        "prometheus:
  global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
  scrape_configs: [{{job_name: parts, static_configs: [{{targets: ['{target}']}}]}}]
  rule_files: [rules.yml]
alertmanager:
  route: {{receiver: hook, group_by: ['...'], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}}
  receivers: [{{name: hook, webhook_configs: [{{url: '{webhook}'}}]}}]
"
    )
}

/// How often each part was told as firing, and whether anything was resolved.
fn told(webhook: &Webhook) -> (BTreeMap<String, usize>, usize) {
    let mut fired = BTreeMap::new();
    let mut resolved = 0;
    for alert in webhook.alerts() {
        if alert["labels"]["alertname"] != "Broken" {
            continue;
        }
        if alert["status"] == "resolved" {
            resolved += 1;
        } else {
            *fired.entry(alert["labels"]["part"].to_string()).or_default() += 1;
        }
    }
    (fired, resolved)
}

#[test]
fn a_killed_hub_tells_nothing_twice_and_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let webhook = Webhook::start();
    let path = folder.path().join("watchfire.yml");
    std::fs::write(&path, config(&exporter(), &webhook.url)).expect("the configuration");
    let rules = "groups: [{name: parts, rules: [{alert: Broken, expr: broken == 1}]}]\n";
    std::fs::write(folder.path().join("rules.yml"), rules).expect("the rules");
    let data = folder.path().join("data");
    let args = [
        "hub",
        "--config",
        path.to_str().expect("text"),
        "--data",
        data.to_str().expect("text"),
        "--no-shipped-rules",
    ];
    let hub = Process::start(&args).wait_ready();
    // Killed in the middle of telling: what was not told yet is told by the next one. A message whose answer the kill cut
    // off may come again, for nobody can know that it arrived.
    hub.wait_for("the first alerts", |_| {
        (told(&webhook).0.len() >= ALERTS / 5).then_some(())
    });
    hub.kill();
    let hub = Process::start(&args).wait_ready();
    hub.wait_for("all alerts", |_| (told(&webhook).0.len() == ALERTS).then_some(()));
    // The answers to the last messages are on their way into the log.
    std::thread::sleep(Duration::from_secs(2));
    let before = told(&webhook).0;
    // Killed while all of them fire and are told: nothing is said again.
    hub.kill();
    let hub = Process::start(&args).wait_ready();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) {
        assert_eq!(told(&webhook).1, 0, "nothing was mended, so nothing is resolved");
        std::thread::sleep(Duration::from_millis(500));
    }
    let firing = hub.json("/api/v1/alerts")["data"]["alerts"]
        .as_array()
        .map_or(0, Vec::len);
    assert_eq!(firing, ALERTS, "every alert fires on");
    assert_eq!(told(&webhook).0, before, "nothing is told twice");
}
