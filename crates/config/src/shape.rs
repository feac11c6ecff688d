//! Sections that are rows of a table: keys with types, and a check between them.
//!
//! Kinds of discovery and of receivers are many and alike. A [`Shape`] is one of them as data; [`Found`]
//! is what a file gave for it, as far as checks ask.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use crate::http::{HttpClientConfig, TlsConfig};
use crate::url::Url;
use crate::yaml::{Duration, Fault, Fields, Float, Node, Result};

/// A kind of section.
pub(crate) struct Shape {
    /// The key under which lists of it stand.
    pub(crate) key: &'static str,
    /// Its own keys.
    pub(crate) keys: &'static [(&'static str, Type)],
    /// What must hold between them.
    pub(crate) check: fn(&Found) -> Check,
}

/// Fine, or the key at fault with the message.
pub(crate) type Check = std::result::Result<(), (&'static str, String)>;

/// The check of a kind without conditions.
#[expect(clippy::unnecessary_wraps, reason = "stands where other checks can fail")]
pub(crate) fn fine(_: &Found) -> Check {
    Ok(())
}

/// A failed check.
pub(crate) fn fault(key: &'static str, message: impl Into<String>) -> Check {
    Err((key, message.into()))
}

/// The type of a key's value.
#[derive(Clone, Copy)]
pub(crate) enum Type {
    /// A text or a secret.
    Text,
    /// True or false.
    Flag,
    /// A whole number.
    Int,
    /// A whole number from 0 on.
    Count,
    /// A number.
    Number,
    /// A duration as Prometheus writes it.
    Span,
    /// A duration as Go writes it.
    GoSpan,
    /// Texts.
    List,
    /// Texts by name.
    Map,
    /// A TLS section.
    Tls,
    /// The keys of an HTTP client, beside the others (the key is of no meaning).
    HttpInline,
    /// An HTTP client's section.
    Http,
    /// A URL with `http` or `https` and a host; a null is none.
    WebUrl,
    /// `host:port`, or nothing.
    HostPort,
    /// A text, or a section.
    TextOr(&'static Shape),
    /// A section.
    One(&'static Shape),
    /// A list of sections.
    Many(&'static Shape),
    /// Anything.
    Any,
}

/// What a section holds, for the checks and for who acts on it. `Debug` shows keys, never values: some are
/// secrets.
#[derive(Clone, Default, PartialEq)]
pub struct Found {
    texts: Vec<(&'static str, String)>,
    lists: Vec<(&'static str, Vec<String>)>,
    numbers: Vec<(&'static str, i64)>,
    maps: Vec<(&'static str, BTreeMap<String, String>)>,
    sections: Vec<(&'static str, Found)>,
    nodes: Vec<(&'static str, Node)>,
    /// The HTTP client, where one was told.
    pub(crate) http: Option<HttpClientConfig>,
    /// The TLS section, where one was told.
    pub(crate) tls: Option<TlsConfig>,
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = self.texts.iter().map(|(key, _)| *key);
        let numbers = self.numbers.iter().map(|(key, _)| *key);
        f.debug_set().entries(texts.chain(numbers)).finish()
    }
}

impl Found {
    /// Reads a section and judges it.
    pub(crate) fn read(shape: &Shape, node: &Node) -> Result<Self> {
        let mut fields = node.fields()?;
        let mut found = Self::default();
        for (key, kind) in shape.keys {
            found.take(&mut fields, key, *kind)?;
        }
        fields.finish()?;
        match (shape.check)(&found) {
            Ok(()) => Ok(found),
            Err((key, message)) => Err(fields.fault_at(key, message)),
        }
    }

    fn take(&mut self, fields: &mut Fields<'_>, key: &'static str, kind: Type) -> Result<()> {
        match kind {
            Type::Text => {
                if let Some(text) = fields.get(key)? {
                    self.texts.push((key, text));
                }
            }
            Type::Flag => {
                if let Some(flag) = fields.get::<bool>(key)? {
                    self.numbers.push((key, i64::from(flag)));
                }
            }
            Type::Int => self.numbers.extend(fields.get(key)?.map(|n: i64| (key, n))),
            Type::Count => {
                let count: Option<u64> = fields.get(key)?;
                self.numbers
                    .extend(count.map(|n| (key, i64::try_from(n).unwrap_or(i64::MAX))));
            }
            Type::Number => drop(fields.get::<Float>(key)?),
            Type::Span => self.numbers.extend(fields.get(key)?.map(|Duration(n)| (key, n))),
            Type::GoSpan => {
                if let Some(node) = fields.part(key) {
                    self.numbers.push((key, go_duration(node)?));
                }
            }
            Type::List => self.lists.extend(fields.get(key)?.map(|list| (key, list))),
            Type::Map => self.maps.extend(fields.get(key)?.map(|map| (key, map))),
            Type::Tls => self.tls = fields.part(key).map(TlsConfig::read).transpose()?,
            Type::HttpInline => self.http = Some(HttpClientConfig::take(fields)?),
            Type::Http => self.http = fields.part(key).map(HttpClientConfig::read).transpose()?,
            Type::WebUrl => {
                if let Some(node) = fields.part(key) {
                    self.texts.push((key, web_url(node)?.as_str().to_owned()));
                }
            }
            Type::HostPort => {
                if let Some(node) = fields.part(key) {
                    self.texts.push((key, host_port(node)?));
                }
            }
            Type::TextOr(shape) => {
                if let Some(node) = fields.node_of(key).filter(|node| node.map().is_ok()) {
                    self.sections.push((key, Self::read(shape, node)?));
                } else if let Some(text) = fields.get(key)? {
                    self.texts.push((key, text));
                }
            }
            Type::One(shape) => {
                if let Some(node) = fields.part(key) {
                    self.sections.push((key, Self::read(shape, node)?));
                }
            }
            Type::Many(shape) => {
                for node in fields.list_of(key)? {
                    self.sections.push((key, Self::read(shape, node)?));
                }
            }
            Type::Any => {
                if let Some(node) = fields.node_of(key) {
                    self.texts.push((key, node.kind().to_owned()));
                    self.nodes.push((key, node.clone()));
                }
            }
        }
        Ok(())
    }

    /// The text of a key; empty when not written.
    #[must_use]
    pub fn text(&self, key: &str) -> &str {
        self.text_or(key, "")
    }

    /// The text of a key, or another when not written.
    #[must_use]
    pub fn text_or<'s>(&'s self, key: &str, default: &'s str) -> &'s str {
        self.texts.iter().find(|(k, _)| *k == key).map_or(default, |(_, t)| t)
    }

    /// Whether a text was written, be it empty.
    #[must_use]
    pub fn has_text(&self, key: &str) -> bool {
        self.texts.iter().any(|(k, _)| *k == key)
    }

    /// Whether any of the keys has a text that is not empty.
    #[must_use]
    pub fn any(&self, keys: &[&str]) -> bool {
        keys.iter().any(|key| !self.text(key).is_empty())
    }

    /// The texts of a list; empty when not written.
    #[must_use]
    pub fn list(&self, key: &str) -> &[String] {
        self.lists.iter().find(|(k, _)| *k == key).map_or(&[], |(_, l)| l)
    }

    /// A number, a duration in milliseconds, or a flag as 0 and 1.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<i64> {
        self.numbers.iter().find(|(k, _)| *k == key).map(|(_, n)| *n)
    }

    /// A flag, or another when not written.
    #[must_use]
    pub fn flag(&self, key: &str, default: bool) -> bool {
        self.number(key).map_or(default, |n| n != 0)
    }

    /// The texts by name of a key.
    #[must_use]
    pub fn map(&self, key: &str) -> Option<&BTreeMap<String, String>> {
        self.maps.iter().find(|(k, _)| *k == key).map(|(_, m)| m)
    }

    /// The sections under a key.
    pub fn sections<'s>(&'s self, key: &'s str) -> impl Iterator<Item = &'s Found> {
        self.sections.iter().filter(move |(k, _)| *k == key).map(|(_, f)| f)
    }

    /// The node of a key whose value may be anything; `None` when not written.
    #[must_use]
    pub fn node(&self, key: &str) -> Option<&Node> {
        self.nodes.iter().find(|(k, _)| *k == key).map(|(_, n)| n)
    }

    /// The TLS section, where one was told.
    #[must_use]
    pub fn tls(&self) -> Option<&TlsConfig> {
        self.tls.as_ref()
    }

    /// Takes what another section says under `from`: its text, and its number where this one has none.
    pub(crate) fn inherit(&mut self, key: &'static str, other: &Self, from: &str) {
        if !other.text(from).is_empty() {
            self.set(key, other.text(from).to_owned());
        }
        if let (None, Some(number)) = (self.number(key), other.number(from)) {
            self.numbers.push((key, number));
        }
    }

    /// Replaces a text that was written; what was not stays so.
    pub fn replace_text(&mut self, key: &str, text: &str) {
        if let Some((_, old)) = self.texts.iter_mut().find(|(k, _)| *k == key) {
            text.clone_into(old);
        }
    }

    /// Sets a text.
    pub(crate) fn set(&mut self, key: &'static str, text: String) {
        self.texts.retain(|(k, _)| *k != key);
        self.texts.push((key, text));
    }

    /// Lets the relative paths under keys that end in `_file` count from a folder.
    pub(crate) fn count_from(&mut self, folder: &Path) {
        for (_, path) in self.texts.iter_mut().filter(|(key, _)| key.ends_with("_file")) {
            count_from(folder, path);
        }
        if let Some(tls) = &mut self.tls {
            tls.count_from(folder);
        }
    }
}

/// Lets a relative path count from a folder; an empty one is none.
pub(crate) fn count_from(folder: &Path, path: &mut String) {
    if !path.is_empty() && Path::new(path.as_str()).is_relative() {
        *path = folder.join(path.as_str()).to_string_lossy().into_owned();
    }
}

/// Refuses the first of the keys that is empty.
pub(crate) fn all_given(found: &Found, keys: &[(&'static str, &str)]) -> Check {
    let missing = keys.iter().find(|(key, _)| found.text(key).is_empty());
    missing.map_or(Ok(()), |(key, message)| fault(key, *message))
}

/// Refuses a value that is not allowed.
pub(crate) fn one_of(key: &'static str, value: &str, allowed: &[&str], message: &str) -> Check {
    if allowed.contains(&value) {
        Ok(())
    } else {
        fault(key, message)
    }
}

/// Refuses two ways to say one thing: a value beside its file.
pub(crate) fn at_most_one(found: &Found, inline: &'static str, file: &'static str) -> Check {
    if !found.text(inline).is_empty() && !found.text(file).is_empty() {
        return fault(file, format!("at most one of {inline} & {file} must be configured"));
    }
    Ok(())
}

/// Reads a URL with `http` or `https` and a host. A masked secret passes.
fn web_url(node: &Node) -> Result<Url> {
    let url: Url = node.read()?;
    if url.as_str() == "<secret>" {
        return Ok(url);
    }
    check_web_url(&url).map_err(|message| node.fault(message))?;
    Ok(url)
}

/// Judges a URL to be one that can be called.
pub(crate) fn check_web_url(url: &Url) -> std::result::Result<(), String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("unsupported scheme {:?} for URL", url.scheme()));
    }
    if url.host().is_empty() {
        return Err("missing host for URL".to_owned());
    }
    Ok(())
}

fn host_port(node: &Node) -> Result<String> {
    let text: String = node.read()?;
    if text.is_empty() {
        return Ok(text);
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err(node.fault(format!("address {text}: missing port in address")));
    };
    if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
        return Err(node.fault(format!("address {text}: too many colons in address")));
    }
    if port.is_empty() {
        return Err(node.fault(format!("address {text:?}: port cannot be empty")));
    }
    Ok(text)
}

/// Units of Go's durations, in nanoseconds.
const GO_UNITS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 6e10),
    ("h", 3.6e12),
];

/// Reads a duration as Go writes it (`1m30.5s`), or a bare number of nanoseconds; in milliseconds.
fn go_duration(node: &Node) -> Result<i64> {
    let text: String = node.read()?;
    let plain = node.scalar().is_some_and(|s| s.plain);
    if let (true, Ok(nanos)) = (plain, text.parse::<i64>()) {
        return Ok(nanos / 1_000_000);
    }
    let millis = go_nanos(&text).map(|nanos| nanos / 1e6);
    match millis {
        #[expect(clippy::cast_possible_truncation, reason = "range checked in the pattern")]
        Some(millis) if millis.abs() < 9.2e12 => Ok(millis as i64),
        _ => Err(Fault::new(node.at, format!("time: invalid duration {text:?}"))),
    }
}

fn go_nanos(text: &str) -> Option<f64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0.0);
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let (_, factor) = GO_UNITS.iter().find(|(unit, _)| *unit == &rest[..letters])?;
        total += number * factor;
        rest = &rest[letters..];
    }
    (!text.is_empty() && !matches!(text, "-" | "+")).then_some(sign * total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::parse;

    #[track_caller]
    fn span(text: &str, want: Option<i64>) {
        assert_eq!(go_duration(&parse(text).expect("valid YAML")).ok(), want, "{text}");
    }

    #[test]
    fn go_durations_have_fractions_and_nanoseconds() {
        span("1m30s", Some(90_000));
        span("1.5h", Some(5_400_000));
        span("250ms", Some(250));
        span("5000000", Some(5));
        span("0", Some(0));
        span("1d", None);
        span("''", None);
        span("-", None);
    }
}
