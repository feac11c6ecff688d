//! A native histogram as remote write and remote read have it: both versions number its fields alike.

use exposition::native;
use exposition::wire::{Field, Wire, WireError, put_bytes, put_double, put_doubles, put_varint, put_zigzag};
use exposition::wire::{repeated_double, repeated_varint, unzigzag};
use model::Millis;
use model::histogram::{BucketSpan, Histogram, ResetHint};

/// What a message holds.
#[derive(Debug)]
pub(crate) struct Read {
    pub histogram: Histogram,
    pub time: Millis,
    /// 0 where nothing is told.
    pub created: Millis,
}

/// Reads a histogram; the inner error says why it does not add up.
pub(crate) fn read(message: &[u8]) -> Result<Result<Read, String>, WireError> {
    let mut h = Histogram::default();
    let (mut schema, mut time, mut created) = (0_i64, 0, 0);
    let (mut positive, mut negative) = (Vec::new(), Vec::new());
    let mut wire = Wire::new(message);
    while let Some((number, field)) = wire.field()? {
        #[expect(clippy::cast_precision_loss, reason = "counts are floats from here on")]
        match number {
            1 => h.count = field.unsigned() as f64,
            2 => h.count = field.double(),
            3 => h.sum = field.double(),
            4 => schema = field.zigzag(),
            5 => h.zero_threshold = field.double(),
            6 => h.zero_count = field.unsigned() as f64,
            7 => h.zero_count = field.double(),
            8 => h.negative_spans.push(span(field)?),
            9 => repeated_varint(field, |v| negative.push(unzigzag(v)))?,
            10 => repeated_double(field, |v| h.negative_buckets.push(v))?,
            11 => h.positive_spans.push(span(field)?),
            12 => repeated_varint(field, |v| positive.push(unzigzag(v)))?,
            13 => repeated_double(field, |v| h.positive_buckets.push(v))?,
            14 => {
                h.reset = match field.unsigned() {
                    1 => ResetHint::Reset,
                    2 => ResetHint::NotReset,
                    3 => ResetHint::Gauge,
                    _ => ResetHint::Unknown,
                }
            }
            15 => time = field.signed(),
            16 => repeated_double(field, |v| h.custom_values.push(v))?,
            17 => created = field.signed(),
            _ => {}
        }
    }
    running(&positive, &mut h.positive_buckets);
    running(&negative, &mut h.negative_buckets);
    let Ok(schema) = i8::try_from(schema) else {
        return Ok(Err(format!("unknown schema {schema} of a native histogram")));
    };
    h.schema = schema;
    // A marker that the series has ended has no buckets worth judging.
    let judged = if model::is_stale(h.sum) {
        Ok(())
    } else {
        native::check(&h)
    };
    Ok(judged.map(|()| Read {
        histogram: h,
        time,
        created,
    }))
}

fn span(field: Field<'_>) -> Result<BucketSpan, WireError> {
    let mut span = BucketSpan::default();
    let mut wire = Wire::new(field.bytes());
    while let Some((number, field)) = wire.field()? {
        let beyond = WireError {
            at: wire.at(),
            what: "a span beyond 32 bits",
        };
        match number {
            1 => span.offset = i32::try_from(field.zigzag()).map_err(|_| beyond)?,
            2 => span.length = u32::try_from(field.unsigned()).map_err(|_| beyond)?,
            _ => {}
        }
    }
    Ok(span)
}

/// Counts out of differences; where there are none, the counts that came stay.
fn running(deltas: &[i64], into: &mut Vec<f64>) {
    if deltas.is_empty() {
        return;
    }
    let mut count = 0_i64;
    into.clear();
    into.extend(deltas.iter().map(|delta| {
        count = count.saturating_add(*delta);
        #[expect(clippy::cast_precision_loss, reason = "counts are floats from here on")]
        let float = count as f64;
        float
    }));
}

/// Writes a histogram with its counts as floats.
pub(crate) fn write(h: &Histogram, time: Millis) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + 8 * (h.positive_buckets.len() + h.negative_buckets.len()));
    // A choice between two forms is told even where the value is zero.
    exposition::wire::put_raw_varint(&mut out, 2 << 3 | 1);
    out.extend_from_slice(&h.count.to_le_bytes());
    put_double(&mut out, 3, h.sum);
    put_zigzag(&mut out, 4, i64::from(h.schema));
    put_double(&mut out, 5, h.zero_threshold);
    exposition::wire::put_raw_varint(&mut out, 7 << 3 | 1);
    out.extend_from_slice(&h.zero_count.to_le_bytes());
    for (number, spans) in [(8, &h.negative_spans), (11, &h.positive_spans)] {
        for span in spans {
            let mut inner = Vec::new();
            put_zigzag(&mut inner, 1, i64::from(span.offset));
            put_varint(&mut inner, 2, u64::from(span.length));
            put_bytes(&mut out, number, &inner);
        }
    }
    put_doubles(&mut out, 10, &h.negative_buckets);
    put_doubles(&mut out, 13, &h.positive_buckets);
    let hint = match h.reset {
        ResetHint::Unknown => 0,
        ResetHint::Reset => 1,
        ResetHint::NotReset => 2,
        ResetHint::Gauge => 3,
    };
    put_varint(&mut out, 14, hint);
    put_varint(&mut out, 15, time.cast_unsigned());
    put_doubles(&mut out, 16, &h.custom_values);
    out
}
