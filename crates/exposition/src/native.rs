//! Native histograms out of exposition's protobuf: what is there, and whether it adds up.

use model::histogram::{BucketSpan, EXPONENTIAL_SCHEMAS, Histogram, ResetHint};

use crate::wire::{Field, Wire, WireError, repeated_double, repeated_varint};

/// The most buckets of one histogram: beyond any client's, and a bound on what a span of a few bytes may claim.
pub const BUCKETS_MAX: usize = 16_384;

/// The native part of a histogram message, as its fields come in.
#[derive(Debug, Default)]
pub struct Native {
    schema: i64,
    zero_threshold: f64,
    zero_count: f64,
    zero_count_float: Option<f64>,
    positive: Side,
    negative: Side,
}

#[derive(Debug, Default)]
struct Side {
    spans: Vec<BucketSpan>,
    deltas: Vec<i64>,
    counts: Vec<f64>,
}

impl Native {
    /// Takes a field of the message `io.prometheus.client.Histogram`, if it is of the native part.
    ///
    /// # Errors
    ///
    /// [`WireError`] when the field is broken.
    pub fn take(&mut self, number: u32, field: Field<'_>) -> Result<(), WireError> {
        #[expect(clippy::cast_precision_loss, reason = "counts are floats from here on")]
        match number {
            5 => self.schema = field.zigzag(),
            6 => self.zero_threshold = field.double(),
            7 => self.zero_count = field.unsigned() as f64,
            8 => self.zero_count_float = Some(field.double()),
            9 => self.negative.span(field)?,
            10 => self.negative.deltas(field)?,
            11 => self.negative.counts(field)?,
            12 => self.positive.span(field)?,
            13 => self.positive.deltas(field)?,
            14 => self.positive.counts(field)?,
            _ => {}
        }
        Ok(())
    }

    /// Whether the message has a native part at all: a span, or something about zero.
    #[must_use]
    pub fn is_there(&self) -> bool {
        let spans = !self.positive.spans.is_empty() || !self.negative.spans.is_empty();
        spans || self.zero_threshold > 0.0 || self.zero_count > 0.0 || self.zero_count_float.is_some_and(|c| c > 0.0)
    }

    /// The histogram, with the count and sum that its classic part shares; spans without buckets are left out.
    ///
    /// # Errors
    ///
    /// A sentence when it does not add up.
    pub fn finish(self, count: f64, sum: f64, gauge: bool) -> Result<Histogram, String> {
        let schema = i8::try_from(self.schema)
            .ok()
            .filter(|s| EXPONENTIAL_SCHEMAS.contains(s));
        let schema = schema.ok_or_else(|| format!("unknown schema {} of a native histogram", self.schema))?;
        let (positive_spans, positive_buckets) = self.positive.finish("positive")?;
        let (negative_spans, negative_buckets) = self.negative.finish("negative")?;
        let histogram = Histogram {
            reset: if gauge { ResetHint::Gauge } else { ResetHint::Unknown },
            schema,
            zero_threshold: self.zero_threshold,
            zero_count: self.zero_count_float.unwrap_or(self.zero_count),
            count,
            sum,
            positive_spans,
            negative_spans,
            positive_buckets,
            negative_buckets,
            custom_values: Vec::new(),
        };
        check(&histogram)?;
        Ok(histogram)
    }
}

impl Side {
    fn span(&mut self, field: Field<'_>) -> Result<(), WireError> {
        let mut span = BucketSpan::default();
        let mut wire = Wire::new(field.bytes());
        let beyond = |wire: &Wire<'_>| WireError {
            at: wire.at(),
            what: "a span beyond 32 bits",
        };
        while let Some((number, field)) = wire.field()? {
            match number {
                1 => span.offset = i32::try_from(field.zigzag()).map_err(|_| beyond(&wire))?,
                2 => span.length = u32::try_from(field.unsigned()).map_err(|_| beyond(&wire))?,
                _ => {}
            }
        }
        self.spans.push(span);
        Ok(())
    }

    fn deltas(&mut self, field: Field<'_>) -> Result<(), WireError> {
        repeated_varint(field, |v| self.deltas.push(crate::wire::unzigzag(v)))
    }

    fn counts(&mut self, field: Field<'_>) -> Result<(), WireError> {
        repeated_double(field, |v| self.counts.push(v))
    }

    fn finish(self, side: &str) -> Result<(Vec<BucketSpan>, Vec<f64>), String> {
        let buckets = if self.counts.is_empty() {
            running(&self.deltas)
        } else {
            self.counts
        };
        let spanned: u64 = self.spans.iter().map(|s| u64::from(s.length)).sum();
        if spanned != buckets.len() as u64 {
            return Err(format!(
                "{side} spans of a native histogram need {spanned} buckets, there are {}",
                buckets.len()
            ));
        }
        Ok((tidy(&self.spans), buckets))
    }
}

/// Counts out of differences from bucket to bucket.
fn running(deltas: &[i64]) -> Vec<f64> {
    let mut count = 0_i64;
    let counts = deltas.iter().map(|delta| {
        count = count.saturating_add(*delta);
        #[expect(clippy::cast_precision_loss, reason = "counts are floats from here on")]
        let float = count as f64;
        float
    });
    counts.collect()
}

/// Leaves spans without buckets out: clients send one to say that a histogram without observations is native.
fn tidy(spans: &[BucketSpan]) -> Vec<BucketSpan> {
    let mut out: Vec<BucketSpan> = Vec::with_capacity(spans.len());
    let mut skipped = 0_i32;
    for span in spans {
        if span.length == 0 {
            skipped = skipped.saturating_add(span.offset);
            continue;
        }
        out.push(BucketSpan {
            offset: span.offset.saturating_add(skipped),
            length: span.length,
        });
        skipped = 0;
    }
    out
}

/// Whether a histogram adds up, whoever sent it.
///
/// # Errors
///
/// A sentence when it does not.
pub fn check(histogram: &Histogram) -> Result<(), String> {
    let custom = histogram.schema == model::histogram::CUSTOM_BUCKETS_SCHEMA;
    if !custom && !EXPONENTIAL_SCHEMAS.contains(&histogram.schema) {
        return Err(format!("unknown schema {} of a native histogram", histogram.schema));
    }
    check_side("positive", &histogram.positive_spans, &histogram.positive_buckets)?;
    check_side("negative", &histogram.negative_spans, &histogram.negative_buckets)?;
    if custom {
        let bounds = &histogram.custom_values;
        if bounds.len() > BUCKETS_MAX || bounds.windows(2).any(|w| w[0] >= w[1]) || bounds.iter().any(|b| b.is_nan()) {
            return Err("custom bounds of a native histogram must ascend".to_owned());
        }
        let last: i64 = histogram
            .positive_spans
            .iter()
            .map(|s| i64::from(s.offset) + i64::from(s.length))
            .sum();
        if last > bounds.len() as i64 + 1 {
            return Err("a native histogram has more buckets than custom bounds".to_owned());
        }
        if !histogram.negative_buckets.is_empty() || histogram.zero_count != 0.0 {
            return Err("a native histogram with custom bounds has no negative and no zero bucket".to_owned());
        }
    }
    for (what, value) in [("count", histogram.count), ("zero count", histogram.zero_count)] {
        if value < 0.0 || value.is_nan() {
            return Err(format!("the {what} of a native histogram is {value}"));
        }
    }
    if histogram.zero_threshold.is_nan() || histogram.zero_threshold < 0.0 {
        return Err(format!(
            "the zero threshold of a native histogram is {}",
            histogram.zero_threshold
        ));
    }
    Ok(())
}

fn check_side(side: &str, spans: &[BucketSpan], buckets: &[f64]) -> Result<(), String> {
    if buckets.len() > BUCKETS_MAX {
        return Err(format!(
            "a native histogram has {} {side} buckets, at most {BUCKETS_MAX} are taken",
            buckets.len()
        ));
    }
    let spanned: u64 = spans.iter().map(|s| u64::from(s.length)).sum();
    if spanned != buckets.len() as u64 {
        return Err(format!(
            "{side} spans of a native histogram need {spanned} buckets, there are {}",
            buckets.len()
        ));
    }
    if spans.iter().skip(1).any(|s| s.offset < 0) {
        return Err(format!("{side} spans of a native histogram overlap"));
    }
    if let Some(bad) = buckets.iter().find(|c| **c < 0.0 || c.is_nan()) {
        return Err(format!("a {side} bucket of a native histogram holds {bad}"));
    }
    Ok(())
}

/// Halves the resolution until it is no finer than `schema`.
pub fn at_most(histogram: &mut Histogram, schema: i8) {
    while histogram.schema > schema && coarsen(histogram) {}
}

/// Halves the resolution until there are at most `limit` buckets; `false` when the coarsest schema has more still.
pub fn fit(histogram: &mut Histogram, limit: usize) -> bool {
    let buckets = |h: &Histogram| h.positive_buckets.len() + h.negative_buckets.len();
    while buckets(histogram) > limit {
        if !coarsen(histogram) {
            return false;
        }
    }
    true
}

/// Halves the resolution until neighbouring bounds differ by `factor` at least.
pub fn widen(histogram: &mut Histogram, factor: f64) {
    while histogram.schema > *EXPONENTIAL_SCHEMAS.start()
        && (2_f64).powf((2_f64).powi(-i32::from(histogram.schema))) < factor
    {
        if !coarsen(histogram) {
            return;
        }
    }
}

/// Merges each two neighbouring buckets; `false` at the coarsest schema, or where bounds are custom.
fn coarsen(histogram: &mut Histogram) -> bool {
    if histogram.schema <= *EXPONENTIAL_SCHEMAS.start() {
        return false;
    }
    histogram.schema -= 1;
    merge(&mut histogram.positive_spans, &mut histogram.positive_buckets);
    merge(&mut histogram.negative_spans, &mut histogram.negative_buckets);
    true
}

fn merge(spans: &mut Vec<BucketSpan>, buckets: &mut Vec<f64>) {
    let mut merged: Vec<(i64, f64)> = Vec::with_capacity(buckets.len());
    let mut index = 0_i64;
    let mut counts = buckets.iter();
    for span in spans.iter() {
        index += i64::from(span.offset);
        for _ in 0..span.length {
            let Some(count) = counts.next() else { break };
            // Bucket i ends at base^i, so i and i + 1 fall together where i is odd.
            let half = (index + 1) >> 1;
            match merged.last_mut() {
                Some((last, sum)) if *last == half => *sum += count,
                _ => merged.push((half, *count)),
            }
            index += 1;
        }
    }
    spans.clear();
    buckets.clear();
    let mut next = 0_i64;
    for (index, count) in merged {
        match spans.last_mut() {
            Some(span) if index == next => span.length += 1,
            _ => spans.push(BucketSpan {
                offset: i32::try_from(index - next).unwrap_or(i32::MAX),
                length: 1,
            }),
        }
        buckets.push(count);
        next = index + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(offset: i32, buckets: &[f64]) -> Histogram {
        Histogram {
            schema: 1,
            count: buckets.iter().sum(),
            positive_spans: vec![BucketSpan {
                offset,
                length: u32::try_from(buckets.len()).expect("few"),
            }],
            positive_buckets: buckets.to_vec(),
            ..Histogram::default()
        }
    }

    #[test]
    fn half_the_resolution_keeps_every_observation() {
        // Buckets 1 to 5 of schema 1 are 1 and 2, 3 and 4, and the half of 5 and 6 of schema 0.
        let mut h = histogram(1, &[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!(fit(&mut h, 3));
        assert_eq!((h.schema, &h.positive_buckets[..]), (0, &[3.0, 7.0, 5.0][..]));
        assert_eq!(h.positive_spans, [BucketSpan { offset: 1, length: 3 }]);
        let mut h = histogram(-3, &[1.0, 2.0, 3.0]);
        assert!(fit(&mut h, 2));
        assert_eq!(h.positive_buckets, [3.0, 3.0]);
        assert_eq!(h.positive_spans[0].offset, -1);
        let mut wide = histogram(0, &[1.0; 64]);
        assert!(!fit(&mut wide, 0), "a histogram with observations has a bucket");
        widen(&mut h, 4.0);
        assert_eq!(h.schema, -1);
    }

    #[test]
    fn what_does_not_add_up_is_refused() {
        let refused = |change: fn(&mut Histogram)| {
            let mut h = histogram(0, &[1.0, 2.0]);
            change(&mut h);
            check(&h).expect_err("refused")
        };
        assert!(check(&histogram(0, &[1.0])).is_ok());
        assert!(refused(|h| h.schema = 9).contains("unknown schema 9"));
        assert!(refused(|h| h.positive_spans[0].length = 3).contains("need 3 buckets, there are 2"));
        assert!(refused(|h| h.positive_buckets[0] = -1.0).contains("positive bucket"));
        assert!(refused(|h| h.count = f64::NAN).contains("count"));
        assert!(refused(|h| h.schema = -53).contains("more buckets than custom bounds"));
    }
}
