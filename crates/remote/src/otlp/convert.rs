//! Points into samples.

use std::sync::Arc;

use exposition::native;
use model::histogram::{BucketSpan, EXPONENTIAL_SCHEMAS, Histogram};
use model::number::Plain;
use model::{Exemplar, Kind, Labels, Millis, SeriesId, stale_nan};

use super::Walk;
use super::name::{Ending, label_name, metric_name};
use super::point::{CUMULATIVE, Common, Data, Example, Explicit, Exponential, Metric, Number, Summary};
use crate::error::Error;

/// How far a point may lie ahead of the present, in milliseconds.
const AHEAD_MAX: Millis = 10 * 60 * 1000;

/// Characters of an example's labels together.
const EXEMPLAR_CHARS_MAX: usize = 128;

/// Converts a metric; what cannot be stored is noted in `walk`.
pub(super) fn metric(walk: &mut Walk<'_>, metric: &Metric) -> Result<(), Error> {
    let (kind, ending, points, temporality) = match &metric.data {
        Data::None => return Ok(()),
        Data::Gauge(points) => {
            let ending = if metric.unit == "1" {
                Ending::Ratio
            } else {
                Ending::None
            };
            (Kind::Gauge, ending, points.len(), CUMULATIVE)
        }
        Data::Sum {
            points,
            temporality,
            is_monotonic: true,
        } => (Kind::Counter, Ending::Total, points.len(), *temporality),
        Data::Sum {
            points, temporality, ..
        } => (Kind::Gauge, Ending::None, points.len(), *temporality),
        Data::Histogram { points, temporality } => (Kind::Histogram, Ending::None, points.len(), *temporality),
        Data::Exponential { points, temporality } => (Kind::Histogram, Ending::None, points.len(), *temporality),
        Data::Summary(points) => (Kind::Summary, Ending::None, points.len(), CUMULATIVE),
    };
    if temporality != CUMULATIVE {
        walk.refuse(points, || {
            format!(
                "metric {:?} has delta temporality: only cumulative values are taken; set the exporter's temporality \
                 preference to cumulative, or put a delta-to-cumulative processor before it",
                metric.name
            )
        });
        return Ok(());
    }
    let name = metric_name(&metric.name, &metric.unit, ending, walk.options.translation);
    if name.is_empty() {
        walk.refuse(points, || "a metric has no name".to_owned());
        return Ok(());
    }
    walk.receiver
        .sayings
        .say(&name, kind, &metric.description, &metric.unit);
    match &metric.data {
        Data::None => Ok(()),
        Data::Gauge(points) => points.iter().try_for_each(|p| number(walk, &name, p, false)),
        Data::Sum {
            points, is_monotonic, ..
        } => points.iter().try_for_each(|p| number(walk, &name, p, *is_monotonic)),
        Data::Histogram { points, .. } => points.iter().try_for_each(|p| explicit(walk, &name, p)),
        Data::Exponential { points, .. } => points.iter().try_for_each(|p| exponential(walk, &name, p)),
        Data::Summary(points) => points.iter().try_for_each(|p| summary(walk, &name, p)),
    }
}

/// Nanoseconds as milliseconds.
fn millis(nanos: u64) -> Millis {
    Millis::try_from(nanos / 1_000_000).unwrap_or(Millis::MAX)
}

/// The moments of a point: when it was taken and when counting began; `None` when it is refused.
fn moments(walk: &mut Walk<'_>, point: &Common, name: &str) -> Option<(Millis, Millis)> {
    let time = if point.time == 0 { walk.now } else { millis(point.time) };
    if time > walk.now.saturating_add(AHEAD_MAX) {
        walk.refuse(1, || {
            format!("out of bounds: a point of {name} lies more than 10 minutes after the present")
        });
        return None;
    }
    walk.resource.latest = walk.resource.latest.max(time);
    Some((time, millis(point.start)))
}

fn value(point: &Common, value: f64) -> f64 {
    if point.flags & 1 == 1 {
        stale_nan()
    } else if value.is_nan() {
        // No sender may forge a staleness marker.
        f64::NAN
    } else {
        value
    }
}

#[expect(clippy::cast_precision_loss, reason = "a store of doubles")]
const fn float(count: u64) -> f64 {
    count as f64
}

fn number(walk: &mut Walk<'_>, name: &str, point: &Number, is_counter: bool) -> Result<(), Error> {
    let Some((time, start)) = moments(walk, &point.common, name) else {
        return Ok(());
    };
    let Some(id) = walk.series(name, &point.common.attributes, None)? else {
        return Ok(());
    };
    walk.batch.timed.push((id, time, value(&point.common, point.value)));
    if is_counter {
        walk.began(id, start, time);
    }
    examples(walk, id, &point.exemplars);
    Ok(())
}

fn explicit(walk: &mut Walk<'_>, name: &str, point: &Explicit) -> Result<(), Error> {
    let Some((time, start)) = moments(walk, &point.common, name) else {
        return Ok(());
    };
    if !point.counts.is_empty() && point.counts.len() != point.bounds.len() + 1 {
        walk.refuse(1, || {
            format!(
                "a histogram point of {name} has {} counts for {} bounds",
                point.counts.len(),
                point.bounds.len()
            )
        });
        return Ok(());
    }
    let put = |walk: &mut Walk<'_>, suffix: &str, le: Option<&str>, count: f64| {
        let series = walk.series(
            &format!("{name}{suffix}"),
            &point.common.attributes,
            le.map(|le| ("le", le)),
        )?;
        if let Some(id) = series {
            walk.batch.timed.push((id, time, value(&point.common, count)));
            walk.began(id, start, time);
        }
        Ok::<_, Error>(series)
    };
    if let Some(sum) = point.sum {
        put(walk, "_sum", None, sum)?;
    }
    put(walk, "_count", None, float(point.count))?;
    let mut running = 0_u64;
    let mut buckets: Vec<(f64, Option<SeriesId>)> = Vec::with_capacity(point.bounds.len() + 1);
    for (bound, count) in point.bounds.iter().zip(&point.counts) {
        running = running.saturating_add(*count);
        let id = put(walk, "_bucket", Some(&Plain(*bound).to_string()), float(running))?;
        buckets.push((*bound, id));
    }
    let id = put(walk, "_bucket", Some("+Inf"), float(point.count))?;
    buckets.push((f64::INFINITY, id));
    for example in &point.exemplars {
        let bucket = buckets.iter().find(|(bound, _)| example.value <= *bound);
        if let Some((_, Some(id))) = bucket {
            examples(walk, *id, std::slice::from_ref(example));
        }
    }
    Ok(())
}

fn exponential(walk: &mut Walk<'_>, name: &str, point: &Exponential) -> Result<(), Error> {
    let Some((time, start)) = moments(walk, &point.common, name) else {
        return Ok(());
    };
    let histogram = match native_of(point) {
        Ok(histogram) => histogram,
        Err(reason) => {
            walk.refuse(1, || format!("a histogram point of {name}: {reason}"));
            return Ok(());
        }
    };
    if let Some(id) = walk.series(name, &point.common.attributes, None)? {
        walk.batch.histograms.push((id, Some(time), Arc::new(histogram)));
        walk.began(id, start, time);
        examples(walk, id, &point.exemplars);
    }
    Ok(())
}

fn native_of(point: &Exponential) -> Result<Histogram, String> {
    let schema = i8::try_from(point.scale)
        .ok()
        .filter(|scale| *scale >= *EXPONENTIAL_SCHEMAS.start());
    let schema = schema.ok_or_else(|| format!("scale {} is coarser than can be stored", point.scale))?;
    let side = |(offset, counts): &(i64, Vec<u64>)| {
        if counts.len() > native::BUCKETS_MAX {
            return Err(format!("{} buckets", counts.len()));
        }
        if counts.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        // OpenTelemetry's bucket i ends at base^(i + 1), ours at base^i.
        let offset = i32::try_from(offset + 1).map_err(|_| format!("bucket offset {offset}"))?;
        let length = u32::try_from(counts.len()).map_err(|e| e.to_string())?;
        let counts = counts.iter().map(|c| float(*c)).collect();
        Ok((vec![BucketSpan { offset, length }], counts))
    };
    let (positive_spans, positive_buckets) = side(&point.positive)?;
    let (negative_spans, negative_buckets) = side(&point.negative)?;
    let mut histogram = Histogram {
        schema,
        zero_threshold: point.zero_threshold,
        zero_count: float(point.zero_count),
        count: float(point.count),
        sum: value(&point.common, point.sum.unwrap_or(0.0)),
        positive_spans,
        negative_spans,
        positive_buckets,
        negative_buckets,
        ..Histogram::default()
    };
    native::at_most(&mut histogram, *EXPONENTIAL_SCHEMAS.end());
    native::check(&histogram)?;
    Ok(histogram)
}

fn summary(walk: &mut Walk<'_>, name: &str, point: &Summary) -> Result<(), Error> {
    let Some((time, start)) = moments(walk, &point.common, name) else {
        return Ok(());
    };
    let attributes = &point.common.attributes;
    for (suffix, v) in [("_sum", point.sum), ("_count", float(point.count))] {
        if let Some(id) = walk.series(&format!("{name}{suffix}"), attributes, None)? {
            walk.batch.timed.push((id, time, value(&point.common, v)));
            walk.began(id, start, time);
        }
    }
    for (quantile, v) in &point.quantiles {
        let quantile = Plain(*quantile).to_string();
        if let Some(id) = walk.series(name, attributes, Some(("quantile", &quantile)))? {
            walk.batch.timed.push((id, time, value(&point.common, *v)));
        }
    }
    Ok(())
}

fn examples(walk: &mut Walk<'_>, id: SeriesId, examples: &[Example]) {
    for example in examples {
        let ids = [("trace_id", &example.trace), ("span_id", &example.span)];
        let ids: Vec<(String, &String)> = ids
            .iter()
            .filter(|(_, id)| !id.is_empty())
            .map(|(n, id)| ((*n).to_owned(), *id))
            .collect();
        let chars = |pairs: &[(String, &String)]| -> usize {
            pairs.iter().map(|(n, v)| n.chars().count() + v.chars().count()).sum()
        };
        let translation = walk.options.translation;
        let mut pairs = ids.clone();
        pairs.extend(example.attributes.iter().map(|(n, v)| (label_name(n, translation), v)));
        if chars(&pairs) > EXEMPLAR_CHARS_MAX {
            // The way to the trace is worth more than the rest.
            pairs = ids;
        }
        let labels = Labels::from_pairs(pairs.iter().map(|(n, v)| (n.as_str(), v.as_str())));
        walk.batch.exemplars.push((
            id,
            Exemplar {
                labels,
                value: example.value,
                time: millis(example.time),
            },
        ));
    }
}
