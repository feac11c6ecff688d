//! The `alerting` section: foreign Alertmanagers to tell.

use model::Millis;

use super::discovery::{self, Discovery};
use super::remote::sigv4;
use super::targets::{StaticConfig, check_hosts};
use crate::http::HttpClientConfig;
use crate::relabel::{NameScheme, RelabelConfig, decode_list};
use crate::yaml::{Duration, Node, Result};

/// Whom to tell of alerts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AlertingConfig {
    /// Rules over every alert's labels before it is sent.
    pub alert_relabel_configs: Vec<RelabelConfig>,
    /// Alertmanagers, in groups.
    pub alertmanagers: Vec<AlertmanagerConfig>,
}

/// A group of Alertmanagers.
#[derive(Debug, Clone, PartialEq)]
pub struct AlertmanagerConfig {
    /// `http` unless told.
    pub scheme: String,
    /// Stands before `/api/v2/alerts`.
    pub path_prefix: String,
    /// How long a push may take, in milliseconds.
    pub timeout: Millis,
    /// How to speak HTTP.
    pub http: HttpClientConfig,
    /// Instances written in the file.
    pub static_configs: Vec<StaticConfig>,
    /// Other ways to find them.
    pub discovery: Vec<Discovery>,
    /// Rules over an instance's labels.
    pub relabel_configs: Vec<RelabelConfig>,
    /// Rules over an alert's labels, for this group.
    pub alert_relabel_configs: Vec<RelabelConfig>,
}

const TIMEOUT: Millis = 10_000;

impl AlertingConfig {
    pub(super) fn read(node: &Node, scheme: NameScheme) -> Result<Self> {
        let mut fields = node.fields()?;
        let config = Self {
            alert_relabel_configs: decode_list(
                fields.list_of("alert_relabel_configs")?,
                "alert relabeling rule",
                scheme,
            )?,
            alertmanagers: fields
                .list_of("alertmanagers")?
                .iter()
                .map(|node| AlertmanagerConfig::read(node, scheme))
                .collect::<Result<_>>()?,
        };
        fields.finish()?;
        Ok(config)
    }
}

impl AlertmanagerConfig {
    fn read(node: &Node, scheme: NameScheme) -> Result<Self> {
        let mut fields = node.fields()?;
        if let Some(version) = fields.part("api_version") {
            let text: String = version.read()?;
            if text != "v2" {
                let message = format!("expected Alertmanager api version to be one of [v2] but got {text}");
                return Err(version.fault(message));
            }
        }
        let signed = fields.part("sigv4").map(sigv4).transpose()?.is_some();
        let config = Self {
            scheme: fields.or("scheme", "http".to_owned())?,
            path_prefix: fields.or_empty("path_prefix")?,
            timeout: fields.or("timeout", Duration(TIMEOUT))?.0,
            http: HttpClientConfig::take(&mut fields)?,
            static_configs: StaticConfig::list(&mut fields)?,
            discovery: discovery::take(&mut fields)?,
            relabel_configs: decode_list(
                fields.list_of("relabel_configs")?,
                "Alertmanager target relabeling rule",
                scheme,
            )?,
            alert_relabel_configs: decode_list(
                fields.list_of("alert_relabel_configs")?,
                "Alertmanager alert relabeling rule",
                scheme,
            )?,
        };
        fields.finish()?;
        let http = &config.http;
        if signed && (http.basic_auth.is_some() || http.authorization.is_some() || http.oauth2.is_some()) {
            return Err(fields.fault("at most one of basic_auth, authorization, oauth2, & sigv4 must be configured"));
        }
        if config.relabel_configs.is_empty() {
            check_hosts(&fields, &config.static_configs)?;
        }
        Ok(config)
    }
}
