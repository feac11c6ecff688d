//! Comparison: values of different kinds do not compare, but signed and unsigned integers do.

use std::cmp::Ordering;

use crate::value::Value;

/// The kinds that compare.
enum Basic {
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(std::sync::Arc<str>),
}

const INCOMPATIBLE: &str = "incompatible types for comparison";
const NOT_ORDERED: &str = "invalid type for comparison";

fn basic(value: &Value) -> Option<Basic> {
    Some(match value.underlying() {
        Value::Bool(b) => Basic::Bool(b),
        Value::Int(n) => Basic::Integer(n.into()),
        Value::Uint(n) => Basic::Integer(n.into()),
        Value::Float(n) => Basic::Float(n),
        Value::Text(text) => Basic::Text(text),
        _ => return None,
    })
}

/// Whether the first equals any of the others.
pub(super) fn eq(args: &[Value]) -> Result<bool, String> {
    let Some((first, others)) = args.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Err("missing argument for comparison".to_owned());
    };
    for other in others {
        if same(first, other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) fn same(a: &Value, b: &Value) -> Result<bool, String> {
    if let (Value::Nil, other) | (other, Value::Nil) = (a, b) {
        return Ok(matches!(other, Value::Nil));
    }
    if let (Value::Moment(a), Value::Moment(b)) = (a, b) {
        return Ok(a == b);
    }
    let (Some(left), Some(right)) = (basic(a), basic(b)) else {
        let bad = if basic(a).is_none() { a } else { b };
        return Err(format!(
            "non-comparable type {}: {}",
            crate::print::plain(bad),
            bad.type_name()
        ));
    };
    match (left, right) {
        (Basic::Bool(a), Basic::Bool(b)) => Ok(a == b),
        (Basic::Integer(a), Basic::Integer(b)) => Ok(a == b),
        (Basic::Float(a), Basic::Float(b)) => Ok(a == b),
        (Basic::Text(a), Basic::Text(b)) => Ok(a == b),
        _ => Err(INCOMPATIBLE.to_owned()),
    }
}

pub(super) fn less(a: &Value, b: &Value) -> Result<bool, String> {
    let (Some(a), Some(b)) = (basic(a), basic(b)) else {
        return Err(NOT_ORDERED.to_owned());
    };
    let order = match (a, b) {
        (Basic::Bool(_), Basic::Bool(_)) => return Err(NOT_ORDERED.to_owned()),
        (Basic::Integer(a), Basic::Integer(b)) => Some(a.cmp(&b)),
        (Basic::Float(a), Basic::Float(b)) => a.partial_cmp(&b),
        (Basic::Text(a), Basic::Text(b)) => Some(a.cmp(&b)),
        _ => return Err(INCOMPATIBLE.to_owned()),
    };
    Ok(order == Some(Ordering::Less))
}
