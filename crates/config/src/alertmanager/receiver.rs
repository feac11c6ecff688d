//! Receivers: who is told, and how.

use std::collections::BTreeMap;
use std::path::Path;

use model::Millis;

use super::kinds::{KINDS, Kind};
use crate::http::HttpClientConfig;
use crate::secret::Secret;
use crate::shape::Found;
use crate::yaml::{Fields, Node, Result};

/// A name with ways to tell.
#[derive(Debug, Clone, PartialEq)]
pub struct Receiver {
    /// The name that routes use.
    pub name: String,
    /// Labels of the receiver itself; `name` is always among them.
    pub labels: BTreeMap<String, String>,
    /// Ways to tell, in Alertmanager's order of kinds; none is a place where alerts end quietly.
    pub integrations: Vec<Integration>,
}

/// One way to tell.
#[derive(Debug, Clone, PartialEq)]
pub enum Integration {
    /// A POST of Alertmanager's JSON.
    Webhook(Box<WebhookConfig>),
    /// A line in our own log. Ours, and not written in a file.
    Log {
        /// Whether the end of an alert is told too.
        send_resolved: bool,
    },
    /// Any other kind: its settings as a table.
    Other(Box<Settings>),
}

/// The settings of a receiver, with what the global section gives where the receiver is silent.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The key in the file: `slack_configs`.
    pub key: &'static str,
    /// Whether the end of an alert is told too.
    pub send_resolved: bool,
    /// How to speak HTTP; the global client where none was told.
    pub http: HttpClientConfig,
    /// Everything else, by key.
    pub found: Found,
}

impl Integration {
    /// The kind's name as Alertmanager writes it: `webhook`, `slack`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Webhook(_) => "webhook",
            Self::Log { .. } => "log",
            Self::Other(settings) => settings.key.trim_end_matches("_configs"),
        }
    }

    /// Whether the end of an alert is told too.
    #[must_use]
    pub fn send_resolved(&self) -> bool {
        match self {
            Self::Webhook(webhook) => webhook.send_resolved,
            Self::Log { send_resolved } => *send_resolved,
            Self::Other(settings) => settings.send_resolved,
        }
    }

    /// Lets relative paths of files count from a folder.
    pub(super) fn count_from(&mut self, folder: &Path) {
        match self {
            Self::Webhook(webhook) => {
                crate::shape::count_from(folder, &mut webhook.url_file);
                webhook.http.count_from(folder);
            }
            Self::Log { .. } => {}
            Self::Other(settings) => {
                settings.found.count_from(folder);
                settings.http.count_from(folder);
            }
        }
    }
}

/// A POST of Alertmanager's JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct WebhookConfig {
    /// Whether the end of an alert is told too.
    pub send_resolved: bool,
    /// How to speak HTTP; the global client where none was told.
    pub http: HttpClientConfig,
    /// Where; empty when it stands in a file. May be a template.
    pub url: Secret,
    /// A file that holds the URL; empty when none.
    pub url_file: String,
    /// The most alerts in one message; 0 for all.
    pub max_alerts: u64,
    /// How long a request may take, in milliseconds; 0 for the notification's own time.
    pub timeout: Millis,
    /// A body of the user's own; its texts are templates.
    pub payload: Option<Node>,
}

impl WebhookConfig {
    /// A webhook with the defaults.
    #[must_use]
    pub fn to(url: &str) -> Self {
        Self {
            send_resolved: true,
            http: HttpClientConfig::default(),
            url: Secret::new(url),
            url_file: String::new(),
            max_alerts: 0,
            timeout: 0,
            payload: None,
        }
    }
}

/// Takes and judges the name.
pub(super) fn name(fields: &mut Fields<'_>) -> Result<String> {
    let name: String = fields.or_empty("name")?;
    if name.is_empty() {
        return Err(fields.fault("missing name in receiver"));
    }
    Ok(name)
}

impl Receiver {
    pub(super) fn read(node: &Node, global: &Found) -> Result<Self> {
        let mut fields = node.fields()?;
        let name = name(&mut fields)?;
        let mut labels: BTreeMap<String, String> = fields.or_empty("labels")?;
        if let Some(other) = labels.get("name").filter(|other| **other != name) {
            let message = format!("receiver label \"name\" must match receiver name {name:?}, got {other:?}");
            return Err(fields.fault_at("labels", message));
        }
        labels.insert("name".to_owned(), name.clone());
        let mut integrations = Vec::new();
        for kind in KINDS {
            for node in fields.list_of(kind.shape.key)? {
                integrations.push(integration(kind, node, global)?);
            }
        }
        fields.finish()?;
        Ok(Self {
            name,
            labels,
            integrations,
        })
    }
}

fn integration(kind: &Kind, node: &Node, global: &Found) -> Result<Integration> {
    if let Some(missing) = kind.missing.filter(|_| node.is_null()) {
        return Err(node.fault(missing));
    }
    let found = Found::read(&kind.shape, node)?;
    if let Err((key, message)) = (kind.resolve)(&found, global) {
        return Err(node.fields()?.fault_at(key, message));
    }
    let send_resolved = found.flag("send_resolved", kind.send_resolved);
    let http = found.http.clone().or_else(|| global.http.clone()).unwrap_or_default();
    if kind.shape.key != "webhook_configs" {
        let mut found = found;
        super::inherit::fill(kind.shape.key, &mut found, global);
        return Ok(Integration::Other(Box::new(Settings {
            key: kind.shape.key,
            send_resolved,
            http,
            found,
        })));
    }
    Ok(Integration::Webhook(Box::new(WebhookConfig {
        send_resolved,
        http,
        url: Secret::new(found.text("url")),
        url_file: found.text("url_file").to_owned(),
        max_alerts: found
            .number("max_alerts")
            .and_then(|n| u64::try_from(n).ok())
            .unwrap_or(0),
        timeout: found.number("timeout").unwrap_or(0),
        payload: found.node("payload").cloned(),
    })))
}
