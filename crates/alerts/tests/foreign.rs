//! Our alerts at foreign Alertmanagers: a fake that fails at first, and a real one.
//!
//! The real one comes from `tests/prepare.sh`; without it that test says so and passes.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use alerts::Alert;
use alerts::foreign::Notifier;
use config::prometheus::{AlertingConfig, Config};
use model::labels::Labels;
use model::{Clock, SystemClock};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

fn config(address: &str) -> AlertingConfig {
    let text = format!("alerting: {{alertmanagers: [{{static_configs: [{{targets: ['{address}']}}]}}]}}");
    Config::parse("test", &text).expect("a configuration").alerting
}

fn firing(name: &str) -> Alert {
    let now = SystemClock.now();
    Alert {
        ends_at: Some(now + 60_000),
        annotations: [("summary".to_owned(), "hot".to_owned())].into(),
        ..Alert::new(Labels::from_pairs([("alertname", name), ("gpu", "3")]), now)
    }
}

fn figure(notifier: &Notifier, name: &str) -> f64 {
    let families = notifier.families();
    let family = families.iter().find(|f| f.name == name).expect("a family");
    family.metrics.iter().map(|m| m.value).sum()
}

/// One that answers with the codes, then 200, and keeps what it took.
async fn fake(codes: &[u16]) -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let (taken, mut codes) = (Arc::new(Mutex::new(Vec::new())), codes.to_vec());
    let kept = Arc::clone(&taken);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = Vec::new();
            let body = loop {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                if let Some((head, body)) = text.split_once("\r\n\r\n")
                    && let Some(length) = head.to_lowercase().split("content-length: ").nth(1)
                    && body.len() >= length.lines().next().and_then(|l| l.parse().ok()).unwrap_or(0)
                {
                    assert!(head.starts_with("POST /api/v2/alerts "), "{head}");
                    break serde_json::from_str::<Value>(body).expect("JSON");
                }
                if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                    return;
                }
            };
            let code = if codes.is_empty() { 200 } else { codes.remove(0) };
            if code == 200 {
                kept.lock().expect("no panic").push(body);
            }
            let answer = format!("HTTP/1.1 {code} X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.expect("written");
        }
    });
    (address, taken)
}

#[tokio::test]
async fn what_is_not_taken_is_sent_again() {
    let (address, taken) = fake(&[503, 429]).await;
    let notifier = Notifier::new(Arc::new(SystemClock));
    assert!(
        notifier
            .apply(&config(&address), &Labels::from_pairs([("site", "x")]))
            .is_empty()
    );
    notifier.send(&[firing("A"), firing("B")]);
    for _ in 0..500 {
        if !taken.lock().expect("no panic").is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    notifier.shutdown().await;
    let bodies = taken.lock().expect("no panic").clone();
    assert_eq!(bodies[0].as_array().map(Vec::len), Some(2));
    assert_eq!(bodies[0][0]["labels"]["site"], "x");
    assert_eq!(bodies[0][0]["annotations"]["summary"], "hot");
}

#[tokio::test]
async fn what_is_refused_is_dropped_and_counted() {
    let (address, taken) = fake(&[400]).await;
    let notifier = Notifier::new(Arc::new(SystemClock));
    notifier.apply(&config(&address), &Labels::empty());
    notifier.send(&[firing("A")]);
    for _ in 0..500 {
        if figure(&notifier, "prometheus_notifications_dropped_total") > 0.0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(figure(&notifier, "prometheus_notifications_errors_total"), 1.0);
    assert!(notifier.peers()[0].1.contains("unexpected status code 400"));
    notifier.send(&[firing("B")]);
    for _ in 0..500 {
        if figure(&notifier, "prometheus_notifications_sent_total") > 0.0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(figure(&notifier, "prometheus_notifications_queue_length"), 0.0);
    assert_eq!(taken.lock().expect("no panic")[0][0]["labels"]["alertname"], "B");
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_real_alertmanager_takes_our_alerts() {
    let name = "prometheus-alertmanager";
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/tools/bin")
        .join(name);
    let places = [own, PathBuf::from("/usr/bin").join(name)];
    // Debian's reads its templates from there and nowhere else.
    let is_whole = PathBuf::from("/usr/share/prometheus/alertmanager/default.tmpl").is_file();
    let Some(program) = places.iter().find(|p| p.is_file() && is_whole) else {
        println!("skipped: no {name}; tests/prepare.sh brings it");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("alertmanager.yml");
    std::fs::write(&file, "route: {receiver: r}\nreceivers: [{name: r}]\n").expect("written");
    let port = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a free port")
        .local_addr()
        .expect("an address")
        .port();
    let address = format!("127.0.0.1:{port}");
    let child = Command::new(program)
        .arg(format!("--config.file={}", file.display()))
        .arg(format!("--storage.path={}", folder.path().join("data").display()))
        .arg(format!("--web.listen-address={address}"))
        .arg("--cluster.listen-address=")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _child = Killed(child.expect("it starts"));
    let notifier = Notifier::new(Arc::new(SystemClock));
    notifier.apply(&config(&address), &Labels::from_pairs([("site", "x")]));
    // It may not listen yet: the first attempts fail, and a later one is taken.
    notifier.send(&[firing("A")]);
    let client = reqwest::Client::new();
    for _ in 0..300 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let Ok(answer) = client.get(format!("http://{address}/api/v2/alerts")).send().await else {
            continue;
        };
        let alerts: Value = serde_json::from_str(&answer.text().await.expect("a body")).expect("JSON");
        if alerts[0]["labels"]["alertname"] == "A" {
            assert_eq!(
                (&alerts[0]["labels"]["site"], &alerts[0]["annotations"]["summary"]),
                (&"x".into(), &"hot".into())
            );
            notifier.shutdown().await;
            return;
        }
    }
    panic!("it took nothing: {:?}", notifier.peers());
}
