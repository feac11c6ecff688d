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
