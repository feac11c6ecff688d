//! The protobuf encoding, read metric by metric: memory is that of the largest one.

use exposition::wire::{Field, Wire, WireError, repeated_double, repeated_varint};
use serde_json::Value;

use super::point::{Attributes, Common, Data, Example, Explicit, Exponential, Metric, Number, Summary, Visit, hex};
use crate::error::Error;

/// How deep a value may nest.
const DEPTH_MAX: usize = 16;

/// Reads `ExportMetricsServiceRequest`.
pub(super) fn read(body: &[u8], visit: &mut dyn Visit) -> Result<(), Error> {
    each(body, 1, |resource| {
        let mut attributes = Attributes::new();
        each(resource, 1, |inner| {
            each(inner, 1, |pair| {
                attributes.push(key_value(pair)?);
                Ok(())
            })
        })?;
        visit.resource(attributes)?;
        each(resource, 2, |scope| {
            each(scope, 2, |message| visit.metric(metric(message)?))
        })
    })
}

/// Every field of that number, as bytes.
fn each<'a>(message: &'a [u8], wanted: u32, mut take: impl FnMut(&'a [u8]) -> Result<(), Error>) -> Result<(), Error> {
    let mut wire = Wire::new(message);
    while let Some((number, field)) = wire.field()? {
        if number == wanted {
            take(field.bytes())?;
        }
    }
    Ok(())
}

fn text(field: Field<'_>) -> Result<String, Error> {
    let text = field.text().map(str::to_owned);
    text.ok_or_else(|| Error::Broken("a text is not valid UTF-8".to_owned()))
}

fn key_value(message: &[u8]) -> Result<(String, String), Error> {
    let (key, value) = pair(message, 0)?;
    Ok((key, super::json::plain(&value)))
}

fn pair(message: &[u8], depth: usize) -> Result<(String, Value), Error> {
    let (mut key, mut value) = (String::new(), Value::Null);
    let mut wire = Wire::new(message);
    while let Some((number, field)) = wire.field()? {
        match number {
            1 => key = text(field)?,
            2 => value = any(field.bytes(), depth)?,
            _ => {}
        }
    }
    Ok((key, value))
}

/// `AnyValue`
fn any(message: &[u8], depth: usize) -> Result<Value, Error> {
    if depth > DEPTH_MAX {
        return Err(Error::Broken(format!("an attribute nests more than {DEPTH_MAX} deep")));
    }
    let mut value = Value::Null;
    let mut wire = Wire::new(message);
    while let Some((number, field)) = wire.field()? {
        value = match number {
            1 => text(field)?.into(),
            2 => (field.unsigned() != 0).into(),
            3 => field.signed().into(),
            4 => field.double().into(),
            5 => {
                let mut list = Vec::new();
                each(field.bytes(), 1, |inner| {
                    list.push(any(inner, depth + 1)?);
                    Ok(())
                })?;
                list.into()
            }
            6 => {
                let mut map = serde_json::Map::new();
                each(field.bytes(), 1, |inner| {
                    let (key, value) = pair(inner, depth + 1)?;
                    map.insert(key, value);
                    Ok(())
                })?;
                map.into()
            }
            7 => hex(field.bytes()).into(),
            _ => continue,
        };
    }
    Ok(value)
}

fn metric(message: &[u8]) -> Result<Metric, Error> {
    let mut out = Metric::default();
    let mut wire = Wire::new(message);
    while let Some((number, field)) = wire.field()? {
        match number {
            1 => out.name = text(field)?,
            2 => out.description = text(field)?,
            3 => out.unit = text(field)?,
            5 | 7 | 9..=11 => out.data = data(number, field.bytes())?,
            _ => {}
        }
    }
    Ok(out)
}

fn data(kind: u32, message: &[u8]) -> Result<Data, Error> {
    let (mut temporality, mut is_monotonic) = (0, false);
    let mut wire = Wire::new(message);
    while let Some((number, field)) = wire.field()? {
        match number {
            2 => temporality = field.unsigned(),
            3 => is_monotonic = field.unsigned() != 0,
            _ => {}
        }
    }
    Ok(match kind {
        5 => Data::Gauge(points(message, number)?),
        7 => Data::Sum {
            points: points(message, number)?,
            temporality,
            is_monotonic,
        },
        9 => Data::Histogram {
            points: points(message, explicit)?,
            temporality,
        },
        10 => Data::Exponential {
            points: points(message, exponential)?,
            temporality,
        },
        _ => Data::Summary(points(message, summary)?),
    })
}

fn points<T>(message: &[u8], read: fn(&[u8]) -> Result<T, Error>) -> Result<Vec<T>, Error> {
    let mut out = Vec::new();
    each(message, 1, |point| {
        out.push(read(point)?);
        Ok(())
    })?;
    Ok(out)
}

/// Takes what every point has under the same number.
fn common(common: &mut Common, number: u32, field: Field<'_>) {
    match number {
        2 => common.start = field.unsigned(),
        3 => common.time = field.unsigned(),
        _ => {}
    }
}

fn number(message: &[u8]) -> Result<Number, Error> {
    let mut out = Number::default();
    let mut wire = Wire::new(message);
    while let Some((number, field)) = wire.field()? {
        match number {
            4 => out.value = field.double(),
            5 => out.exemplars.push(example(field.bytes())?),
            6 => out.value = float(field.signed()),
            7 => out.common.attributes.push(key_value(field.bytes())?),
            8 => out.common.flags = field.unsigned(),
            _ => common(&mut out.common, number, field),
        }
    }
    Ok(out)
}

#[expect(clippy::cast_precision_loss, reason = "a store of doubles")]
const fn float(value: i64) -> f64 {
    value as f64
}

/// A packed list of fixed integers, or one of several fields.
fn repeated_fixed(field: Field<'_>, into: &mut Vec<u64>) -> Result<(), WireError> {
    repeated_double(field, |bits| into.push(bits.to_bits()))
}

fn explicit(message: &[u8]) -> Result<Explicit, Error> {
    let mut out = Explicit::default();
    let mut wire = Wire::new(message);
    while let Some((number, field)) = wire.field()? {
        match number {
            4 => out.count = field.unsigned(),
            5 => out.sum = Some(field.double()),
            6 => repeated_fixed(field, &mut out.counts)?,
            7 => repeated_double(field, |bound| out.bounds.push(bound))?,
            8 => out.exemplars.push(example(field.bytes())?),
            9 => out.common.attributes.push(key_value(field.bytes())?),
            10 => out.common.flags = field.unsigned(),
            _ => common(&mut out.common, number, field),
        }
    }
    Ok(out)
}

fn exponential(message: &[u8]) -> Result<Exponential, Error> {
    let mut out = Exponential::default();
    let mut wire = Wire::new(message);
    while let Some((number, field)) = wire.field()? {
        match number {
            1 => out.common.attributes.push(key_value(field.bytes())?),
            4 => out.count = field.unsigned(),
            5 => out.sum = Some(field.double()),
            6 => out.scale = field.zigzag(),
            7 => out.zero_count = field.unsigned(),
            8 => out.positive = buckets(field.bytes())?,
            9 => out.negative = buckets(field.bytes())?,
            10 => out.common.flags = field.unsigned(),
            11 => out.exemplars.push(example(field.bytes())?),
            14 => out.zero_threshold = field.double(),
            _ => common(&mut out.common, number, field),
        }
    }
    Ok(out)
}

fn buckets(message: &[u8]) -> Result<(i64, Vec<u64>), Error> {
    let (mut offset, mut counts) = (0, Vec::new());
    let mut wire = Wire::new(message);
    while let Some((number, field)) = wire.field()? {
        match number {
            1 => offset = field.zigzag(),
            2 => repeated_varint(field, |count| counts.push(count))?,
            _ => {}
        }
    }
    Ok((offset, counts))
}

fn summary(message: &[u8]) -> Result<Summary, Error> {
    let mut out = Summary::default();
    let mut wire = Wire::new(message);
    while let Some((number, field)) = wire.field()? {
        match number {
            4 => out.count = field.unsigned(),
            5 => out.sum = field.double(),
            6 => {
                let mut quantile = (0.0, 0.0);
                let mut wire = Wire::new(field.bytes());
                while let Some((number, field)) = wire.field()? {
                    match number {
                        1 => quantile.0 = field.double(),
                        2 => quantile.1 = field.double(),
                        _ => {}
                    }
                }
                out.quantiles.push(quantile);
            }
            7 => out.common.attributes.push(key_value(field.bytes())?),
            8 => out.common.flags = field.unsigned(),
            _ => common(&mut out.common, number, field),
        }
    }
    Ok(out)
}

fn example(message: &[u8]) -> Result<Example, Error> {
    let mut out = Example::default();
    let mut wire = Wire::new(message);
    while let Some((number, field)) = wire.field()? {
        match number {
            2 => out.time = field.unsigned(),
            3 => out.value = field.double(),
            4 => out.span = hex(field.bytes()),
            5 => out.trace = hex(field.bytes()),
            6 => out.value = float(field.signed()),
            7 => out.attributes.push(key_value(field.bytes())?),
            _ => {}
        }
    }
    Ok(out)
}
