//! Chunks of native histograms, with whole counts and with any.
//!
//! A chunk has one shape. Whole counts are kept as differences between neighbouring buckets and these as differences
//! of differences in time; others as XOR. A staleness marker has a sum only and ends its chunk.

use std::sync::Arc;

use model::histogram::CUSTOM_BUCKETS_SCHEMA;
use model::{BucketSpan, Column, Histogram, Millis, ResetHint, is_stale};

use super::bits::{BitReader, BitWriter, Floats};

/// Buckets of one side that are read at most.
const BUCKETS_MAX: u64 = 20_000;

const RESET: u8 = 0b1000_0000;
const GAUGE: u8 = 0b1100_0000;
const HINTS: u8 = 0b1100_0000;

/// Adds the histograms of a chunk's bytes (behind its encoding) to `into`; `None` when they make no sense.
pub fn read(bytes: &[u8], whole: bool, into: &mut Column) -> Option<()> {
    let count = u16::from_be_bytes(bytes.get(..2)?.try_into().ok()?);
    let hint = *bytes.get(2)? & HINTS;
    let mut bits = BitReader::new(&bytes[3..]);
    if count == 0 {
        return Some(());
    }
    let mut shape = read_shape(&mut bits)?;
    if hint == GAUGE {
        shape.reset = ResetHint::Gauge;
    }
    let mut samples = Samples::new(&shape, whole);
    for i in 0..count {
        let time = samples.read(i == 0, &mut bits)?;
        let mut histogram = if is_stale(samples.sum.last()) {
            Histogram {
                sum: samples.sum.last(),
                ..Histogram::default()
            }
        } else {
            samples.histogram(&shape)?
        };
        if i == 0 && hint == RESET {
            histogram.reset = ResetHint::Reset;
        }
        into.push_histogram(time, Arc::new(histogram));
    }
    Some(())
}

fn read_shape(bits: &mut BitReader<'_>) -> Option<Histogram> {
    let zero_threshold = match bits.bits(8)? as i32 {
        0 => 0.0,
        255 => bits.float()?,
        power => 0.5 * 2_f64.powi(power - 243),
    };
    let schema = i8::try_from(bits.varbit()?).ok()?;
    let (positive_spans, positive) = read_spans(bits)?;
    let (negative_spans, negative) = read_spans(bits)?;
    let mut custom_values = Vec::new();
    if schema == CUSTOM_BUCKETS_SCHEMA {
        for _ in 0..bits.varbit_unsigned().filter(|&n| n <= BUCKETS_MAX)? {
            custom_values.push(match bits.varbit_unsigned()? {
                0 => bits.float()?,
                thousandths => (thousandths - 1) as f64 / 1000.0,
            });
        }
    }
    Some(Histogram {
        schema,
        zero_threshold,
        positive_spans,
        negative_spans,
        positive_buckets: vec![0.0; positive],
        negative_buckets: vec![0.0; negative],
        custom_values,
        ..Histogram::default()
    })
}

fn read_spans(bits: &mut BitReader<'_>) -> Option<(Vec<BucketSpan>, usize)> {
    let count = bits.varbit_unsigned().filter(|&n| n <= BUCKETS_MAX)?;
    let (mut spans, mut buckets) = (Vec::new(), 0_u64);
    for _ in 0..count {
        let length = u32::try_from(bits.varbit_unsigned()?).ok()?;
        let offset = i32::try_from(bits.varbit()?).ok()?;
        buckets += u64::from(length);
        if buckets > BUCKETS_MAX {
            return None;
        }
        spans.push(BucketSpan { offset, length });
    }
    Some((spans, buckets as usize))
}

/// What a chunk remembers from sample to sample.
struct Samples {
    whole: bool,
    time: Turning,
    sum: Floats,
    /// Count, zero count and buckets, of whole counts.
    counts: Vec<Turning>,
    /// The same, of others.
    floats: Vec<Floats>,
}

/// An integer that is known by how its difference changes.
#[derive(Clone, Copy, Default)]
struct Turning {
    last: i64,
    delta: i64,
}

impl Turning {
    fn read(&mut self, bits: &mut BitReader<'_>) -> Option<i64> {
        self.delta = self.delta.wrapping_add(bits.varbit()?);
        self.last = self.last.wrapping_add(self.delta);
        Some(self.last)
    }

    fn write(&mut self, value: i64, bits: &mut BitWriter) {
        let delta = value.wrapping_sub(self.last);
        bits.varbit(delta.wrapping_sub(self.delta));
        *self = Self { last: value, delta };
    }
}

impl Samples {
    fn new(shape: &Histogram, whole: bool) -> Self {
        let numbers = 2 + shape.positive_buckets.len() + shape.negative_buckets.len();
        Self {
            whole,
            time: Turning::default(),
            sum: Floats::after(0.0),
            counts: vec![Turning::default(); if whole { numbers } else { 0 }],
            floats: vec![Floats::after(0.0); if whole { 0 } else { numbers }],
        }
    }

    fn read(&mut self, first: bool, bits: &mut BitReader<'_>) -> Option<Millis> {
        if first {
            self.time.last = bits.varbit()?;
            if self.whole {
                self.counts[0].last = bits.varbit_unsigned()? as i64;
                self.counts[1].last = bits.varbit_unsigned()? as i64;
                self.sum = Floats::after(bits.float()?);
                for bucket in &mut self.counts[2..] {
                    bucket.last = bits.varbit()?;
                }
            } else {
                self.floats[0] = Floats::after(bits.float()?);
                self.floats[1] = Floats::after(bits.float()?);
                self.sum = Floats::after(bits.float()?);
                for bucket in &mut self.floats[2..] {
                    *bucket = Floats::after(bits.float()?);
                }
            }
            return Some(self.time.last);
        }
        self.time.read(bits)?;
        for i in 0..2 {
            if self.whole {
                self.counts[i].read(bits)?;
            } else {
                self.floats[i].read(bits)?;
            }
        }
        if !is_stale(self.sum.read(bits)?) {
            for bucket in self.counts.iter_mut().skip(2) {
                bucket.read(bits)?;
            }
            for bucket in self.floats.iter_mut().skip(2) {
                bucket.read(bits)?;
            }
        }
        Some(self.time.last)
    }

    fn histogram(&self, shape: &Histogram) -> Option<Histogram> {
        let mut histogram = shape.clone();
        histogram.sum = self.sum.last();
        let positive = histogram.positive_buckets.len();
        if self.whole {
            histogram.count = self.counts[0].last as u64 as f64;
            histogram.zero_count = self.counts[1].last as u64 as f64;
            let (above, below) = self.counts[2..].split_at_checked(positive)?;
            for (buckets, deltas) in [
                (&mut histogram.positive_buckets, above),
                (&mut histogram.negative_buckets, below),
            ] {
                let mut sum = 0_i64;
                for (bucket, delta) in buckets.iter_mut().zip(deltas) {
                    sum = sum.wrapping_add(delta.last);
                    *bucket = sum as f64;
                }
            }
        } else {
            histogram.count = self.floats[0].last();
            histogram.zero_count = self.floats[1].last();
            let (above, below) = self.floats[2..].split_at_checked(positive)?;
            let last = |f: &Floats| f.last();
            histogram.positive_buckets = above.iter().map(last).collect();
            histogram.negative_buckets = below.iter().map(last).collect();
        }
        Some(histogram)
    }
}

/// Whether all counts are whole numbers, as Prometheus' integer histograms need.
#[must_use]
pub fn is_whole(h: &Histogram) -> bool {
    let whole = |v: &f64| *v >= 0.0 && *v <= 9_007_199_254_740_992.0 && v.fract() == 0.0;
    let buckets = h.positive_buckets.iter().chain(&h.negative_buckets);
    is_stale(h.sum) || [h.count, h.zero_count].iter().chain(buckets).all(whole)
}

/// How many histograms from the first on may share a chunk: one shape and kind of counts, no reset within, a
/// staleness marker last.
#[must_use]
pub fn run(list: &[&Histogram], most: usize) -> usize {
    let Some(first) = list.first() else { return 0 };
    if is_stale(first.sum) {
        return list.iter().take(most).take_while(|h| is_stale(h.sum)).count();
    }
    let whole = is_whole(first);
    let mut n = 1;
    while let Some(next) = list.get(n).filter(|_| n < most) {
        if is_stale(next.sum) {
            return n + 1;
        }
        let gauge = next.reset == ResetHint::Gauge;
        let goes_on = same_shape(first, next)
            && is_whole(next) == whole
            && gauge == (first.reset == ResetHint::Gauge)
            && (gauge || (next.reset != ResetHint::Reset && grows(list[n - 1], next)));
        if !goes_on {
            return n;
        }
        n += 1;
    }
    n
}

fn same_shape(a: &Histogram, b: &Histogram) -> bool {
    a.schema == b.schema
        && a.zero_threshold.to_bits() == b.zero_threshold.to_bits()
        && a.positive_spans == b.positive_spans
        && a.negative_spans == b.negative_spans
        && a.custom_values == b.custom_values
}

/// Whether no count has become smaller.
fn grows(a: &Histogram, b: &Histogram) -> bool {
    let no_less = |x: &[f64], y: &[f64]| x.len() == y.len() && x.iter().zip(y).all(|(x, y)| y >= x);
    b.count >= a.count
        && b.zero_count >= a.zero_count
        && no_less(&a.positive_buckets, &b.positive_buckets)
        && no_less(&a.negative_buckets, &b.negative_buckets)
}

/// The bytes (behind its encoding) of a chunk of histograms that [`run`] allows; `reset` says that there was a reset
/// before the first. `None` when the buckets do not fit the spans, which Prometheus refuses.
#[must_use]
pub fn write(times: &[Millis], list: &[&Histogram], reset: bool) -> Option<Vec<u8>> {
    let first = *list.first()?;
    let empty = Histogram {
        sum: first.sum,
        ..Histogram::default()
    };
    let shape = if is_stale(first.sum) { &empty } else { first };
    let covers = |spans: &[BucketSpan], buckets: &[f64]| {
        spans.iter().map(|s| u64::from(s.length)).sum::<u64>() == buckets.len() as u64
    };
    if !covers(&shape.positive_spans, &shape.positive_buckets)
        || !covers(&shape.negative_spans, &shape.negative_buckets)
    {
        return None;
    }
    let mut bits = BitWriter::default();
    bits.bits(list.len() as u64, 16);
    let hint = match (shape.reset, reset) {
        (ResetHint::Gauge, _) => GAUGE,
        (_, true) => RESET,
        _ => 0,
    };
    bits.bits(u64::from(hint), 8);
    write_shape(shape, &mut bits);
    let mut samples = Samples::new(shape, is_whole(first));
    for (i, (&time, histogram)) in times.iter().zip(list).enumerate() {
        samples.write(i == 0, time, if i == 0 { shape } else { histogram }, &mut bits);
    }
    Some(bits.into_bytes())
}

fn write_shape(shape: &Histogram, bits: &mut BitWriter) {
    let threshold = shape.zero_threshold;
    let power = (threshold.to_bits() >> 52) as i64 - 1022;
    if threshold == 0.0 {
        bits.bits(0, 8);
    } else if threshold > 0.0 && threshold.to_bits() << 12 == 0 && (-242..=11).contains(&power) {
        bits.bits((power + 243) as u64, 8);
    } else {
        bits.bits(255, 8);
        bits.float(threshold);
    }
    bits.varbit(i64::from(shape.schema));
    for spans in [&shape.positive_spans, &shape.negative_spans] {
        bits.varbit_unsigned(spans.len() as u64);
        for span in spans {
            bits.varbit_unsigned(u64::from(span.length));
            bits.varbit(i64::from(span.offset));
        }
    }
    if shape.schema == CUSTOM_BUCKETS_SCHEMA {
        bits.varbit_unsigned(shape.custom_values.len() as u64);
        for &bound in &shape.custom_values {
            let thousandths = (bound * 1000.0).round();
            if (0.0..=33_554_430.0).contains(&thousandths) && (thousandths / 1000.0).to_bits() == bound.to_bits() {
                bits.varbit_unsigned(thousandths as u64 + 1);
            } else {
                bits.bit(false);
                bits.float(bound);
            }
        }
    }
}

impl Samples {
    fn write(&mut self, first: bool, time: Millis, h: &Histogram, bits: &mut BitWriter) {
        let stale = is_stale(h.sum);
        let buckets = || h.positive_buckets.iter().chain(&h.negative_buckets);
        let deltas = || {
            let of = |list: &[f64]| {
                let mut last = 0;
                let delta = |v: &f64| (*v as i64) - std::mem::replace(&mut last, *v as i64);
                list.iter().map(delta).collect::<Vec<_>>()
            };
            let mut all = of(&h.positive_buckets);
            all.extend(of(&h.negative_buckets));
            all
        };
        if first {
            bits.varbit(time);
            self.time.last = time;
            if self.whole {
                for (count, value) in self.counts.iter_mut().zip([h.count, h.zero_count]) {
                    count.last = value as i64;
                    bits.varbit_unsigned(value as u64);
                }
                bits.float(h.sum);
                for (bucket, delta) in self.counts[2..].iter_mut().zip(deltas()) {
                    bucket.last = delta;
                    bits.varbit(delta);
                }
            } else {
                bits.float(h.count);
                bits.float(h.zero_count);
                bits.float(h.sum);
                let all = [h.count, h.zero_count].into_iter().chain(buckets().copied());
                for (i, (float, value)) in self.floats.iter_mut().zip(all).enumerate() {
                    *float = Floats::after(value);
                    if i >= 2 {
                        bits.float(value);
                    }
                }
            }
            self.sum = Floats::after(h.sum);
            return;
        }
        self.time.write(time, bits);
        if self.whole {
            for (count, value) in self.counts.iter_mut().zip([h.count, h.zero_count]) {
                if stale {
                    bits.varbit(0);
                } else {
                    count.write(value as i64, bits);
                }
            }
        } else {
            let (count, zeros) = if stale { (0.0, 0.0) } else { (h.count, h.zero_count) };
            self.floats[0].write(count, bits);
            self.floats[1].write(zeros, bits);
        }
        self.sum.write(h.sum, bits);
        if stale {
            return;
        }
        if self.whole {
            for (bucket, delta) in self.counts[2..].iter_mut().zip(deltas()) {
                bucket.write(delta, bits);
            }
        } else {
            for (bucket, value) in self.floats[2..].iter_mut().zip(buckets()) {
                bucket.write(*value, bits);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(rng: &mut fastrand::Rng, i: u32, broken: f64) -> Histogram {
        Histogram {
            schema: 2,
            zero_threshold: 2_f64.powi(-128),
            zero_count: f64::from(i),
            count: f64::from(i * 40) + broken,
            sum: rng.f64() * 1000.0,
            positive_spans: vec![
                BucketSpan { offset: -3, length: 2 },
                BucketSpan { offset: 5, length: 3 },
            ],
            negative_spans: vec![BucketSpan { offset: 0, length: 1 }],
            positive_buckets: (0..5).map(|b| f64::from(i * b * 3) + broken).collect(),
            negative_buckets: vec![f64::from(i)],
            ..Histogram::default()
        }
    }

    #[track_caller]
    fn check(list: &[Histogram]) {
        let refs: Vec<&Histogram> = list.iter().collect();
        let times: Vec<Millis> = (0..list.len() as i64)
            .map(|i| 1_700_000_000_000 + i * 15_000 + i % 3)
            .collect();
        let (mut at, mut back) = (0, Column::default());
        while at < refs.len() {
            let n = run(&refs[at..], 120);
            let bytes = write(&times[at..at + n], &refs[at..at + n], false).expect("spans and buckets fit");
            read(&bytes, is_whole(refs[at]), &mut back).expect("what was written");
            at += n;
        }
        assert_eq!(back.times, times);
        for (got, want) in back.histograms.iter().flatten().zip(list) {
            if is_stale(want.sum) {
                assert!(is_stale(got.sum));
            } else {
                assert_eq!(**got, *want);
            }
        }
    }

    #[test]
    fn whole_and_broken_counts_come_back() {
        let mut rng = fastrand::Rng::with_seed(1);
        for broken in [0.0, 0.25] {
            check(&(1..300).map(|i| histogram(&mut rng, i, broken)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn resets_staleness_and_other_shapes_begin_a_chunk() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut list: Vec<Histogram> = (1..9).map(|i| histogram(&mut rng, i, 0.0)).collect();
        list[3] = Histogram {
            sum: model::stale_nan(),
            ..Histogram::default()
        };
        list[5] = histogram(&mut rng, 1, 0.0);
        list[6].schema = CUSTOM_BUCKETS_SCHEMA;
        list[6].custom_values = vec![0.005, 1.5, 1e9, 0.123_456];
        list[7].zero_threshold = 0.001;
        check(&list);
        let refs: Vec<&Histogram> = list.iter().collect();
        assert_eq!(run(&refs, 120), 4);
        assert_eq!(run(&refs[4..], 120), 1);
    }

    #[test]
    fn damaged_chunks_are_refused_or_read_without_a_panic() {
        let mut rng = fastrand::Rng::with_seed(2);
        let list: Vec<Histogram> = (1..40).map(|i| histogram(&mut rng, i, 0.0)).collect();
        let refs: Vec<&Histogram> = list.iter().collect();
        let times: Vec<Millis> = (0..39).collect();
        let bytes = write(&times, &refs, false).unwrap();
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 1 << (at % 8);
            let _ = read(&bad, true, &mut Column::default());
            let _ = read(&bad, false, &mut Column::default());
            let _ = read(&bytes[..at], true, &mut Column::default());
        }
    }
}
