//! What a receiver takes from the global section where it is silent.

use super::global::SLACK_APP_URL;
use crate::shape::Found;

/// A value told in place or in a file: the receiver's two keys, and the global section's.
struct Pair(&'static str, &'static str, &'static str, &'static str, &'static str);

/// By kind; an empty name is none.
const PAIRS: [Pair; 9] = [
    Pair(
        "email_configs",
        "auth_password",
        "auth_password_file",
        "smtp_auth_password",
        "smtp_auth_password_file",
    ),
    Pair(
        "email_configs",
        "auth_secret",
        "auth_secret_file",
        "smtp_auth_secret",
        "smtp_auth_secret_file",
    ),
    Pair(
        "opsgenie_configs",
        "api_key",
        "api_key_file",
        "opsgenie_api_key",
        "opsgenie_api_key_file",
    ),
    Pair(
        "wechat_configs",
        "api_secret",
        "api_secret_file",
        "wechat_api_secret",
        "wechat_api_secret_file",
    ),
    Pair(
        "victorops_configs",
        "api_key",
        "api_key_file",
        "victorops_api_key",
        "victorops_api_key_file",
    ),
    Pair(
        "telegram_configs",
        "bot_token",
        "bot_token_file",
        "telegram_bot_token",
        "telegram_bot_token_file",
    ),
    Pair(
        "rocketchat_configs",
        "token",
        "token_file",
        "rocketchat_token",
        "rocketchat_token_file",
    ),
    Pair(
        "rocketchat_configs",
        "token_id",
        "token_id_file",
        "rocketchat_token_id",
        "rocketchat_token_id_file",
    ),
    Pair(
        "mattermost_configs",
        "webhook_url",
        "webhook_url_file",
        "mattermost_webhook_url",
        "mattermost_webhook_url_file",
    ),
];

/// By kind: the receiver's key and the global section's.
const SINGLES: [(&str, &str, &str); 15] = [
    ("email_configs", "smarthost", "smtp_smarthost"),
    ("email_configs", "from", "smtp_from"),
    ("email_configs", "hello", "smtp_hello"),
    ("email_configs", "auth_username", "smtp_auth_username"),
    ("email_configs", "auth_identity", "smtp_auth_identity"),
    ("email_configs", "require_tls", "smtp_require_tls"),
    ("email_configs", "force_implicit_tls", "smtp_force_implicit_tls"),
    ("pagerduty_configs", "url", "pagerduty_url"),
    ("opsgenie_configs", "api_url", "opsgenie_api_url"),
    ("wechat_configs", "api_url", "wechat_api_url"),
    ("wechat_configs", "corp_id", "wechat_api_corp_id"),
    ("victorops_configs", "api_url", "victorops_api_url"),
    ("telegram_configs", "api_url", "telegram_api_url"),
    ("webex_configs", "api_url", "webex_api_url"),
    ("jira_configs", "api_url", "jira_api_url"),
];

/// Fills in what the receiver does not say.
pub(super) fn fill(kind: &str, found: &mut Found, global: &Found) {
    for Pair(_, own, own_file, from, from_file) in PAIRS.iter().filter(|pair| pair.0 == kind) {
        if !found.any(&[own, own_file]) {
            found.inherit(own, global, from);
            found.inherit(own_file, global, from_file);
        }
    }
    for (_, own, from) in SINGLES.iter().filter(|single| single.0 == kind) {
        if found.text(own).is_empty() {
            found.inherit(own, global, from);
        }
    }
    match kind {
        "rocketchat_configs" if found.text("api_url").is_empty() => {
            found.inherit("api_url", global, "rocketchat_api_url");
        }
        "email_configs" if found.tls.is_none() => found.tls = global.tls.clone(),
        "slack_configs" => slack(found, global),
        _ => {}
    }
}

/// An application's token and a webhook's address exclude each other; whichever the receiver tells goes first.
fn slack(found: &mut Found, global: &Found) {
    if !found.has_text("app_url") {
        found.inherit("app_url", global, "slack_app_url");
    }
    let authorized = found.http.as_ref().is_some_and(|http| http.authorization.is_some());
    let own_url = found.any(&["api_url", "api_url_file"]);
    if !found.any(&["app_token", "app_token_file"]) && !authorized && !own_url {
        found.inherit("app_token", global, "slack_app_token");
        found.inherit("app_token_file", global, "slack_app_token_file");
    }
    if found.any(&["app_token", "app_token_file"]) {
        let address = found.text_or("app_url", SLACK_APP_URL).to_owned();
        found.set("api_url", address);
    } else if !own_url {
        found.inherit("api_url", global, "slack_api_url");
        found.inherit("api_url_file", global, "slack_api_url_file");
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Integration};

    /// What a key of the receiver's first way is, after a global section.
    #[track_caller]
    fn check(global: &str, integration: &str, key: &str, want: &str) {
        let text = format!("global: {{{global}}}\nroute: {{receiver: r}}\nreceivers: [{{name: r, {integration}}}]");
        let config = Config::parse("test", &text).unwrap_or_else(|e| panic!("{}", e.message()));
        let Integration::Other(settings) = &config.receivers[0].integrations[0] else {
            panic!("a table")
        };
        assert_eq!(settings.found.text(key), want, "{integration} after {global}");
    }

    #[test]
    fn what_a_receiver_says_goes_first() {
        let global = "opsgenie_api_key: g, opsgenie_api_url: 'http://g/'";
        check(global, "opsgenie_configs: [{}]", "api_key", "g");
        check(global, "opsgenie_configs: [{api_key: o}]", "api_key", "o");
        check(global, "opsgenie_configs: [{api_key_file: f}]", "api_key", "");
        check(global, "opsgenie_configs: [{}]", "api_url", "http://g/");
        let mail = "smtp_from: a@b, smtp_smarthost: 'h:25', smtp_auth_password_file: f";
        check(mail, "email_configs: [{to: x@y}]", "smarthost", "h:25");
        check(mail, "email_configs: [{to: x@y}]", "auth_password_file", "f");
        check(
            mail,
            "email_configs: [{to: x@y, auth_password: p}]",
            "auth_password_file",
            "",
        );
    }

    #[test]
    fn slack_takes_a_token_or_an_address() {
        let token = "slack_app_token: t, slack_app_url: 'http://s/api'";
        check(token, "slack_configs: [{}]", "api_url", "http://s/api");
        check(token, "slack_configs: [{}]", "app_token", "t");
        check(token, "slack_configs: [{api_url: 'http://own'}]", "app_token", "");
        check(
            "slack_api_url: 'http://g'",
            "slack_configs: [{}]",
            "api_url",
            "http://g",
        );
        check(
            "slack_api_url: 'http://g'",
            "slack_configs: [{api_url_file: f}]",
            "api_url",
            "",
        );
    }
}
