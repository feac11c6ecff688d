//! Alertmanager's functions.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::function::{ANY, Function, LIST, MOMENT, TEXT, TEXTS, text, texts};
use crate::humanize::{humanize_duration, to_float};
use crate::moment::{Moment, layout};
use crate::print::json;
use crate::value::{Safe, Value};
use crate::words::title;
use crate::{base64, escape, pattern};

/// The functions of Alertmanager's templates.
pub const FUNCTIONS: &[Function] = &[
    Function::new("toUpper", &[TEXT], |_, args| Ok(text(args, 0).to_uppercase().into())),
    Function::new("toLower", &[TEXT], |_, args| Ok(text(args, 0).to_lowercase().into())),
    Function::new("title", &[TEXT], |_, args| Ok(title(text(args, 0), true).into())),
    Function::new("trimSpace", &[TEXT], |_, args| Ok(text(args, 0).trim().into())),
    Function::new("join", &[TEXT, TEXTS], |_, args| {
        Ok(texts(&args[1]).join(text(args, 0)).into())
    }),
    Function::new("match", &[TEXT, TEXT], |_, args| {
        pattern::is_match(text(args, 0), text(args, 1)).map(Value::Bool)
    }),
    Function::new("reReplaceAll", &[TEXT, TEXT, TEXT], |_, args| {
        pattern::replace_all(text(args, 0), text(args, 1), text(args, 2)).map(Value::from)
    }),
    Function::new("safeHtml", &[TEXT], |_, args| {
        Ok(Value::Safe(Safe::Html, Arc::from(text(args, 0))))
    }),
    Function::new("safeUrl", &[TEXT], |_, args| {
        Ok(Value::Safe(Safe::Url, Arc::from(text(args, 0))))
    }),
    Function::new("urlUnescape", &[TEXT], |_, args| {
        escape::query_unescape(text(args, 0)).map(Value::from)
    }),
    Function::new("stringSlice", &[TEXT], |_, args| {
        Ok(Value::texts(args.iter().filter_map(Value::as_text)))
    })
    .variadic(),
    Function::new("routeLabels", &[TEXT], |env, args| match env.route_label {
        Some(resolve) => resolve(text(args, 0)).map(Value::from),
        None => Ok(Value::text("")),
    }),
    Function::new("date", &[TEXT, MOMENT], |_, args| {
        Ok(layout::format(text(args, 0), moment(&args[1])?.zoned()).into())
    }),
    Function::new("tz", &[TEXT, MOMENT], |_, args| {
        moment(&args[1])?.in_zone(text(args, 0)).map(Value::Moment)
    }),
    Function::new("now", &[], |env, _| Ok(Value::Moment(Moment::from_millis(env.now)))),
    Function::new("since", &[MOMENT], |env, args| {
        Ok(Value::Span(Moment::from_millis(env.now).since(moment(&args[0])?)))
    }),
    Function::new("toDate", &[TEXT, TEXT], |_, args| {
        let read = layout::read(text(args, 0), text(args, 1)).map(Moment::from_zoned);
        Ok(Value::Moment(read.unwrap_or_else(|_| Moment::zero())))
    }),
    Function::new("mustToDate", &[TEXT, TEXT], |_, args| {
        layout::read(text(args, 0), text(args, 1)).map(|zoned| Value::Moment(Moment::from_zoned(zoned)))
    }),
    Function::new("humanizeDuration", &[ANY], |_, args| {
        Ok(humanize_duration(to_float(&args[0])?).into())
    }),
    Function::new("toJson", &[ANY], |_, args| json(&args[0]).map(Value::from)),
    Function::new("base64encode", &[TEXT], |_, args| {
        Ok(base64::encode(text(args, 0).as_bytes()).into())
    }),
    Function::new("base64decode", &[TEXT], |_, args| {
        let bytes = base64::decode(text(args, 0))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned().into())
    }),
    Function::new("list", &[ANY], |_, args| Ok(Value::list(args.to_vec()))).variadic(),
    Function::new("append", &[LIST, ANY], |_, args| Ok(append(&args[0], &args[1..]))).variadic(),
    Function::new("dict", &[ANY], |_, args| dict(args)).variadic(),
];

fn moment(value: &Value) -> Result<&Moment, String> {
    match value {
        Value::Moment(moment) => Ok(moment),
        other => Err(format!("expected time.Time; got {}", other.type_name())),
    }
}

fn append(list: &Value, more: &[Value]) -> Value {
    let items = match list {
        Value::List(list) => list.items(),
        _ => &[],
    };
    Value::list([items, more].concat())
}

fn dict(args: &[Value]) -> Result<Value, String> {
    if !args.len().is_multiple_of(2) {
        return Err("dict requires an even number of arguments".to_owned());
    }
    let mut map = BTreeMap::new();
    for pair in args.chunks(2) {
        let Value::Text(key) = &pair[0] else {
            return Err("dict keys must be strings".to_owned());
        };
        map.insert(key.clone(), pair[1].clone());
    }
    Ok(Value::map(map))
}
