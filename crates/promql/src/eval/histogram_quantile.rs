//! `histogram_quantile`, `histogram_quantiles`, `histogram_fraction`: over native histograms, and over classic
//! ones, where series that differ in `le` alone are the buckets of one histogram. Where both stand under the same
//! labels at one moment neither has a result.

use hashbrown::HashMap;
use model::number::{General, parse_float};
use model::text::Span;
use model::{Labels, QueryError};

use super::Evaluator;
use super::bucket::{self, Bucket, Mended};
use super::grid::Grid;
use super::note::{Notes, Repair};
use super::series::{ABSENT, Operand, Scalar, Series, is_present};
use crate::native::{Seen, fraction, quantile};
use crate::plan::Node;

/// The label that holds a bucket's upper bound.
const LE: &str = "le";

/// A histogram: its labels without `le`, and its buckets by bound.
struct Classic {
    labels: Labels,
    /// Upper bound and place of the series, sorted by bound.
    buckets: Vec<(f64, usize)>,
    /// Steps at which a native histogram stands under the same labels; empty when there is none.
    blocked: Vec<bool>,
}

impl Classic {
    /// The buckets that have a sample at `step`.
    fn at(&self, step: usize, series: &[Series], into: &mut Vec<Bucket>) {
        into.clear();
        if self.blocked.get(step) == Some(&true) {
            return;
        }
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
        let mut series = self.vector(vector, grid)?;
        self.note_quantiles(&q, q_arg.span, grid);
        let classics = self.classics(&mut series, vector.span);
        let mut out = self.natives_of(&series, false, vector.span, |h, step| quantile(q.at(step), h));
        for classic in classics {
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
        let mut series = self.vector(vector, grid)?;
        let classics = self.classics(&mut series, vector.span);
        let mut out = Vec::new();
        for q_arg in q_args {
            let q = self.scalar(q_arg, grid)?;
            self.note_quantiles(&q, q_arg.span, grid);
            for native in self.natives_of(&series, false, vector.span, |h, step| quantile(q.at(step), h)) {
                spread(&native.labels, label, &q, &native.values, &mut out);
            }
            for classic in &classics {
                let values = self.quantiles_of(classic, &series, &q, vector.span, grid)?;
                spread(&classic.labels, label, &q, &values, &mut out);
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
        let mut series = self.vector(vector, grid)?;
        let classics = self.classics(&mut series, vector.span);
        let share = |h: &model::Histogram, step: usize| fraction(lower.at(step), upper.at(step), h);
        let mut out = self.natives_of(&series, true, vector.span, share);
        let mut buckets = Vec::new();
        for classic in classics {
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

    /// What `f` makes of each native histogram.
    fn natives_of(
        &self,
        series: &[Series],
        is_fraction: bool,
        span: Span,
        f: impl Fn(&model::Histogram, usize) -> (f64, Seen),
    ) -> Vec<Series> {
        let mut notes = Notes::default();
        let mut out = Vec::new();
        for one in series.iter().filter(|s| !s.natives.is_empty()) {
            let name = self.shown_name(&one.labels);
            let mut values = vec![ABSENT; one.values.len()];
            for (step, native) in one.natives.iter().enumerate() {
                let Some(histogram) = native else { continue };
                let (value, seen) = f(histogram, step);
                values[step] = value;
                notes.nan_observations(is_fraction, seen, name, span);
            }
            out.push(Series::new(one.labels.clone(), values));
        }
        self.note(notes);
        out
    }

    /// Takes a native histogram out where classic buckets stand under the same labels, and blocks those.
    fn part(&self, classics: &mut [Classic], series: &mut [Series], span: Span) {
        let mut notes = Notes::default();
        for place in 0..series.len() {
            if series[place].natives.is_empty() {
                continue;
            }
            let Some(classic) = classics.iter_mut().find(|c| c.labels == series[place].labels) else {
                continue;
            };
            for step in 0..series[place].natives.len() {
                let has_buckets = classic
                    .buckets
                    .iter()
                    .any(|(_, at)| is_present(series[*at].values[step]));
                if series[place].native(step).is_none() || !has_buckets {
                    continue;
                }
                notes.mixed_classic_and_native(self.shown_name(&series[place].labels), span);
                classic.blocked.resize(series[place].values.len(), false);
                classic.blocked[step] = true;
                series[place].natives[step] = None;
            }
        }
        self.note(notes);
    }

    /// Sorts series into histograms; one without a usable bound is noted and left out.
    fn classics(&self, series: &mut [Series], span: Span) -> Vec<Classic> {
        let mut notes = Notes::default();
        let mut known: HashMap<Labels, usize, foldhash::fast::RandomState> = HashMap::default();
        let mut classics: Vec<Classic> = Vec::new();
        for (place, one) in series.iter().enumerate() {
            if !one.natives.is_empty() && !one.values.iter().any(|v| is_present(*v)) {
                continue;
            }
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
                    blocked: Vec::new(),
                });
                classics.len() - 1
            });
            classics[at].buckets.push((bound, place));
        }
        for classic in &mut classics {
            classic.buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        self.note(notes);
        self.part(&mut classics, series, span);
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
fn spread(labels: &Labels, label: &str, q: &Scalar, values: &[f64], out: &mut Vec<Series>) {
    let named = |q: f64| labels.with(label, &openmetrics_float(q));
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
