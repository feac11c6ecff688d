//! How series of two sides find each other.

use hashbrown::{HashMap, HashSet};
use model::METRIC_NAME;
use model::text::Span;
use promql::ast::{Binary, Cardinality};

use super::Judge;
use crate::line::{Line, Meeting, Text};
use crate::verdict::Reason;

/// Pairs of series that are looked at, at most.
const PAIRS_MAX: usize = 1_000_000;

/// Pairs that are told further, at most.
const PAIRS_KEPT: usize = 5_000;

/// Series of two sides that may meet.
pub(super) struct Pairs {
    /// Positions left and right.
    pub pairs: Vec<(usize, usize)>,
    /// They have the labels in common, but no values so far.
    pub only_guesses: bool,
}

impl Judge<'_> {
    /// The pairs that may meet under the operation's matching.
    pub(super) fn pairs(&self, binary: &Binary, left: &[Line], right: &[Line]) -> Pairs {
        let mut met = Vec::new();
        let mut differing = None;
        let mut looked = 0;
        // Series whose matching labels are all known meet by their text.
        let (index, rest) = self.index(binary, right);
        for (at, l) in left.iter().enumerate() {
            let own = self.key(binary, l);
            let mut any = false;
            let candidates: Box<dyn Iterator<Item = &usize>> = match own.as_ref().and_then(|key| index.get(key)) {
                Some(same) => Box::new(same.iter().chain(&rest)),
                None if own.is_some() => Box::new(rest.iter()),
                None => Box::new(index.values().flatten().chain(&rest)),
            };
            for to in candidates {
                looked += 1;
                if looked > PAIRS_MAX || met.len() >= PAIRS_KEPT {
                    break;
                }
                match self.meeting(binary, l, &right[*to]) {
                    Meeting::Equal | Meeting::Maybe => {
                        met.push((at, *to));
                        any = true;
                    }
                    Meeting::Differs if differing.is_none() => differing = Some((at, *to)),
                    _ => {}
                }
            }
            if !any && differing.is_none() {
                let probe = right
                    .iter()
                    .take(200)
                    .position(|r| self.meeting(binary, l, r) == Meeting::Differs);
                differing = probe.map(|to| (at, to));
            }
        }
        met.sort_unstable();
        let only_guesses = met.is_empty() && differing.is_some();
        if only_guesses {
            met.extend(differing);
        }
        Pairs {
            pairs: met,
            only_guesses,
        }
    }

    fn index(&self, binary: &Binary, lines: &[Line]) -> (HashMap<String, Vec<usize>>, Vec<usize>) {
        let mut index: HashMap<String, Vec<usize>> = HashMap::new();
        let mut rest = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            match self.key(binary, line) {
                Some(key) => index.entry(key).or_default().push(at),
                None => rest.push(at),
            }
        }
        (index, rest)
    }

    /// The labels that count, as a text; `None` where one of them is not known.
    fn key(&self, binary: &Binary, line: &Line) -> Option<String> {
        if line.loose || self.is_open() {
            return None;
        }
        let matching = &binary.matching;
        let mut key = String::new();
        for (name, text) in &line.labels {
            let counts = name != METRIC_NAME && matching.labels.contains(name) == matching.on;
            match text {
                Text::Is(value) if counts => {
                    key.push_str(name);
                    key.push('\u{1}');
                    key.push_str(value);
                    key.push('\u{2}');
                }
                _ if counts => return None,
                _ => {}
            }
        }
        Some(key)
    }

    /// How two series meet over all labels that count.
    fn meeting(&self, binary: &Binary, l: &Line, r: &Line) -> Meeting {
        let matching = &binary.matching;
        let open = self.is_open();
        let mut least = Meeting::Equal;
        let mut look = |label: &str| {
            let mut meeting = l.meets(r, label, open);
            // Targets are what the configuration says: they do not come to be alike.
            if meeting == Meeting::Differs && label == "job" && self.evidence.knows_targets() {
                meeting = Meeting::Never;
            }
            least = least.min(meeting);
        };
        if matching.on {
            for label in &matching.labels {
                look(label);
            }
            return least;
        }
        let counts = |name: &&str| *name != METRIC_NAME && !matching.labels.iter().any(|l| l == name);
        for label in l.names().filter(counts) {
            look(label);
        }
        for label in r.names().filter(counts) {
            if l.label(label).is_none() {
                look(label);
            }
        }
        least
    }

    /// The labels of a pair's result, on a line without a value yet.
    pub(super) fn matched_labels(&self, binary: &Binary, l: &Line, r: &Line) -> Line {
        let matching = &binary.matching;
        let (many, one) = match matching.card {
            Cardinality::OneToMany => (r, l),
            _ => (l, r),
        };
        let mut line = many.clone();
        if matching.card == Cardinality::OneToOne {
            if matching.on {
                line.retain(|name| name == METRIC_NAME || matching.labels.iter().any(|label| label == name));
            } else {
                line.retain(|name| !matching.labels.iter().any(|label| label == name));
            }
        }
        for label in &matching.include {
            line.set(label, one.label(label).cloned());
        }
        line.loose = l.loose || r.loose;
        line
    }

    /// Why no series of one side ever meets one of the other.
    pub(super) fn never_meet(&self, binary: &Binary, left: &[Line], right: &[Line], span: Span) -> Reason {
        let matching = &binary.matching;
        let names = |lines: &[Line]| {
            let mut names: Vec<String> = lines.iter().take(50).flat_map(Line::names).map(str::to_owned).collect();
            names.sort_unstable();
            names.dedup();
            names.retain(|name| name != METRIC_NAME);
            names
        };
        let (ours, theirs) = (names(left), names(right));
        let counts = |name: &&String| matching.labels.contains(name) == matching.on;
        let lacking = |a: &[String], b: &[String]| -> Vec<String> {
            a.iter()
                .filter(counts)
                .filter(|name| !b.contains(name))
                .cloned()
                .collect()
        };
        let (only_left, only_right) = (lacking(&ours, &theirs), lacking(&theirs, &ours));
        let shared: Vec<&String> = ours.iter().filter(|name| theirs.contains(name)).collect();
        let mut why = Vec::new();
        if !only_left.is_empty() {
            why.push(format!("{} only on the left", only_left.join(", ")));
        }
        if !only_right.is_empty() {
            why.push(format!("{} only on the right", only_right.join(", ")));
        }
        if why.is_empty() {
            why.push("the values of their labels are never the same".to_owned());
        }
        let mend = match shared.as_slice() {
            [] => "the sides have no label in common; join them by a label of the host that both carry".to_owned(),
            shared => {
                let list: Vec<&str> = shared.iter().map(|s| s.as_str()).collect();
                format!(
                    "match by what both have: `on ({})`, aggregating where one side has several",
                    list.join(", ")
                )
            }
        };
        Reason::at(
            span,
            "labels_never_match",
            format!(
                "{}: no series of one side ever meets one of the other: {}",
                self.quoted(span),
                why.join("; ")
            ),
            mend,
        )
    }

    /// Both sides have the labels, with other values so far.
    pub(super) fn values_differ(&self, binary: &Binary, span: Span) -> Reason {
        Reason::at(
            span,
            "labels_unmet",
            format!(
                "{}: so far no series of one side has the label values of one of the other",
                self.quoted(span)
            ),
            if binary.matching.on {
                "check the labels of `on`"
            } else {
                "name the labels to match by with `on (…)`"
            },
        )
    }

    /// Several series of both sides meet: the evaluation fails whenever they are there.
    pub(super) fn ambiguous(&self, binary: &Binary, left: &[Line], right: &[Line], span: Span) -> Option<Reason> {
        let matching = &binary.matching;
        if matching.card == Cardinality::ManyToMany {
            return None;
        }
        let left_twice = self.twice(binary, left);
        let right_twice = self.twice(binary, right);
        let is_bad = match matching.card {
            Cardinality::OneToOne => {
                left_twice.iter().any(|key| self.has_key(binary, right, key))
                    || right_twice.iter().any(|key| self.has_key(binary, left, key))
            }
            Cardinality::ManyToOne => right_twice.iter().any(|key| self.has_key(binary, left, key)),
            Cardinality::OneToMany => left_twice.iter().any(|key| self.has_key(binary, right, key)),
            Cardinality::ManyToMany => false,
        };
        is_bad.then(|| {
            Reason::at(
                span,
                "many_to_many",
                format!("{}: several series of a side have the same labels to match by, and the evaluation fails", self.quoted(span)),
                "match by more labels, aggregate one side, or say which side has several with group_left or group_right",
            )
        })
    }

    /// Matching labels that more than one series has for certain, all the time.
    fn twice(&self, binary: &Binary, lines: &[Line]) -> HashSet<String> {
        let (mut once, mut twice) = (HashSet::new(), HashSet::new());
        for line in lines.iter().filter(|line| !line.guess && !line.filtered) {
            if let Some(key) = self.firm_key(binary, line)
                && !once.insert(key.clone())
            {
                twice.insert(key);
            }
        }
        twice
    }

    fn has_key(&self, binary: &Binary, lines: &[Line], key: &str) -> bool {
        let firm = lines.iter().filter(|line| !line.guess && !line.filtered);
        firm.filter_map(|line| self.firm_key(binary, line)).any(|k| k == key)
    }

    /// The labels that count, the page standing for what a scrape adds.
    fn firm_key(&self, binary: &Binary, line: &Line) -> Option<String> {
        let matching = &binary.matching;
        if line.loose {
            return None;
        }
        let mut key = String::new();
        for (name, text) in &line.labels {
            if name == METRIC_NAME || matching.labels.contains(name) != matching.on {
                continue;
            }
            match text {
                Text::Is(value) => key.push_str(&format!("{name}={value:?};")),
                Text::OfPage(page) => key.push_str(&format!("{name}=page {page};")),
                Text::Any => return None,
            }
        }
        Some(key)
    }
}
