//! An alert: labels that say which, annotations that say what, and from when to when.

use std::collections::BTreeMap;

use model::Millis;
use model::labels::Labels;

/// The label that marks an alert of a drill: a group of its own by its value, and no source of inhibition.
pub const DRILL: &str = "drill";

/// The annotation that names a receiver which must not be the one to tell the alert: the one it is about. Where the
/// routes lead to no other, another receiver is found.
pub const AVOID_RECEIVER: &str = "avoid_receiver";

/// One alert as last told.
#[derive(Debug, Clone, PartialEq)]
pub struct Alert {
    /// Which alert this is; `alertname` among them.
    pub labels: Labels,
    /// Texts for people.
    pub annotations: BTreeMap<String, String>,
    /// When it began, in milliseconds since the epoch.
    pub starts_at: Millis,
    /// When it ends or ended, in milliseconds since the epoch. `None` asks for the resolve timeout.
    pub ends_at: Option<Millis>,
    /// Where it comes from, for people; empty when not told.
    pub generator_url: String,
    /// When it was last told, in milliseconds since the epoch. Set on arrival.
    pub updated_at: Millis,
    /// Whether the end is only the resolve timeout, which any real news overrules. Set on arrival.
    pub timeout: bool,
    /// Whether a new group with it skips its group wait: for alerts born of an event.
    pub urgent: bool,
    /// Whether it came by the API and not from our own rules.
    pub external: bool,
}

impl Alert {
    /// An alert that begins at a time and has no end yet.
    #[must_use]
    pub fn new(labels: Labels, starts_at: Millis) -> Self {
        Self {
            labels,
            annotations: BTreeMap::new(),
            starts_at,
            ends_at: None,
            generator_url: String::new(),
            updated_at: 0,
            timeout: false,
            urgent: false,
            external: false,
        }
    }

    /// The value of `alertname`, or the empty text.
    #[must_use]
    pub fn name(&self) -> &str {
        self.labels.get("alertname").unwrap_or("")
    }

    /// The fingerprint of the labels.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        fingerprint(&self.labels)
    }

    /// Whether it is over at a time.
    #[must_use]
    pub fn resolved_at(&self, now: Millis) -> bool {
        self.ends_at.is_some_and(|end| end <= now)
    }

    /// Whether it belongs to a drill.
    #[must_use]
    pub fn is_drill(&self) -> bool {
        self.labels.get(DRILL).is_some()
    }

    /// Joins what was known with what is told now, where the two overlap; else what is told now stands.
    #[must_use]
    pub fn merge(self, old: &Self, now: Millis) -> Self {
        let (start, end) = (self.starts_at, self.ends_at.unwrap_or(Millis::MAX));
        let (old_start, old_end) = (old.starts_at, old.ends_at.unwrap_or(Millis::MAX));
        let overlap = (end > old_start && end < old_end) || (start > old_start && start < old_end);
        if !overlap {
            return self;
        }
        let mut merged = self;
        merged.starts_at = merged.starts_at.min(old.starts_at);
        let later = old_end > end;
        if merged.resolved_at(now) {
            // Both are over: the later end holds.
            if old.resolved_at(now) && later {
                merged.ends_at = old.ends_at;
            }
        } else if later && !old.timeout {
            merged.ends_at = old.ends_at;
        }
        merged
    }
}

/// The field's fingerprint of a label set: FNV-1a over names and values, each followed by a byte 0xff.
#[must_use]
pub fn fingerprint(labels: &Labels) -> u64 {
    const OFFSET: u64 = 14_695_981_039_346_656_037;
    const PRIME: u64 = 1_099_511_628_211;
    let mut sum = OFFSET;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            sum = (sum ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    };
    for (name, value) in labels {
        add(name.as_bytes());
        add(&[0xff]);
        add(value.as_bytes());
        add(&[0xff]);
    }
    sum
}

/// Orders alerts for people: by job, then instance, then the whole label set; those without come last.
pub(crate) fn order(a: &Labels, b: &Labels) -> std::cmp::Ordering {
    use std::cmp::Ordering;
    for key in ["job", "instance"] {
        match (a.get(key), b.get(key)) {
            (Some(x), Some(y)) if x != y => return x.cmp(y),
            (Some(_), None) => return Ordering::Less,
            (None, Some(_)) => return Ordering::Greater,
            _ => {}
        }
    }
    a.cmp(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_the_fields_own() {
        // Published values of Prometheus' client model for these sets.
        assert_eq!(fingerprint(&Labels::empty()), 0xcbf2_9ce4_8422_2325);
        let set = Labels::from_pairs([("name", "garland, briggs"), ("fear", "love is not enough")]);
        assert_eq!(fingerprint(&set), 5_799_056_148_416_392_346);
    }

    #[track_caller]
    fn check(old: (Millis, Millis), new: (Millis, Millis), want: (Millis, Millis)) {
        let alert = |(start, end): (Millis, Millis)| Alert {
            ends_at: Some(end),
            ..Alert::new(Labels::empty(), start)
        };
        let merged = alert(new).merge(&alert(old), 100);
        assert_eq!((merged.starts_at, merged.ends_at), (want.0, Some(want.1)));
    }

    #[test]
    fn overlapping_news_keeps_the_earliest_start_and_the_latest_end() {
        check((10, 200), (20, 150), (10, 200));
        check((10, 50), (20, 60), (10, 60));
        check((10, 90), (20, 60), (10, 90));
    }

    #[test]
    fn news_after_the_end_is_another_alert() {
        check((10, 50), (60, 90), (60, 90));
    }
}
