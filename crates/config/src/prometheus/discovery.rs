//! Service discovery: every kind Prometheus knows is judged, a few are typed because we run them.
//!
//! A kind is a row of `kinds`: its keys with their types, and what must hold between them. So a new
//! kind is a new row; one that we learn to run also gets a type here.

use model::Millis;

use crate::http::HttpClientConfig;
use crate::shape::{Found, Shape};
use crate::url::Url;
use crate::yaml::{Fields, Node, Result};

mod checks;
mod kinds;
mod kubernetes;

use kinds::KINDS;

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

fn read(kind: &Shape, node: &Node) -> Result<Discovery> {
    let found = Found::read(kind, node)?;
    match kind.key {
        "file_sd_configs" => Ok(Discovery::File(FileDiscovery {
            files: found.list("files").to_vec(),
            refresh_interval: refresh(&found, FILE_REFRESH),
        })),
        "http_sd_configs" => Ok(Discovery::Http(Box::new(HttpDiscovery {
            url: Url::parse(found.text("url")).map_err(|e| node.fault(e))?,
            refresh_interval: refresh(&found, REFRESH),
            http: found.http.unwrap_or_default(),
        }))),
        key => Ok(Discovery::Other(key)),
    }
}

fn refresh(found: &Found, default: Millis) -> Millis {
    found
        .number("refresh_interval")
        .filter(|millis| *millis > 0)
        .unwrap_or(default)
}
