//! Histograms as text: as test scripts write them, and as `count_values` names them.

use std::fmt;

use model::number::General;
use model::{Histogram, ResetHint};

/// A histogram in the notation of test scripts: `{{schema:1 sum:3 count:2 buckets:[1 0 1]}}`.
pub(crate) struct Shown<'a>(pub(crate) &'a Histogram);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let h = self.0;
        let mut parts = Vec::new();
        if h.schema != 0 {
            parts.push(format!("schema:{}", h.schema));
        }
        for (name, number) in [
            ("count", h.count),
            ("sum", h.sum),
            ("z_bucket", h.zero_count),
            ("z_bucket_w", h.zero_threshold),
        ] {
            if number != 0.0 {
                parts.push(format!("{name}:{}", General(number)));
            }
        }
        if !h.custom_values.is_empty() {
            parts.push(format!("custom_values:[{}]", numbers(h.custom_values.iter().copied())));
        }
        match h.reset {
            ResetHint::Unknown => {}
            ResetHint::Reset => parts.push("counter_reset_hint:reset".to_owned()),
            ResetHint::NotReset => parts.push("counter_reset_hint:not_reset".to_owned()),
            ResetHint::Gauge => parts.push("counter_reset_hint:gauge".to_owned()),
        }
        for (sign, spans, buckets) in [
            ("", &h.positive_spans, &h.positive_buckets),
            ("n_", &h.negative_spans, &h.negative_buckets),
        ] {
            let Some(first) = spans.first() else { continue };
            if first.offset != 0 {
                parts.push(format!("{sign}offset:{}", first.offset));
            }
            let mut counts = Vec::new();
            let mut from = 0;
            for (i, span) in spans.iter().enumerate() {
                let gap = if i == 0 {
                    0
                } else {
                    usize::try_from(span.offset).unwrap_or(0).min(1000)
                };
                counts.extend(std::iter::repeat_n(0.0, gap));
                let to = buckets.len().min(from + span.length as usize);
                counts.extend_from_slice(&buckets[from..to]);
                from = to;
            }
            parts.push(format!("{sign}buckets:[{}]", numbers(counts.into_iter())));
        }
        write!(f, "{{{{{}}}}}", parts.join(" "))
    }
}

fn numbers(all: impl Iterator<Item = f64>) -> String {
    let texts: Vec<String> = all.map(|n| General(n).to_string()).collect();
    texts.join(" ")
}

/// `{count:4, sum:5, (0.5,1]:1, (1,2]:2}`: how Prometheus prints a histogram.
pub(crate) fn printed(histogram: &Histogram) -> String {
    let mut out = format!("{{count:{}, sum:{}", General(histogram.count), General(histogram.sum));
    for bucket in histogram.buckets().iter().filter(|b| b.count != 0.0) {
        let open = if bucket.lower_inclusive { '[' } else { '(' };
        let close = if bucket.upper_inclusive { ']' } else { ')' };
        let (lower, upper) = (General(bucket.lower), General(bucket.upper));
        out += &format!(", {open}{lower},{upper}{close}:{}", General(bucket.count));
    }
    out.push('}');
    out
}
