//! Deliveries: what was told, when, to whom, and how it went. The last ones are kept and can be asked for.

use std::collections::VecDeque;

use model::Millis;
use serde_json::{Value, json};

/// How many deliveries are kept.
pub const DELIVERIES_MAX: usize = 1_000;
/// The most bytes of an error that are kept.
const ERROR_BYTES_MAX: usize = 500;

/// How a try to tell went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has it.
    Sent,
    /// It failed and may go better later.
    Retry(String),
    /// It failed and would fail again.
    Failed(String),
}

/// One message to one receiver, all attempts at it together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its number; later ones are greater.
    pub id: u64,
    /// When the last attempt ended, in milliseconds since the epoch.
    pub at: Millis,
    /// The receiver's name.
    pub receiver: String,
    /// The way, as `webhook[0]`.
    pub integration: String,
    /// The group's key.
    pub group_key: String,
    /// How many alerts were told as firing.
    pub firing: usize,
    /// How many alerts were told as ended.
    pub resolved: usize,
    /// Where it stands.
    pub status: DeliveryStatus,
    /// How many attempts were made.
    pub attempts: u32,
    /// How long the last attempt took, in milliseconds.
    pub latency: Millis,
    /// Why the last attempt failed; empty when it did not.
    pub error: String,
}

/// Where a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeliveryStatus {
    /// The receiver has it.
    Sent,
    /// It failed and is tried again.
    Retrying,
    /// It failed for good; the group's next look tries anew.
    Failed,
}

const STATUSES: [(&str, DeliveryStatus); 3] = [
    ("sent", DeliveryStatus::Sent),
    ("retrying", DeliveryStatus::Retrying),
    ("failed", DeliveryStatus::Failed),
];

impl DeliveryStatus {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        STATUSES.iter().find(|(_, s)| *s == self).map_or("", |(word, _)| word)
    }
}

impl Delivery {
    /// Takes an outcome in.
    pub(crate) fn take(&mut self, outcome: &Outcome) {
        (self.status, self.error) = match outcome {
            Outcome::Sent => (DeliveryStatus::Sent, String::new()),
            Outcome::Retry(error) => (DeliveryStatus::Retrying, error.clone()),
            Outcome::Failed(error) => (DeliveryStatus::Failed, error.clone()),
        };
        let mut end = self.error.len().min(ERROR_BYTES_MAX);
        while !self.error.is_char_boundary(end) {
            end -= 1;
        }
        self.error.truncate(end);
    }

    /// The form kept on disk, and the one to show.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "at": self.at,
            "receiver": self.receiver,
            "integration": self.integration,
            "groupKey": self.group_key,
            "firing": self.firing,
            "resolved": self.resolved,
            "status": self.status.as_str(),
            "attempts": self.attempts,
            "latencyMs": self.latency,
            "error": self.error,
        })
    }

    /// Takes the form kept on disk; `None` when it is not one.
    #[must_use]
    pub fn from_json(id: u64, value: &Value) -> Option<Self> {
        let text = |key: &str| Some(value[key].as_str()?.to_owned());
        let count = |key: &str| usize::try_from(value[key].as_u64()?).ok();
        let status = value["status"].as_str()?;
        Some(Self {
            id,
            at: value["at"].as_i64()?,
            receiver: text("receiver")?,
            integration: text("integration")?,
            group_key: text("groupKey")?,
            firing: count("firing")?,
            resolved: count("resolved")?,
            status: STATUSES.iter().find(|(word, _)| *word == status)?.1,
            attempts: u32::try_from(value["attempts"].as_u64()?).ok()?,
            latency: value["latencyMs"].as_i64()?,
            error: text("error")?,
        })
    }
}

/// The last deliveries, oldest first.
#[derive(Debug, Default)]
pub struct History {
    all: VecDeque<Delivery>,
}

impl History {
    /// Deliveries known from before, in any order.
    #[must_use]
    pub fn new(known: impl IntoIterator<Item = Delivery>) -> Self {
        let mut all: Vec<Delivery> = known.into_iter().collect();
        all.sort_by_key(|d| d.id);
        Self { all: all.into() }
    }

    /// Adds a delivery, or replaces the one of the same number; returns the number of one that fell out.
    pub fn record(&mut self, delivery: Delivery) -> Option<u64> {
        if let Some(old) = self.all.iter_mut().rev().find(|d| d.id == delivery.id) {
            *old = delivery;
            return None;
        }
        self.all.push_back(delivery);
        (self.all.len() > DELIVERIES_MAX)
            .then(|| self.all.pop_front().map(|d| d.id))
            .flatten()
    }

    /// Newest first.
    pub fn iter(&self) -> impl Iterator<Item = &Delivery> {
        self.all.iter().rev()
    }

    /// The greatest number; 0 when there is none.
    #[must_use]
    pub fn last_id(&self) -> u64 {
        self.all.iter().map(|d| d.id).max().unwrap_or(0)
    }
}
