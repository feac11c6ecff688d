//! `histogram_quantile`, `histogram_quantiles`, `histogram_fraction` over classic histograms: series that
//! differ in `le` alone are the buckets of one histogram.

use hashbrown::HashMap;
use model::number::{General, parse_float};
use model::text::Span;
use model::{Labels, QueryError};

use super::Evaluator;
use super::bucket::{self, Bucket, Mended};
use super::grid::Grid;
use super::note::{Notes, Repair};
use super::series::{ABSENT, Operand, Scalar, Series, is_present};
use crate::plan::Node;

/// The label that holds a bucket's upper bound.
const LE: &str = "le";

/// A histogram: its labels without `le`, and its buckets by bound.
struct Classic {
    labels: Labels,
    /// Upper bound and place of the series, sorted by bound.
    buckets: Vec<(f64, usize)>,
}

impl Classic {
    /// The buckets that have a sample at `step`.
    fn at(&self, step: usize, series: &[Series], into: &mut Vec<Bucket>) {
        into.clear();
        let all = self.buckets.iter().map(|(bound, place)| Bucket {
            bound: *bound,
            count: series[*place].values[step],
        });
        into.extend(all.filter(|b| is_present(b.count)));
    }
}

impl Evaluator<'_> {
    /// `histogram_quantile(q, v)`
    pub(super) fn histogram_quantile(&self, args: &[Node], grid: Grid) -> Result<Operand, QueryError> {
        let [q_arg, vector] = args else {
            return Err(super::mistyped("two arguments"));
        };
        let q = self.scalar(q_arg, grid)?;
        let series = self.vector(vector, grid)?;
        self.note_quantiles(&q, q_arg.span, grid);
        let mut out = Vec::new();
        for classic in self.classics(&series, vector.span) {
            let values = self.quantiles_of(&classic, &series, &q, vector.span, grid)?;
            out.push(Series::new(classic.labels, values));
        }
        self.finished(out)
    }

    /// `histogram_quantiles(v, "label", q…)`
    pub(super) fn histogram_quantiles(&self, args: &[Node], grid: Grid) -> Result<Operand, QueryError> {
        let [vector, label, q_args @ ..] = args else {
            return Err(super::mistyped("three arguments or more"));
        };
        let label = self.text(label)?;
        let series = self.vector(vector, grid)?;
        let classics = self.classics(&series, vector.span);
        let mut out = Vec::new();
        for q_arg in q_args {
            let q = self.scalar(q_arg, grid)?;
            self.note_quantiles(&q, q_arg.span, grid);
            for classic in &classics {
                let values = self.quantiles_of(classic, &series, &q, vector.span, grid)?;
                spread(classic, label, &q, &values, &mut out);
            }
        }
        let Operand::Vector(named) = self.finished(out)? else {
            return Err(super::mistyped("instant vector"));
        };
        Ok(Operand::Vector(super::series::merge_same_labels(named)?))
    }

    /// `histogram_fraction(lower, upper, v)`
    pub(super) fn histogram_fraction(&self, args: &[Node], grid: Grid) -> Result<Operand, QueryError> {
        let [lower, upper, vector] = args else {
            return Err(super::mistyped("three arguments"));
        };
        let (lower, upper) = (self.scalar(lower, grid)?, self.scalar(upper, grid)?);
        let series = self.vector(vector, grid)?;
        let mut out = Vec::new();
        let mut buckets = Vec::new();
        for classic in self.classics(&series, vector.span) {
            self.budget.check()?;
            let mut values = vec![ABSENT; grid.len];
            for (step, value) in values.iter_mut().enumerate() {
                classic.at(step, &series, &mut buckets);
                if !buckets.is_empty() {
                    *value = bucket::fraction(lower.at(step), upper.at(step), &mut buckets);
                }
            }
            out.push(Series::new(classic.labels, values));
        }
        self.finished(out)
    }

    fn finished(&self, mut out: Vec<Series>) -> Result<Operand, QueryError> {
        out.retain(Series::any_present);
        out.iter_mut().for_each(|s| self.rename(s));
        self.merged(out)
    }

    /// Sorts series into histograms; one without a usable bound is noted and left out.
    fn classics(&self, series: &[Series], span: Span) -> Vec<Classic> {
        let mut notes = Notes::default();
        let mut known: HashMap<Labels, usize, foldhash::fast::RandomState> = HashMap::default();
        let mut classics: Vec<Classic> = Vec::new();
        for (place, one) in series.iter().enumerate() {
            let le = one.labels.get(LE).unwrap_or("");
            let Some(bound) = parse_float(le) else {
                notes.bad_bucket(self.shown_name(&one.labels), le, span);
                continue;
            };
            let labels = one.labels.retain(|name| name != LE);
            let at = *known.entry(labels).or_insert_with_key(|labels| {
                classics.push(Classic {
                    labels: labels.clone(),
                    buckets: Vec::new(),
                });
                classics.len() - 1
            });
            classics[at].buckets.push((bound, place));
        }
        for classic in &mut classics {
            classic.buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        self.note(notes);
        classics
    }

    fn quantiles_of(
        &self,
        classic: &Classic,
        series: &[Series],
        q: &Scalar,
        span: Span,
        grid: Grid,
    ) -> Result<Vec<f64>, QueryError> {
        self.budget.check()?;
        let mut buckets = Vec::with_capacity(classic.buckets.len());
        let mut values = vec![ABSENT; grid.len];
        let mut notes = Notes::default();
        for (step, value) in values.iter_mut().enumerate() {
            classic.at(step, series, &mut buckets);
            if buckets.is_empty() {
                continue;
            }
            let (found, mended) = bucket::quantile(q.at(step), &mut buckets);
            *value = found;
            if let Some(Mended { bounds, decrease_max }) = mended {
                let repair = Repair {
                    bound_min: bounds.0,
                    bound_max: bounds.1,
                    decrease_max,
                    times: (grid.time(step), grid.time(step)),
                    count: 1,
                };
                notes.forced_monotonic(self.shown_name(&classic.labels), repair, span);
            }
        }
        self.note(notes);
        self.budget.take(grid.len)?;
        Ok(values)
    }

    fn note_quantiles(&self, q: &Scalar, span: Span, grid: Grid) {
        let steps = match q {
            Scalar::Const(_) => 1,
            Scalar::Steps(_) => grid.len,
        };
        let mut notes = Notes::default();
        let outside = |q: &f64| !(0.0..=1.0).contains(q);
        (0..steps)
            .map(|i| q.at(i))
            .filter(outside)
            .for_each(|q| notes.quantile_outside(q, span));
        self.note(notes);
    }

    /// The metric name as remarks show it: not once it has been removed.
    fn shown_name<'a>(&self, labels: &'a Labels) -> &'a str {
        if self.delayed_names { labels.name() } else { "" }
    }
}

/// Adds the values under the quantile's label, which may change from step to step.
fn spread(classic: &Classic, label: &str, q: &Scalar, values: &[f64], out: &mut Vec<Series>) {
    let named = |q: f64| classic.labels.with(label, &openmetrics_float(q));
    if let Scalar::Const(q) = q {
        out.push(Series::new(named(*q), values.to_vec()));
        return;
    }
    for (step, value) in values.iter().enumerate().filter(|(_, v)| is_present(**v)) {
        let labels = named(q.at(step));
        let at = out
            .iter()
            .position(|s| s.labels == labels && !is_present(s.values[step]));
        let at = at.unwrap_or_else(|| {
            out.push(Series::new(labels, vec![ABSENT; values.len()]));
            out.len() - 1
        });
        out[at].values[step] = *value;
    }
}

/// A float as OpenMetrics writes it: `1.0`, not `1`.
fn openmetrics_float(value: f64) -> String {
    let text = General(value).to_string();
    let whole = value.is_finite() && !text.contains(['.', 'e']);
    if whole { format!("{text}.0") } else { text }
}
