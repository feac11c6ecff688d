//! Native histograms: a distribution at a moment, in buckets whose bounds follow from a schema.
//!
//! Counts are absolute floats whatever the exposition said: an integer histogram is one whose counts are whole.
//! Buckets stand in ascending order of their index, empty ones between two spans left out.

/// The schema of histograms whose bounds are given one by one in [`Histogram::custom_values`].
pub const CUSTOM_BUCKETS_SCHEMA: i8 = -53;

/// The finest and the coarsest exponential schema.
pub const EXPONENTIAL_SCHEMAS: std::ops::RangeInclusive<i8> = -4..=8;

/// A run of buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BucketSpan {
    /// Buckets left out before this run; for the first run, the index of its first bucket.
    pub offset: i32,
    /// Buckets in this run.
    pub length: u32,
}

/// What is known of a counter's reset between a histogram and the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResetHint {
    /// Nothing: compare the two.
    #[default]
    Unknown,
    /// There was a reset.
    Reset,
    /// There was none.
    NotReset,
    /// It is a gauge: resets mean nothing.
    Gauge,
}

/// A bucket with its bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    /// Lower bound.
    pub lower: f64,
    /// Upper bound.
    pub upper: f64,
    /// Whether an observation of the lower bound itself counts here.
    pub lower_inclusive: bool,
    /// Whether an observation of the upper bound itself counts here.
    pub upper_inclusive: bool,
    /// Observations, those of lower buckets not among them.
    pub count: f64,
}

/// A native histogram.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Histogram {
    /// What is known of a reset.
    pub reset: ResetHint,
    /// `-4..=8` for exponential bounds (`2^(2^-schema)` from bucket to bucket), `-53` for custom ones.
    pub schema: i8,
    /// Width of the bucket around zero, on either side.
    pub zero_threshold: f64,
    /// Observations in the bucket around zero.
    pub zero_count: f64,
    /// All observations; NaN in sum does not count here.
    pub count: f64,
    /// Sum of all observations; the staleness marker here says that the series has ended.
    pub sum: f64,
    /// Runs of buckets above zero.
    pub positive_spans: Vec<BucketSpan>,
    /// Runs of buckets below zero.
    pub negative_spans: Vec<BucketSpan>,
    /// Observations by bucket above zero.
    pub positive_buckets: Vec<f64>,
    /// Observations by bucket below zero.
    pub negative_buckets: Vec<f64>,
    /// Upper bounds, ascending, without +Inf; only with schema -53.
    pub custom_values: Vec<f64>,
}

impl Histogram {
    /// Whether its bounds are given one by one.
    #[must_use]
    pub const fn is_custom(&self) -> bool {
        self.schema == CUSTOM_BUCKETS_SCHEMA
    }

    /// Upper bound of the bucket with this index above zero; the bound below it is that of the index before.
    #[must_use]
    pub fn bound(&self, index: i32) -> f64 {
        if self.is_custom() {
            return custom_bound(&self.custom_values, index);
        }
        exponential_bound(self.schema, index)
    }

    /// The buckets in ascending order of their bounds, empty ones that are written down among them.
    #[must_use]
    pub fn buckets(&self) -> Vec<Bucket> {
        let mut out = Vec::with_capacity(self.negative_buckets.len() + self.positive_buckets.len() + 1);
        for (index, count) in indexed(&self.negative_spans, &self.negative_buckets) {
            out.push(self.bucket_of(-self.bound(index), -self.bound(index.saturating_sub(1)), false, count));
        }
        out.reverse();
        if self.zero_count != 0.0 {
            out.push(Bucket {
                lower: -self.zero_threshold,
                upper: self.zero_threshold,
                lower_inclusive: true,
                upper_inclusive: true,
                count: self.zero_count,
            });
        }
        for (index, count) in indexed(&self.positive_spans, &self.positive_buckets) {
            out.push(self.bucket_of(
                self.bound(index.saturating_sub(1)),
                self.bound(index),
                index == 0,
                count,
            ));
        }
        out
    }

    fn bucket_of(&self, lower: f64, upper: f64, is_first: bool, count: f64) -> Bucket {
        let (lower_inclusive, upper_inclusive) = if self.is_custom() {
            (is_first, true)
        } else {
            (lower < 0.0, upper > 0.0)
        };
        Bucket {
            lower,
            upper,
            lower_inclusive,
            upper_inclusive,
            count,
        }
    }
}

/// The buckets of one side with their indexes, ascending.
pub fn indexed<'a>(spans: &'a [BucketSpan], buckets: &'a [f64]) -> impl Iterator<Item = (i32, f64)> + 'a {
    let mut next = 0_i32;
    let indexes = spans.iter().flat_map(move |span| {
        let start = next.saturating_add(span.offset);
        let length = i32::try_from(span.length).unwrap_or(i32::MAX);
        next = start.saturating_add(length);
        start..next
    });
    indexes.zip(buckets.iter().copied())
}

/// Upper bound of a bucket of an exponential schema: `2^(index * 2^-schema)`.
///
/// The last bucket of numbers ends at the largest number, the one behind it holds the infinities.
#[must_use]
pub fn exponential_bound(schema: i8, index: i32) -> f64 {
    const LAST: i64 = 1024;
    let (whole, part, parts) = if schema <= 0 {
        (i64::from(index) << schema.unsigned_abs().min(31), 0, 1)
    } else {
        let parts = 1_i64 << schema.min(30);
        let index = i64::from(index);
        (index.div_euclid(parts), index.rem_euclid(parts), parts)
    };
    if part == 0 && whole == LAST {
        return f64::MAX;
    }
    let exponent = i32::try_from(whole.clamp(-2000, 2000)).unwrap_or(2000);
    let mantissa = if part == 0 {
        1.0
    } else {
        (part as f64 / parts as f64).exp2()
    };
    // In two steps: 2^1024 and numbers below the smallest normal one are out of reach in one.
    let half = exponent / 2;
    mantissa * f64::from(half).exp2() * f64::from(exponent - half).exp2()
}

fn custom_bound(bounds: &[f64], index: i32) -> f64 {
    match usize::try_from(index) {
        Err(_) => f64::NEG_INFINITY,
        Ok(index) => bounds.get(index).copied().unwrap_or(f64::INFINITY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_exponential_buckets_are_powers() {
        for (schema, index, want) in [
            (0, 0, 1.0),
            (0, 1, 2.0),
            (0, -1, 0.5),
            (1, 1, std::f64::consts::SQRT_2),
            (1, 2, 2.0),
            (-1, 1, 4.0),
            (-4, 1, 65536.0),
            (0, 1024, f64::MAX),
            (0, 1025, f64::INFINITY),
            (8, i32::MAX, f64::INFINITY),
            (-4, i32::MIN, 0.0),
        ] {
            let got = exponential_bound(schema, index);
            assert!(got == want || (got - want).abs() < 1e-12, "{schema} {index}: {got}");
        }
    }

    #[test]
    fn buckets_stand_from_the_lowest_to_the_highest() {
        let span = |offset, length| vec![BucketSpan { offset, length }];
        let histogram = Histogram {
            zero_threshold: 0.1,
            zero_count: 3.0,
            positive_spans: span(0, 2),
            positive_buckets: vec![1.0, 2.0],
            negative_spans: span(1, 1),
            negative_buckets: vec![4.0],
            ..Histogram::default()
        };
        let bounds: Vec<_> = histogram
            .buckets()
            .iter()
            .map(|b| (b.lower, b.upper, b.count))
            .collect();
        assert_eq!(
            bounds,
            [(-2.0, -1.0, 4.0), (-0.1, 0.1, 3.0), (0.5, 1.0, 1.0), (1.0, 2.0, 2.0)]
        );
        let custom = Histogram {
            schema: CUSTOM_BUCKETS_SCHEMA,
            custom_values: vec![5.0],
            positive_spans: span(0, 2),
            positive_buckets: vec![1.0, 2.0],
            ..Histogram::default()
        };
        let bounds: Vec<_> = custom
            .buckets()
            .iter()
            .map(|b| (b.lower, b.upper, b.lower_inclusive))
            .collect();
        assert_eq!(bounds, [(f64::NEG_INFINITY, 5.0, true), (5.0, f64::INFINITY, false)]);
    }

    #[test]
    fn spans_leave_buckets_out() {
        let spans = [
            BucketSpan { offset: -2, length: 1 },
            BucketSpan { offset: 3, length: 2 },
        ];
        let all: Vec<_> = indexed(&spans, &[1.0, 2.0, 3.0]).collect();
        assert_eq!(all, [(-2, 1.0), (2, 2.0), (3, 3.0)]);
    }
}
