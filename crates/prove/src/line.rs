//! A series as a judgement sees it: labels that may be unknown, values that lie in a range.

use model::{Labels, METRIC_NAME};

use crate::interval::Interval;

/// What is known of a label's value; an absent label is not listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Text {
    /// This text.
    Is(String),
    /// Added by the scrape to everything on this page; not known here.
    OfPage(usize),
    /// Some text.
    Any,
}

/// Labels that a scrape may add to what a page shows.
const ADDED_BY_SCRAPES: &[&str] = &[
    "job",
    "instance",
    "cluster",
    "env",
    "environment",
    "host",
    "hostname",
    "Hostname",
    "node",
    "nodename",
    "namespace",
    "pod",
    "container",
    "service",
    "endpoint",
    "region",
    "zone",
    "datacenter",
    "dc",
    "team",
    "tenant",
    "target",
    "app",
    "rack",
    "site",
    "customer",
    "severity",
    "prometheus",
    "exported_job",
    "exported_instance",
];

/// Whether a scrape may add this label.
pub(crate) fn is_added_by_scrapes(label: &str) -> bool {
    ADDED_BY_SCRAPES.contains(&label)
}

/// How two label values meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Meeting {
    /// One has the label, the other has not.
    Never,
    /// Both have it, with other values.
    Differs,
    /// They may be equal.
    Maybe,
    /// They are equal.
    Equal,
}

/// A raw selector, times a factor, inside the same aggregations.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Core {
    /// The metric, below the functions that keep order (`sum:`, `rate:`).
    pub metric: String,
    /// What it was written as.
    pub text: String,
    /// What it was multiplied with.
    pub factor: f64,
}

/// A series, or one that may come to be.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// The labels, sorted by name; the metric's name among them while it has one.
    pub labels: Vec<(String, Text)>,
    /// The values it can have.
    pub range: Interval,
    /// Why only those: `a percentage, 0 to 100`.
    pub why: Option<String>,
    /// Whether only whole numbers occur.
    pub whole: bool,
    /// Whether its value never changes, and why.
    pub constant: Option<String>,
    /// Where it comes from, unchanged but for a factor.
    pub core: Option<Core>,
    /// It is at most this metric times the factor, and not below zero.
    pub bound: Option<(String, f64)>,
    /// No such series is known; it may come to be.
    pub guess: bool,
    /// It is there whatever happens.
    pub sure: bool,
    /// A filter may take it away at times.
    pub filtered: bool,
    /// It may have labels that are not listed.
    pub loose: bool,
}

impl Line {
    /// A series without labels.
    pub fn bare(range: Interval) -> Self {
        Self {
            labels: Vec::new(),
            range,
            why: None,
            whole: false,
            constant: None,
            core: None,
            bound: None,
            guess: false,
            sure: false,
            filtered: false,
            loose: false,
        }
    }

    /// The same series with another value.
    pub fn valued(mut self, range: Interval) -> Self {
        self.range = range;
        self.whole = false;
        self.core = None;
        self.bound = None;
        self.constant = None;
        self.why = None;
        self.without_name()
    }

    /// Without the metric's name.
    pub fn without_name(mut self) -> Self {
        self.labels.retain(|(name, _)| name != METRIC_NAME);
        self
    }

    /// A label's value.
    pub fn label(&self, name: &str) -> Option<&Text> {
        let at = self.labels.binary_search_by(|(n, _)| n.as_str().cmp(name)).ok()?;
        Some(&self.labels[at].1)
    }

    /// Sets a label, or takes it away.
    pub fn set(&mut self, name: &str, text: Option<Text>) {
        match (self.labels.binary_search_by(|(n, _)| n.as_str().cmp(name)), text) {
            (Ok(at), Some(text)) => self.labels[at].1 = text,
            (Ok(at), None) => drop(self.labels.remove(at)),
            (Err(at), Some(text)) => self.labels.insert(at, (name.to_owned(), text)),
            (Err(_), None) => {}
        }
    }

    /// Keeps the labels that pass.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.labels.retain(|(name, _)| keep(name));
    }

    /// How the two meet over one label. `open` says that a scrape may add labels not known here.
    pub fn meets(&self, other: &Self, label: &str, open: bool) -> Meeting {
        match (self.label(label), other.label(label)) {
            (None, None) => Meeting::Equal,
            (Some(_), None) if other.loose => Meeting::Maybe,
            (None, Some(_)) if self.loose => Meeting::Maybe,
            (Some(_), None) | (None, Some(_)) if open && is_added_by_scrapes(label) => Meeting::Maybe,
            (Some(Text::Any), None) | (None, Some(Text::Any)) => Meeting::Maybe,
            (Some(_), None) | (None, Some(_)) => Meeting::Never,
            (Some(a), Some(b)) => match (a, b) {
                (Text::Is(a), Text::Is(b)) if a == b => Meeting::Equal,
                (Text::Is(_), Text::Is(_)) => Meeting::Differs,
                (Text::OfPage(a), Text::OfPage(b)) if a == b => Meeting::Equal,
                _ => Meeting::Maybe,
            },
        }
    }

    /// The names of its labels.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.labels.iter().map(|(name, _)| name.as_str())
    }
}

/// Labels of a known series as texts.
pub(crate) fn texts(labels: &Labels) -> Vec<(String, Text)> {
    labels
        .iter()
        .map(|(n, v)| (n.to_owned(), Text::Is(v.to_owned())))
        .collect()
}
