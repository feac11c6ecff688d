//! Parts of lists, maps and texts.

use crate::print::plain;
use crate::value::Value;

pub(super) fn len(value: &Value) -> Result<Value, String> {
    let len = match value.underlying() {
        Value::Text(text) => text.len(),
        Value::List(list) => list.items().len(),
        Value::Map(map) => map.len(),
        Value::Nil => return Err("len of nil pointer".to_owned()),
        _ => return Err(format!("len of type {}", value.type_name())),
    };
    Ok(Value::Int(i64::try_from(len).unwrap_or(i64::MAX)))
}

/// `index x 1 "a"` is `x[1]["a"]`.
pub(super) fn index(value: &Value, keys: &[Value]) -> Result<Value, String> {
    keys.iter().try_fold(value.clone(), |value, key| element(&value, key))
}

fn element(value: &Value, key: &Value) -> Result<Value, String> {
    match value.underlying() {
        Value::Map(map) => match key.as_text() {
            Some(key) => Ok(map.get(key)),
            None if matches!(key, Value::Nil) => Err("value is nil; should be of type string".to_owned()),
            None => Err(format!("value has type {}; should be string", key.type_name())),
        },
        Value::List(list) => {
            let at = position(key, list.items().len())?;
            list.items().get(at).cloned().ok_or_else(|| out_of_range(key))
        }
        Value::Text(text) => {
            let at = position(key, text.len())?;
            let byte = text.as_bytes().get(at).ok_or_else(|| out_of_range(key))?;
            Ok(Value::Uint((*byte).into()))
        }
        Value::Nil => Err("index of untyped nil".to_owned()),
        _ => Err(format!("can't index item of type {}", value.type_name())),
    }
}

fn out_of_range(key: &Value) -> String {
    format!("index out of range: {}", plain(key))
}

/// An index of at most `len`.
fn position(key: &Value, len: usize) -> Result<usize, String> {
    let at = match key.underlying() {
        Value::Int(n) => usize::try_from(n).ok(),
        Value::Uint(n) => usize::try_from(n).ok(),
        Value::Nil => return Err("cannot index slice/array with nil".to_owned()),
        _ => return Err(format!("cannot index slice/array with type {}", key.type_name())),
    };
    at.filter(|at| *at <= len).ok_or_else(|| out_of_range(key))
}

/// `slice x 1 2` is `x[1:2]`.
pub(super) fn slice(value: &Value, bounds: &[Value]) -> Result<Value, String> {
    let value = value.underlying();
    let len = match &value {
        Value::Text(text) => text.len(),
        Value::List(list) => list.items().len(),
        Value::Nil => return Err("slice of untyped nil".to_owned()),
        _ => return Err(format!("can't slice item of type {}", value.type_name())),
    };
    if bounds.len() > 3 {
        return Err(format!("too many slice indexes: {}", bounds.len()));
    }
    let mut ends = [0, len];
    for (end, bound) in ends.iter_mut().zip(bounds) {
        *end = position(bound, len)?;
    }
    let [from, to] = ends;
    if from > to {
        return Err(format!("invalid slice index: {from} > {to}"));
    }
    match &value {
        Value::Text(_) if bounds.len() == 3 => Err("cannot 3-index slice a string".to_owned()),
        // A cut within a character leaves what is no text; it is replaced.
        Value::Text(text) => Ok(String::from_utf8_lossy(&text.as_bytes()[from..to]).into_owned().into()),
        Value::List(list) => Ok(Value::list(list.items()[from..to].to_vec())),
        _ => Ok(value),
    }
}
