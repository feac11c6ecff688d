//! The second half of a drill: from the alert to the receipt, by the routes and receivers in force.
//!
//! An alert manager of the drill's own carries the messages, so that real groups, inhibitions and repeat times know nothing of them. It
//! waits for no company, and each alert is a message of its own. Silences hold as they do for real alerts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alerts::delivery::{Delivery, DeliveryStatus};
use alerts::manager::Options;
use alerts::{Manager, Silence, fingerprint};
use config::alertmanager::{Config, GroupBy, Integration, Route};
use model::{Clock, Millis, SystemClock};

use super::{MARK, Surroundings, seconds_of};

/// How long a message may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long to wait for the word that an alert is over.
const FAREWELL: Duration = Duration::from_secs(10);

/// What stands before every text of a drill.
const PREFIX: &str = "[DRILL] ";

/// How often to look for news.
const GLANCE: Duration = Duration::from_millis(25);

/// How long a drill's alert is valid without news; it ends by word, or by this.
const VALID: Millis = 600_000;

/// Carries a drill's alerts.
pub struct Courier {
    manager: Manager,
    /// Receivers that reach nobody: only our own log.
    silent: Vec<String>,
    external_url: String,
    told: std::sync::Mutex<Vec<alerts::Alert>>,
}

/// What came back.
pub struct Receipt {
    /// Who was told.
    pub receivers: Vec<String>,
    /// How.
    pub detail: String,
}

type Failure = (&'static str, String);

impl Courier {
    /// Makes ready. Must be called inside a tokio runtime.
    pub fn start(config: &Config, around: &Surroundings) -> Result<Self, String> {
        let mut config = config.clone();
        hasten(&mut config.route);
        let manager = Manager::start(
            &config,
            Options {
                clock: Arc::new(SystemClock) as Arc<dyn Clock>,
                data_dir: None,
                external_url: around.external_url.clone(),
                alerts_max: 10_000,
            },
        )
        .map_err(|error| format!("cannot use the receivers: {error}"))?;
        let now = SystemClock.now();
        for silence in around.alerts.silences().into_iter().filter(|s| s.ends_at > now) {
            // One that cannot be copied is over or empty: it silences nothing.
            let _ = manager.set_silence(Silence {
                id: String::new(),
                starts_at: silence.starts_at.max(now),
                ..silence
            });
        }
        let only_log = |receiver: &&config::alertmanager::Receiver| {
            receiver
                .integrations
                .iter()
                .all(|i| matches!(i, Integration::Log { .. }))
        };
        Ok(Self {
            manager,
            silent: config
                .receivers
                .iter()
                .filter(only_log)
                .map(|r| r.name.clone())
                .collect(),
            external_url: around.external_url.clone(),
            told: std::sync::Mutex::default(),
        })
    }

    /// Tells the alerts, marked, and waits for the receivers' receipts.
    pub async fn tell(&self, fired: &[rules::Alert], link: &str) -> Result<Receipt, Failure> {
        let marked: Vec<alerts::Alert> = fired.iter().map(|alert| self.marked(alert, link)).collect();
        let wanted: Vec<u64> = marked.iter().map(alerts::Alert::fingerprint).collect();
        super::lock(&self.told).extend(marked.iter().cloned());
        self.manager.send(marked);
        let begun = Instant::now();
        loop {
            let deliveries = self.of(&wanted);
            let (sent, failed): (Vec<_>, Vec<_>) = deliveries.iter().partition(|d| d.status == DeliveryStatus::Sent);
            let is_whole = wanted
                .iter()
                .all(|print| sent.iter().any(|d| d.fingerprints.contains(print)));
            if is_whole {
                return self.receipt(&sent);
            }
            if let Some(hopeless) = failed.iter().find(|d| d.status == DeliveryStatus::Failed) {
                return Err((
                    "receive",
                    format!("{} did not take it: {}", hopeless.receiver, hopeless.error),
                ));
            }
            if let Some(reason) = self.held_back(&wanted) {
                return Err(("route", reason));
            }
            if begun.elapsed() >= PATIENCE {
                let why = failed.first().map_or_else(
                    || "no receiver was told".to_owned(),
                    |d| format!("{} is tried again: {}", d.receiver, d.error),
                );
                return Err(("receive", format!("no receipt within {}: {why}", seconds_of(PATIENCE))));
            }
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// The deliveries of these alerts as firing.
    fn of(&self, wanted: &[u64]) -> Vec<Delivery> {
        let mut all = self.manager.deliveries();
        all.retain(|d| d.firing > 0 && d.fingerprints.iter().any(|print| wanted.contains(print)));
        all
    }

    fn receipt(&self, sent: &[&Delivery]) -> Result<Receipt, Failure> {
        let mut receivers: Vec<String> = sent.iter().map(|d| d.receiver.clone()).collect();
        receivers.sort();
        receivers.dedup();
        if receivers.iter().all(|receiver| self.silent.contains(receiver)) {
            let only = receivers.join(", ");
            return Err((
                "receive",
                format!(
                    "receiver {only} reaches nobody: it is the hub's own log; name one with --webhook or in alertmanager.yml"
                ),
            ));
        }
        let detail: Vec<String> = sent
            .iter()
            .filter(|d| !self.silent.contains(&d.receiver))
            .take(4)
            .map(|d| {
                let remark = if d.remark.is_empty() {
                    String::new()
                } else {
                    format!(", but {}", d.remark)
                };
                format!(
                    "{} of {} took it at attempt {} in {} ms{remark}",
                    d.integration, d.receiver, d.attempts, d.latency
                )
            })
            .collect();
        Ok(Receipt {
            receivers,
            detail: detail.join("; "),
        })
    }

    /// What keeps an alert out of every message.
    fn held_back(&self, wanted: &[u64]) -> Option<String> {
        let views = self.manager.alerts();
        let view = views
            .iter()
            .find(|view| wanted.contains(&view.fingerprint) && !view.muted.is_clear())?;
        let muted = &view.muted;
        if !muted.silenced_by.is_empty() {
            return Some("a silence keeps it out of messages, as it would the real alert".to_owned());
        }
        if !muted.muted_by.is_empty() {
            return Some(format!("its route is mute at this time: {}", muted.muted_by.join(", ")));
        }
        Some("an inhibition keeps it out of messages".to_owned())
    }

    /// The alert as a drill tells it.
    fn marked(&self, alert: &rules::Alert, link: &str) -> alerts::Alert {
        let now = SystemClock.now();
        let labels = alert.labels.with(MARK, "true");
        let mut annotations: BTreeMap<String, String> = alert
            .annotations
            .iter()
            .map(|(name, text)| {
                // An address stays one.
                let text = if name.ends_with("_url") {
                    text.clone()
                } else {
                    format!("{PREFIX}{text}")
                };
                (name.clone(), text)
            })
            .collect();
        annotations
            .entry("summary".to_owned())
            .or_insert_with(|| format!("{PREFIX}{}", labels.get("alertname").unwrap_or("")));
        annotations.insert("acknowledge_url".to_owned(), link.to_owned());
        debug_assert_ne!(
            fingerprint(&labels),
            fingerprint(&alert.labels.with(MARK, "")),
            "a drill is another alert"
        );
        alerts::Alert {
            annotations,
            ends_at: Some(now + VALID),
            generator_url: format!("{}/alerts", self.external_url),
            urgent: true,
            ..alerts::Alert::new(labels, now)
        }
    }

    /// Says of everything told that it is over, and ends.
    pub async fn end(self) {
        let mut told = std::mem::take(&mut *super::lock(&self.told));
        let now = SystemClock.now();
        for alert in &mut told {
            alert.ends_at = Some(now);
        }
        let wanted: Vec<u64> = told.iter().map(alerts::Alert::fingerprint).collect();
        let is_told = |deliveries: &[Delivery], print: &u64| {
            deliveries
                .iter()
                .any(|d| d.firing > 0 && d.status == DeliveryStatus::Sent && d.fingerprints.contains(print))
        };
        self.manager.send(told);
        let begun = Instant::now();
        while begun.elapsed() < FAREWELL {
            let deliveries = self.manager.deliveries();
            let waits = wanted.iter().filter(|print| is_told(&deliveries, print)).any(|print| {
                !deliveries
                    .iter()
                    .any(|d| d.resolved > 0 && d.fingerprints.contains(print))
            });
            if !waits {
                break;
            }
            tokio::time::sleep(GLANCE).await;
        }
        self.manager.shutdown().await;
    }
}

/// A route that waits for nobody; each alert is a message of its own.
fn hasten(route: &mut Route) {
    route.group_wait = 0;
    route.group_interval = 1_000;
    route.group_by = GroupBy::All;
    route.routes.iter_mut().for_each(hasten);
}
