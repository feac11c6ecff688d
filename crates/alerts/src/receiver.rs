//! Receivers: the last step of a message. A kind is a file here; kinds without one are refused by name.

use std::collections::HashMap;
use std::sync::Arc;

use config::alertmanager::{self, Integration};

use crate::delivery::Outcome;
use crate::engine::Notification;
use crate::error::Error;

mod client;
pub mod log;
pub mod webhook;

use webhook::Webhook;

/// A way to tell, ready to use.
#[derive(Debug)]
pub enum Sender {
    /// A POST of Alertmanager's JSON.
    Webhook(Box<Webhook>),
    /// A line per alert in our own log.
    Log,
}

/// The ways of every receiver, by name.
pub type Senders = HashMap<String, Vec<Arc<Sender>>>;

/// Makes every receiver of a configuration ready.
///
/// # Errors
///
/// [`Error::Kind`] and [`Error::Feature`]: a receiver that would stay silent is refused at the start.
pub fn build(config: &alertmanager::Config, external_url: &str) -> Result<Senders, Error> {
    let mut senders = Senders::new();
    for receiver in &config.receivers {
        let own: Result<Vec<_>, Error> = receiver
            .integrations
            .iter()
            .map(|integration| Sender::new(&receiver.name, integration, external_url).map(Arc::new))
            .collect();
        senders.insert(receiver.name.clone(), own?);
    }
    Ok(senders)
}

impl Sender {
    fn new(receiver: &str, integration: &Integration, external_url: &str) -> Result<Self, Error> {
        match integration {
            Integration::Webhook(webhook) => {
                let webhook = Webhook::new(receiver, webhook, external_url)?;
                Ok(Self::Webhook(Box::new(webhook)))
            }
            Integration::Log { .. } => Ok(Self::Log),
            Integration::Other { key, .. } => Err(Error::Kind {
                receiver: receiver.to_owned(),
                kind: (*key).to_owned(),
            }),
        }
    }

    /// The kind, as in `webhook[0]`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Webhook(_) => "webhook",
            Self::Log => "log",
        }
    }

    /// Where it tells, fit to be shown: neither path nor credentials. Empty where there is no address.
    pub async fn address(&self) -> String {
        match self {
            Self::Webhook(webhook) => webhook.address().await,
            Self::Log => String::new(),
        }
    }

    /// Tells. Never panics and always ends, at the latest after the request's time.
    pub async fn send(&self, notification: &Notification) -> Outcome {
        match self {
            Self::Webhook(webhook) => webhook.send(notification).await,
            Self::Log => {
                log::send(notification);
                Outcome::Sent
            }
        }
    }
}
