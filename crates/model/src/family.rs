//! What a collector hands over: metric families, before they are text.

use crate::labels::Labels;

/// The type of a family, as exposition formats name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Kind {
    /// A value that only grows, until its process restarts.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// Cumulative buckets with `_sum` and `_count`.
    Histogram,
    /// Buckets that go up and down (OpenMetrics).
    GaugeHistogram,
    /// Quantiles with `_sum` and `_count`.
    Summary,
    /// Facts as labels, value 1 (OpenMetrics).
    Info,
    /// One of several states (OpenMetrics).
    StateSet,
    /// Not told.
    #[default]
    Unknown,
}

impl Kind {
    /// The word in the metadata API and in OpenMetrics (`unknown`; the older text format writes `untyped`).
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::GaugeHistogram => "gaugehistogram",
            Self::Summary => "summary",
            Self::Info => "info",
            Self::StateSet => "stateset",
            Self::Unknown => "unknown",
        }
    }
}

/// One line of a family.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Added to the family's name: empty, or `_bucket`, `_sum`, `_count`, `_total`, `_info`.
    pub suffix: &'static str,
    /// Labels in the order they are to be written, so that a page can look as its peer's does.
    pub labels: Vec<(&'static str, String)>,
    /// The value. Absent is not a value: leave the line out instead.
    pub value: f64,
}

/// A metric name with its help, type and lines.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// The name without suffix.
    pub name: String,
    /// One sentence; empty where nothing is known.
    pub help: String,
    /// The type.
    pub kind: Kind,
    /// The lines; a family without lines is not written.
    pub metrics: Vec<Metric>,
}

impl Family {
    /// A family without lines yet.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: Kind, help: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            help: help.into(),
            kind,
            metrics: Vec::new(),
        }
    }

    /// Adds a line.
    pub fn push(&mut self, labels: Vec<(&'static str, String)>, value: f64) -> &mut Self {
        self.metrics.push(Metric {
            suffix: "",
            labels,
            value,
        });
        self
    }

    /// Adds a line whenever there is a value: absent stays absent.
    pub fn push_some(&mut self, labels: impl FnOnce() -> Vec<(&'static str, String)>, value: Option<f64>) -> &mut Self {
        if let Some(value) = value {
            self.push(labels(), value);
        }
        self
    }
}

/// What is known of a metric name, as a target told it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Metadata {
    /// The type.
    pub kind: Kind,
    /// The help text.
    pub help: String,
    /// The unit, mostly empty.
    pub unit: String,
}

impl Metric {
    /// The labels as a set, with the family's name.
    #[must_use]
    pub fn series(&self, family: &str) -> Labels {
        let name = format!("{family}{}", self.suffix);
        let own = self.labels.iter().map(|(n, v)| (*n, v.as_str()));
        Labels::from_pairs(std::iter::once((crate::METRIC_NAME, name.as_str())).chain(own))
    }
}
