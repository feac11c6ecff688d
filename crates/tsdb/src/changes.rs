//! What of history has changed, for those who keep answers.
//!
//! Samples up to [`SETTLE`] behind the latest come and go unwatched: that is the present. Before it, every late
//! sample, deletion and import is noted as the earliest moment it touched.
//!
//! Invariant: nothing before the moment that [`Changes::since`] gives has changed since. The converse does not
//! hold: the list is bounded, and old entries are joined to their earliest moment.

use std::collections::VecDeque;
use std::sync::Mutex;

use model::Millis;

use crate::sync::lock;

/// How far behind the latest sample the present reaches, in milliseconds.
pub const SETTLE: Millis = 60_000;
/// Entries kept apart.
const ENTRIES_MAX: usize = 1024;

/// See the module.
#[derive(Debug, Default)]
pub struct Changes(Mutex<Log>);

#[derive(Debug, Default)]
struct Log {
    revision: u64,
    /// Revision and earliest moment; both ascend, since an earlier moment makes the entries before it needless.
    entries: VecDeque<(u64, Millis)>,
}

impl Changes {
    /// Samples from `earliest` on have changed.
    pub fn note(&self, earliest: Millis) {
        let mut log = lock(&self.0);
        log.revision += 1;
        while log.entries.back().is_some_and(|&(_, moment)| moment >= earliest) {
            log.entries.pop_back();
        }
        let revision = log.revision;
        log.entries.push_back((revision, earliest));
        if log.entries.len() > ENTRIES_MAX
            && let Some((_, moment)) = log.entries.pop_front()
            && let Some(second) = log.entries.front_mut()
        {
            second.1 = moment;
        }
    }

    /// How many changes there were.
    #[must_use]
    pub fn revision(&self) -> u64 {
        lock(&self.0).revision
    }

    /// The earliest moment that has changed since `revision`; `None` when none has.
    #[must_use]
    pub fn since(&self, revision: u64) -> Option<Millis> {
        let log = lock(&self.0);
        log.entries
            .iter()
            .find(|(r, _)| *r > revision)
            .map(|(_, moment)| *moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_change_since_a_revision_is_told() {
        let changes = Changes::default();
        assert_eq!(changes.since(0), None);
        for moment in [50, 20, 30, 40] {
            changes.note(moment);
        }
        let since: Vec<_> = (0..5).map(|r| changes.since(r)).collect();
        assert_eq!(since, [Some(20), Some(20), Some(30), Some(40), None]);
    }

    #[test]
    fn a_bounded_list_tells_too_much_rather_than_too_little() {
        let changes = Changes::default();
        for moment in 0..3000 {
            changes.note(moment);
        }
        for revision in 0..3000_u64 {
            let told = changes.since(revision).expect("there was one");
            assert!(told <= revision as i64, "{revision}: {told}");
        }
        assert_eq!(changes.since(2999), Some(2999));
    }
}
