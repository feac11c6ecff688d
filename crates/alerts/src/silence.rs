//! Silences: matchers and a span of time in which matching alerts are not told.

use std::collections::BTreeMap;

use config::alertmanager::Interval;
use config::alertmanager::matchers::{parse_list, show_one};
use config::yaml::parse;
use model::labels::Labels;
use model::{Matcher, Millis};
use serde_json::{Value, json};

use crate::error::Error;
use crate::interval;

/// The most silences kept.
const SILENCES_MAX: usize = 10_000;
/// How long an ended silence is remembered, in milliseconds: five days, as Alertmanager does.
const KEEP_ENDED: Millis = 5 * 86_400_000;

/// The most matchers of a silence.
const MATCHERS_MAX: usize = 100;
/// The most bytes of all that a silence says.
const BYTES_MAX: usize = 64 << 10;

/// One silence.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Silence {
    /// Its name; empty for a new one.
    pub id: String,
    /// What an alert must match; all of them.
    pub matchers: Vec<Matcher>,
    /// From when, in milliseconds since the epoch.
    pub starts_at: Millis,
    /// Until when, in milliseconds since the epoch.
    pub ends_at: Millis,
    /// When it was last changed. Set on arrival.
    pub updated_at: Millis,
    /// Who made it.
    pub created_by: String,
    /// Why.
    pub comment: String,
    /// Facts for programs.
    pub annotations: BTreeMap<String, String>,
    /// When it holds between its start and its end; `None` for always. Ours: Alertmanager has no such.
    pub times: Option<Recurrence>,
}

/// Times that come again: those of `time_intervals`, a zone included.
#[derive(Debug, Clone, PartialEq)]
pub struct Recurrence {
    /// The times as written, in JSON.
    text: String,
    parts: Vec<Interval>,
}

impl Recurrence {
    /// Reads a list as `time_intervals` has it; JSON is YAML too.
    ///
    /// # Errors
    ///
    /// A sentence: what is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        let node = parse(text).map_err(|fault| fault.message)?;
        let parts: Vec<Interval> = node.read().map_err(|fault| fault.message)?;
        if parts.is_empty() {
            return Err("a list of times that holds none would never silence".to_owned());
        }
        let text = text.to_owned();
        Ok(Self { text, parts })
    }

    /// The times as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it holds at a moment.
    #[must_use]
    pub fn holds(&self, at: Millis) -> bool {
        self.parts.iter().any(|part| interval::holds(part, at))
    }
}

/// Where a silence stands in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SilenceState {
    /// It has not begun, or waits for its time to come again.
    Pending,
    /// It silences.
    Active,
    /// It is over.
    Expired,
}

impl Silence {
    /// Where it stands at a time.
    #[must_use]
    pub fn state(&self, now: Millis) -> SilenceState {
        if now >= self.ends_at {
            SilenceState::Expired
        } else if now < self.starts_at || self.times.as_ref().is_some_and(|times| !times.holds(now)) {
            SilenceState::Pending
        } else {
            SilenceState::Active
        }
    }

    /// Whether it silences these labels at a time.
    #[must_use]
    pub fn silences(&self, labels: &Labels, now: Millis) -> bool {
        self.state(now) == SilenceState::Active && self.matchers.iter().all(|m| m.matches_labels(labels))
    }

    fn check(&self, now: Millis) -> Result<(), Error> {
        let size = |map: &BTreeMap<String, String>| map.iter().map(|(k, v)| k.len() + v.len()).sum::<usize>();
        let texts = self
            .matchers
            .iter()
            .map(|m| m.name.len() + m.value.len())
            .sum::<usize>();
        let said = self.comment.len() + self.created_by.len() + size(&self.annotations);
        let times = self.times.as_ref().map_or(0, |times| times.text.len());
        let wrong = if self.matchers.len() > MATCHERS_MAX {
            "more than 100 matchers"
        } else if texts + said + times > BYTES_MAX {
            "more than 64 KiB of text"
        } else if self.matchers.iter().any(|m| m.name.is_empty()) {
            "a matcher without a label name"
        } else if self.matchers.is_empty() {
            "at least one matcher required"
        } else if self.matchers.iter().all(Matcher::matches_empty) {
            "at least one matcher must not match the empty string"
        } else if self.ends_at < self.starts_at {
            "end time must not be before start time"
        } else if self.ends_at <= now {
            "end time can't be in the past"
        } else {
            return Ok(());
        };
        Err(Error::Silence(wrong.to_owned()))
    }

    /// The form kept on disk.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let matchers: Vec<String> = self.matchers.iter().map(show_one).collect();
        json!({
            "matchers": matchers,
            "startsAt": self.starts_at,
            "endsAt": self.ends_at,
            "updatedAt": self.updated_at,
            "createdBy": self.created_by,
            "comment": self.comment,
            "annotations": self.annotations,
            "times": self.times.as_ref().map(Recurrence::as_str),
        })
    }

    /// Takes the form kept on disk; `None` when it is not one.
    #[must_use]
    pub fn from_json(id: &str, value: &Value) -> Option<Self> {
        let mut matchers = Vec::new();
        for text in value["matchers"].as_array()? {
            matchers.extend(parse_list(text.as_str()?).ok()?);
        }
        let annotations = value["annotations"].as_object().into_iter().flatten();
        let times = value["times"].as_str().map(Recurrence::read).transpose();
        Some(Self {
            annotations: annotations
                .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())))
                .collect(),
            times: times.ok()?,
            id: id.to_owned(),
            matchers,
            starts_at: value["startsAt"].as_i64()?,
            ends_at: value["endsAt"].as_i64()?,
            updated_at: value["updatedAt"].as_i64()?,
            created_by: value["createdBy"].as_str()?.to_owned(),
            comment: value["comment"].as_str()?.to_owned(),
        })
    }
}

/// All silences.
#[derive(Debug, Default)]
pub struct Silences {
    all: BTreeMap<String, Silence>,
    made: u64,
}

impl Silences {
    /// Silences known from before.
    #[must_use]
    pub fn new(known: impl IntoIterator<Item = Silence>) -> Self {
        Self {
            all: known.into_iter().map(|s| (s.id.clone(), s)).collect(),
            made: 0,
        }
    }

    /// Makes or changes a silence; returns those that changed, the one asked for last.
    ///
    /// A change that would rewrite the past ends the old silence and makes a new one, as in Alertmanager.
    ///
    /// # Errors
    ///
    /// [`Error::Silence`] and [`Error::NoSilence`].
    pub fn set(&mut self, mut silence: Silence, now: Millis) -> Result<Vec<Silence>, Error> {
        let old = match self.all.get(&silence.id) {
            None if !silence.id.is_empty() => return Err(Error::NoSilence(silence.id)),
            old => old.cloned(),
        };
        silence.check(now)?;
        // Whoever changes a silence and does not know of times (`amtool`) does not take them away.
        if let (None, Some(old)) = (&silence.times, &old) {
            silence.times.clone_from(&old.times);
        }
        silence.updated_at = now;
        let mut changed = Vec::new();
        match old {
            Some(old) if can_become(&old, &silence, now) => {}
            Some(old) => {
                if old.state(now) != SilenceState::Expired {
                    changed.extend(self.expire(&old.id, now).ok());
                }
                silence.id = self.name(&silence, now);
            }
            None => silence.id = self.name(&silence, now),
        }
        if !self.all.contains_key(&silence.id) && self.all.len() >= SILENCES_MAX {
            return Err(Error::Silence("too many silences".to_owned()));
        }
        // A new silence cannot reach into the past.
        if !self.all.contains_key(&silence.id) {
            silence.starts_at = silence.starts_at.max(now);
        }
        self.all.insert(silence.id.clone(), silence.clone());
        changed.push(silence);
        Ok(changed)
    }

    /// Ends a silence and returns it.
    ///
    /// # Errors
    ///
    /// [`Error::NoSilence`] and [`Error::SilenceExpired`].
    pub fn expire(&mut self, id: &str, now: Millis) -> Result<Silence, Error> {
        let silence = self.all.get_mut(id).ok_or_else(|| Error::NoSilence(id.to_owned()))?;
        if silence.ends_at <= now {
            return Err(Error::SilenceExpired(id.to_owned()));
        }
        silence.starts_at = silence.starts_at.min(now);
        silence.ends_at = now;
        silence.updated_at = now;
        Ok(silence.clone())
    }

    /// Names of the silences that silence these labels at a time.
    #[must_use]
    pub fn silenced_by(&self, labels: &Labels, now: Millis) -> Vec<String> {
        let silences = self.all.values().filter(|s| s.silences(labels, now));
        silences.map(|s| s.id.clone()).collect()
    }

    /// The silence of a name.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Silence> {
        self.all.get(id)
    }

    /// Every silence, over or not.
    pub fn iter(&self) -> impl Iterator<Item = &Silence> {
        self.all.values()
    }

    /// Forgets silences that ended long ago and returns their names.
    pub fn sweep(&mut self, now: Millis) -> Vec<String> {
        let old: Vec<String> = self
            .all
            .values()
            .filter(|s| s.ends_at < now - KEEP_ENDED)
            .map(|s| s.id.clone())
            .collect();
        for id in &old {
            self.all.remove(id);
        }
        old
    }

    /// A name in the form of a UUID, from what the silence says, the time and a count.
    fn name(&mut self, silence: &Silence, now: Millis) -> String {
        loop {
            self.made += 1;
            let text = format!("{} {now} {} {}", silence.to_json(), self.made, self.all.len());
            let hash = Labels::from_pairs([("silence", text.as_str())]).hash128();
            let hex = format!("{hash:032x}");
            let id = format!(
                "{}-{}-{}-{}-{}",
                &hex[..8],
                &hex[8..12],
                &hex[12..16],
                &hex[16..20],
                &hex[20..]
            );
            if !self.all.contains_key(&id) {
                return id;
            }
        }
    }
}

/// Whether a silence may be changed in place: its past must stay as it was.
fn can_become(old: &Silence, new: &Silence, now: Millis) -> bool {
    if old.matchers != new.matchers || old.times != new.times || old.ends_at <= now {
        return false;
    }
    if old.starts_at <= now {
        new.starts_at == old.starts_at && new.ends_at >= now
    } else {
        new.starts_at >= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn silence(matcher: &str, starts_at: Millis, ends_at: Millis) -> Silence {
        Silence {
            id: String::new(),
            matchers: parse_list(matcher).expect("matchers"),
            starts_at,
            ends_at,
            updated_at: 0,
            created_by: "me".into(),
            comment: "why".into(),
            ..Silence::default()
        }
    }

    #[test]
    fn a_silence_holds_from_its_start_to_its_end() {
        let mut silences = Silences::default();
        let made = silences.set(silence("a=1", 10, 20), 5).expect("valid").remove(0);
        let labels = Labels::from_pairs([("a", "1")]);
        let at = |now| !silences.silenced_by(&labels, now).is_empty();
        assert_eq!([at(9), at(10), at(19), at(20)], [false, true, true, false]);
        assert_eq!(made.id.len(), 36);
    }

    #[test]
    fn nonsense_is_refused() {
        let mut silences = Silences::default();
        for bad in [
            silence("{}", 10, 20),
            silence("a=~\".*\"", 10, 20),
            silence("a=1", 20, 10),
            silence("a=1", 1, 2),
        ] {
            assert!(silences.set(bad, 5).is_err());
        }
        let unknown = Silence {
            id: "x".into(),
            ..silence("a=1", 10, 20)
        };
        assert!(matches!(silences.set(unknown, 5), Err(Error::NoSilence(_))));
    }

    #[test]
    fn a_change_of_the_past_makes_a_new_silence() {
        let mut silences = Silences::default();
        let first = silences.set(silence("a=1", 5, 20), 5).expect("valid").remove(0);
        let longer = Silence {
            ends_at: 30,
            ..first.clone()
        };
        let changed = silences.set(longer, 10).expect("valid");
        assert_eq!((changed.len(), &changed[0].id), (1, &first.id));
        let other = Silence {
            matchers: parse_list("a=2").expect("a matcher"),
            ..changed[0].clone()
        };
        let changed = silences.set(other, 10).expect("valid");
        assert_eq!((changed.len(), changed[0].ends_at), (2, 10));
        assert_ne!(changed[1].id, first.id);
        assert!(matches!(silences.expire(&first.id, 11), Err(Error::SilenceExpired(_))));
    }

    /// 2023-11-14T22:13:20Z, a Tuesday: 23:13 in Berlin.
    const TUESDAY: Millis = 1_700_000_000_000;
    const HOUR: Millis = 3_600_000;

    fn nightly() -> Silence {
        let times = r#"[{"weekdays": ["tuesday"], "times": [{"start_time": "23:00", "end_time": "24:00"}], "location": "Europe/Berlin"}]"#;
        Silence {
            times: Some(Recurrence::read(times).expect("times")),
            ..silence("a=1", TUESDAY - 100 * HOUR, TUESDAY + 1_000 * HOUR)
        }
    }

    #[test]
    fn a_recurring_silence_holds_at_its_times_in_their_zone() {
        let mut silences = Silences::default();
        silences.set(nightly(), TUESDAY - 100 * HOUR).expect("valid");
        let labels = Labels::from_pairs([("a", "1")]);
        let at = |now| !silences.silenced_by(&labels, now).is_empty();
        let week = 7 * 24 * HOUR;
        assert_eq!(
            [
                at(TUESDAY),
                at(TUESDAY + HOUR),
                at(TUESDAY + 24 * HOUR),
                at(TUESDAY + week)
            ],
            [true, false, false, true]
        );
        assert_eq!(nightly().state(TUESDAY + HOUR), SilenceState::Pending);
        assert_eq!(nightly().state(TUESDAY + 1_000 * HOUR), SilenceState::Expired);
        for bad in ["[]", "{}", "[{weekdays: [someday]}]", "[{location: Nowhere/Land}]"] {
            assert!(Recurrence::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_change_by_someone_who_knows_no_times_keeps_them() {
        let mut silences = Silences::default();
        let made = silences.set(nightly(), TUESDAY).expect("valid").remove(0);
        let changed = Silence {
            times: None,
            comment: "longer".into(),
            ends_at: made.ends_at + HOUR,
            ..made.clone()
        };
        let changed = silences.set(changed, TUESDAY + 5 * HOUR).expect("valid");
        assert_eq!(
            (changed.len(), &changed[0].id, &changed[0].times),
            (1, &made.id, &made.times)
        );
        silences
            .expire(&made.id, TUESDAY + 6 * HOUR)
            .expect("it waited for its time, and is over now");
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let mut silences = Silences::default();
        let large = Silence {
            comment: "x".repeat(BYTES_MAX + 1),
            ..silence("a=1", 10, 20)
        };
        let many = Silence {
            matchers: vec![large.matchers[0].clone(); MATCHERS_MAX + 1],
            ..silence("a=1", 10, 20)
        };
        assert!(silences.set(large, 5).is_err() && silences.set(many, 5).is_err());
    }

    #[test]
    fn a_silence_survives_its_form_on_disk() {
        let one = Silence {
            id: "x".into(),
            annotations: BTreeMap::from([("a".into(), "b".into())]),
            times: nightly().times,
            ..silence("a=~\"b.*\",\"c d\"!=\"e\\n\"", 10, 20)
        };
        assert_eq!(Silence::from_json("x", &one.to_json()), Some(one));
    }
}
