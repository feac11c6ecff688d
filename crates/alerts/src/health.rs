//! How receivers are: who took the last message, who did not, since when and why.
//!
//! A receiver is failing once a message failed for good or was tried [`ATTEMPTS`] times in vain; the next success ends
//! that. The metric made of it (`watchfire_receiver_up`) is what the shipped rule about delivery reads.

use std::collections::BTreeMap;

use model::Millis;

use crate::delivery::{Delivery, DeliveryStatus};

/// So many attempts in vain make a receiver fail.
pub const ATTEMPTS: u32 = 3;

/// How one way of a receiver is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Health {
    /// When a message was last taken, in milliseconds since the epoch; `None` when never.
    pub last_success: Option<Millis>,
    /// When an attempt last failed; `None` when never.
    pub last_failure: Option<Millis>,
    /// Since when it fails; `None` when it does not.
    pub failing_since: Option<Millis>,
    /// Why the last attempt that failed did.
    pub last_error: String,
}

/// How every way is, by receiver and integration (`webhook[0]`).
#[derive(Debug, Default)]
pub struct Healths {
    all: BTreeMap<(String, String), Health>,
}

impl Healths {
    /// What the deliveries known from before tell, oldest first.
    pub fn new<'d>(known: impl Iterator<Item = &'d Delivery>) -> Self {
        let mut healths = Self::default();
        for delivery in known {
            healths.note(delivery);
        }
        healths
    }

    /// Takes a delivery in.
    pub fn note(&mut self, delivery: &Delivery) {
        let key = (delivery.receiver.clone(), delivery.integration.clone());
        let health = self.all.entry(key).or_default();
        if delivery.status == DeliveryStatus::Sent {
            health.last_success = Some(delivery.at);
            health.failing_since = None;
            return;
        }
        health.last_failure = Some(delivery.at);
        health.last_error.clone_from(&delivery.error);
        let is_final = delivery.status == DeliveryStatus::Failed || delivery.attempts >= ATTEMPTS;
        if is_final {
            health.failing_since.get_or_insert(delivery.at);
        }
    }

    /// Forgets ways that there are no longer.
    pub fn keep(&mut self, is_there: impl Fn(&str, &str) -> bool) {
        self.all
            .retain(|(receiver, integration), _| is_there(receiver, integration));
    }

    /// Whether any way of a receiver fails.
    #[must_use]
    pub fn is_failing(&self, receiver: &str) -> bool {
        let mut own = self.all.iter().filter(|((name, _), _)| name == receiver);
        own.any(|(_, health)| health.failing_since.is_some())
    }

    /// How a way is; `None` before its first message.
    #[must_use]
    pub fn get(&self, receiver: &str, integration: &str) -> Option<&Health> {
        self.all.get(&(receiver.to_owned(), integration.to_owned()))
    }
}
