//! The whole, with a real receiver on loopback: what arrives, what is tried again, what a restart keeps.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use alerts::delivery::DeliveryStatus;
use alerts::manager::Options;
use alerts::{Alert, Error, Manager};
use config::alertmanager::{Config, Integration, WebhookConfig};
use model::labels::Labels;
use model::{Clock, SystemClock};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A receiver that remembers bodies and answers with the given codes, then 200.
struct Receiver {
    url: String,
    bodies: Arc<Mutex<Vec<Value>>>,
}

impl Receiver {
    async fn start(codes: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!(
            "http://{}/hook?token=hunter2",
            listener.local_addr().expect("an address")
        );
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let codes = Arc::new(Mutex::new(codes.to_vec()));
        let kept = Arc::clone(&bodies);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&kept), Arc::clone(&codes)));
            }
        });
        Self { url, bodies }
    }

    fn count(&self) -> usize {
        self.bodies.lock().expect("no panic").len()
    }

    async fn wait(&self, count: usize) {
        for _ in 0..500 {
            if self.count() >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{} bodies came, {count} were expected", self.count());
    }
}

async fn serve(mut stream: TcpStream, bodies: Arc<Mutex<Vec<Value>>>, codes: Arc<Mutex<Vec<u16>>>) {
    let mut buffer = Vec::new();
    loop {
        let body = loop {
            if let Some(body) = body(&buffer) {
                break body;
            }
            if stream.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
                return;
            }
        };
        bodies
            .lock()
            .expect("no panic")
            .push(serde_json::from_slice(&body).expect("JSON"));
        buffer.clear();
        let code = {
            let mut codes = codes.lock().expect("no panic");
            if codes.is_empty() { 200 } else { codes.remove(0) }
        };
        let answer = format!("HTTP/1.1 {code} X\r\nContent-Length: 4\r\n\r\noops");
        stream.write_all(answer.as_bytes()).await.expect("written");
    }
}

/// The body of a whole request, once it is there.
fn body(request: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(request);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|l| {
        let (name, value) = l.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.parse::<usize>().ok())?
    })?;
    (body.len() >= length).then(|| body.as_bytes().to_vec())
}

fn config(url: &str, group_interval: &str) -> Config {
    let text = format!(
        "route: {{receiver: r, group_by: [alertname], group_wait: 0s, group_interval: {group_interval}, repeat_interval: 1h}}\n\
         receivers: [{{name: r, webhook_configs: [{{url: '{url}'}}]}}]"
    );
    Config::parse("test", &text).expect("a configuration")
}

fn options(data_dir: Option<&std::path::Path>) -> Options {
    Options {
        clock: Arc::new(SystemClock),
        data_dir: data_dir.map(Into::into),
        external_url: "http://hub".into(),
        alerts_max: 1_000,
    }
}

fn firing(name: &str) -> Alert {
    let now = SystemClock.now();
    Alert {
        ends_at: Some(now + 600_000),
        ..Alert::new(Labels::from_pairs([("alertname", name), ("gpu", "3")]), now)
    }
}

#[tokio::test]
async fn an_alert_reaches_the_webhook_and_its_end_too() {
    let receiver = Receiver::start(&[]).await;
    let manager = Manager::start(&config(&receiver.url, "50ms"), options(None)).expect("started");
    let alert = firing("A");
    manager.send(vec![alert.clone()]);
    receiver.wait(1).await;
    assert_eq!(manager.alerts()[0].alert.name(), "A");
    assert_eq!(manager.groups()[0].key, "{}:{alertname=\"A\"}");
    let ended = Alert {
        ends_at: Some(SystemClock.now()),
        ..alert
    };
    manager.send(vec![ended]);
    receiver.wait(2).await;
    manager.shutdown().await;
    let bodies = receiver.bodies.lock().expect("no panic").clone();
    assert_eq!(
        (&bodies[0]["status"], &bodies[1]["status"]),
        (&"firing".into(), &"resolved".into())
    );
    assert_eq!(bodies[0]["externalURL"], "http://hub");
    assert_eq!(manager.deliveries().len(), 2);
    assert_eq!(manager.stats().sent, 2);
}

#[tokio::test]
async fn a_server_error_is_tried_again_and_a_client_error_is_not() {
    let receiver = Receiver::start(&[503]).await;
    let manager = Manager::start(&config(&receiver.url, "1h"), options(None)).expect("started");
    manager.send(vec![firing("A")]);
    receiver.wait(2).await;
    manager.shutdown().await;
    let delivery = manager.deliveries().remove(0);
    assert_eq!((delivery.status, delivery.attempts), (DeliveryStatus::Sent, 2));

    let receiver = Receiver::start(&[400]).await;
    let manager = Manager::start(&config(&receiver.url, "1h"), options(None)).expect("started");
    manager.send(vec![firing("A")]);
    receiver.wait(1).await;
    manager.shutdown().await;
    let delivery = manager.deliveries().remove(0);
    assert_eq!((delivery.status, delivery.attempts), (DeliveryStatus::Failed, 1));
    assert_eq!(delivery.error, "unexpected status code 400: oops");
}

#[tokio::test]
async fn nothing_is_told_twice_over_a_restart_and_an_end_is_not_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let receiver = Receiver::start(&[]).await;
    let mut config = config(&receiver.url, "50ms");
    config.resolve_timeout = 300;
    let manager = Manager::start(&config, options(Some(folder.path()))).expect("started");
    let alerts = vec![firing("A"), firing("B")];
    manager.send(alerts.clone());
    receiver.wait(2).await;
    manager.shutdown().await;
    drop(manager);

    let manager = Manager::start(&config, options(Some(folder.path()))).expect("started again");
    assert_eq!(manager.alerts().len(), 2, "what was told is known from the start");
    assert_eq!(manager.deliveries().len(), 2);
    // A goes on; of B nobody hears any more.
    manager.send(vec![alerts[0].clone()]);
    receiver.wait(3).await;
    manager.shutdown().await;
    let bodies = receiver.bodies.lock().expect("no panic").clone();
    assert_eq!(bodies.len(), 3);
    assert_eq!(bodies[2]["status"], "resolved");
    assert_eq!(bodies[2]["groupLabels"]["alertname"], "B");
}

#[tokio::test]
async fn a_reload_is_whole_or_not_at_all() {
    let receiver = Receiver::start(&[]).await;
    let good = config(&receiver.url, "1h");
    let manager = Manager::start(&good, options(None)).expect("started");
    let text = "route: {receiver: r}\nreceivers: [{name: r, sns_configs: [{topic_arn: t, sigv4: {role_arn: r}}]}]";
    let bad = Config::parse("test", text).expect("a configuration");
    let error = manager.reload(&bad).expect_err("refused");
    assert_eq!(
        error.to_string(),
        "receiver \"r\": role_arn in sns_configs is not built yet"
    );
    assert!(matches!(error, Error::Feature { .. }));
    manager.send(vec![firing("A")]);
    receiver.wait(1).await;
    manager.reload(&good).expect("accepted");
    manager.send(vec![firing("B")]);
    receiver.wait(2).await;
    manager.shutdown().await;
    assert_eq!(receiver.count(), 2, "a reload tells nothing again");
}

#[tokio::test]
async fn a_receiver_that_is_not_there_does_not_show_its_secret() {
    let mut config = config("http://127.0.0.1:1/hook", "1h");
    config.receivers[0].integrations = vec![Integration::Webhook(Box::new(WebhookConfig::to(
        "http://127.0.0.1:1/hook?token=hunter2",
    )))];
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let manager = Manager::start(&config, options(None)).expect("started");
    manager.send(vec![firing("A")]);
    for _ in 0..500 {
        if !manager.deliveries().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    manager.shutdown().await;
    let lines = log.lines.lock().expect("no panic").clone();
    let line = lines
        .iter()
        .find(|l| l.contains("was not delivered"))
        .expect("a warning");
    for part in [
        "receiver=r ",
        "integration=webhook[0] ",
        "address=http://127.0.0.1:1/… ",
        "group={}:{alertname=\"A\"} ",
        "error=",
        "refused",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert!(!lines.concat().contains("hunter2"), "{lines:?}");
    let delivery = manager.deliveries().remove(0);
    assert_eq!(delivery.status, DeliveryStatus::Retrying);
    assert!(
        !delivery.error.is_empty() && !delivery.error.contains("hunter2"),
        "{}",
        delivery.error
    );
}

/// Keeps what is logged, a line an event.
#[derive(Clone, Default)]
struct Log {
    lines: Arc<Mutex<Vec<String>>>,
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("watchfire")
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Fields(String);
        impl tracing::field::Visit for Fields {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                let _ = write!(self.0, "{}={value:?} ", field.name());
            }

            fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
                let _ = write!(self.0, "{}={value} ", field.name());
            }
        }
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        self.lines.lock().expect("no panic").push(fields.0);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// Two receivers: all alerts go to `first`; nothing leads to `second`.
fn two(first: &str, second: &str) -> Config {
    let text = format!(
        "route: {{receiver: first, group_by: [alertname], group_wait: 0s, group_interval: 50ms, repeat_interval: 1h}}\n\
         receivers: [{{name: first, webhook_configs: [{{url: '{first}'}}]}}, {{name: second, webhook_configs: [{{url: '{second}'}}]}}]"
    );
    Config::parse("test", &text).expect("a configuration")
}

#[tokio::test]
async fn a_failing_receiver_is_told_about_by_another() {
    let (first, second) = (Receiver::start(&[400]).await, Receiver::start(&[]).await);
    let manager = Manager::start(&two(&first.url, &second.url), options(None)).expect("started");
    manager.send(vec![firing("A")]);
    first.wait(1).await;
    let failing = |name: &str| {
        let families = manager.families();
        let family = families
            .iter()
            .find(|f| f.name == "watchfire_receiver_up")
            .expect("a family");
        let line = family.metrics.iter().find(|m| m.labels[0].1 == name).expect("a line");
        1.0 - line.value
    };
    for _ in 0..100 {
        if failing("first") > 0.0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!((failing("first"), failing("second")), (1.0, 0.0));
    // What the shipped rule makes of that metric.
    let mut about = firing("ReceiverFailing");
    about
        .annotations
        .insert(alerts::AVOID_RECEIVER.to_owned(), "first".to_owned());
    manager.send(vec![about]);
    second.wait(1).await;
    // The group's next look tells `first` again, and it takes it now.
    first.wait(2).await;
    for _ in 0..100 {
        if failing("first") == 0.0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(failing("first"), 0.0);
    manager.shutdown().await;
    let told = second.bodies.lock().expect("no panic")[0].clone();
    assert_eq!(
        (
            told["receiver"].as_str(),
            told["alerts"][0]["labels"]["alertname"].as_str()
        ),
        (Some("second"), Some("ReceiverFailing"))
    );
    assert!(
        first
            .bodies
            .lock()
            .expect("no panic")
            .iter()
            .all(|b| b["groupLabels"]["alertname"] == "A")
    );
}

#[tokio::test]
async fn where_there_is_no_other_receiver_the_log_is_told() {
    let receiver = Receiver::start(&[]).await;
    let manager = Manager::start(&config(&receiver.url, "1h"), options(None)).expect("started");
    let mut about = firing("ReceiverFailing");
    about
        .annotations
        .insert(alerts::AVOID_RECEIVER.to_owned(), "r".to_owned());
    manager.send(vec![about]);
    for _ in 0..200 {
        if !manager.deliveries().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    manager.shutdown().await;
    let delivery = manager.deliveries().remove(0);
    assert_eq!(
        (delivery.receiver.as_str(), delivery.integration.as_str()),
        ("watchfire/log", "log[0]")
    );
    assert_eq!(receiver.count(), 0);
}

#[tokio::test]
async fn a_test_tells_how_every_way_of_a_receiver_goes() {
    let receiver = Receiver::start(&[200, 500]).await;
    let manager = Manager::start(&two(&receiver.url, &receiver.url), options(None)).expect("started");
    let good = manager.test("first").await.expect("a receiver").remove(0);
    assert_eq!((good.status, good.test, good.firing), (DeliveryStatus::Sent, true, 1));
    assert!(good.address.starts_with("http://127.0.0.1:") && good.address.ends_with("/…"));
    let bad = manager.test("second").await.expect("a receiver").remove(0);
    assert_eq!(
        (bad.status, bad.error.as_str()),
        (DeliveryStatus::Failed, "unexpected status code 500: oops")
    );
    assert!(matches!(manager.test("third").await, Err(Error::NoReceiver(name)) if name == "third"));
    assert_eq!(manager.deliveries().len(), 2);
    let told = receiver.bodies.lock().expect("no panic")[0].clone();
    assert_eq!(told["alerts"][0]["labels"]["alertname"], "WatchfireTest");
    manager.shutdown().await;
}

#[tokio::test]
async fn deliveries_are_found_by_alert_and_time() {
    let receiver = Receiver::start(&[503]).await;
    let manager = Manager::start(&config(&receiver.url, "1h"), options(None)).expect("started");
    let (a, b) = (firing("A"), firing("B"));
    let begun = SystemClock.now();
    manager.send(vec![a.clone(), b.clone()]);
    receiver.wait(3).await;
    manager.shutdown().await;
    let of_a = manager.deliveries_of(a.fingerprint(), begun);
    assert_eq!(
        (of_a.len(), of_a[0].status, of_a[0].fingerprints.as_slice()),
        (1, DeliveryStatus::Sent, &[a.fingerprint()][..])
    );
    let attempts = of_a[0].attempts + manager.deliveries_of(b.fingerprint(), begun)[0].attempts;
    assert_eq!(attempts, 3, "one of them was tried twice");
    assert!(manager.deliveries_of(a.fingerprint(), of_a[0].at + 1).is_empty());
}

#[tokio::test]
async fn a_drill_is_told_by_itself() {
    let receiver = Receiver::start(&[]).await;
    let manager = Manager::start(&config(&receiver.url, "50ms"), options(None)).expect("started");
    let drill = Alert {
        urgent: true,
        ..firing("A")
    };
    let labels = drill.labels.iter().chain([(alerts::DRILL, "d-1")]);
    let drill = Alert {
        labels: Labels::from_pairs(labels),
        ..drill
    };
    manager.send(vec![firing("A"), drill]);
    receiver.wait(2).await;
    manager.shutdown().await;
    let bodies = receiver.bodies.lock().expect("no panic").clone();
    assert!(
        bodies.iter().all(|b| b["alerts"].as_array().map(Vec::len) == Some(1)),
        "{bodies:?}"
    );
}

#[tokio::test]
async fn a_foreign_alert_survives_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let receiver = Receiver::start(&[]).await;
    let mut slow = config(&receiver.url, "50ms");
    slow.route.group_wait = 3_600_000;
    let manager = Manager::start(&slow, options(Some(folder.path()))).expect("started");
    let alert = Alert {
        external: true,
        ..firing("A")
    };
    manager.send(vec![alert.clone()]);
    // Nothing was told yet: only the alert itself can be remembered.
    manager.shutdown().await;
    drop(manager);
    let quick = config(&receiver.url, "50ms");
    let manager = Manager::start(&quick, options(Some(folder.path()))).expect("started again");
    receiver.wait(1).await;
    let known = manager.alerts().remove(0).alert;
    assert_eq!((known.external, known.ends_at), (true, alert.ends_at));
    manager.shutdown().await;
}
