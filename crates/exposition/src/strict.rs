//! OpenMetrics to the letter: one family at a time, its lines together, its numbers consistent.
//!
//! The scraper's reading ([`Reader`]) takes each line for itself; here the lines of a family are judged
//! against each other, as the standard asks of an exposer.

use std::collections::{HashMap, HashSet};

use model::{Kind, Labels, Millis};

use crate::error::{Cause, Error};
use crate::format::Format;
use crate::lint::Facts;
use crate::reader::{Entry, Exemplar, Reader, Sample};
use crate::value::parse_value;

/// The strict reading of an OpenMetrics page.
#[derive(Default)]
pub(crate) struct Strict {
    family: Option<Family>,
    /// Names taken by finished families, suffixes included.
    names: HashSet<String>,
    facts: Vec<Facts>,
}

/// A rule is broken.
type Rule = Result<(), Cause>;

fn broken<T>(text: impl Into<String>) -> Result<T, Cause> {
    Err(Cause::Rule(text.into()))
}

impl Strict {
    pub(crate) fn check(page: &[u8]) -> Result<(usize, Vec<Facts>), Error> {
        let mut reader = Reader::strict(page, Format::OpenMetrics);
        let mut strict = Self::default();
        while let Some(entry) = reader.next_entry()? {
            strict.entry(entry).map_err(|cause| reader.error(cause))?;
        }
        strict.finish().map_err(|cause| reader.error(cause))?;
        let samples = strict.facts.iter().map(|f| f.samples).sum();
        Ok((samples, strict.facts))
    }

    fn entry(&mut self, entry: Entry<'_>) -> Rule {
        match entry {
            Entry::Sample(sample) => self.sample(&sample),
            Entry::Help { name, .. } => {
                let family = self.metadata(&name)?;
                if std::mem::replace(&mut family.facts.help, true) {
                    return broken(format!("second HELP line for metric {name:?}"));
                }
                Ok(())
            }
            Entry::Type { name, kind } => {
                let family = self.metadata(&name)?;
                if family.facts.kind.replace(kind).is_some() {
                    return broken(format!("second TYPE line for metric {name:?}"));
                }
                Ok(())
            }
            Entry::Unit { name, unit } => {
                let family = self.metadata(&name)?;
                if family.unit.replace(unit.into_owned()).is_some() {
                    return broken(format!("second UNIT line for metric {name:?}"));
                }
                Ok(())
            }
            Entry::Comment => Ok(()),
        }
    }

    /// The family that a metadata line speaks of.
    fn metadata(&mut self, name: &str) -> Result<&mut Family, Cause> {
        if self.family.as_ref().is_none_or(|f| f.facts.name != name) {
            self.finish()?;
            self.family = Some(Family::new(name));
        }
        let family = self.family.as_mut().expect("set above");
        if family.facts.samples > 0 {
            return broken(format!("metadata of metric {name:?} after its samples"));
        }
        Ok(family)
    }

    fn sample(&mut self, sample: &Sample<'_>) -> Rule {
        let labels = sample.series.labels()?;
        let name = labels.name();
        if self.family.as_ref().is_none_or(|f| !f.owns(name)) {
            self.finish()?;
            self.family = Some(Family::new(name));
        }
        let family = self.family.as_mut().expect("set above");
        family.sample(&labels, sample)
    }

    /// Closes the present family: its names are taken now.
    fn finish(&mut self) -> Rule {
        let Some(mut family) = self.family.take() else {
            return Ok(());
        };
        let kind = family.kind();
        let name = family.facts.name.clone();
        let mut own: Vec<String> = suffixes(kind).iter().map(|s| format!("{name}{s}")).collect();
        own.push(name.clone());
        own.sort_unstable();
        own.dedup();
        for taken in own {
            if !self.names.insert(taken.clone()) {
                return broken(format!("the name {taken:?} clashes with an earlier metric"));
            }
        }
        if family.unit.as_ref().is_some_and(|u| !u.is_empty()) && matches!(kind, Kind::Info | Kind::StateSet) {
            return broken(format!(
                "metric {name:?} is of type {}, which has no unit",
                kind.as_str()
            ));
        }
        family.histogram.close()?;
        if kind == Kind::Counter {
            family.facts.name.push_str("_total");
        }
        if family.facts.samples > 0 {
            self.facts.push(family.facts);
        }
        Ok(())
    }
}

/// The suffixes that samples of a type have.
const fn suffixes(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Counter => &["_total", "_created"],
        Kind::Summary => &["", "_count", "_sum", "_created"],
        Kind::Histogram => &["_bucket", "_count", "_sum", "_created"],
        Kind::GaugeHistogram => &["_bucket", "_gcount", "_gsum"],
        Kind::Info => &["_info"],
        Kind::Gauge | Kind::StateSet | Kind::Unknown => &[""],
    }
}

struct Family {
    facts: Facts,
    unit: Option<String>,
    group: Option<Group>,
    groups: HashSet<u128>,
    histogram: Histogram,
}

/// The metric whose samples stand here: the labels less those that tell its samples apart.
struct Group {
    hash: u128,
    time: Option<Millis>,
    /// The series of the group at this moment.
    series: HashMap<u128, ()>,
}

impl Family {
    fn new(name: &str) -> Self {
        Self {
            facts: Facts::new(name),
            unit: None,
            group: None,
            groups: HashSet::new(),
            histogram: Histogram::default(),
        }
    }

    fn kind(&self) -> Kind {
        self.facts.kind.unwrap_or_default()
    }

    fn owns(&self, name: &str) -> bool {
        let suffix = name.strip_prefix(self.facts.name.as_str());
        suffix.is_some_and(|s| suffixes(self.kind()).contains(&s))
    }

    fn sample(&mut self, labels: &Labels, sample: &Sample<'_>) -> Rule {
        let kind = self.kind();
        let suffix = labels.name().get(self.facts.name.len()..).unwrap_or("").to_owned();
        let special = special_label(kind, &suffix, &self.facts.name);
        check_special(kind, &suffix, labels, &special)?;
        check_value(kind, &suffix, sample.value)?;
        if let Some(exemplar) = &sample.exemplar {
            check_exemplar(kind, &suffix, exemplar)?;
        }
        let group = if kind == Kind::Info {
            Labels::empty()
        } else {
            labels.retain(|n| n != model::METRIC_NAME && n != special)
        };
        let new_group = self.group(group.hash128(), labels.hash128(), sample.time)?;
        if matches!(kind, Kind::Histogram | Kind::GaugeHistogram) {
            if new_group {
                self.histogram.close()?;
            }
            self.histogram.sample(&suffix, labels, sample.value)?;
        }
        self.facts.sample(labels, true);
        Ok(())
    }

    /// Whether a new metric, or the same at another moment, begins with this sample.
    fn group(&mut self, hash: u128, series: u128, time: Option<Millis>) -> Result<bool, Cause> {
        let kind = self.kind();
        let Some(present) = self.group.as_mut().filter(|g| g.hash == hash) else {
            if !self.groups.insert(hash) {
                return broken("the samples of one metric must stand together");
            }
            self.group = Some(Group {
                hash,
                time,
                series: HashMap::from([(series, ())]),
            });
            return Ok(true);
        };
        let moved = match (present.time, time) {
            (None, None) => false,
            (Some(before), Some(now)) if before > now && kind != Kind::Info => {
                return broken("timestamps go backwards within a metric");
            }
            (Some(before), Some(now)) => before != now,
            _ => return broken("some samples of a metric have a timestamp, others none"),
        };
        if moved {
            present.series.clear();
        }
        present.time = time;
        // Two timestamps may fall into one millisecond; without timestamps the same series twice is a mistake.
        if present.series.insert(series, ()).is_some() && time.is_none() {
            return broken("the same series stands on the page more than once");
        }
        Ok(moved)
    }
}

/// The label that tells the samples of one metric apart.
fn special_label(kind: Kind, suffix: &str, family: &str) -> String {
    match (kind, suffix) {
        (Kind::Summary, "") => "quantile".to_owned(),
        (Kind::Histogram | Kind::GaugeHistogram, "_bucket") => "le".to_owned(),
        (Kind::StateSet, _) => family.to_owned(),
        _ => String::new(),
    }
}

fn check_special(kind: Kind, suffix: &str, labels: &Labels, special: &str) -> Rule {
    if special.is_empty() {
        return Ok(());
    }
    let Some(value) = labels.get(special) else {
        return broken(format!(
            "a sample of type {} needs the label {special:?}",
            kind.as_str()
        ));
    };
    if kind == Kind::StateSet {
        return Ok(());
    }
    let number = parse_value(value.as_bytes()).filter(|n| !n.is_nan());
    let fits = number.is_some_and(|n| suffix == "_bucket" || (0.0..=1.0).contains(&n));
    if fits {
        Ok(())
    } else {
        broken(format!("invalid value {value:?} of label {special:?}"))
    }
}

fn check_value(kind: Kind, suffix: &str, value: f64) -> Rule {
    let counts = matches!(suffix, "_total" | "_sum" | "_count" | "_bucket" | "_gcount");
    if (counts || suffix == "_gsum") && value.is_nan() {
        return broken("a count or sum cannot be NaN");
    }
    if counts && value < 0.0 {
        return broken("a count cannot be negative");
    }
    if matches!(suffix, "_bucket" | "_count" | "_gcount") && value.is_finite() && value.fract() != 0.0 {
        return broken("a count must be a whole number");
    }
    if kind == Kind::StateSet && value != 0.0 && value != 1.0 {
        return broken("a state is 0 or 1");
    }
    if kind == Kind::Info && value != 1.0 {
        return broken("the value of an info is 1");
    }
    if kind == Kind::Summary && suffix.is_empty() && value < 0.0 {
        return broken("a quantile's value cannot be negative");
    }
    Ok(())
}

/// Names and values of an exemplar's labels together, in characters.
const EXEMPLAR_CHARS_MAX: usize = 128;

fn check_exemplar(kind: Kind, suffix: &str, exemplar: &Exemplar<'_>) -> Rule {
    let allowed = match kind {
        Kind::Counter => suffix == "_total",
        Kind::Histogram | Kind::GaugeHistogram => suffix == "_bucket",
        _ => false,
    };
    if !allowed {
        return broken("only counters and histogram buckets may have exemplars");
    }
    let pairs: Vec<_> = exemplar.pairs().collect();
    if let Some(name) = crate::series::twice(&pairs) {
        return Err(Cause::LabelTwice(name.to_owned()));
    }
    let chars: usize = pairs.iter().map(|(n, v)| n.chars().count() + v.chars().count()).sum();
    if chars > EXEMPLAR_CHARS_MAX {
        return broken(format!(
            "the exemplar's labels have {chars} characters, at most {EXEMPLAR_CHARS_MAX} are allowed"
        ));
    }
    Ok(())
}

/// The running state of one histogram.
#[derive(Default)]
struct Histogram {
    begun: bool,
    bucket: Option<(f64, f64)>,
    count: Option<f64>,
    sum: Option<f64>,
    gauge_sum: Option<f64>,
    negative: bool,
}

impl Histogram {
    fn sample(&mut self, suffix: &str, labels: &Labels, value: f64) -> Rule {
        self.begun = true;
        match suffix {
            "_bucket" => {
                let bound = labels
                    .get("le")
                    .and_then(|le| parse_value(le.as_bytes()))
                    .unwrap_or(f64::NAN);
                if self.bucket.is_some_and(|(last, _)| bound <= last) {
                    return broken("buckets must stand in order of their bounds");
                }
                if self.bucket.is_some_and(|(_, last)| value < last) {
                    return broken("a bucket holds less than the one before");
                }
                self.negative |= bound < 0.0;
                self.bucket = Some((bound, value));
            }
            "_count" | "_gcount" => self.count = Some(value),
            "_sum" => self.sum = Some(value),
            "_gsum" => self.gauge_sum = Some(value),
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self) -> Rule {
        let done = std::mem::take(self);
        if !done.begun {
            return Ok(());
        }
        let Some((_, infinite)) = done.bucket.filter(|(bound, _)| *bound == f64::INFINITY) else {
            return broken("a histogram needs a bucket with le=\"+Inf\"");
        };
        if done.count.is_some_and(|count| count != infinite) {
            return broken("a histogram's count must equal its last bucket");
        }
        if (done.sum.is_some() || done.gauge_sum.is_some()) != done.count.is_some() {
            return broken("a histogram's count and sum go together");
        }
        if done.negative && done.sum.is_some() {
            return broken("a histogram with negative bounds has no sum");
        }
        if !done.negative && done.gauge_sum.is_some_and(|sum| sum < 0.0) {
            return broken("a histogram without negative bounds has no negative sum");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[track_caller]
    fn check(page: &str, want: &str) {
        let result = crate::check_page(format!("{page}# EOF\n").as_bytes(), true);
        let got = result.map_or_else(|e| e.to_string(), |found| format!("{} samples", found.samples));
        assert!(got.contains(want), "{got:?}, wanted {want:?}");
    }

    #[test]
    fn names_may_not_clash() {
        check("# TYPE a counter\na_total 1\n# TYPE b gauge\nb 1\n", "2 samples");
        check(
            "# TYPE a counter\na_total 1\n# TYPE b gauge\nb 1\na_total 2\n",
            "clashes",
        );
        check("# TYPE a_count gauge\n# TYPE a histogram\n", "\"a_count\" clashes");
        check("# TYPE a gauge\na 1\n# HELP a x\n", "after its samples");
        check("# TYPE a_s info\n# UNIT a_s s\n", "has no unit");
    }

    #[test]
    fn the_samples_of_a_metric_stand_together_in_order_of_time() {
        check("# TYPE a gauge\na{x=\"1\"} 1\na{x=\"2\"} 1\n", "2 samples");
        check("# TYPE a gauge\na 1\na 1\n", "more than once");
        check("# TYPE a gauge\na 1 2\na 1 3\n", "2 samples");
        check("# TYPE a gauge\na 1 3\na 1 2\n", "go backwards");
        check(
            "# TYPE a gauge\na 1 3\na 1\n",
            "some samples of a metric have a timestamp",
        );
        check(
            "# TYPE a summary\na_sum{x=\"1\"} 1\na_sum{x=\"2\"} 1\na_count{x=\"1\"} 1\n",
            "stand together",
        );
    }

    #[test]
    fn a_histogram_adds_up() {
        let good = "# TYPE a histogram\na_bucket{le=\"1\"} 1\na_bucket{le=\"+Inf\"} 2\n";
        check(&format!("{good}a_count 2\na_sum 3\n"), "4 samples");
        check(&format!("{good}a_count 3\na_sum 3\n"), "must equal its last bucket");
        check(&format!("{good}a_count 2\n"), "go together");
        check("# TYPE a histogram\na_bucket{le=\"1\"} 1\n", "le=\"+Inf\"");
        check(
            "# TYPE a histogram\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\n",
            "less than the one before",
        );
        check(
            "# TYPE a histogram\na_bucket{le=\"2\"} 1\na_bucket{le=\"1\"} 1\n",
            "in order of their bounds",
        );
        check(
            "# TYPE a histogram\na_bucket{le=\"x\"} 1\n",
            "invalid value \"x\" of label \"le\"",
        );
    }

    #[test]
    fn values_fit_their_type() {
        check("# TYPE a counter\na_total -1\n", "cannot be negative");
        check("# TYPE a stateset\na{a=\"x\"} 2\n", "0 or 1");
        check("# TYPE a stateset\na 1\n", "needs the label \"a\"");
        check("# TYPE a info\na_info{x=\"1\"} 1\n", "1 samples");
        check("# TYPE a info\na_info 2\n", "value of an info is 1");
        check("# TYPE a summary\na{quantile=\"1.5\"} 1\n", "invalid value \"1.5\"");
        check(
            "# TYPE a gauge\na 1 # {x=\"y\"} 1\n",
            "only counters and histogram buckets",
        );
    }
}
