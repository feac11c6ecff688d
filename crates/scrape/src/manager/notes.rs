//! What is said of a target in the log and counted over its pages: news once, not at each scrape.

use std::collections::BTreeMap;

use model::Millis;

use crate::append::Outcome;

/// How long a target's failures stay unsaid after one was said, in milliseconds.
const FAILURE_EVERY: Millis = 60_000;
/// How long a met limit stays unsaid after it was said, in milliseconds.
const REFUSAL_EVERY: Millis = 600_000;
/// Culprits counted apart for one target; further ones together.
const CULPRITS_MAX: usize = 8;
const OTHERS: &str = "others";

/// What was said of a target, and its totals.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// The reason that was said last and holds still.
    failing: Option<String>,
    failure_said: Option<Millis>,
    refusing: bool,
    refusal_said: Option<Millis>,
    refused: BTreeMap<String, u64>,
}

impl Notes {
    /// A scrape failed: whether to say so. Each new reason is said, though not more often than once a minute.
    pub(super) fn failed(&mut self, reason: &str, now: Millis) -> bool {
        let said = self.failing.as_deref() == Some(reason);
        if said || is_recent(self.failure_said, FAILURE_EVERY, now) {
            return false;
        }
        self.failing = Some(reason.to_owned());
        self.failure_said = Some(now);
        true
    }

    /// A scrape went well: whether to say so, because a failure was said.
    pub(super) fn worked(&mut self) -> bool {
        self.failing.take().is_some()
    }

    /// Counts what a page's limits refused, and tells what to say of it.
    pub(super) fn limits(&mut self, outcome: &Outcome, now: Millis) -> Option<LimitNews> {
        if outcome.refused == 0 {
            return std::mem::take(&mut self.refusing).then_some(LimitNews::End);
        }
        let known = self.refused.contains_key(&outcome.culprit_name);
        let name = match outcome.culprit_name.as_str() {
            name if known || self.refused.len() < CULPRITS_MAX => name,
            _ => OTHERS,
        };
        *self.refused.entry(name.to_owned()).or_default() += outcome.refused;
        if self.refusing || is_recent(self.refusal_said, REFUSAL_EVERY, now) {
            return None;
        }
        self.refusing = true;
        self.refusal_said = Some(now);
        Some(LimitNews::Begin)
    }

    /// Samples refused so far, by culprit.
    pub(super) fn refused(&self) -> impl Iterator<Item = (&str, u64)> {
        self.refused.iter().map(|(culprit, count)| (culprit.as_str(), *count))
    }
}

/// What to say of a target's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitNews {
    Begin,
    End,
}

/// A clock that was set back makes nothing recent.
fn is_recent(said: Option<Millis>, span: Millis, now: Millis) -> bool {
    said.is_some_and(|said| (0..span).contains(&now.saturating_sub(said)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Millis = 60_000;

    #[test]
    fn a_failure_is_said_once_and_another_reason_again() {
        let mut notes = Notes::default();
        assert!(notes.failed("refused", 0));
        assert!(!notes.failed("refused", MINUTE));
        assert!(!notes.failed("refused", 100 * MINUTE));
        assert!(notes.failed("timeout", 101 * MINUTE));
        assert!(!notes.failed("refused", 101 * MINUTE + 15_000), "not each scrape");
        assert!(notes.failed("refused", 102 * MINUTE));
        assert!(notes.worked());
        assert!(!notes.worked());
    }

    #[test]
    fn a_target_that_comes_and_goes_does_not_fill_the_log() {
        let mut notes = Notes::default();
        let said = (0..120).filter(|i| match i % 2 {
            0 => notes.failed("refused", i * 15_000),
            _ => notes.worked(),
        });
        assert_eq!(said.count(), 60, "two lines a minute, over half an hour");
    }

    #[test]
    fn a_met_limit_is_said_once_and_its_end_too() {
        let mut notes = Notes::default();
        let page = |refused, culprit: &str| Outcome {
            refused,
            culprit_name: culprit.to_owned(),
            ..Outcome::default()
        };
        assert_eq!(notes.limits(&page(0, ""), 0), None);
        assert_eq!(notes.limits(&page(3, "label a"), MINUTE), Some(LimitNews::Begin));
        assert_eq!(notes.limits(&page(4, "label a"), 2 * MINUTE), None);
        assert_eq!(notes.limits(&page(0, ""), 3 * MINUTE), Some(LimitNews::End));
        assert_eq!(
            notes.limits(&page(5, "label b"), 4 * MINUTE),
            None,
            "it was said just now"
        );
        assert_eq!(notes.limits(&page(0, ""), 5 * MINUTE), None);
        assert_eq!(notes.limits(&page(1, "label a"), 11 * MINUTE), Some(LimitNews::Begin));
        assert_eq!(notes.refused().collect::<Vec<_>>(), [("label a", 8), ("label b", 5)]);
        for i in 0..20 {
            notes.limits(&page(1, &format!("metric {i}")), 0);
        }
        assert_eq!(notes.refused().count(), CULPRITS_MAX + 1);
        assert!(notes.refused().any(|one| one == (OTHERS, 14)));
    }
}
