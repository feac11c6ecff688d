//! Prometheus' functions.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use model::time::parse_duration;

use super::sample::{self, RESULT, SAMPLE};
use crate::escape;
use crate::function::{ANY, Env, Function, TEXT, text};
use crate::humanize::{
    humanize, humanize_1024, humanize_duration, humanize_percentage, humanize_timestamp, to_float, to_moment, to_span,
};
use crate::pattern;
use crate::value::{Safe, Value};
use crate::words::title;

/// The functions of Prometheus' rule templates.
pub const FUNCTIONS: &[Function] = &[
    Function::new("query", &[TEXT], |env, args| query(env, text(args, 0))),
    Function::new("first", &[RESULT], |_, args| first(&args[0])),
    Function::new("label", &[TEXT, SAMPLE], |_, args| {
        Ok(sample::label(&args[1], text(args, 0)))
    }),
    Function::new("value", &[SAMPLE], |_, args| Ok(sample::value(&args[0]))),
    Function::new("strvalue", &[SAMPLE], |_, args| {
        Ok(sample::label(&args[0], "__value__"))
    }),
    Function::new("sortByLabel", &[TEXT, RESULT], |_, args| {
        Ok(sample::sorted_by(text(args, 0), &args[1]))
    }),
    Function::new("args", &[ANY], |_, args| Ok(numbered(args))).variadic(),
    Function::new("reReplaceAll", &[TEXT, TEXT, TEXT], |_, args| {
        pattern::replace_all(text(args, 0), text(args, 1), text(args, 2)).map(Value::from)
    }),
    Function::new("match", &[TEXT, TEXT], |_, args| {
        pattern::is_match(text(args, 0), text(args, 1)).map(Value::Bool)
    }),
    Function::new("safeHtml", &[TEXT], |_, args| {
        Ok(Value::Safe(Safe::Html, Arc::from(text(args, 0))))
    }),
    Function::new("title", &[TEXT], |_, args| Ok(title(text(args, 0), false).into())),
    Function::new("toUpper", &[TEXT], |_, args| Ok(text(args, 0).to_uppercase().into())),
    Function::new("toLower", &[TEXT], |_, args| Ok(text(args, 0).to_lowercase().into())),
    Function::new("graphLink", &[TEXT], |_, args| Ok(link(text(args, 0), 0).into())),
    Function::new("tableLink", &[TEXT], |_, args| Ok(link(text(args, 0), 1).into())),
    Function::new("stripPort", &[TEXT], |_, args| Ok(strip_port(text(args, 0)).into())),
    Function::new("stripDomain", &[TEXT], |_, args| Ok(strip_domain(text(args, 0)).into())),
    Function::new("humanize", &[ANY], |_, args| Ok(humanize(to_float(&args[0])?).into())),
    Function::new("humanize1024", &[ANY], |_, args| {
        Ok(humanize_1024(to_float(&args[0])?).into())
    }),
    Function::new("humanizeDuration", &[ANY], |_, args| {
        Ok(humanize_duration(to_float(&args[0])?).into())
    }),
    Function::new("humanizePercentage", &[ANY], |_, args| {
        Ok(humanize_percentage(to_float(&args[0])?).into())
    }),
    Function::new("humanizeTimestamp", &[ANY], |_, args| {
        Ok(humanize_timestamp(to_float(&args[0])?)?.into())
    }),
    Function::new("toTime", &[ANY], |_, args| {
        Ok(Value::Moment(to_moment(to_float(&args[0])?)?))
    }),
    Function::new("toDuration", &[ANY], |_, args| {
        Ok(Value::Span(to_span(to_float(&args[0])?)))
    }),
    Function::new("now", &[], |env, _| Ok(Value::Float(env.now as f64 / 1000.0))),
    Function::new("pathPrefix", &[], |env, _| Ok(path(env.external_url).into())),
    Function::new("externalURL", &[], |env, _| Ok(env.external_url.into())),
    Function::new("parseDuration", &[TEXT], |_, args| {
        seconds(text(args, 0)).map(Value::Float)
    }),
    Function::new("urlQueryEscape", &[TEXT], |_, args| {
        Ok(escape::query(text(args, 0)).into())
    }),
];

fn query(env: &Env<'_>, expr: &str) -> Result<Value, String> {
    let engine = env.query.ok_or("no queries can be made here")?;
    engine.query(expr).map(sample::result)
}

fn first(result: &Value) -> Result<Value, String> {
    let first = match result {
        Value::List(list) => list.items().first().cloned(),
        _ => None,
    };
    first.ok_or_else(|| "first() called on vector with no elements".to_owned())
}

/// `arg0`, `arg1` …: several values for a template that takes one.
fn numbered(args: &[Value]) -> Value {
    let pairs = args.iter().enumerate();
    let map: BTreeMap<Arc<str>, Value> = pairs
        .map(|(at, arg)| (format!("arg{at}").into(), arg.clone()))
        .collect();
    Value::map(map)
}

fn link(expr: &str, tab: u8) -> String {
    format!("/graph?g0.expr={}&g0.tab={tab}", escape::query(expr))
}

/// The path of an address, without the host.
fn path(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find('/').map_or("", |at| &rest[at..]);
    path.split(['?', '#']).next().unwrap_or("")
}

/// Host and port of `host:port` or `[host]:port`.
fn split_host_port(text: &str) -> Option<(&str, &str)> {
    let (host, port) = text.rsplit_once(':')?;
    match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        Some(inner) if !inner.contains(['[', ']']) => Some((inner, port)),
        Some(_) => None,
        None => (!host.contains([':', '[', ']'])).then_some((host, port)),
    }
}

fn strip_port(text: &str) -> &str {
    split_host_port(text).map_or(text, |(host, _)| host)
}

fn strip_domain(text: &str) -> String {
    let (host, port) = split_host_port(text).unwrap_or((text, ""));
    if host.parse::<IpAddr>().is_ok() {
        return text.to_owned();
    }
    let short = host.split('.').next().unwrap_or(host);
    match port {
        "" => short.to_owned(),
        port if short.contains(':') => format!("[{short}]:{port}"),
        port => format!("{short}:{port}"),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text),
    };
    let millis = parse_duration(unsigned).map_err(|e| e.to_string())?;
    Ok(sign * millis as f64 / 1000.0)
}
