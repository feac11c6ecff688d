//! Service discovery: every kind Prometheus knows is judged, a few are typed because we run them.
//!
//! A kind is a row of `kinds`: its keys with their types, and what must hold between them. So a new
//! kind is a new row; one that we learn to run also gets a type here.

use model::Millis;

use crate::http::{HttpClientConfig, TlsConfig};
use crate::url::Url;
use crate::yaml::{Duration, Fields, Node, Result};

mod checks;
mod kinds;
mod kubernetes;

use kinds::{KINDS, Kind, Type};

/// One way to find targets.
#[derive(Debug, Clone, PartialEq)]
pub enum Discovery {
    /// Target groups in files.
    File(FileDiscovery),
    /// Target groups from a URL.
    Http(Box<HttpDiscovery>),
    /// A kind that is accepted and not run here, by its key (`consul_sd_configs`).
    Other(&'static str),
}

/// `file_sd_configs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiscovery {
    /// Patterns of files; a `*` stands in the last part of a path only.
    pub files: Vec<String>,
    /// How often the files are read again without notice, in milliseconds.
    pub refresh_interval: Millis,
}

/// `http_sd_configs`.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpDiscovery {
    /// Where the groups are.
    pub url: Url,
    /// How often, in milliseconds.
    pub refresh_interval: Millis,
    /// How to speak HTTP.
    pub http: HttpClientConfig,
}

/// Prometheus' own default for files.
const FILE_REFRESH: Millis = 300_000;
/// Prometheus' own default for the other kinds.
const REFRESH: Millis = 60_000;

/// Takes every `*_sd_configs` key.
pub(super) fn take(fields: &mut Fields<'_>) -> Result<Vec<Discovery>> {
    let mut found = Vec::new();
    for kind in KINDS {
        for node in fields.list_of(kind.key)? {
            if node.is_null() {
                return Err(node.fault(format!("empty or null section in {}", kind.key)));
            }
            found.push(read(kind, node)?);
        }
    }
    for node in fields.list_of(kubernetes::KEY)? {
        if node.is_null() {
            return Err(node.fault(format!("empty or null section in {}", kubernetes::KEY)));
        }
        kubernetes::check(node)?;
        found.push(Discovery::Other(kubernetes::KEY));
    }
    Ok(found)
}

fn read(kind: &Kind, node: &Node) -> Result<Discovery> {
    let mut fields = node.fields()?;
    let mut found = Found::default();
    for (key, kind) in kind.keys {
        found.take(&mut fields, key, *kind)?;
    }
    let http = if kind.http {
        Some(HttpClientConfig::take(&mut fields)?)
    } else {
        None
    };
    found.http = http.unwrap_or_default();
    fields.finish()?;
    if let Err((key, message)) = (kind.check)(&found) {
        return Err(fields.fault_at(key, message));
    }
    match kind.key {
        "file_sd_configs" => Ok(Discovery::File(FileDiscovery {
            files: found.list("files").to_vec(),
            refresh_interval: refresh(&mut fields, FILE_REFRESH)?,
        })),
        "http_sd_configs" => Ok(Discovery::Http(Box::new(HttpDiscovery {
            url: Url::parse(found.text("url")).map_err(|e| fields.fault_at("url", e))?,
            refresh_interval: refresh(&mut fields, REFRESH)?,
            http: found.http,
        }))),
        key => Ok(Discovery::Other(key)),
    }
}

fn refresh(fields: &mut Fields<'_>, default: Millis) -> Result<Millis> {
    let millis = fields.or("refresh_interval", Duration(default))?.0;
    Ok(if millis == 0 { default } else { millis })
}

/// What a section holds, for the checks.
#[derive(Debug, Default)]
struct Found {
    texts: Vec<(&'static str, String)>,
    lists: Vec<(&'static str, Vec<String>)>,
    numbers: Vec<(&'static str, i64)>,
    http: HttpClientConfig,
}

impl Found {
    fn take(&mut self, fields: &mut Fields<'_>, key: &'static str, kind: Type) -> Result<()> {
        match kind {
            Type::Text => {
                if let Some(text) = fields.get(key)? {
                    self.texts.push((key, text));
                }
            }
            Type::Flag => fields.get::<bool>(key).map(drop)?,
            Type::Int => {
                if let Some(number) = fields.get(key)? {
                    self.numbers.push((key, number));
                }
            }
            Type::Span => {
                if let Some(Duration(millis)) = fields.get(key)? {
                    self.numbers.push((key, millis));
                }
            }
            Type::List => {
                let list: Option<Vec<String>> = fields.get(key)?;
                self.lists.extend(list.map(|list| (key, list)));
            }
            Type::Map => drop(fields.get::<std::collections::BTreeMap<String, String>>(key)?),
            Type::Tls => drop(fields.part(key).map(TlsConfig::read).transpose()?),
            Type::Filters => self.filters(fields, key)?,
        }
        Ok(())
    }

    /// Filters are pairs of `name` and `values`; an empty one is noted under its key.
    fn filters(&mut self, fields: &mut Fields<'_>, key: &'static str) -> Result<()> {
        for node in fields.list_of(key)? {
            let mut filter = node.fields()?;
            let _: String = filter.or_empty("name")?;
            let values: Vec<String> = filter.or_empty("values")?;
            filter.finish()?;
            if values.is_empty() {
                self.numbers.push(("empty filters", 1));
            }
        }
        Ok(())
    }

    /// The text of a key; empty when not written.
    fn text(&self, key: &str) -> &str {
        self.text_or(key, "")
    }

    fn text_or<'s>(&'s self, key: &str, default: &'s str) -> &'s str {
        self.texts.iter().find(|(k, _)| *k == key).map_or(default, |(_, t)| t)
    }

    fn list(&self, key: &str) -> &[String] {
        self.lists.iter().find(|(k, _)| *k == key).map_or(&[], |(_, l)| l)
    }

    fn number(&self, key: &str) -> Option<i64> {
        self.numbers.iter().find(|(k, _)| *k == key).map(|(_, n)| *n)
    }
}
