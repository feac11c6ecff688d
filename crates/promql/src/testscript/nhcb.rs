//! `load_with_nhcb`: native histograms with custom buckets made of classic ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::histogram::CUSTOM_BUCKETS_SCHEMA;
use model::number::parse_float;
use model::{BucketSpan, Histogram, Labels, METRIC_NAME};

use super::notation::{Point, SeriesLine};

/// A classic histogram at a step.
#[derive(Default)]
struct Classic {
    /// Cumulative counts by upper bound.
    buckets: Vec<(f64, f64)>,
    count: Option<f64>,
    sum: f64,
}

impl Classic {
    /// `None` where a count falls from one bound to the next.
    fn native(mut self) -> Option<Histogram> {
        self.buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.buckets.dedup_by(|next, kept| next.0 == kept.0);
        let count = self.count.or_else(|| self.buckets.last().map(|b| b.1))?;
        if self.buckets.last().is_none_or(|b| b.0 != f64::INFINITY) {
            self.buckets.push((f64::INFINITY, count));
        }
        let mut before = 0.0;
        let mut counts = Vec::with_capacity(self.buckets.len());
        for (_, cumulative) in &self.buckets {
            if *cumulative < before {
                return None;
            }
            counts.push(cumulative - before);
            before = *cumulative;
        }
        let bounds = self.buckets.iter().map(|b| b.0).filter(|b| *b != f64::INFINITY);
        Some(Histogram {
            schema: CUSTOM_BUCKETS_SCHEMA,
            count,
            sum: self.sum,
            custom_values: bounds.collect(),
            positive_spans: vec![BucketSpan {
                offset: 0,
                length: u32::try_from(counts.len()).ok()?,
            }],
            positive_buckets: counts,
            ..Histogram::default()
        })
    }
}

/// The native histograms of all classic ones among `series`, each with its labels and the step it stands at, in
/// order of time.
pub(super) fn twins(series: &[SeriesLine]) -> Vec<(Labels, usize, Arc<Histogram>)> {
    let mut classics: BTreeMap<(Labels, usize), Classic> = BTreeMap::new();
    for (place, line) in series.iter().enumerate() {
        if series[place + 1..].iter().any(|later| later.labels == line.labels) {
            continue;
        }
        let name = line.labels.name();
        let suffix = ["_bucket", "_count", "_sum"].into_iter().find(|s| name.ends_with(s));
        let Some(suffix) = suffix else { continue };
        let bound = line.labels.get("le").and_then(parse_float).filter(|b| !b.is_nan());
        if suffix == "_bucket" && bound.is_none() {
            continue;
        }
        let base = &name[..name.len() - suffix.len()];
        let labels = line.labels.without(&["le"]).with(METRIC_NAME, base);
        for (step, point) in line.points.iter().enumerate() {
            let Point::Float(value) = point else { continue };
            let classic = classics.entry((labels.clone(), step)).or_default();
            match (suffix, bound) {
                ("_count", _) => classic.count = Some(*value),
                ("_sum", _) => classic.sum = *value,
                (_, Some(bound)) => classic.buckets.push((bound, *value)),
                (_, None) => {}
            }
        }
    }
    let native =
        |((labels, step), classic): ((Labels, usize), Classic)| Some((labels, step, Arc::new(classic.native()?)));
    classics.into_iter().filter_map(native).collect()
}
