//! What must hold between the keys of a receiver, and between it and the global section.

use std::collections::HashSet;

use super::global::SLACK_APP_URL;
use crate::shape::{Check, Found, all_given, at_most_one, check_web_url, fault, one_of};
use crate::url::Url;

/// Refuses a thing told neither in place nor in a file.
fn one_needed(found: &Found, inline: &'static str, file: &'static str) -> Check {
    if found.any(&[inline, file]) {
        return Ok(());
    }
    fault(inline, format!("one of {inline} or {file} must be configured"))
}

pub(super) fn webhook(found: &Found) -> Check {
    one_needed(found, "url", "url_file")?;
    at_most_one(found, "url", "url_file")?;
    let url = found.text("url");
    // A template becomes a URL only when it is filled in.
    if url.is_empty() || url == "<secret>" || url.contains("{{") {
        return Ok(());
    }
    let parsed = Url::parse(url).and_then(|url| check_web_url(&url));
    parsed.map_err(|e| ("url", format!("invalid URL: {e}")))
}

pub(super) fn email(found: &Found) -> Check {
    all_given(found, &[("to", "missing to address in email config")])?;
    let mut headers = HashSet::new();
    for name in found.map("headers").into_iter().flat_map(|m| m.keys()) {
        let lower = name.to_ascii_lowercase();
        if !headers.insert(lower) {
            return fault("headers", format!("duplicate header {name:?} in email config"));
        }
    }
    let Some(threading) = found.sections("threading").next().filter(|t| t.flag("enabled", false)) else {
        return Ok(());
    };
    for header in ["References", "In-Reply-To"] {
        if headers.contains(&header.to_ascii_lowercase()) {
            return fault(
                "threading",
                format!("conflicting configuration: threading.enabled conflicts with custom {header} header"),
            );
        }
    }
    one_of(
        "threading",
        threading.text("thread_by_date"),
        &["none", "daily"],
        "threading.thread_by_date must be either 'none' or 'daily'",
    )
}

pub(super) fn email_resolved(found: &Found, global: &Found) -> Check {
    if !found.any(&["smarthost"]) && !global.any(&["smtp_smarthost"]) {
        return fault("smarthost", "no global SMTP smarthost set");
    }
    if !found.any(&["from"]) && !global.any(&["smtp_from"]) {
        return fault("from", "no global SMTP from set");
    }
    Ok(())
}

pub(super) fn pagerduty(found: &Found) -> Check {
    if !found.any(&["routing_key", "service_key", "routing_key_file", "service_key_file"]) {
        return fault("routing_key", "missing service or routing key in PagerDuty config");
    }
    at_most_one(found, "routing_key", "routing_key_file")?;
    at_most_one(found, "service_key", "service_key_file")
}

pub(super) fn responder(found: &Found) -> Check {
    if !found.any(&["id", "username", "name"]) {
        return fault(
            "type",
            "opsGenieConfig responder has to have at least one of id, username or name specified",
        );
    }
    let kind = found.text("type");
    if kind.contains("{{") {
        return Ok(());
    }
    one_of(
        "type",
        &kind.to_lowercase(),
        &["team", "teams", "user", "escalation", "schedule"],
        &format!(
            "opsGenieConfig responder type {kind:?} does not match valid options \
             ^(team|teams|user|escalation|schedule)$"
        ),
    )
}

pub(super) fn opsgenie(found: &Found) -> Check {
    at_most_one(found, "api_key", "api_key_file")
}

pub(super) fn opsgenie_resolved(found: &Found, global: &Found) -> Check {
    if found.any(&["api_key", "api_key_file"]) || global.any(&["opsgenie_api_key", "opsgenie_api_key_file"]) {
        return Ok(());
    }
    fault("api_key", "no global OpsGenie API Key set either inline or in a file")
}

pub(super) fn wechat(found: &Found) -> Check {
    let kind = found.text("message_type");
    one_of(
        "message_type",
        kind,
        &["", "text", "markdown"],
        &format!("weChat message type {kind:?} does not match valid options ^(text|markdown)$"),
    )?;
    at_most_one(found, "api_secret", "api_secret_file")
}

pub(super) fn wechat_resolved(found: &Found, global: &Found) -> Check {
    if !found.any(&["api_secret", "api_secret_file"]) && !global.any(&["wechat_api_secret", "wechat_api_secret_file"]) {
        return fault(
            "api_secret",
            "no global Wechat Api Secret set either inline or in a file",
        );
    }
    if !found.any(&["corp_id"]) && !global.any(&["wechat_api_corp_id"]) {
        return fault("corp_id", "no global Wechat CorpID set");
    }
    Ok(())
}

pub(super) fn field(found: &Found) -> Check {
    all_given(
        found,
        &[
            ("title", "missing title in field configuration"),
            ("value", "missing value in field configuration"),
        ],
    )
}

pub(super) fn slack_confirm(found: &Found) -> Check {
    all_given(found, &[("text", "missing text in Slack confirmation configuration")])
}

pub(super) fn slack_action(found: &Found) -> Check {
    all_given(
        found,
        &[
            ("type", "missing type in Slack action configuration"),
            ("text", "missing text in Slack action configuration"),
        ],
    )?;
    if found.any(&["url", "name"]) {
        return Ok(());
    }
    fault("name", "missing name or url in Slack action configuration")
}

pub(super) fn slack(found: &Found) -> Check {
    at_most_one(found, "api_url", "api_url_file")?;
    at_most_one(found, "app_token", "app_token_file")?;
    if found.any(&["api_url", "api_url_file"]) && found.any(&["app_token", "app_token_file"]) {
        return fault(
            "app_token",
            "at most one of api_url/api_url_file & app_token/app_token_file must be configured",
        );
    }
    if found.flag("update_message", false) && found.text("api_url") != SLACK_APP_URL {
        return fault(
            "update_message",
            format!("update_message can only be used with bot tokens. api_url must be set to {SLACK_APP_URL}"),
        );
    }
    Ok(())
}

pub(super) fn slack_resolved(found: &Found, global: &Found) -> Check {
    let authorized = |found: &Found| found.http.as_ref().is_some_and(|http| http.authorization.is_some());
    let own_token = found.any(&["app_token", "app_token_file"]);
    let takes_token = !own_token && !authorized(found) && !found.has_text("api_url");
    let token = own_token || takes_token && global.any(&["slack_app_token", "slack_app_token_file"]);
    let url = found.any(&["api_url", "api_url_file"]) || global.any(&["slack_api_url", "slack_api_url_file"]);
    if !url && !token {
        return fault(
            "api_url",
            "no Slack API URL nor App token set either inline or in a file",
        );
    }
    let http = if found.http.is_some() { found } else { global };
    if token && authorized(http) {
        return fault(
            "app_token",
            "http authorization can't be set when using Slack App tokens",
        );
    }
    Ok(())
}

/// Fields of VictorOps' own that custom ones must not shadow.
const VICTOROPS_FIELDS: [&str; 7] = [
    "routing_key",
    "message_type",
    "state_message",
    "entity_display_name",
    "monitoring_tool",
    "entity_id",
    "entity_state",
];

pub(super) fn victorops(found: &Found) -> Check {
    all_given(found, &[("routing_key", "missing Routing key in VictorOps config")])?;
    at_most_one(found, "api_key", "api_key_file")?;
    let custom = found.map("custom_fields");
    match VICTOROPS_FIELDS
        .iter()
        .find(|name| custom.is_some_and(|m| m.contains_key(**name)))
    {
        Some(name) => fault(
            "custom_fields",
            format!(
                "victorOps config contains custom field {name} which cannot be used as it conflicts with the \
                 fixed/static fields"
            ),
        ),
        None => Ok(()),
    }
}

pub(super) fn victorops_resolved(found: &Found, global: &Found) -> Check {
    if found.any(&["api_key", "api_key_file"]) || global.any(&["victorops_api_key", "victorops_api_key_file"]) {
        return Ok(());
    }
    fault("api_key", "no global VictorOps API Key set")
}

pub(super) fn pushover(found: &Found) -> Check {
    for (inline, file) in [("user_key", "user_key_file"), ("token", "token_file")] {
        one_needed(found, inline, file)?;
        at_most_one(found, inline, file)?;
    }
    if found.flag("html", false) && found.flag("monospace", false) {
        return fault("monospace", "at most one of monospace & html must be configured");
    }
    Ok(())
}

pub(super) fn sigv4(found: &Found) -> Check {
    if found.any(&["access_key"]) != found.any(&["secret_key"]) {
        return fault(
            "access_key",
            "must provide a AWS SigV4 Access key and Secret Key if credentials are specified in the SigV4 config",
        );
    }
    Ok(())
}

pub(super) fn sns(found: &Found) -> Check {
    // Alertmanager's own condition: one of three, or all three.
    let given = ["target_arn", "topic_arn", "phone_number"]
        .iter()
        .filter(|key| found.any(&[key]))
        .count();
    if given % 2 == 0 {
        return fault(
            "topic_arn",
            "must provide either a Target ARN, Topic ARN, or Phone Number for SNS config",
        );
    }
    Ok(())
}

pub(super) fn telegram(found: &Found) -> Check {
    at_most_one(found, "bot_token", "bot_token_file")?;
    let chat = found.number("chat_id").unwrap_or(0) != 0;
    match (chat, found.any(&["chat_id_file"])) {
        (false, false) => return fault("chat_id", "missing chat_id or chat_id_file on telegram_config"),
        (true, true) => return fault("chat_id", "at most one of chat_id & chat_id_file must be configured"),
        _ => {}
    }
    one_of(
        "parse_mode",
        found.text("parse_mode"),
        &["", "Markdown", "MarkdownV2", "HTML"],
        "unknown parse_mode on telegram_config, must be Markdown, MarkdownV2, HTML or empty string",
    )
}

pub(super) fn telegram_resolved(found: &Found, global: &Found) -> Check {
    if found.any(&["bot_token", "bot_token_file"]) || global.any(&["telegram_bot_token", "telegram_bot_token_file"]) {
        return Ok(());
    }
    fault("bot_token", "missing bot_token or bot_token_file on telegram_config")
}

pub(super) fn one_webhook_url(found: &Found) -> Check {
    one_needed(found, "webhook_url", "webhook_url_file")?;
    at_most_one(found, "webhook_url", "webhook_url_file")
}

pub(super) fn webex(found: &Found) -> Check {
    all_given(found, &[("room_id", "missing room_id on webex_config")])?;
    let authorized = found.http.as_ref().is_some_and(|http| http.authorization.is_some());
    if !authorized {
        return fault("http_config", "missing webex_configs.http_config.authorization");
    }
    Ok(())
}

pub(super) fn jira(found: &Found) -> Check {
    all_given(
        found,
        &[
            ("project", "missing project in jira_config"),
            ("issue_type", "missing issue_type in jira_config"),
        ],
    )?;
    one_of(
        "api_type",
        found.text_or("api_type", "auto"),
        &["auto", "cloud", "datacenter"],
        "unknown api_type on jira_config, must be auto, cloud or datacenter",
    )
}

pub(super) fn jira_resolved(found: &Found, global: &Found) -> Check {
    if found.any(&["api_url"]) || global.any(&["jira_api_url"]) {
        return Ok(());
    }
    fault("api_url", "no global Jira Cloud URL set")
}

pub(super) fn incidentio(found: &Found) -> Check {
    one_needed(found, "url", "url_file")?;
    at_most_one(found, "url", "url_file")?;
    at_most_one(found, "alert_source_token", "alert_source_token_file")?;
    let token = found.any(&["alert_source_token", "alert_source_token_file"]);
    match found.http.as_ref().map(|http| http.authorization.is_some()) {
        Some(true) if token => fault(
            "alert_source_token",
            "cannot specify alert_source_token or alert_source_token_file when using http_config.authorization",
        ),
        Some(false) if !token => fault(
            "alert_source_token",
            "at least one of alert_source_token, alert_source_token_file or http_config.authorization must be configured",
        ),
        _ => Ok(()),
    }
}

pub(super) fn rocketchat(found: &Found) -> Check {
    at_most_one(found, "token", "token_file")?;
    at_most_one(found, "token_id", "token_id_file")
}

pub(super) fn rocketchat_resolved(found: &Found, global: &Found) -> Check {
    let told = |key: &str, file: &str, global_key: &str, global_file: &str| {
        found.has_text(key) || found.any(&[file]) || global.has_text(global_key) || global.any(&[global_file])
    };
    if !told(
        "token_id",
        "token_id_file",
        "rocketchat_token_id",
        "rocketchat_token_id_file",
    ) {
        return fault(
            "token_id",
            "no global Rocketchat TokenID set either inline or in a file",
        );
    }
    if !told("token", "token_file", "rocketchat_token", "rocketchat_token_file") {
        return fault("token", "no global Rocketchat Token set either inline or in a file");
    }
    Ok(())
}

pub(super) fn mattermost(found: &Found) -> Check {
    at_most_one(found, "webhook_url", "webhook_url_file")
}

pub(super) fn mattermost_resolved(found: &Found, global: &Found) -> Check {
    let own = found.any(&["webhook_url", "webhook_url_file"]);
    if own || global.any(&["mattermost_webhook_url", "mattermost_webhook_url_file"]) {
        return Ok(());
    }
    fault(
        "webhook_url",
        "missing webhook_url or webhook_url_file on mattermost_config",
    )
}

pub(super) fn ntfy(found: &Found) -> Check {
    all_given(found, &[("topic", "missing topic on ntfy_config")])?;
    at_most_one(found, "token", "token_file")
}

pub(super) fn gotify(found: &Found) -> Check {
    all_given(found, &[("url", "missing url on gotify_config")])?;
    one_needed(found, "token", "token_file")?;
    at_most_one(found, "token", "token_file")
}
