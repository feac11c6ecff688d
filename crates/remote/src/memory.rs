//! What senders say of metrics: type, help, unit.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use model::family::Metadata;

/// Metrics remembered, and bytes of a help text.
const METRICS_MAX: usize = 20_000;
const HELP_BYTES_MAX: usize = 1_024;

/// What was said of metrics by whoever pushes them, the last saying of each.
#[derive(Debug, Default)]
pub struct Sayings(Mutex<BTreeMap<String, Metadata>>);

impl Sayings {
    /// Remembers what is said of a metric; beyond the bound new metrics are not remembered.
    pub fn say(&self, name: &str, kind: model::Kind, help: &str, unit: &str) {
        if name.is_empty() || (kind == model::Kind::Unknown && help.is_empty() && unit.is_empty()) {
            return;
        }
        let said = Metadata {
            kind,
            help: cut(help).to_owned(),
            unit: cut(unit).to_owned(),
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get_mut(name) {
            *known = said;
        } else if all.len() < METRICS_MAX {
            all.insert(name.to_owned(), said);
        }
    }

    /// All that is known, by metric.
    #[must_use]
    pub fn all(&self) -> Vec<(String, Metadata)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(n, m)| (n.clone(), m.clone())).collect()
    }
}

fn cut(text: &str) -> &str {
    let mut end = HELP_BYTES_MAX.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
