//! Counter resets: what is known of them, and how they are found where nothing is.

use model::histogram::indexed;
use model::{BucketSpan, Histogram, ResetHint};

use super::{coarser, placed, same_bounds, shared_bounds};

/// Whether a counter started again between `before` and `now`.
pub(crate) fn is_reset(before: &Histogram, now: &Histogram) -> bool {
    match now.reset {
        ResetHint::Reset => true,
        ResetHint::NotReset => false,
        ResetHint::Unknown | ResetHint::Gauge => shrank(before, now),
    }
}

/// What a store knows of a histogram that follows another one.
pub(crate) fn appended_hint(before: Option<&Histogram>, now: &Histogram) -> ResetHint {
    let Some(before) = before else {
        return match now.reset {
            ResetHint::Gauge => ResetHint::Gauge,
            _ => ResetHint::Unknown,
        };
    };
    let same_kind = before.reset != ResetHint::Gauge
        && before.schema == now.schema
        && before.zero_threshold == now.zero_threshold
        && same_bounds(&before.custom_values, &now.custom_values);
    match now.reset {
        ResetHint::Gauge => ResetHint::Gauge,
        ResetHint::Reset => ResetHint::Unknown,
        _ if same_kind && !shrank(before, now) => ResetHint::NotReset,
        _ => ResetHint::Unknown,
    }
}

/// Whether any count is smaller than before.
fn shrank(before: &Histogram, now: &Histogram) -> bool {
    if now.count < before.count || now.is_custom() != before.is_custom() {
        return true;
    }
    let cells = |h: &Histogram| indexed(&h.positive_spans, &h.positive_buckets).collect::<Vec<_>>();
    if now.is_custom() {
        if same_bounds(&before.custom_values, &now.custom_values) {
            return fewer(&cells(before), &cells(now));
        }
        let shared = shared_bounds(&before.custom_values, &now.custom_values);
        let moved = |h: &Histogram| {
            super::gathered(
                cells(h)
                    .into_iter()
                    .map(|(index, count)| (placed(index, &h.custom_values, &shared), count)),
            )
        };
        return fewer(&moved(before), &moved(now));
    }
    if now.schema > before.schema || now.zero_threshold < before.zero_threshold {
        return true;
    }
    let (zeros, threshold) = zeros_within(before, now.zero_threshold);
    if threshold != now.zero_threshold || now.zero_count < zeros {
        return true;
    }
    let side = |h: &Histogram, spans: &[BucketSpan], buckets: &[f64]| -> Vec<(i32, f64)> {
        let outside =
            |(index, _): &(i32, f64)| model::histogram::exponential_bound(now.schema, *index) > now.zero_threshold;
        let cells = coarser(indexed(spans, buckets), h.schema, now.schema);
        cells.into_iter().filter(outside).collect()
    };
    fewer(
        &side(before, &before.positive_spans, &before.positive_buckets),
        &side(now, &now.positive_spans, &now.positive_buckets),
    ) || fewer(
        &side(before, &before.negative_spans, &before.negative_buckets),
        &side(now, &now.negative_spans, &now.negative_buckets),
    )
}

/// Whether any bucket counts less than before; both lists ascending.
fn fewer(before: &[(i32, f64)], now: &[(i32, f64)]) -> bool {
    let mut rest = now.iter().peekable();
    before.iter().any(|(index, had)| {
        while rest.next_if(|(other, _)| other < index).is_some() {}
        match rest.peek() {
            Some((other, has)) if other == index => has < had,
            _ => *had != 0.0,
        }
    })
}

/// What a zero bucket of at least `threshold` would count, and how wide it must be so that it cuts no bucket
/// that holds anything.
pub(super) fn zeros_within(histogram: &Histogram, threshold: f64) -> (f64, f64) {
    let bound = |index: i32| model::histogram::exponential_bound(histogram.schema, index);
    let mut wide = threshold;
    if wide == histogram.zero_threshold {
        return (histogram.zero_count, wide);
    }
    loop {
        let mut count = histogram.zero_count;
        let mut wider = wide;
        for (spans, buckets) in [
            (&histogram.positive_spans, &histogram.positive_buckets),
            (&histogram.negative_spans, &histogram.negative_buckets),
        ] {
            for (index, inside) in indexed(spans, buckets) {
                if bound(index.saturating_sub(1)) >= wider {
                    break;
                }
                count += inside;
                if bound(index) > wider {
                    if inside != 0.0 {
                        wider = bound(index);
                    }
                    break;
                }
            }
        }
        if wider == wide {
            return (count, wide);
        }
        wide = wider;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testscript::notation::parse_histogram;

    #[track_caller]
    fn check(before: &str, now: &str, want: bool) {
        let [before, now] = [before, now].map(|text| parse_histogram(text).expect("a histogram"));
        assert_eq!(is_reset(&before, &now), want, "{before:?} {now:?}");
    }

    #[test]
    fn a_bucket_that_counts_less_is_a_reset() {
        check("{{count:4 buckets:[1 2 1]}}", "{{count:5 buckets:[1 1 3]}}", true);
        check("{{count:4 buckets:[1 2 1]}}", "{{count:4 buckets:[1 2 1]}}", false);
        check("{{count:4 buckets:[1 2 1]}}", "{{count:3 buckets:[1 2 1]}}", true);
        check(
            "{{count:4 buckets:[1 2 1]}}",
            "{{count:4 offset:1 buckets:[3 1]}}",
            true,
        );
        check("{{count:4 n_buckets:[4]}}", "{{count:4 buckets:[4]}}", true);
    }

    #[test]
    fn what_is_known_counts_before_what_is_seen() {
        check("{{count:4}}", "{{count:3 counter_reset_hint:not_reset}}", false);
        check("{{count:4}}", "{{count:5 counter_reset_hint:reset}}", true);
    }

    #[test]
    fn a_finer_resolution_is_a_reset_and_a_coarser_one_is_not() {
        check("{{count:4 buckets:[2 2]}}", "{{schema:1 count:4 buckets:[2 2]}}", true);
        check(
            "{{schema:1 count:3 buckets:[1 1 1]}}",
            "{{count:3 buckets:[1 2]}}",
            false,
        );
    }
}
