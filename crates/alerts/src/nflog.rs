//! The notification log: what each receiver was last told of each group.
//!
//! An entry holds the alerts told as firing, whole, so that a restart can go on where it was: an alert
//! that ended while we were away is still told as ended, and one that goes on is not told again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use model::Millis;
use model::labels::Labels;
use serde_json::{Map, Value, json};

use crate::alert::Alert;

/// The most entries kept.
const ENTRIES_MAX: usize = 100_000;
/// How long an entry is kept at least, in milliseconds: five days, as Alertmanager does.
const KEEP: Millis = 5 * 86_400_000;

/// What one receiver was last told of one group.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Entry {
    /// When, in milliseconds since the epoch.
    pub at: Millis,
    /// Until when the entry is of use.
    pub expires_at: Millis,
    /// The alerts told as firing, by fingerprint.
    pub firing: BTreeMap<u64, Arc<Alert>>,
    /// The alerts told as ended, by fingerprint.
    pub resolved: BTreeSet<u64>,
}

impl Entry {
    /// An entry for a message told now that will be repeated after `repeat` milliseconds.
    #[must_use]
    pub fn new(at: Millis, repeat: Millis, firing: BTreeMap<u64, Arc<Alert>>, resolved: BTreeSet<u64>) -> Self {
        Self {
            at,
            expires_at: at.saturating_add(KEEP.max(repeat.saturating_mul(2))),
            firing,
            resolved,
        }
    }

    /// The form kept on disk.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let firing: Vec<Value> = self.firing.values().map(|a| alert_to_json(a)).collect();
        json!({
            "at": self.at,
            "expiresAt": self.expires_at,
            "firing": firing,
            "resolved": self.resolved,
        })
    }

    /// Takes the form kept on disk; `None` when it is not one.
    #[must_use]
    pub fn from_json(value: &Value) -> Option<Self> {
        let mut firing = BTreeMap::new();
        for value in value["firing"].as_array()? {
            // When it will end is for its own news to say.
            let alert = Alert {
                ends_at: None,
                ..alert_from_json(value)?
            };
            firing.insert(alert.fingerprint(), Arc::new(alert));
        }
        let resolved = value["resolved"].as_array()?.iter().map(Value::as_u64);
        Some(Self {
            at: value["at"].as_i64()?,
            expires_at: value["expiresAt"].as_i64()?,
            firing,
            resolved: resolved.collect::<Option<_>>()?,
        })
    }
}

/// The form of an alert kept on disk.
#[must_use]
pub fn alert_to_json(alert: &Alert) -> Value {
    let labels: Map<String, Value> = alert.labels.iter().map(|(n, v)| (n.to_owned(), v.into())).collect();
    json!({
        "labels": labels,
        "annotations": alert.annotations,
        "startsAt": alert.starts_at,
        "endsAt": alert.ends_at.filter(|_| !alert.timeout),
        "generatorURL": alert.generator_url,
        "external": alert.external,
    })
}

/// Takes the form of an alert kept on disk; `None` when it is not one.
#[must_use]
pub fn alert_from_json(value: &Value) -> Option<Alert> {
    let texts = |value: &Value| -> Option<BTreeMap<String, String>> {
        let pairs = value.as_object()?.iter();
        pairs.map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned()))).collect()
    };
    let labels = texts(&value["labels"])?;
    let labels = Labels::from_pairs(labels.iter().map(|(n, v)| (n.as_str(), v.as_str())));
    Some(Alert {
        annotations: texts(&value["annotations"])?,
        ends_at: value["endsAt"].as_i64(),
        generator_url: value["generatorURL"].as_str()?.to_owned(),
        external: value["external"].as_bool().unwrap_or(false),
        ..Alert::new(labels, value["startsAt"].as_i64()?)
    })
}

/// All entries, by group and receiver.
#[derive(Debug, Default)]
pub struct NotificationLog {
    entries: HashMap<String, Entry>,
}

/// The key of an entry: a group's key and the receiver's part, apart by a line break.
#[must_use]
pub fn entry_key(group_key: &str, receiver: &str, kind: &str, index: usize) -> String {
    format!("{group_key}\n{receiver}/{kind}/{index}")
}

impl NotificationLog {
    /// Entries known from before.
    #[must_use]
    pub fn new(known: impl IntoIterator<Item = (String, Entry)>) -> Self {
        Self {
            entries: known.into_iter().collect(),
        }
    }

    /// The entry of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Sets an entry. When there are too many, the one that expires first makes room; its key is returned.
    pub fn record(&mut self, key: String, entry: Entry) -> Option<String> {
        let mut dropped = None;
        if self.entries.len() >= ENTRIES_MAX && !self.entries.contains_key(&key) {
            let first = self.entries.iter().min_by_key(|(_, e)| e.expires_at);
            dropped = first.map(|(key, _)| key.clone());
            if let Some(key) = &dropped {
                self.entries.remove(key);
            }
        }
        self.entries.insert(key, entry);
        dropped
    }

    /// Takes an alert out of what was told as firing; the entry that changed, if it did.
    pub fn forget(&mut self, key: &str, fingerprint: u64) -> Option<&Entry> {
        let entry = self.entries.get_mut(key)?;
        entry.firing.remove(&fingerprint)?;
        Some(entry)
    }

    /// Forgets entries that are of no use any more and returns their keys.
    pub fn sweep(&mut self, now: Millis) -> Vec<String> {
        let old: Vec<String> = self
            .entries
            .iter()
            .filter(|(_, e)| e.expires_at < now)
            .map(|(key, _)| key.clone())
            .collect();
        for key in &old {
            self.entries.remove(key);
        }
        old
    }

    /// Every entry with the key of its group.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        let split = |key: &'_ str| key.rfind('\n').unwrap_or(key.len());
        self.entries.iter().map(move |(key, entry)| (&key[..split(key)], entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_survives_its_form_on_disk() {
        let alert = Alert {
            annotations: BTreeMap::from([("summary".into(), String::new())]),
            generator_url: "http://x".into(),
            ..Alert::new(Labels::from_pairs([("alertname", "a"), ("c d", "é\n")]), 5)
        };
        let firing = BTreeMap::from([(alert.fingerprint(), Arc::new(alert))]);
        let entry = Entry::new(7, 10, firing, BTreeSet::from([u64::MAX, 1]));
        assert_eq!(Entry::from_json(&entry.to_json()), Some(entry));
        assert_eq!(Entry::from_json(&json!({})), None);
    }

    #[test]
    fn old_entries_go() {
        let mut log = NotificationLog::default();
        log.record("k".into(), Entry::new(0, 0, BTreeMap::new(), BTreeSet::new()));
        assert_eq!(log.sweep(KEEP), Vec::<String>::new());
        assert_eq!(log.sweep(KEEP + 1), ["k"]);
        assert!(log.get("k").is_none());
    }
}
