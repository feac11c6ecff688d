//! Whether an answer is what a script expects.

use model::labels::SeriesText;
use model::number::Plain;
use model::{Column, Histogram, Labels, Millis, QueryOutcome, Sample, Value};

use super::notation::Point;
use super::script::{Expect, Text};
use crate::almost::almost_equal;
use crate::native::{Shown, compact};

/// Floats may differ by this much, relatively.
const EPSILON: f64 = 1e-6;

/// `Err` says what differs.
pub(super) type Verdict = Result<(), String>;

/// Compares the remarks of an answer.
pub(super) fn notes(expect: &Expect, outcome: &QueryOutcome) -> Verdict {
    of_level(
        "warning",
        &expect.warn,
        expect.any_warn,
        expect.no_warn,
        &outcome.warnings,
    )?;
    of_level("info", &expect.info, expect.any_info, expect.no_info, &outcome.infos)
}

fn of_level(level: &str, want: &[Text], any: bool, none: bool, got: &[String]) -> Verdict {
    if none && !got.is_empty() {
        return Err(format!("unexpected {level}: {}", got.join("; ")));
    }
    if (any || !want.is_empty()) && got.is_empty() {
        return Err(format!("expected a {level}, got none"));
    }
    if let Some(missing) = want.iter().find(|w| !got.iter().any(|g| w.accepts(g))) {
        return Err(format!("expected {level} {missing}, got {}", got.join("; ")));
    }
    match got
        .iter()
        .find(|g| !want.is_empty() && !want.iter().any(|w| w.accepts(g)))
    {
        Some(extra) => Err(format!("unexpected {level}: {extra}")),
        None => Ok(()),
    }
}

/// Compares the value of an answer; a matrix stands on `moments`, start, end and step.
pub(super) fn value(expect: &Expect, got: &Value, moments: (Millis, Millis, Millis)) -> Verdict {
    match got {
        Value::Scalar(sample) => scalar(expect, sample.value),
        Value::Text(_, text) => match &expect.text {
            Some(want) if want == text => Ok(()),
            want => Err(format!("expected {want:?}, got the string {text:?}")),
        },
        Value::Vector(series) => vector(expect, series),
        Value::Matrix(series) => matrix(expect, series, expect.range_vector.unwrap_or(moments)),
    }
}

pub(super) fn scalar(expect: &Expect, got: f64) -> Verdict {
    match expect.scalar {
        None => Err(format!("expected a vector, got the scalar {}", Plain(got))),
        Some(want) if almost_equal(want, got, EPSILON) => Ok(()),
        Some(want) => Err(format!("expected scalar {}, got {}", Plain(want), Plain(got))),
    }
}

pub(super) fn vector(expect: &Expect, got: &[(Labels, Sample)]) -> Verdict {
    if let Some(want) = expect.scalar {
        return Err(format!(
            "expected the scalar {}, got a vector of {}",
            Plain(want),
            got.len()
        ));
    }
    for (place, (labels, sample)) in got.iter().enumerate() {
        let shown = SeriesText(labels);
        let Some(want_place) = expect.series.iter().position(|(want, _)| want == labels) else {
            return Err(format!("unexpected series {shown} with value {}", shown_sample(sample)));
        };
        if expect.ordered && place != want_place {
            return Err(format!(
                "expected {shown} at position {}, got it at {}",
                want_place + 1,
                place + 1
            ));
        }
        let want = expect.series[want_place].1.first();
        if !want.is_some_and(|want| same(want, sample)) {
            return Err(format!(
                "expected {shown} to be {}, got {}",
                shown_point(want),
                shown_sample(sample)
            ));
        }
    }
    match expect
        .series
        .iter()
        .find(|(want, _)| !got.iter().any(|(labels, _)| labels == want))
    {
        Some((labels, points)) => Err(format!(
            "expected {} {}, got no such series",
            SeriesText(labels),
            shown_point(points.first())
        )),
        None => Ok(()),
    }
}

fn matrix(expect: &Expect, got: &[(Labels, Column)], (start, end, step): (Millis, Millis, Millis)) -> Verdict {
    if expect.ordered {
        return Err("expected an order, got a matrix, which has none".to_owned());
    }
    if expect.scalar.is_some() {
        return Err("expected a scalar, got a matrix".to_owned());
    }
    if let Some(pair) = got.windows(2).find(|pair| pair[0].0 > pair[1].0) {
        return Err(format!("series are not sorted: {} before {}", pair[0].0, pair[1].0));
    }
    for (labels, column) in got {
        let Some((_, points)) = expect.series.iter().find(|(want, _)| want == labels) else {
            return Err(format!(
                "unexpected series {} with {}",
                SeriesText(labels),
                shown_column(column)
            ));
        };
        let mut want = Vec::new();
        for (i, point) in points.iter().enumerate() {
            let time = start.saturating_add(step.saturating_mul(Millis::try_from(i).unwrap_or(Millis::MAX)));
            if time > end {
                return Err(format!(
                    "more points are expected of {} than the range has steps",
                    SeriesText(labels)
                ));
            }
            if *point != Point::Absent {
                want.push((time, point));
            }
        }
        let all_same = want.len() == column.len()
            && want
                .iter()
                .zip(column.iter())
                .all(|((time, point), got)| *time == got.time && same(point, &got));
        if !all_same {
            let want = shown_samples(want.iter().map(|(time, point)| (*time, shown_point(Some(point)))));
            let got = shown_column(column);
            return Err(format!("expected {} to be {want}, got {got}", SeriesText(labels)));
        }
    }
    match expect
        .series
        .iter()
        .find(|(want, _)| !got.iter().any(|(labels, _)| labels == want))
    {
        Some((labels, _)) => Err(format!("expected {}, got no such series", SeriesText(labels))),
        None => Ok(()),
    }
}

fn shown_point(point: Option<&Point>) -> String {
    match point {
        Some(Point::Float(value)) => Plain(*value).to_string(),
        Some(Point::Histogram { histogram, .. }) => Shown(&compact(histogram)).to_string(),
        Some(Point::Absent) | None => "nothing".to_owned(),
    }
}

fn shown_sample(sample: &Sample) -> String {
    match &sample.histogram {
        None => Plain(sample.value).to_string(),
        Some(histogram) => Shown(&compact(histogram)).to_string(),
    }
}

/// Whether a sample is what is expected.
fn same(want: &Point, got: &Sample) -> bool {
    match (want, &got.histogram) {
        (Point::Float(want), None) => almost_equal(*want, got.value, EPSILON),
        (Point::Histogram { histogram, names_hint }, Some(got)) => {
            (!names_hint || histogram.reset == got.reset) && same_histogram(histogram, got)
        }
        _ => false,
    }
}

/// The same layout once empty buckets are left out, and almost the same numbers.
fn same_histogram(want: &Histogram, got: &Histogram) -> bool {
    let (want, got) = (compact(want), compact(got));
    let all_same =
        |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| almost_equal(*a, *b, EPSILON));
    want.schema == got.schema
        && want.zero_threshold == got.zero_threshold
        && want.custom_values == got.custom_values
        && want.positive_spans == got.positive_spans
        && want.negative_spans == got.negative_spans
        && all_same(
            &[want.count, want.sum, want.zero_count],
            &[got.count, got.sum, got.zero_count],
        )
        && all_same(&want.positive_buckets, &got.positive_buckets)
        && all_same(&want.negative_buckets, &got.negative_buckets)
}

fn shown_column(column: &Column) -> String {
    shown_samples(column.iter().map(|s| (s.time, shown_sample(&s))))
}

/// `1@0s 2@60s`, cut when long.
fn shown_samples(samples: impl Iterator<Item = (Millis, String)>) -> String {
    const SHOWN_MAX: usize = 12;
    let mut texts: Vec<String> = samples
        .map(|(time, text)| format!("{text}@{}s", time as f64 / 1000.0))
        .collect();
    let more = texts.len().saturating_sub(SHOWN_MAX);
    texts.truncate(SHOWN_MAX);
    match (texts.is_empty(), more) {
        (true, _) => "nothing".to_owned(),
        (_, 0) => texts.join(" "),
        _ => format!("{} and {more} more", texts.join(" ")),
    }
}
