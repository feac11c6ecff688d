//! The stages between a group and its receivers, each a question about one alert or one message.
//!
//! inhibit → mute → silence decide whether an alert is in the message ([`admit`]); dedup decides whether
//! the message is worth telling ([`reason`]). Waiting and retrying are [`crate::engine`]'s, recording is
//! [`crate::nflog`]'s.

use std::collections::BTreeSet;
use std::collections::HashMap;

use config::alertmanager::{Route, TimeInterval};
use model::Millis;
use model::labels::Labels;

use crate::inhibit::Inhibitor;
use crate::interval::contains;
use crate::nflog::Entry;
use crate::silence::Silences;

/// What keeps an alert out of a message; nothing when all lists are empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Muted {
    /// The alert that inhibits it, by fingerprint.
    pub inhibited_by: Option<u64>,
    /// Time intervals that mute its route, by name.
    pub muted_by: Vec<String>,
    /// Silences, by name.
    pub silenced_by: Vec<String>,
}

impl Muted {
    /// Whether nothing keeps it out.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.inhibited_by.is_none() && self.muted_by.is_empty() && self.silenced_by.is_empty()
    }
}

/// Asks each stage about an alert; `muted_by` is [`muting`]'s answer for its route.
#[must_use]
pub fn admit(
    labels: &Labels,
    inhibitor: &Inhibitor<'_>,
    muted_by: &[String],
    silences: &Silences,
    now: Millis,
) -> Muted {
    Muted {
        inhibited_by: inhibitor.silenced_by(labels),
        muted_by: muted_by.to_vec(),
        silenced_by: silences.silenced_by(labels, now),
    }
}

/// The time intervals that mute a route at a moment: those it must not speak in, or, where it may speak
/// in some only, those when none of them holds.
#[must_use]
pub fn muting(route: &Route, intervals: &HashMap<String, TimeInterval>, now: Millis) -> Vec<String> {
    let holds = |name: &&String| intervals.get(*name).is_some_and(|i| contains(i, now));
    let active = &route.active_time_intervals;
    if !active.is_empty() && !active.iter().any(|name| holds(&name)) {
        return active.clone();
    }
    route.mute_time_intervals.iter().filter(holds).cloned().collect()
}

/// Why a message is worth telling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The receiver knows nothing of this group.
    First,
    /// There are alerts it has not been told of.
    NewAlerts,
    /// Every alert it was told of is over.
    AllResolved,
    /// Some of them are over, and it wants to know.
    NewResolved,
    /// Nothing changed for the repeat interval.
    Repeat,
}

impl Reason {
    /// The words for it, as templates see them.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::First => "first notification",
            Self::NewAlerts => "new alerts added",
            Self::AllResolved => "all alerts resolved",
            Self::NewResolved => "some alerts resolved",
            Self::Repeat => "repeat interval elapsed",
        }
    }
}

/// Whether a message with these alerts is worth telling, given what was told last.
#[must_use]
pub fn reason(
    last: Option<&Entry>,
    firing: &BTreeSet<u64>,
    resolved: &BTreeSet<u64>,
    send_resolved: bool,
    repeat: Millis,
    now: Millis,
) -> Option<Reason> {
    let Some(last) = last else {
        return (!firing.is_empty()).then_some(Reason::First);
    };
    if !firing.iter().all(|f| last.firing.contains_key(f)) {
        return Some(Reason::NewAlerts);
    }
    if firing.is_empty() {
        return (!last.firing.is_empty()).then_some(Reason::AllResolved);
    }
    if send_resolved && !resolved.is_subset(&last.resolved) {
        return Some(Reason::NewResolved);
    }
    (last.at < now.saturating_sub(repeat)).then_some(Reason::Repeat)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::alert::Alert;

    #[track_caller]
    fn check(last: Option<(&[u64], &[u64])>, firing: &[u64], resolved: &[u64], now: Millis, want: Option<Reason>) {
        let alert = Arc::new(Alert::new(Labels::empty(), 1));
        let entry = last.map(|(firing, resolved)| {
            let firing: BTreeMap<_, _> = firing.iter().map(|f| (*f, Arc::clone(&alert))).collect();
            Entry::new(100, 50, firing, resolved.iter().copied().collect())
        });
        let firing = firing.iter().copied().collect();
        let resolved = resolved.iter().copied().collect();
        assert_eq!(reason(entry.as_ref(), &firing, &resolved, true, 50, now), want);
    }

    #[test]
    fn news_is_told_and_the_known_is_not() {
        check(None, &[1], &[], 100, Some(Reason::First));
        check(None, &[], &[1], 100, None);
        check(Some((&[1], &[])), &[1], &[], 110, None);
        check(Some((&[1], &[])), &[1, 2], &[], 110, Some(Reason::NewAlerts));
        check(Some((&[1, 2], &[])), &[1], &[2], 110, Some(Reason::NewResolved));
        check(Some((&[1], &[2])), &[1], &[2], 110, None);
        check(Some((&[1], &[])), &[], &[1], 110, Some(Reason::AllResolved));
        check(Some((&[], &[1])), &[], &[1], 110, None);
        check(Some((&[1], &[])), &[1], &[], 150, None);
        check(Some((&[1], &[])), &[1], &[], 151, Some(Reason::Repeat));
    }
}
