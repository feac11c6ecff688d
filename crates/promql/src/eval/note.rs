//! Remarks made while evaluating: warnings about the data, infos about the query.
//!
//! Texts are Prometheus', because people search for them and scripts compare them. A text is kept
//! once per query with the place of its last occurrence.

use std::fmt::Write as _;

use model::Millis;
use model::number::{General, Plain};
use model::text::{Span, quote};

use super::time_fn::rfc3339;
use crate::ast::BinaryOp;
use crate::native::Seen;

/// How much a remark matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Warning,
    Info,
}

#[derive(Debug, Clone)]
struct Note {
    level: Level,
    text: String,
    span: Span,
    repair: Option<Repair>,
}

/// Where classic buckets had to be made monotonic.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Repair {
    /// Smallest upper bound touched.
    pub(crate) bound_min: f64,
    /// Largest upper bound touched.
    pub(crate) bound_max: f64,
    /// Largest decrease removed.
    pub(crate) decrease_max: f64,
    /// First and last moment, in milliseconds.
    pub(crate) times: (Millis, Millis),
    /// Number of histograms repaired.
    pub(crate) count: usize,
}

/// How histograms were joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joining {
    Addition,
    Subtraction,
    Aggregation,
}

impl Joining {
    const fn name(self) -> &'static str {
        match self {
            Self::Addition => "addition",
            Self::Subtraction => "subtraction",
            Self::Aggregation => "aggregation",
        }
    }
}

/// The remarks of one query.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes(Vec<Note>);

impl Notes {
    /// Whether nothing was noted.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A quantile outside 0 to 1.
    pub(crate) fn quantile_outside(&mut self, q: f64, span: Span) {
        let text = format!("quantile value should be between 0 and 1, got {}", General(q));
        self.add(Level::Warning, text, span);
    }

    /// A ratio outside -1 to 1.
    pub(crate) fn ratio_outside(&mut self, ratio: f64, capped: f64, span: Span) {
        let (got, to) = (General(ratio), General(capped));
        let text = format!("ratio value should be between -1 and 1, got {got}, capping to {to}");
        self.add(Level::Warning, text, span);
    }

    /// A classic bucket without a usable `le`.
    pub(crate) fn bad_bucket(&mut self, metric: &str, le: &str, span: Span) {
        let le = quote(le);
        let text = format!(
            "bucket label \"le\" is missing or has a malformed value of {le}{}",
            of(metric)
        );
        self.add(Level::Warning, text, span);
    }

    /// `sort` has no effect on a range query.
    pub(crate) fn sort_in_range(&mut self, span: Span) {
        let text = "sort is ineffective for range queries since results are always ordered by labels";
        self.add(Level::Warning, text.to_owned(), span);
    }

    /// `rate` over something whose name is not a counter's.
    pub(crate) fn maybe_not_a_counter(&mut self, metric: &str, span: Span) {
        let name = quote(metric);
        let text = format!("metric might not be a counter, name does not end in _total/_sum/_count/_bucket: {name}");
        self.add(Level::Info, text, span);
    }

    /// Numbers and histograms in one window.
    pub(crate) fn mixed_kinds(&mut self, metric: &str, span: Span) {
        let name = quote(metric);
        let text = format!("encountered a mix of histograms and floats for metric name {name}");
        self.add(Level::Warning, text, span);
    }

    /// Numbers and histograms in one group.
    pub(crate) fn mixed_in_aggregation(&mut self, span: Span) {
        let text = "encountered a mix of histograms and floats for aggregation";
        self.add(Level::Warning, text.to_owned(), span);
    }

    /// Classic buckets and a native histogram under the same labels.
    pub(crate) fn mixed_classic_and_native(&mut self, metric: &str, span: Span) {
        let text = format!("vector contains a mix of classic and native histograms{}", of(metric));
        self.add(Level::Warning, text, span);
    }

    /// Exponential and custom buckets.
    pub(crate) fn mixed_buckets(&mut self, metric: &str, span: Span) {
        let name = quote(metric);
        let text = format!(
            "vector contains a mix of histograms with exponential and custom buckets schemas for metric name {name}"
        );
        self.add(Level::Warning, text, span);
    }

    /// The same on both sides of an operator.
    pub(crate) fn incompatible_buckets(&mut self, operator: BinaryOp, span: Span) {
        let name = operator.name();
        let text = format!("incompatible bucket layout encountered for binary operator {name}");
        self.add(Level::Warning, text, span);
    }

    /// An operator that has no meaning for a pair of kinds.
    pub(crate) fn incompatible_kinds(&mut self, left: &str, operator: BinaryOp, right: &str, span: Span) {
        let name = operator.name();
        let text =
            format!("incompatible sample types encountered for binary operator \"{name}\": {left} {name} {right}");
        self.add(Level::Info, text, span);
    }

    /// A rate of gauges.
    pub(crate) fn native_no_counter(&mut self, metric: &str, span: Span) {
        let text = format!("this native histogram metric is not a counter: {}", quote(metric));
        self.add(Level::Warning, text, span);
    }

    /// A difference of counters.
    pub(crate) fn native_no_gauge(&mut self, metric: &str, span: Span) {
        let text = format!("this native histogram metric is not a gauge: {}", quote(metric));
        self.add(Level::Warning, text, span);
    }

    /// A counter that started again joined with one that did not.
    pub(crate) fn reset_collision(&mut self, joining: Joining, span: Span) {
        let text = format!("conflicting counter resets during histogram {}", joining.name());
        self.add(Level::Warning, text, span);
    }

    /// Custom bounds that were brought together.
    pub(crate) fn bounds_reconciled(&mut self, joining: Joining, span: Span) {
        let text = format!("mismatched custom buckets were reconciled during {}", joining.name());
        self.add(Level::Info, text, span);
    }

    /// Histograms where numbers alone have a meaning.
    pub(crate) fn ignored_in_aggregation(&mut self, operator: &str, span: Span) {
        let text = format!("ignored histogram in {operator} aggregation");
        self.add(Level::Info, text, span);
    }

    /// The same within a window.
    pub(crate) fn ignored_in_range(&mut self, metric: &str, span: Span) {
        let name = quote(metric);
        let text =
            format!("ignored histograms in a range containing both floats and histograms for metric name {name}");
        self.add(Level::Info, text, span);
    }

    /// Observations that are no numbers.
    pub(crate) fn nan_observations(&mut self, is_fraction: bool, seen: Seen, metric: &str, span: Span) {
        let what = match (is_fraction, seen) {
            (_, Seen::Fine) => return,
            (true, _) => "histogram_fraction has NaN observations, which are excluded from all fractions",
            (false, Seen::NanResult) => "histogram_quantile has NaN observations, result is NaN",
            (false, Seen::NanAside) => "histogram_quantile has NaN observations, result is skewed higher",
        };
        self.add(Level::Info, format!("input to {what}{}", of(metric)), span);
    }

    /// Classic buckets that decreased.
    pub(crate) fn forced_monotonic(&mut self, metric: &str, repair: Repair, span: Span) {
        let text = format!(
            "input to histogram_quantile needed to be fixed for monotonicity (see \
             https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile){}",
            of(metric)
        );
        if let Some(had) = self
            .0
            .iter_mut()
            .find(|n| n.text == text)
            .and_then(|n| n.repair.as_mut())
        {
            had.merge(&repair);
            return;
        }
        self.0.push(Note {
            level: Level::Info,
            text,
            span,
            repair: Some(repair),
        });
    }

    /// Takes over what another thread noted.
    pub(crate) fn extend(&mut self, other: Self) {
        for note in other.0 {
            match self.0.iter_mut().find(|n| n.text == note.text) {
                None => self.0.push(note),
                Some(had) => {
                    if let (Some(had), Some(more)) = (&mut had.repair, &note.repair) {
                        had.merge(more);
                    }
                }
            }
        }
    }

    /// The texts, each with its place in `query`: warnings, then infos.
    pub(crate) fn render(&self, query: &str) -> (Vec<String>, Vec<String>) {
        let texts = |level: Level| {
            let of_level = self.0.iter().filter(move |n| n.level == level);
            of_level.map(|n| n.render(query)).collect()
        };
        (texts(Level::Warning), texts(Level::Info))
    }

    fn add(&mut self, level: Level, text: String, span: Span) {
        if let Some(note) = self.0.iter_mut().find(|n| n.text == text) {
            note.span = span;
            return;
        }
        self.0.push(Note {
            level,
            text,
            span,
            repair: None,
        });
    }
}

impl Repair {
    fn merge(&mut self, other: &Self) {
        self.bound_min = self.bound_min.min(other.bound_min);
        self.bound_max = self.bound_max.max(other.bound_max);
        self.decrease_max = self.decrease_max.max(other.decrease_max);
        self.times.0 = self.times.0.min(other.times.0);
        self.times.1 = self.times.1.max(other.times.1);
        self.count += other.count;
    }
}

impl Note {
    fn render(&self, query: &str) -> String {
        let level = match self.level {
            Level::Warning => "warning",
            Level::Info => "info",
        };
        let mut out = format!("PromQL {level}: {}", self.text);
        if let Some(r) = &self.repair {
            let _ = write!(
                out,
                ", from buckets {} to {}, with a max diff of {}, over {} samples from {} to {}",
                General(r.bound_min),
                General(r.bound_max),
                two_digits(r.decrease_max),
                r.count,
                rfc3339(r.times.0),
                rfc3339(r.times.1)
            );
        }
        let _ = write!(out, " ({})", place(query, self.span));
        out
    }
}

fn of(metric: &str) -> String {
    if metric.is_empty() {
        String::new()
    } else {
        format!(" for metric name {}", quote(metric))
    }
}

/// `line:column` of the span's start, columns in bytes as Prometheus counts them.
fn place(query: &str, span: Span) -> String {
    let at = span.start.min(query.len());
    let before = &query.as_bytes()[..at];
    let line = before.iter().filter(|b| **b == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|b| **b != b'\n').count() + 1;
    format!("{line}:{column}")
}

/// Go's `%.2g`: two digits that count, with an exponent below -4 and from 2 on.
fn two_digits(value: f64) -> String {
    if !value.is_finite() {
        return Plain(value).to_string();
    }
    let scientific = format!("{value:.1e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..2).contains(&exponent) {
        // Reading the rounded text back leaves the digits that count.
        return scientific.parse::<f64>().unwrap_or(value).to_string();
    }
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_names_its_place_and_stands_once() {
        let mut notes = Notes::default();
        notes.maybe_not_a_counter("x", Span::new(5, 10));
        notes.maybe_not_a_counter("x", Span::new(5, 10));
        notes.quantile_outside(f64::NAN, Span::new(10, 11));
        let (warnings, infos) = notes.render("rate(x[5m\n])");
        assert_eq!(
            warnings,
            ["PromQL warning: quantile value should be between 0 and 1, got NaN (2:1)"]
        );
        assert_eq!(
            infos,
            [
                "PromQL info: metric might not be a counter, name does not end in _total/_sum/_count/_bucket: \"x\" (1:6)"
            ]
        );
    }

    #[test]
    fn a_rounded_float_prints_as_go_prints_it() {
        for (value, want) in [
            (1.14, "1.1"),
            (0.5, "0.5"),
            (1234.0, "1.2e+03"),
            (0.000_012_34, "1.2e-05"),
            (f64::INFINITY, "+Inf"),
            (2.0, "2"),
            (10.0, "10"),
            (100.0, "1e+02"),
        ] {
            assert_eq!(two_digits(value), want);
        }
    }
}
