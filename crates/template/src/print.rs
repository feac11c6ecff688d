//! Values as text, as Go's `%v` writes them, and as JSON.

use std::fmt::Write as _;

use crate::exec::OUTPUT_MAX;
use crate::number::{Form, format_float};
use crate::value::Value;

/// A value as `%v` writes it: `[a b]`, `map[k:v]`, `{f1 f2}`, `<nil>`.
pub(crate) fn plain(value: &Value) -> String {
    let mut out = String::new();
    write_plain(value, &mut out);
    out
}

/// Stops a little beyond the longest text allowed: a value may hold itself many times.
pub(crate) fn write_plain(value: &Value, out: &mut String) {
    if out.len() > OUTPUT_MAX {
        return;
    }
    match value {
        Value::Nil => out.push_str("<nil>"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Int(n) => {
            let _ = write!(out, "{n}");
        }
        Value::Uint(n) => {
            let _ = write!(out, "{n}");
        }
        Value::Float(n) => out.push_str(&format_float(*n, Form::General, None)),
        Value::Text(text) | Value::Safe(_, text) => out.push_str(text),
        Value::Moment(moment) => {
            let _ = write!(out, "{moment}");
        }
        Value::Span(span) => {
            let _ = write!(out, "{span}");
        }
        Value::List(list) => {
            out.push('[');
            separated(list.items(), " ", out, write_plain);
            out.push(']');
        }
        Value::Map(map) => {
            out.push_str("map[");
            separated(map.iter(), " ", out, |(key, value), out| {
                out.push_str(key);
                out.push(':');
                write_plain(value, out);
            });
            out.push(']');
        }
        Value::Object(object) => match (object.text(), object.underlying()) {
            (Some(text), _) => out.push_str(&text),
            (None, Some(value)) => write_plain(&value, out),
            (None, None) => {
                out.push('{');
                separated(object.fields(), " ", out, |(_, _, value), out| write_plain(&value, out));
                out.push('}');
            }
        },
    }
}

fn separated<T>(items: impl IntoIterator<Item = T>, separator: &str, out: &mut String, write: impl Fn(T, &mut String)) {
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push_str(separator);
        }
        write(item, out);
    }
}

/// Values one after the other, with a space between two that are no texts.
pub(crate) fn sprint(values: &[Value]) -> String {
    let mut out = String::new();
    for (at, value) in values.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|b| values.get(b));
        if before.is_some_and(|b| b.as_text().is_none()) && value.as_text().is_none() {
            out.push(' ');
        }
        write_plain(value, &mut out);
    }
    out
}

/// A value as Go's `json.Marshal` writes it.
pub(crate) fn json(value: &Value) -> Result<String, String> {
    let mut out = String::new();
    write_json(value, &mut out)?;
    Ok(out)
}

fn write_json(value: &Value, out: &mut String) -> Result<(), String> {
    if out.len() > OUTPUT_MAX {
        return Err(format!("json: text is longer than {OUTPUT_MAX} bytes"));
    }
    match value {
        Value::Nil => out.push_str("null"),
        Value::Float(n) if !n.is_finite() => {
            let shown = format_float(*n, Form::General, None);
            return Err(format!("json: unsupported value: {shown}"));
        }
        Value::Float(n) => {
            let is_plain = *n == 0.0 || (1e-6..1e21).contains(&n.abs());
            let shown = format_float(*n, if is_plain { Form::Plain } else { Form::Exponent }, None);
            out.push_str(&shown.replace("e-0", "e-"));
        }
        Value::Text(text) | Value::Safe(_, text) => write_json_text(text, out),
        Value::Moment(moment) => {
            let text = crate::moment::layout::format("2006-01-02T15:04:05.999999999Z07:00", moment.zoned());
            write_json_text(&text, out);
        }
        Value::Span(span) => write_plain(&Value::Int(span.nanos()), out),
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) => write_plain(value, out),
        Value::List(list) => {
            out.push('[');
            for (at, item) in list.items().iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write_json(item, out)?;
            }
            out.push(']');
        }
        Value::Map(map) => write_json_object(map.iter().map(|(k, v)| (&**k, v.clone())), out)?,
        Value::Object(object) => match object.underlying() {
            Some(value) => write_json(&value, out)?,
            None => {
                let fields = object.fields().into_iter();
                write_json_object(fields.map(|(_, name, value)| (name, value)), out)?;
            }
        },
    }
    Ok(())
}

fn write_json_object<'a>(pairs: impl Iterator<Item = (&'a str, Value)>, out: &mut String) -> Result<(), String> {
    out.push('{');
    for (at, (key, value)) in pairs.enumerate() {
        out.push_str(if at > 0 { "," } else { "" });
        write_json_text(key, out);
        out.push(':');
        write_json(&value, out)?;
    }
    out.push('}');
    Ok(())
}

/// A JSON text that is harmless within HTML too.
pub(crate) fn write_json_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\x1f' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_written_as_go_writes_it() {
        for (value, want) in [
            (Value::Nil, "null"),
            (Value::text("<a&\"\n\u{1}"), r#""\u003ca\u0026\"\n\u0001""#),
            (Value::Float(1e21), "1e+21"),
            (Value::Float(1e-7), "1e-7"),
            (Value::Float(123_456_789.5), "123456789.5"),
            (Value::text_map([("b", "2"), ("a", "1")]), r#"{"a":"1","b":"2"}"#),
        ] {
            assert_eq!(json(&value).as_deref(), Ok(want));
        }
        assert!(json(&Value::Float(f64::NAN)).is_err());
    }
}
