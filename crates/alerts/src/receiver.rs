//! Receivers: the last step of a message. A kind is a file here.
//!
//! ```text
//! Notification ─► Sender ─► Call (texts) ─► a kind's file ─► exchange (one request) ─► Receipt
//! ```
//!
//! What kinds share lives in [`call`] (texts, secrets, bounds), [`exchange`] (a request and its answer), [`line`]
//! (client, templates, memory) and [`client`] (HTTP as configured). Invariant: no secret, and no address but its host,
//! stands in a receipt.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use config::alertmanager::{self, Found, Integration, WebhookConfig};
use config::http::HttpClientConfig;
use model::Millis;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::delivery::{Outcome, Receipt};
use crate::engine::{AlertView, GroupView, LAST_RESORT, Notification};
use crate::error::Error;
use crate::group::Told;
use crate::pipeline::Reason;
use crate::templates::Templates;

mod call;
mod client;
mod exchange;
mod failure;
mod line;
mod mac;
mod oauth2;
mod sigv4;

mod email;
mod webhook;

mod discord;
mod gotify;
mod incidentio;
mod jira;
pub mod log;
mod mattermost;
mod msteams;
mod ntfy;
mod opsgenie;
mod pagerduty;
mod pushover;
mod rocketchat;
mod slack;
mod sns;
mod telegram;
mod victorops;
mod webex;
mod wechat;

use call::Call;
use failure::Failure;

pub(crate) use client::unbuilt;
pub(crate) use exchange::Request;
pub(crate) use line::Line;

/// A way to tell, ready to use.
#[derive(Debug)]
pub struct Sender {
    kind: &'static str,
    way: Way,
    line: Line,
    places: Arc<Semaphore>,
}

#[derive(Debug)]
enum Way {
    Webhook(Box<WebhookConfig>),
    Log,
    Table(&'static str, Box<Found>),
}

/// The ways of every receiver, by name.
pub type Senders = HashMap<String, Vec<Arc<Sender>>>;

/// Makes every receiver of a configuration ready.
///
/// # Errors
///
/// [`Error::Feature`], a receiver that would stay silent is refused at the start; [`Error::TemplateFile`] and
/// [`Error::Template`].
pub fn build(config: &alertmanager::Config, external_url: &str) -> Result<Senders, Error> {
    let templates = Arc::new(Templates::load(config)?);
    let mut senders = Senders::new();
    for receiver in &config.receivers {
        let own: Result<Vec<_>, Error> = receiver
            .integrations
            .iter()
            .map(|integration| Sender::new(&receiver.name, integration, &templates, external_url).map(Arc::new))
            .collect();
        senders.insert(receiver.name.clone(), own?);
    }
    let log = Integration::Log { send_resolved: true };
    let log = Sender::new(LAST_RESORT, &log, &templates, external_url)?;
    senders.insert(LAST_RESORT.to_owned(), vec![Arc::new(log)]);
    Ok(senders)
}

/// The most messages through one sender that are on their way or not written down yet; others wait. After a crash no
/// more than these may be told again.
const AT_ONCE: usize = 8;

impl Sender {
    fn new(
        receiver: &str,
        integration: &Integration,
        templates: &Arc<Templates>,
        external_url: &str,
    ) -> Result<Self, Error> {
        let line = |http: &HttpClientConfig, timeout: Millis| {
            Line::new(http.clone(), timeout, Arc::clone(templates), external_url)
        };
        let (way, line) = match integration {
            Integration::Webhook(webhook) => (Way::Webhook(webhook.clone()), line(&webhook.http, webhook.timeout)),
            Integration::Log { .. } => (Way::Log, line(&HttpClientConfig::default(), 0)),
            Integration::Other(settings) => {
                let timeout = settings.found.number("timeout").unwrap_or(0);
                (
                    Way::Table(settings.key, Box::new(settings.found.clone())),
                    line(&settings.http, timeout),
                )
            }
        };
        let sender = Self {
            kind: integration.kind(),
            way,
            line,
            places: Arc::new(Semaphore::new(AT_ONCE)),
        };
        match sender.unbuilt() {
            None => Ok(sender),
            Some(what) => Err(Error::Feature {
                receiver: receiver.to_owned(),
                what,
            }),
        }
    }

    /// What the settings ask for that is not built.
    fn unbuilt(&self) -> Option<&'static str> {
        if let Way::Table("sns_configs", found) = &self.way
            && found.sections("sigv4").any(|sigv4| sigv4.any(&["role_arn"]))
        {
            return Some("role_arn in sns_configs");
        }
        unbuilt(&self.line.http)
    }

    /// The kind, as in `webhook[0]`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The labels of a group's route, filled in.
    pub(crate) fn route_labels(&self, group: &GroupView, now: Millis) -> BTreeMap<String, String> {
        let told = |view: &AlertView| Told {
            alert: Arc::clone(&view.alert),
            fingerprint: view.fingerprint,
            resolved: false,
        };
        let notification = Notification {
            id: 0,
            receiver: group.receiver.clone(),
            integration: 0,
            attempt: 1,
            group_key: group.key.clone(),
            group_labels: group.labels.clone(),
            alerts: group.alerts.iter().map(told).collect(),
            reason: Reason::First,
            at: now,
            route_labels: group.route_labels.clone(),
            last_at: 0,
        };
        let none = Found::default();
        let call = Call::new(&self.line, &none, &notification);
        let filled = |(name, text): (&String, &String)| {
            let text = call.fill(call::Form::Text, "a route label", text, "");
            (name.clone(), text)
        };
        group.route_labels.iter().map(filled).collect()
    }

    /// Waits for a place on the way; to be given back once the outcome is written down.
    pub(crate) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        // The places are never closed.
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// Tells. Never panics and always ends, at the latest after the requests' time.
    pub async fn send(&self, notification: &Notification) -> Receipt {
        self.line.memory().now = notification.at;
        let none = Found::default();
        let settings = match &self.way {
            Way::Table(_, found) => found,
            Way::Webhook(_) | Way::Log => &none,
        };
        let call = Call::new(&self.line, settings, notification);
        let outcome = match self.told(&call).await {
            Ok(()) => Outcome::Sent,
            Err(failure) => failure.into(),
        };
        Receipt {
            outcome,
            address: self.line.address(),
            remark: call.remarks(),
        }
    }

    async fn told(&self, call: &Call<'_>) -> Result<(), Failure> {
        match &self.way {
            Way::Log => {
                log::send(call.notification);
                Ok(())
            }
            Way::Webhook(config) => webhook::send(call, config).await,
            Way::Table(key, _) => match *key {
                "email_configs" => email::send(call).await,
                "pagerduty_configs" => pagerduty::send(call).await,
                "opsgenie_configs" => opsgenie::send(call).await,
                "wechat_configs" => wechat::send(call).await,
                "slack_configs" => slack::send(call).await,
                "victorops_configs" => victorops::send(call).await,
                "pushover_configs" => pushover::send(call).await,
                "sns_configs" => sns::send(call).await,
                "telegram_configs" => telegram::send(call).await,
                "discord_configs" => discord::send(call).await,
                "webex_configs" => webex::send(call).await,
                "msteams_configs" => msteams::send(call).await,
                "msteamsv2_configs" => msteams::send_v2(call).await,
                "jira_configs" => jira::send(call).await,
                "incidentio_configs" => incidentio::send(call).await,
                "rocketchat_configs" => rocketchat::send(call).await,
                "mattermost_configs" => mattermost::send(call).await,
                "ntfy_configs" => ntfy::send(call).await,
                "gotify_configs" => gotify::send(call).await,
                other => Err(Failure::last(format!("BUG: nobody sends {other}"))),
            },
        }
    }
}

#[cfg(test)]
mod tests;
