//! Deliveries: what was told, when, to whom, and how it went. The last ones are kept and can be asked for.

use std::collections::VecDeque;
use std::fmt;

use model::Millis;
use serde_json::{Value, json};

/// How many deliveries are kept.
pub const DELIVERIES_MAX: usize = 1_000;
/// The most bytes of an error that are kept.
const ERROR_BYTES_MAX: usize = 500;

/// The most alerts of a message that are kept by fingerprint.
const FINGERPRINTS_MAX: usize = 1_000;

/// How a try to tell went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has it.
    Sent,
    /// It failed and may go better later.
    Retry(Problem),
    /// It failed and would fail again.
    Failed(Problem),
}

/// Why a try failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The kind of reason.
    pub reason: Reason,
    /// The sentence; no secrets.
    pub message: String,
}

impl<S: Into<String>> From<S> for Problem {
    fn from(message: S) -> Self {
        Self {
            reason: Reason::Other,
            message: message.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Kinds of reasons, in the words of Alertmanager's metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// None of the others.
    Other,
    /// The receiver finds fault with the message: 4xx.
    Client,
    /// The receiver is at fault: 5xx.
    Server,
    /// The receiver does not take the credentials.
    Auth,
    /// The receiver is told too often.
    RateLimited,
    /// No answer in time.
    Deadline,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 6] = [
        Self::Other,
        Self::Client,
        Self::Server,
        Self::Auth,
        Self::RateLimited,
        Self::Deadline,
    ];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Client => "clientError",
            Self::Server => "serverError",
            Self::Auth => "authError",
            Self::RateLimited => "rateLimited",
            Self::Deadline => "contextDeadlineExceeded",
        }
    }

    /// What an HTTP status that is no success means.
    #[must_use]
    pub const fn of_status(status: u16) -> Self {
        match status {
            401 | 403 => Self::Auth,
            429 => Self::RateLimited,
            400..500 => Self::Client,
            500..600 => Self::Server,
            _ => Self::Other,
        }
    }
}

/// How a try went, with what is to be remembered of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// How it went.
    pub outcome: Outcome,
    /// Where it went, fit to be shown; empty where there is no address.
    pub address: String,
    /// What is wrong although it went: a template that failed, so that another text was sent. Empty when nothing.
    pub remark: String,
}

impl From<Outcome> for Receipt {
    fn from(outcome: Outcome) -> Self {
        Self {
            outcome,
            address: String::new(),
            remark: String::new(),
        }
    }
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
    /// Where it went, fit to be shown: neither path nor credentials. Empty where there is no address.
    pub address: String,
    /// The group's key.
    pub group_key: String,
    /// The alerts, by fingerprint; of a very large message the first thousand.
    pub fingerprints: Vec<u64>,
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
    /// What is wrong although it went, such as a template that failed; empty when nothing.
    pub remark: String,
    /// Whether it was a test and no alert.
    pub test: bool,
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
    pub(crate) fn take(&mut self, receipt: &Receipt) {
        (self.status, self.error) = match &receipt.outcome {
            Outcome::Sent => (DeliveryStatus::Sent, String::new()),
            Outcome::Retry(problem) => (DeliveryStatus::Retrying, problem.message.clone()),
            Outcome::Failed(problem) => (DeliveryStatus::Failed, problem.message.clone()),
        };
        self.address.clone_from(&receipt.address);
        self.remark.clone_from(&receipt.remark);
        for text in [&mut self.error, &mut self.remark] {
            text.truncate(text.floor_char_boundary(ERROR_BYTES_MAX));
        }
        self.fingerprints.truncate(FINGERPRINTS_MAX);
    }

    /// The form kept on disk, and the one to show.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "at": self.at,
            "receiver": self.receiver,
            "integration": self.integration,
            "address": self.address,
            "groupKey": self.group_key,
            "fingerprints": self.fingerprints,
            "firing": self.firing,
            "resolved": self.resolved,
            "status": self.status.as_str(),
            "attempts": self.attempts,
            "latencyMs": self.latency,
            "error": self.error,
            "remark": self.remark,
            "test": self.test,
        })
    }

    /// Takes the form kept on disk; `None` when it is not one.
    #[must_use]
    pub fn from_json(id: u64, value: &Value) -> Option<Self> {
        let text = |key: &str| Some(value[key].as_str()?.to_owned());
        let count = |key: &str| usize::try_from(value[key].as_u64()?).ok();
        let status = value["status"].as_str()?;
        // What an older version did not write down is empty.
        let newer = |key: &str| value[key].as_str().unwrap_or("").to_owned();
        let fingerprints = value["fingerprints"].as_array().into_iter().flatten();
        Some(Self {
            id,
            at: value["at"].as_i64()?,
            receiver: text("receiver")?,
            integration: text("integration")?,
            address: newer("address"),
            group_key: text("groupKey")?,
            fingerprints: fingerprints.filter_map(Value::as_u64).collect(),
            firing: count("firing")?,
            resolved: count("resolved")?,
            status: STATUSES.iter().find(|(word, _)| *word == status)?.1,
            attempts: u32::try_from(value["attempts"].as_u64()?).ok()?,
            latency: value["latencyMs"].as_i64()?,
            error: text("error")?,
            remark: newer("remark"),
            test: value["test"].as_bool().unwrap_or(false),
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

    /// The delivery of a number.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<&Delivery> {
        self.all.iter().rev().find(|d| d.id == id)
    }

    /// Newest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Delivery> {
        self.all.iter().rev()
    }

    /// The greatest number; 0 when there is none.
    #[must_use]
    pub fn last_id(&self) -> u64 {
        self.all.iter().map(|d| d.id).max().unwrap_or(0)
    }
}
