//! The `global` section: what receivers take where they are silent.

use model::Millis;

use crate::http::HttpClientConfig;
use crate::shape::Type::{Any, Flag, HostPort, Http, Number, Span, Text, Tls, WebUrl};
use crate::shape::{Check, Found, Shape, at_most_one, fault, fine, one_of};
use crate::yaml::{Node, Result};

const RESOLVE_TIMEOUT: Millis = 300_000;

/// Where Slack's applications are called; an API URL equal to it is no contradiction.
pub(super) const SLACK_APP_URL: &str = "https://slack.com/api/chat.postMessage";

const GLOBAL: Shape = Shape {
    key: "global",
    keys: &[
        ("resolve_timeout", Span),
        ("http_config", Http),
        ("jira_api_url", WebUrl),
        ("smtp_from", Text),
        ("smtp_hello", Text),
        ("smtp_smarthost", HostPort),
        ("smtp_auth_username", Text),
        ("smtp_auth_password", Text),
        ("smtp_auth_password_file", Text),
        ("smtp_auth_secret", Text),
        ("smtp_auth_secret_file", Text),
        ("smtp_auth_identity", Text),
        ("smtp_require_tls", Flag),
        ("smtp_tls_config", Tls),
        ("smtp_force_implicit_tls", Flag),
        ("slack_api_url", WebUrl),
        ("slack_api_url_file", Text),
        ("slack_app_token", Text),
        ("slack_app_token_file", Text),
        ("slack_app_url", WebUrl),
        ("pagerduty_url", WebUrl),
        ("opsgenie_api_url", WebUrl),
        ("opsgenie_api_key", Text),
        ("opsgenie_api_key_file", Text),
        ("wechat_api_url", WebUrl),
        ("wechat_api_secret", Text),
        ("wechat_api_secret_file", Text),
        ("wechat_api_corp_id", Text),
        ("victorops_api_url", WebUrl),
        ("victorops_api_key", Text),
        ("victorops_api_key_file", Text),
        ("telegram_api_url", WebUrl),
        ("telegram_bot_token", Text),
        ("telegram_bot_token_file", Text),
        ("webex_api_url", WebUrl),
        ("rocketchat_api_url", WebUrl),
        ("rocketchat_token", Text),
        ("rocketchat_token_file", Text),
        ("rocketchat_token_id", Text),
        ("rocketchat_token_id_file", Text),
        ("mattermost_webhook_url", WebUrl),
        ("mattermost_webhook_url_file", Text),
    ],
    check,
};

/// Values that may stand in place or in a file, not both.
const PAIRS: [(&str, &str); 11] = [
    ("slack_app_token", "slack_app_token_file"),
    ("slack_api_url", "slack_api_url_file"),
    ("opsgenie_api_key", "opsgenie_api_key_file"),
    ("victorops_api_key", "victorops_api_key_file"),
    ("telegram_bot_token", "telegram_bot_token_file"),
    ("smtp_auth_password", "smtp_auth_password_file"),
    ("rocketchat_token", "rocketchat_token_file"),
    ("rocketchat_token_id", "rocketchat_token_id_file"),
    ("smtp_auth_secret", "smtp_auth_secret_file"),
    ("wechat_api_secret", "wechat_api_secret_file"),
    ("mattermost_webhook_url", "mattermost_webhook_url_file"),
];

/// Reads the section; without one everything is silent.
pub(super) fn read(node: Option<&Node>) -> Result<Found> {
    node.map_or_else(|| Ok(Found::default()), |node| Found::read(&GLOBAL, node))
}

pub(super) fn resolve_timeout(global: &Found) -> Millis {
    global.number("resolve_timeout").unwrap_or(RESOLVE_TIMEOUT)
}

pub(super) fn http(global: &Found) -> HttpClientConfig {
    global.http.clone().unwrap_or_default()
}

fn check(found: &Found) -> Check {
    for (inline, file) in PAIRS {
        at_most_one(found, inline, file)?;
    }
    let token = found.any(&["slack_app_token", "slack_app_token_file"]);
    let url = found.any(&["slack_api_url", "slack_api_url_file"]);
    let app_url = found.text_or("slack_app_url", SLACK_APP_URL);
    if token && url && found.text("slack_api_url") != app_url {
        return fault(
            "slack_api_url",
            "at most one of slack_app_token/slack_app_token_file & slack_api_url/slack_api_url_file must be configured",
        );
    }
    Ok(())
}

const TRACING: Shape = Shape {
    key: "tracing",
    keys: &[
        ("client_type", Text),
        ("endpoint", Text),
        ("sampling_fraction", Number),
        ("insecure", Flag),
        ("tls_config", Tls),
        ("headers", Any),
        ("compression", Text),
        ("timeout", Span),
    ],
    check: check_tracing,
};

/// Judges `tracing`, which we do not do.
pub(super) fn tracing(node: &Node) -> Result<()> {
    Found::read(&TRACING, node).map(drop)
}

fn check_tracing(found: &Found) -> Check {
    let client = found.text_or("client_type", "grpc");
    one_of(
        "client_type",
        client,
        &["http", "grpc"],
        &format!("expected tracing client type to be to be http or grpc, but got {client}"),
    )?;
    if found.text("endpoint").is_empty() {
        return fault("endpoint", "tracing endpoint must be set");
    }
    let compression = found.text("compression");
    one_of(
        "compression",
        compression,
        &["", "gzip"],
        &format!("invalid compression type {compression} provided, valid options: gzip"),
    )?;
    fine(found)
}
