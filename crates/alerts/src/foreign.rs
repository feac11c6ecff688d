//! Foreign Alertmanagers: our rules' alerts go to them too, as Prometheus sends its own.
//!
//! Each has a queue with a bound and a task: newer news of an alert takes the place of older, batches go out one after
//! another, and one that fails is tried again with growing pauses. What does not fit, and what failed too often, is
//! dropped and counted: rules tell what still holds again and again.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use config::prometheus::{AlertingConfig, AlertmanagerConfig};
use config::relabel::{self, RelabelConfig};
use model::labels::{Labels, LabelsBuilder};
use model::{Clock, Family, Kind};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::alert::Alert;
use crate::payload::time;
use crate::receiver::{Line, Request, unbuilt};

/// The most alerts that wait for one Alertmanager.
pub const QUEUE_MAX: usize = 10_000;
/// The most alerts in one message.
const BATCH_MAX: usize = 256;
/// So many attempts at a batch, then it is dropped.
const ATTEMPTS_MAX: u32 = 6;
/// First pause after a failed attempt, in milliseconds; twice as long after each further one.
const PAUSE_FIRST: u64 = 500;
/// How long the end waits for what is queued.
const FAREWELL: Duration = Duration::from_secs(3);

/// Sends alerts to foreign Alertmanagers. Cheap to clone.
#[derive(Clone)]
pub struct Notifier {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    config: AlertingConfig,
    external_labels: Labels,
    peers: Vec<Peer>,
}

/// One Alertmanager.
struct Peer {
    queue: Arc<Queue>,
    alert_relabel: Vec<RelabelConfig>,
    task: JoinHandle<()>,
}

struct Queue {
    /// Where to send; may hold credentials.
    url: String,
    /// The same to be shown.
    shown: String,
    line: Line,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    news: Notify,
}

#[derive(Default)]
struct State {
    /// Fingerprints in the order of their first news.
    order: VecDeque<u64>,
    waiting: HashMap<u64, Value>,
    sending: usize,
    sent: u64,
    errors: u64,
    dropped: u64,
    last_error: String,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves it whole: every change in it is.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Notifier {
    /// One that knows nobody yet.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            shared: Arc::new(Shared {
                clock,
                current: Mutex::default(),
            }),
        }
    }

    /// Sends to the Alertmanagers of a configuration from now on. Must be called inside a tokio runtime.
    ///
    /// Gives what cannot be done of it, a sentence each: kinds of discovery that are not built, addresses that are none.
    pub fn apply(&self, config: &AlertingConfig, external_labels: &Labels) -> Vec<String> {
        let mut current = lock(&self.shared.current);
        if current.config == *config && current.external_labels == *external_labels {
            return Vec::new();
        }
        let mut remarks = Vec::new();
        let mut peers = Vec::new();
        for group in &config.alertmanagers {
            if !group.discovery.is_empty() {
                remarks.push(
                    "alertmanagers are found by static_configs only; other discovery is not built yet".to_owned(),
                );
            }
            if let Some(what) = unbuilt(&group.http) {
                remarks.push(format!("alertmanagers: {what} is not built yet"));
                continue;
            }
            for url in addresses(group) {
                peers.push(self.peer(url, group, config));
            }
        }
        for old in std::mem::replace(&mut current.peers, peers) {
            old.task.abort();
        }
        current.config = config.clone();
        current.external_labels = external_labels.clone();
        remarks
    }

    fn peer(&self, url: String, group: &AlertmanagerConfig, config: &AlertingConfig) -> Peer {
        let shown = reqwest::Url::parse(&url).map_or_else(
            |_| url.clone(),
            |mut parsed| {
                // Neither fails for an address of the web.
                let _ = parsed.set_password(None);
                let _ = parsed.set_username("");
                parsed.to_string()
            },
        );
        let queue = Arc::new(Queue {
            url,
            shown,
            line: Line::new(group.http.clone(), group.timeout, Arc::default(), ""),
            clock: Arc::clone(&self.shared.clock),
            state: Mutex::default(),
            news: Notify::new(),
        });
        let alert_relabel = config.alert_relabel_configs.iter().chain(&group.alert_relabel_configs);
        Peer {
            task: tokio::spawn(work(Arc::clone(&queue))),
            alert_relabel: alert_relabel.cloned().collect(),
            queue,
        }
    }

    /// Queues news of alerts, from any thread.
    pub fn send(&self, alerts: &[Alert]) {
        let current = lock(&self.shared.current);
        for peer in &current.peers {
            let mut state = lock(&peer.queue.state);
            for alert in alerts {
                if let Some((fingerprint, value)) = outgoing(alert, &current.external_labels, &peer.alert_relabel) {
                    state.push(fingerprint, value);
                }
            }
            drop(state);
            peer.queue.news.notify_one();
        }
    }

    /// Waits a little for what is queued, then ends.
    pub async fn shutdown(&self) {
        let peers = std::mem::take(&mut lock(&self.shared.current).peers);
        let quiet = async {
            while peers.iter().any(|peer| lock(&peer.queue.state).length() > 0) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        // What is left then is lost; rules tell it again after the next start.
        drop(tokio::time::timeout(FAREWELL, quiet).await);
        for peer in peers {
            peer.task.abort();
        }
    }

    /// The metrics, in Prometheus' names.
    #[must_use]
    pub fn families(&self) -> Vec<Family> {
        let current = lock(&self.shared.current);
        let mut found = Family::new(
            "prometheus_notifications_alertmanagers_discovered",
            Kind::Gauge,
            "Foreign Alertmanagers that are told of alerts.",
        );
        found.push(Vec::new(), current.peers.len() as f64);
        let mut capacity = Family::new(
            "prometheus_notifications_queue_capacity",
            Kind::Gauge,
            "The most alerts that wait for one foreign Alertmanager.",
        );
        capacity.push(Vec::new(), QUEUE_MAX as f64);
        let of = |name: &str, kind, help: &str, value: fn(&State) -> u64| {
            let mut family = Family::new(name, kind, help);
            for peer in &current.peers {
                let labels = vec![("alertmanager", peer.queue.shown.clone())];
                family.push(labels, value(&lock(&peer.queue.state)) as f64);
            }
            family
        };
        let length = |state: &State| state.length() as u64;
        vec![
            of(
                "prometheus_notifications_sent_total",
                Kind::Counter,
                "Alerts that a foreign Alertmanager took.",
                |s| s.sent,
            ),
            of(
                "prometheus_notifications_errors_total",
                Kind::Counter,
                "Alerts that a foreign Alertmanager did not take.",
                |s| s.errors,
            ),
            of(
                "prometheus_notifications_dropped_total",
                Kind::Counter,
                "Alerts dropped because the queue was full or attempts failed again and again.",
                |s| s.dropped,
            ),
            of(
                "prometheus_notifications_queue_length",
                Kind::Gauge,
                "Alerts that wait for a foreign Alertmanager.",
                length,
            ),
            capacity,
            found,
        ]
    }

    /// Every Alertmanager that is told, with why the last attempt failed; empty when it did not.
    #[must_use]
    pub fn peers(&self) -> Vec<(String, String)> {
        let current = lock(&self.shared.current);
        let peers = current.peers.iter();
        peers
            .map(|p| (p.queue.shown.clone(), lock(&p.queue.state).last_error.clone()))
            .collect()
    }
}

impl State {
    fn length(&self) -> usize {
        self.order.len() + self.sending
    }

    fn push(&mut self, fingerprint: u64, value: Value) {
        if self.waiting.insert(fingerprint, value).is_some() {
            return;
        }
        self.order.push_back(fingerprint);
        if self.order.len() > QUEUE_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.waiting.remove(&oldest);
            self.dropped += 1;
        }
    }

    fn batch(&mut self) -> Vec<Value> {
        let count = self.order.len().min(BATCH_MAX);
        let batch: Vec<u64> = self.order.drain(..count).collect();
        let batch: Vec<Value> = batch.iter().filter_map(|f| self.waiting.remove(f)).collect();
        self.sending = batch.len();
        batch
    }
}

async fn work(queue: Arc<Queue>) {
    loop {
        let batch = lock(&queue.state).batch();
        if batch.is_empty() {
            queue.news.notified().await;
            continue;
        }
        let count = batch.len() as u64;
        let is_taken = queue.tell(&Value::Array(batch)).await;
        let mut state = lock(&queue.state);
        state.sending = 0;
        if is_taken {
            state.sent += count;
        } else {
            state.dropped += count;
        }
    }
}

impl Queue {
    /// Whether the batch was taken, at once or later.
    async fn tell(&self, batch: &Value) -> bool {
        let mut pause = PAUSE_FIRST;
        for attempt in 1..=ATTEMPTS_MAX {
            self.line.memory().now = self.clock.now();
            let Err(failure) = self.line.tell(Request::json(self.url.clone(), batch), &[429]).await else {
                lock(&self.state).last_error.clear();
                return true;
            };
            let message = failure.problem.message;
            tracing::warn!(
                target: "watchfire::alerts",
                alertmanager = self.shown,
                attempt,
                retried = failure.retry && attempt < ATTEMPTS_MAX,
                error = message,
                "a foreign Alertmanager did not take alerts"
            );
            {
                let mut state = lock(&self.state);
                state.errors += batch.as_array().map_or(0, Vec::len) as u64;
                state.last_error = message;
            }
            if !failure.retry {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(pause)).await;
            pause *= 2;
        }
        false
    }
}

/// The addresses of a group, after its rules.
fn addresses(group: &AlertmanagerConfig) -> Vec<String> {
    let path = format!("/{}/api/v2/alerts", group.path_prefix.trim_matches('/')).replace("//", "/");
    let mut out = Vec::new();
    for config in &group.static_configs {
        for target in &config.targets {
            let mut labels = LabelsBuilder::new();
            for (name, value) in &config.labels {
                labels.set(name, value);
            }
            labels.set("__address__", target);
            labels.set("__scheme__", &group.scheme);
            labels.set("__alerts_path__", &path);
            if relabel::apply(&group.relabel_configs, &mut labels) {
                let labels = labels.build();
                let get = |name| labels.get(name).unwrap_or("");
                out.push(format!(
                    "{}://{}{}",
                    get("__scheme__"),
                    get("__address__"),
                    get("__alerts_path__")
                ));
            }
        }
    }
    out
}

/// An alert as it goes out; `None` when rules drop it.
fn outgoing(alert: &Alert, external: &Labels, rules: &[RelabelConfig]) -> Option<(u64, Value)> {
    let mut labels = LabelsBuilder::new();
    for (name, value) in external.iter().chain(alert.labels.iter()) {
        labels.set(name, value);
    }
    if !relabel::apply(rules, &mut labels) {
        return None;
    }
    let labels = labels.build();
    if labels.is_empty() {
        return None;
    }
    let pairs: Map<String, Value> = labels.iter().map(|(n, v)| (n.to_owned(), v.into())).collect();
    let annotations: BTreeMap<&String, &String> = alert.annotations.iter().collect();
    let mut value = json!({
        "labels": pairs,
        "annotations": annotations,
        "startsAt": time(alert.starts_at),
        "generatorURL": alert.generator_url,
    });
    if let Some(end) = alert.ends_at {
        value["endsAt"] = time(end).into();
    }
    Some((crate::alert::fingerprint(&labels), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> AlertingConfig {
        let text = format!("alerting: {text}");
        config::prometheus::Config::parse("test", &text)
            .expect("a configuration")
            .alerting
    }

    #[test]
    fn addresses_follow_scheme_prefix_and_rules() {
        let all = |text| addresses(&config(text).alertmanagers[0]);
        assert_eq!(
            all("{alertmanagers: [{static_configs: [{targets: ['a:9093', 'b:9093']}]}]}"),
            ["http://a:9093/api/v2/alerts", "http://b:9093/api/v2/alerts"]
        );
        assert_eq!(
            all(
                "{alertmanagers: [{scheme: https, path_prefix: /am/, static_configs: [{targets: ['a:1']}], relabel_configs: [{target_label: __address__, replacement: 'c:2'}]}]}"
            ),
            ["https://c:2/am/api/v2/alerts"]
        );
    }

    #[test]
    fn alerts_get_external_labels_and_rules() {
        let alert = Alert {
            ends_at: Some(2_000),
            ..Alert::new(Labels::from_pairs([("alertname", "A"), ("site", "own")]), 1_000)
        };
        let external = Labels::from_pairs([("site", "x"), ("replica", "1")]);
        let rules = config(
            "{alert_relabel_configs: [{regex: replica, action: labeldrop}, {source_labels: [alertname], regex: B, action: drop}]}",
        );
        let rules = rules.alert_relabel_configs;
        let (_, value) = outgoing(&alert, &external, &rules).expect("kept");
        assert_eq!(value["labels"], json!({"alertname": "A", "site": "own"}));
        assert_eq!(
            (&value["startsAt"], &value["endsAt"]),
            (&json!("1970-01-01T00:00:01Z"), &json!("1970-01-01T00:00:02Z"))
        );
        let other = Alert::new(Labels::from_pairs([("alertname", "B")]), 1_000);
        assert_eq!(outgoing(&other, &external, &rules), None);
    }

    #[test]
    fn a_full_queue_drops_the_oldest_and_news_takes_the_place_of_older_news() {
        let mut state = State::default();
        for n in 0..=QUEUE_MAX as u64 {
            state.push(n, json!(n));
        }
        state.push(5, json!("newer"));
        assert_eq!((state.length(), state.dropped), (QUEUE_MAX, 1));
        let batch = state.batch();
        assert_eq!(
            (batch.len(), &batch[0], &batch[4]),
            (BATCH_MAX, &json!(1), &json!("newer"))
        );
    }
}
