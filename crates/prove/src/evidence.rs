//! What exists: series with their labels, types and last values, from saved pages or from a store.
//!
//! Pages are the complete set of what the targets show, but know neither `job` nor `instance` nor what a scrape adds;
//! a store knows those, and what it has is what rules see. One look never proves that a value stays as it is.

use exposition::{Entry, Format, Reader};
use hashbrown::{HashMap, HashSet};
use model::{Kind, Labels, METRIC_NAME, Millis};

use crate::error::Error;
use crate::interval::Interval;

/// Series of one metric that a judgement looks at; the rest look like them.
const SERIES_OF_METRIC_MAX: usize = 2_000;

/// Where the evidence comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Saved pages of exporters.
    Pages,
    /// A store asked over its API; raw names.
    Store,
    /// The own hub, which answers to the names of other versions too.
    Hub,
}

/// A series that exists.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// Its labels without the name.
    pub labels: Labels,
    /// The values seen; absent where only its existence is known.
    pub seen: Option<Interval>,
    /// The number of the page it stands on.
    pub page: usize,
    /// It was there lately and is not there now.
    pub past: bool,
}

/// Everything known to exist.
#[derive(Debug, Clone)]
pub struct Evidence {
    origin: Origin,
    metrics: HashMap<String, Vec<Known>>,
    kinds: HashMap<String, Kind>,
    pages: Vec<String>,
    /// How often targets are scraped.
    pub interval: Option<Millis>,
    /// State and reason of collectors that are not well: collector, state.
    pub collectors: Vec<(String, String)>,
}

impl Evidence {
    /// Nothing yet.
    #[must_use]
    pub fn new(origin: Origin) -> Self {
        Self {
            origin,
            metrics: HashMap::new(),
            kinds: HashMap::new(),
            pages: Vec::new(),
            interval: None,
            collectors: Vec::new(),
        }
    }

    /// Where it comes from.
    #[must_use]
    pub const fn origin(&self) -> Origin {
        self.origin
    }

    /// Whether labels of targets (`job`, `instance`) are known.
    #[must_use]
    pub fn knows_targets(&self) -> bool {
        self.origin != Origin::Pages
    }

    /// How many pages were read.
    #[must_use]
    pub fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// Reads a saved page.
    ///
    /// # Errors
    ///
    /// A line is none of the format's: a scraper would refuse the page as a whole.
    pub fn add_page(&mut self, name: &str, page: &[u8]) -> Result<(), Error> {
        let is_openmetrics = page.trim_ascii_end().ends_with(b"# EOF");
        let format = if is_openmetrics {
            Format::OpenMetrics
        } else {
            Format::Text
        };
        let number = self.pages.len();
        self.pages.push(name.to_owned());
        let failed = |source| Error::Page {
            page: name.to_owned(),
            source,
        };
        let mut reader = Reader::new(page, format);
        while let Some(entry) = reader.next_entry().map_err(failed)? {
            match entry {
                Entry::Type { name, kind } => self.set_kind(&name, kind),
                Entry::Sample(sample) => {
                    let labels = sample.series.labels().map_err(|cause| failed(reader.error(cause)))?;
                    let seen = (!sample.value.is_nan()).then(|| Interval::one(sample.value));
                    self.add(&labels, seen, number);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds a series of a store, with the values it had where they are known.
    pub fn add_series(&mut self, labels: &Labels, seen: Option<Interval>) {
        self.add(labels, seen, 0);
    }

    /// Adds a series that a store had lately and has no longer.
    pub fn add_past_series(&mut self, labels: &Labels) {
        self.add(labels, None, 0);
        let known = self.metrics.get_mut(labels.get(METRIC_NAME).unwrap_or(""));
        if let Some(last) = known.and_then(|known| known.last_mut()) {
            last.past = true;
        }
    }

    /// Notes that a metric of this name is there; its series were not asked for.
    pub fn add_name(&mut self, name: &str) {
        self.metrics.entry_ref(name).or_default();
    }

    /// Whether a metric has series now.
    #[must_use]
    pub fn has_now(&self, name: &str) -> bool {
        self.series(name).iter().any(|known| !known.past)
    }

    /// Notes the type of a metric.
    pub fn set_kind(&mut self, name: &str, kind: Kind) {
        if kind != Kind::Unknown || !self.kinds.contains_key(name) {
            self.kinds.insert(name.to_owned(), kind);
        }
    }

    fn add(&mut self, labels: &Labels, seen: Option<Interval>, page: usize) {
        let name = labels.get(METRIC_NAME).unwrap_or("");
        let known = self.metrics.entry_ref(name).or_default();
        if known.len() < SERIES_OF_METRIC_MAX {
            known.push(Known {
                labels: labels.drop_name(),
                seen,
                page,
                past: false,
            });
        }
    }

    /// The series of a metric; none where there is no such metric.
    #[must_use]
    pub fn series(&self, name: &str) -> &[Known] {
        self.metrics.get(name).map_or(&[], Vec::as_slice)
    }

    /// Every metric, in no order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.metrics.keys().map(String::as_str)
    }

    /// The type that a target told; parts of a histogram and of a summary count as what they are.
    #[must_use]
    pub fn kind(&self, name: &str) -> Option<Kind> {
        if let Some(kind) = self.kinds.get(name) {
            return Some(*kind);
        }
        let part = ["_bucket", "_count", "_sum"]
            .iter()
            .find_map(|end| name.strip_suffix(end));
        if let Some(Kind::Histogram | Kind::Summary) = part.and_then(|base| self.kinds.get(base)) {
            return Some(Kind::Counter);
        }
        // OpenMetrics names the family without the end.
        let base = name.strip_suffix("_total")?;
        self.kinds.get(base).copied()
    }

    /// Whether every value of `label` among the series of `name` is a state of which exactly one holds: then there
    /// are no other values.
    #[must_use]
    pub fn is_state_set(&self, name: &str, label: &str) -> bool {
        const STATES: &[&str] = &["state", "status", "phase", "condition", "action", "role", "health"];
        if !STATES.contains(&label) {
            return false;
        }
        let known = self.series(name);
        let mut groups: HashMap<(Labels, usize), (usize, f64)> = HashMap::new();
        for series in known {
            let Some(value) = series.seen.and_then(Interval::single) else {
                return false;
            };
            if (value != 0.0 && value != 1.0) || series.labels.get(label).is_none() {
                return false;
            }
            let group = groups
                .entry((series.labels.without(&[label]), series.page))
                .or_default();
            *group = (group.0 + 1, group.1 + value);
        }
        let values: HashSet<_> = known.iter().filter_map(|s| s.labels.get(label)).collect();
        !groups.is_empty()
            && groups
                .values()
                .all(|(count, sum)| *count >= 2 && *count == values.len() && *sum == 1.0)
    }

    /// The existing name nearest to one that does not exist, if it is near enough to be meant.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Option<&str> {
        let same = |known: &str| known.replace(':', "_").eq_ignore_ascii_case(&name.replace(':', "_"));
        if let Some(known) = self.names().find(|known| same(known)) {
            return Some(known);
        }
        let near = config::yaml::nearest(name, self.names())?;
        // A name of another metric of the same exporter is far from what was meant.
        let kept = near.chars().zip(name.chars()).take_while(|(a, b)| a == b).count();
        (kept * 2 > name.len()).then_some(near)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Evidence {
        let mut evidence = Evidence::new(Origin::Pages);
        evidence.add_page("page", text.as_bytes()).unwrap();
        evidence
    }

    #[test]
    fn a_page_gives_series_types_and_values() {
        let evidence = page("# TYPE a gauge\na{x=\"1\"} 5\na{x=\"2\"} NaN\n# TYPE h histogram\nh_count 3\n");
        assert_eq!(evidence.series("a").len(), 2);
        assert_eq!(evidence.series("a")[0].seen, Some(Interval::one(5.0)));
        assert_eq!(evidence.series("a")[1].seen, None);
        assert_eq!(evidence.kind("a"), Some(Kind::Gauge));
        assert_eq!(evidence.kind("h_count"), Some(Kind::Counter));
        assert_eq!(evidence.kind("b"), None);
    }

    #[test]
    fn a_set_of_states_is_told_by_its_values() {
        let states = page(
            "s{u=\"a\",state=\"on\"} 1\ns{u=\"a\",state=\"off\"} 0\ns{u=\"b\",state=\"on\"} 0\ns{u=\"b\",state=\"off\"} 1\n",
        );
        assert!(states.is_state_set("s", "state"));
        assert!(!states.is_state_set("s", "u"));
        assert!(!page("s{u=\"a\",state=\"on\"} 1\n").is_state_set("s", "state"));
    }

    #[test]
    fn a_colon_that_was_lost_and_a_slip_are_found() {
        let evidence = page("vllm:num_requests_waiting 1\nnode_vmstat_oom_kill 0\n");
        assert_eq!(
            evidence.nearest("vllm_num_requests_waiting"),
            Some("vllm:num_requests_waiting")
        );
        assert_eq!(evidence.nearest("node_vmstat_oom_kil"), Some("node_vmstat_oom_kill"));
        assert_eq!(evidence.nearest("something_else"), None);
    }

    #[test]
    fn a_page_with_a_bad_line_is_refused() {
        let error = Evidence::new(Origin::Pages).add_page("p", b"a 1\nb x\n").unwrap_err();
        assert!(error.to_string().starts_with("p: line 2"), "{error}");
    }
}
