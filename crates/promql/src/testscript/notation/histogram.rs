//! Native histograms in the notation: `{{schema:1 sum:3 count:2 offset:-1 buckets:[1 0 1] n_buckets:[…]
//! z_bucket:1 z_bucket_w:0.001 custom_values:[…] counter_reset_hint:gauge}}`, every part optional.

use std::sync::Arc;

use model::number::parse_float;
use model::{BucketSpan, Histogram, ResetHint};

use super::{NotationError, POINTS_MAX, Point, repeat};
use crate::native::Total;

/// Reads a histogram.
///
/// # Errors
///
/// [`NotationError::Point`]
pub fn parse_histogram(text: &str) -> Result<Histogram, NotationError> {
    parse(text).map(|(histogram, _)| histogram)
}

/// Reads an item that begins with a histogram and adds its points.
pub(super) fn add_points(item: &str, points: &mut Vec<Point>) -> Result<(), NotationError> {
    let wrong = || NotationError::Point(item.to_owned());
    let end = item.find("}}").ok_or_else(wrong)? + 2;
    let (first, names_hint) = parse(&item[..end])?;
    let rest = &item[end..];
    let count = |text: &str| repeat(text).map(|n| n.saturating_add(1)).ok_or_else(wrong);
    let room = |count: usize| {
        let fits = points.len().saturating_add(count) <= POINTS_MAX;
        fits.then_some(())
            .ok_or_else(|| NotationError::TooMany(item.to_owned()))
    };
    let point = |histogram: &Arc<Histogram>, names_hint| Point::Histogram {
        histogram: Arc::clone(histogram),
        names_hint,
    };
    let mut at = Arc::new(first);
    if !rest.starts_with(['+', '-']) {
        let count = if rest.is_empty() { 1 } else { count(rest)? };
        room(count)?;
        points.extend((0..count).map(|_| point(&at, names_hint)));
        return Ok(());
    }
    let delta_end = rest.rfind("}}").ok_or_else(wrong)? + 2;
    let (delta, _) = parse(&rest[1..delta_end])?;
    let count = count(&rest[delta_end..])?;
    room(count)?;
    if at.schema > delta.schema {
        return Err(wrong());
    }
    points.push(point(&at, names_hint));
    for _ in 1..count {
        let mut next = Total::of(&at);
        let joined = if rest.starts_with('+') {
            next.add(&delta)
        } else {
            next.subtract(&delta)
        };
        joined.map_err(|_| wrong())?;
        at = Arc::new(next.finish());
        points.push(point(&at, false));
    }
    Ok(())
}

/// The histogram, and whether it names what is known of a reset.
fn parse(text: &str) -> Result<(Histogram, bool), NotationError> {
    let wrong = || NotationError::Point(text.to_owned());
    let inside = text
        .strip_prefix("{{")
        .and_then(|t| t.strip_suffix("}}"))
        .ok_or_else(wrong)?;
    let mut histogram = Histogram::default();
    let (mut offset, mut negative_offset) = (0, 0);
    let mut names_hint = false;
    let mut rest = inside.trim_start();
    while !rest.is_empty() {
        let (key, after) = rest.split_once(':').ok_or_else(wrong)?;
        let after = after.trim_start();
        let (value, next) = match after.strip_prefix('[') {
            Some(list) => list.split_once(']').ok_or_else(wrong)?,
            None => after.split_at(after.find(char::is_whitespace).unwrap_or(after.len())),
        };
        let number = || parse_float(value).ok_or_else(wrong);
        let whole = || value.parse::<i32>().map_err(|_| wrong());
        let list = || -> Result<Vec<f64>, NotationError> {
            let words = value.split_whitespace();
            words.map(|w| parse_float(w).ok_or_else(wrong)).collect()
        };
        let is_list = matches!(key, "buckets" | "n_buckets" | "custom_values");
        if is_list != after.starts_with('[') {
            return Err(wrong());
        }
        match key {
            "schema" => histogram.schema = value.parse().map_err(|_| wrong())?,
            "sum" => histogram.sum = number()?,
            "count" => histogram.count = number()?,
            "z_bucket" => histogram.zero_count = number()?,
            "z_bucket_w" => histogram.zero_threshold = number()?,
            "offset" => offset = whole()?,
            "n_offset" => negative_offset = whole()?,
            "buckets" => histogram.positive_buckets = list()?,
            "n_buckets" => histogram.negative_buckets = list()?,
            "custom_values" => histogram.custom_values = list()?,
            "counter_reset_hint" => {
                names_hint = true;
                histogram.reset = match value {
                    "unknown" => ResetHint::Unknown,
                    "reset" => ResetHint::Reset,
                    "not_reset" => ResetHint::NotReset,
                    "gauge" => ResetHint::Gauge,
                    _ => return Err(wrong()),
                };
            }
            _ => return Err(wrong()),
        }
        rest = next.trim_start();
    }
    let span = |offset: i32, buckets: &[f64]| match u32::try_from(buckets.len()) {
        Ok(length) if length > 0 => vec![BucketSpan { offset, length }],
        _ => Vec::new(),
    };
    histogram.positive_spans = span(offset, &histogram.positive_buckets);
    histogram.negative_spans = span(negative_offset, &histogram.negative_buckets);
    let known_schema = histogram.is_custom() || model::histogram::EXPONENTIAL_SCHEMAS.contains(&histogram.schema);
    if !known_schema {
        return Err(wrong());
    }
    Ok((histogram, names_hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Shown;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let mut points = Vec::new();
        let got = match add_points(text, &mut points) {
            Err(error) => error.to_string(),
            Ok(()) => {
                let shown = points.iter().map(|p| match p {
                    Point::Histogram { histogram, .. } => Shown(histogram).to_string(),
                    other => format!("{other:?}"),
                });
                shown.collect::<Vec<_>>().join(" ")
            }
        };
        assert_eq!(got, want);
    }

    #[test]
    fn histograms_repeat_and_grow() {
        check("{{}}", "{{}}");
        check(
            "{{schema:1 sum:-0.3 count:3.1}}x1",
            "{{schema:1 count:3.1 sum:-0.3}} {{schema:1 count:3.1 sum:-0.3}}",
        );
        check(
            "{{count:2 buckets:[1 1]}}+{{count:1 offset:1 buckets:[1]}}x2",
            "{{count:2 buckets:[1 1]}} {{count:3 buckets:[1 2]}} {{count:4 buckets:[1 3]}}",
        );
        check(
            "{{count:2 buckets:[2]}}-{{count:1 buckets:[1]}}x1",
            "{{count:2 buckets:[2]}} {{count:1 buckets:[1]}}",
        );
        check(
            "{{ schema:-53 custom_values:[1 2] n_offset:0 buckets:[ 0 4 ] counter_reset_hint:gauge }}",
            "{{schema:-53 custom_values:[1 2] counter_reset_hint:gauge buckets:[0 4]}}",
        );
    }

    #[test]
    fn what_is_no_histogram_is_named() {
        for text in [
            "{{",
            "{{x:1}}",
            "{{sum}}",
            "{{sum:a}}",
            "{{buckets:1}}",
            "{{sum:[1]}}",
            "{{schema:99}}",
            "{{counter_reset_hint:maybe}}",
            "{{}}y",
            "{{schema:2}}+{{schema:1}}x1",
        ] {
            assert!(
                matches!(add_points(text, &mut Vec::new()), Err(NotationError::Point(_))),
                "{text}"
            );
        }
    }
}
