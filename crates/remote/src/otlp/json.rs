//! The JSON encoding: the same messages, numbers of 64 bits as texts or numbers.

use serde_json::Value;

use super::point::{Attributes, Common, Data, Example, Explicit, Exponential, Metric, Number, Summary, Visit};
use crate::error::Error;

/// Reads `ExportMetricsServiceRequest`.
pub(super) fn read(body: &[u8], visit: &mut dyn Visit) -> Result<(), Error> {
    let root: Value = serde_json::from_slice(body).map_err(|e| Error::Broken(e.to_string()))?;
    for resource in list(&root, "resourceMetrics") {
        visit.resource(attributes(
            resource.get("resource").unwrap_or(&Value::Null),
            "attributes",
        ))?;
        for scope in list(resource, "scopeMetrics") {
            for metric in list(scope, "metrics") {
                visit.metric(read_metric(metric))?;
            }
        }
    }
    Ok(())
}

/// An attribute's value as a label's: a text as it is, anything else as JSON.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) => number
            .as_f64()
            .filter(|_| number.as_i64().is_none())
            .map_or_else(|| number.to_string(), |v| model::number::Plain(v).to_string()),
        other => other.to_string(),
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or("").to_owned()
}

fn unsigned(value: &Value) -> u64 {
    value
        .as_u64()
        .or_else(|| value.as_str().and_then(|t| t.parse().ok()))
        .unwrap_or(0)
}

fn count(value: &Value, key: &str) -> u64 {
    value.get(key).map_or(0, unsigned)
}

fn signed(value: &Value, key: &str) -> i64 {
    let of = |v: &Value| v.as_i64().or_else(|| v.as_str().and_then(|t| t.parse().ok()));
    value.get(key).and_then(of).unwrap_or(0)
}

/// A double; `NaN` and the infinities come as texts.
fn double(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| match value.as_str()? {
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        other => other.parse().ok(),
    })
}

/// An enumeration's value, told as a number or by its name.
fn temporality(value: &Value) -> u64 {
    match value.get("aggregationTemporality") {
        Some(Value::String(name)) if name.ends_with("CUMULATIVE") => 2,
        Some(Value::String(name)) if name.ends_with("DELTA") => 1,
        Some(number) => unsigned(number),
        None => 0,
    }
}

fn attributes(value: &Value, key: &str) -> Attributes {
    let pairs = list(value, key).iter();
    pairs
        .map(|pair| {
            (
                text(pair, "key"),
                plain(&any(pair.get("value").unwrap_or(&Value::Null))),
            )
        })
        .collect()
}

/// `AnyValue` as the value it stands for. The parser has bounded its depth.
fn any(value: &Value) -> Value {
    let Some((kind, inner)) = value.as_object().and_then(|map| map.iter().next()) else {
        return Value::Null;
    };
    match kind.as_str() {
        "intValue" => inner
            .as_str()
            .and_then(|t| t.parse::<i64>().ok())
            .map_or_else(|| inner.clone(), Value::from),
        "arrayValue" => list(inner, "values").iter().map(any).collect(),
        "kvlistValue" => list(inner, "values")
            .iter()
            .map(|pair| (text(pair, "key"), any(pair.get("value").unwrap_or(&Value::Null))))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        _ => inner.clone(),
    }
}

fn read_metric(value: &Value) -> Metric {
    let data = if let Some(gauge) = value.get("gauge") {
        Data::Gauge(points(gauge, number))
    } else if let Some(sum) = value.get("sum") {
        Data::Sum {
            points: points(sum, number),
            temporality: temporality(sum),
            is_monotonic: sum.get("isMonotonic").and_then(Value::as_bool).unwrap_or(false),
        }
    } else if let Some(histogram) = value.get("histogram") {
        Data::Histogram {
            points: points(histogram, explicit),
            temporality: temporality(histogram),
        }
    } else if let Some(histogram) = value.get("exponentialHistogram") {
        Data::Exponential {
            points: points(histogram, exponential),
            temporality: temporality(histogram),
        }
    } else if let Some(summary) = value.get("summary") {
        Data::Summary(points(summary, read_summary))
    } else {
        Data::None
    };
    Metric {
        name: text(value, "name"),
        description: text(value, "description"),
        unit: text(value, "unit"),
        data,
    }
}

fn points<T>(value: &Value, read: fn(&Value) -> T) -> Vec<T> {
    list(value, "dataPoints").iter().map(read).collect()
}

fn common(value: &Value) -> Common {
    Common {
        attributes: attributes(value, "attributes"),
        start: count(value, "startTimeUnixNano"),
        time: count(value, "timeUnixNano"),
        flags: count(value, "flags"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a store of doubles")]
fn value_of(value: &Value) -> f64 {
    value
        .get("asDouble")
        .and_then(double)
        .unwrap_or_else(|| signed(value, "asInt") as f64)
}

fn number(value: &Value) -> Number {
    Number {
        common: common(value),
        value: value_of(value),
        exemplars: exemplars(value),
    }
}

fn explicit(value: &Value) -> Explicit {
    Explicit {
        common: common(value),
        count: count(value, "count"),
        sum: value.get("sum").and_then(double),
        counts: list(value, "bucketCounts").iter().map(unsigned).collect(),
        bounds: list(value, "explicitBounds").iter().filter_map(double).collect(),
        exemplars: exemplars(value),
    }
}

fn exponential(value: &Value) -> Exponential {
    let side = |key: &str| {
        let side = value.get(key).unwrap_or(&Value::Null);
        (
            signed(side, "offset"),
            list(side, "bucketCounts").iter().map(unsigned).collect(),
        )
    };
    Exponential {
        common: common(value),
        count: count(value, "count"),
        sum: value.get("sum").and_then(double),
        scale: signed(value, "scale"),
        zero_count: count(value, "zeroCount"),
        zero_threshold: value.get("zeroThreshold").and_then(double).unwrap_or(0.0),
        positive: side("positive"),
        negative: side("negative"),
        exemplars: exemplars(value),
    }
}

fn read_summary(value: &Value) -> Summary {
    let of = |pair: &Value, key: &str| pair.get(key).and_then(double).unwrap_or(0.0);
    Summary {
        common: common(value),
        count: count(value, "count"),
        sum: of(value, "sum"),
        quantiles: list(value, "quantileValues")
            .iter()
            .map(|pair| (of(pair, "quantile"), of(pair, "value")))
            .collect(),
    }
}

fn exemplars(value: &Value) -> Vec<Example> {
    let of = |value: &Value| Example {
        attributes: attributes(value, "filteredAttributes"),
        time: count(value, "timeUnixNano"),
        value: value_of(value),
        trace: text(value, "traceId"),
        span: text(value, "spanId"),
    };
    list(value, "exemplars").iter().map(of).collect()
}
