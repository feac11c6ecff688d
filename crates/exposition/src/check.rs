//! The strict reading of a page, for its author: refuses what a careful parser refuses, then remarks.

use std::collections::{HashMap, HashSet};

use model::{Kind, METRIC_NAME};

use crate::error::{Cause, Error};
use crate::format::Format;
use crate::lint::{Facts, judge};
use crate::reader::{Entry, Reader, Sample};
use crate::strict::Strict;
use crate::value::parse_value;

/// Something legal but unwise on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The metric.
    pub metric: String,
    /// What to do better.
    pub text: String,
}

/// What a check found on a page that is not refused.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Remarks {
    /// Metric families on the page.
    pub families: usize,
    /// Samples on the page.
    pub samples: usize,
    /// What could be better, in the order of the page.
    pub remarks: Vec<Remark>,
}

/// Reads a whole page strictly: Prometheus text as `promtool check metrics` does, OpenMetrics by its standard
/// with the order of lines, clashing names and histogram sums.
///
/// # Errors
///
/// [`Error`] at the first line that is wrong.
pub fn check_page(page: &[u8], openmetrics: bool) -> Result<Remarks, Error> {
    let (samples, facts) = if openmetrics {
        Strict::check(page)?
    } else {
        check_text(page)?
    };
    Ok(Remarks {
        families: facts.len(),
        samples,
        remarks: facts.iter().flat_map(judge).collect(),
    })
}

#[derive(Default)]
struct TextCheck {
    facts: Vec<Facts>,
    by_name: HashMap<String, usize>,
    seen: HashSet<u128>,
}

fn check_text(page: &[u8]) -> Result<(usize, Vec<Facts>), Error> {
    let mut reader = Reader::strict(page, Format::Text);
    let mut check = TextCheck::default();
    let mut samples = 0;
    while let Some(entry) = reader.next_entry()? {
        let rule = match entry {
            Entry::Sample(sample) => {
                samples += 1;
                check.sample(&sample)
            }
            Entry::Help { name, .. } => check.help(&name),
            Entry::Type { name, kind } => check.kind(&name, kind),
            Entry::Unit { .. } | Entry::Comment => Ok(()),
        };
        rule.map_err(|cause| reader.error(cause))?;
    }
    check.facts.retain(|f| f.samples > 0);
    Ok((samples, check.facts))
}

impl TextCheck {
    /// The family that a metric name belongs to: `x_sum`, `x_count` and `x_bucket` to a summary or histogram `x`.
    fn family(&mut self, name: &str) -> &mut Facts {
        let at = self.by_name.get(name).copied().or_else(|| self.parent(name));
        let at = at.unwrap_or_else(|| {
            self.facts.push(Facts::new(name));
            self.by_name.insert(name.to_owned(), self.facts.len() - 1);
            self.facts.len() - 1
        });
        &mut self.facts[at]
    }

    fn parent(&self, name: &str) -> Option<usize> {
        let of = |suffix: &str, kinds: &[Kind]| {
            let at = *self.by_name.get(name.strip_suffix(suffix)?)?;
            self.facts[at].kind.is_some_and(|k| kinds.contains(&k)).then_some(at)
        };
        of("_count", &[Kind::Summary, Kind::Histogram])
            .or_else(|| of("_sum", &[Kind::Summary, Kind::Histogram]))
            .or_else(|| of("_bucket", &[Kind::Histogram]))
    }

    fn help(&mut self, name: &str) -> Result<(), Cause> {
        let facts = self.family(name);
        if facts.help {
            return Err(Cause::Rule(format!("second HELP line for metric {name:?}")));
        }
        facts.help = true;
        Ok(())
    }

    fn kind(&mut self, name: &str, kind: Kind) -> Result<(), Cause> {
        let facts = self.family(name);
        if facts.kind.is_some() {
            return Err(Cause::Rule(format!(
                "second TYPE line for metric {name:?}, or TYPE after its samples"
            )));
        }
        facts.kind = Some(kind);
        Ok(())
    }

    fn sample(&mut self, sample: &Sample<'_>) -> Result<(), Cause> {
        let reserved = sample.series.pairs().filter(|(n, _)| n == METRIC_NAME).count() > 1;
        if reserved {
            return Err(Cause::Rule(format!("label name {METRIC_NAME:?} is reserved")));
        }
        let labels = sample.series.labels()?;
        let new = self.seen.insert(labels.hash128() ^ time_mark(sample));
        let facts = self.family(labels.name());
        let kind = *facts.kind.get_or_insert(Kind::Unknown);
        let number = match kind {
            Kind::Summary => "quantile",
            Kind::Histogram => "le",
            _ => "",
        };
        if let Some(value) = labels.get(number).filter(|v| parse_value(v.as_bytes()).is_none()) {
            return Err(Cause::Rule(format!(
                "expected a number as value of label {number:?}, got {value:?}"
            )));
        }
        facts.sample(&labels, new);
        Ok(())
    }
}

/// Tells samples of one series at different moments apart.
fn time_mark(sample: &Sample<'_>) -> u128 {
    let time = sample.time.map_or(0, |t| t.cast_unsigned().wrapping_add(1));
    u128::from(xxhash_rust::xxh3::xxh3_64(&time.to_le_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(page: &str, want: &str) {
        let got = match check_page(page.as_bytes(), false) {
            Err(error) => error.to_string(),
            Ok(found) => {
                let lines: Vec<String> = found
                    .remarks
                    .iter()
                    .map(|r| format!("{}: {}", r.metric, r.text))
                    .collect();
                format!(
                    "ok, {} families, {} samples\n{}",
                    found.families,
                    found.samples,
                    lines.join("\n")
                )
            }
        };
        assert_eq!(got.trim_end(), want);
    }

    #[test]
    fn a_good_page_has_no_remark() {
        check(
            "# HELP up_seconds Time.\n# TYPE up_seconds gauge\nup_seconds 1\n",
            "ok, 1 families, 1 samples",
        );
    }

    #[test]
    fn a_bad_line_is_named_by_its_place() {
        check(
            "up 1",
            "line 1, column 5: expected timestamp or new record, got the end of the page",
        );
        check(
            "up 1\nup 2 2.5\n",
            "line 2, column 7: expected next entry after timestamp, got \".5\"",
        );
        check(
            "a 1\n# TYPE a gauge\n",
            "line 2, column 1: second TYPE line for metric \"a\", or TYPE after its samples",
        );
        check(
            "# HELP a x\n# HELP a y\n",
            "line 2, column 1: second HELP line for metric \"a\"",
        );
        check(
            "a{__name__=\"b\"} 1\n",
            "line 1, column 1: label name \"__name__\" is reserved",
        );
        check(
            "a{b=\"\\z\"} 1\n",
            "line 1, column 5: expected label value, got \"\\\"\\\\z\\\"} 1\"",
        );
    }

    #[test]
    fn remarks_name_the_metric() {
        check(
            "# TYPE a counter\na 1\nb_total 1\nb_total 1\n",
            "ok, 2 families, 3 samples\na: has no HELP text\na: is a counter, so its name should end in _total\n\
             b_total: has no HELP text\nb_total: the same series stands on the page more than once",
        );
    }
}
