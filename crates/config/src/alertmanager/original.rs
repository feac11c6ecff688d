//! A configuration as text again, to be shown and to be read by `amtool`: comments are gone, secrets are masked.

use std::fmt::Write as _;

use crate::url::Url;
use crate::yaml::{Node, Scalar, Value};

/// Keys whose values are secrets.
const SECRETS: [&str; 29] = [
    "alert_source_token",
    "api_key",
    "api_secret",
    "app_token",
    "auth_password",
    "auth_secret",
    "bearer_token",
    "bot_token",
    "client_certificate_key",
    "client_secret",
    "credentials",
    "key",
    "mattermost_webhook_url",
    "opsgenie_api_key",
    "password",
    "rocketchat_token",
    "rocketchat_token_id",
    "routing_key",
    "secret_key",
    "secrets",
    "service_key",
    "slack_app_token",
    "smtp_auth_password",
    "smtp_auth_secret",
    "telegram_bot_token",
    "token",
    "token_id",
    "user_key",
    "victorops_api_key",
];
/// Keys whose values are addresses with a secret in them, by the list they stand in.
const ADDRESSES: [(&str, &str); 8] = [
    ("webhook_configs", "url"),
    ("incidentio_configs", "url"),
    ("slack_configs", "api_url"),
    ("discord_configs", "webhook_url"),
    ("msteams_configs", "webhook_url"),
    ("msteamsv2_configs", "webhook_url"),
    ("mattermost_configs", "webhook_url"),
    ("global", "slack_api_url"),
];
const MASK: &str = "<secret>";

/// Writes a configuration down as YAML.
pub(super) fn show(node: &Node) -> String {
    let mut out = String::new();
    put(&mut out, node, 0, &mut Vec::new());
    out
}

fn put<'n>(out: &mut String, node: &'n Node, depth: usize, path: &mut Vec<&'n str>) {
    match &node.value {
        Value::Map(pairs) if !pairs.is_empty() => {
            for (key, value) in pairs {
                let _ = write!(out, "{:1$}", "", depth * 2);
                put_text(out, &key.text, is_plain(&key.text));
                out.push(':');
                path.push(&key.text);
                put_below(out, value, depth + 1, path);
                path.pop();
            }
        }
        Value::List(items) if !items.is_empty() => {
            for item in items {
                let _ = write!(out, "{:1$}-", "", depth * 2);
                put_below(out, item, depth + 1, path);
            }
        }
        Value::Scalar(scalar) => {
            put_scalar(out, scalar, path);
            out.push('\n');
        }
        Value::Map(_) => out.push_str("{}\n"),
        Value::List(_) => out.push_str("[]\n"),
        Value::Null => out.push_str("null\n"),
    }
}

/// Writes what stands below a key or a dash: on the same line where it is one line.
fn put_below<'n>(out: &mut String, node: &'n Node, depth: usize, path: &mut Vec<&'n str>) {
    let is_block = match &node.value {
        Value::Map(pairs) => !pairs.is_empty(),
        Value::List(items) => !items.is_empty(),
        Value::Scalar(_) | Value::Null => false,
    };
    out.push(if is_block { '\n' } else { ' ' });
    put(out, node, depth, path);
}

fn put_scalar(out: &mut String, scalar: &Scalar, path: &[&str]) {
    match masked(&scalar.text, path) {
        Some(text) => put_text(out, &text, false),
        None => put_text(out, &scalar.text, scalar.plain && is_plain(&scalar.text)),
    }
}

/// What is shown in place of a secret; `None` where there is none.
fn masked(text: &str, path: &[&str]) -> Option<String> {
    let key = path.last()?;
    if text.is_empty() {
        return None;
    }
    let is_address = ADDRESSES.iter().any(|(list, k)| k == key && path.contains(list));
    // The key of VictorOps names a route, and ends in an address; the one of PagerDuty is a secret.
    let is_open = *key == "routing_key" && path.contains(&"victorops_configs");
    let is_header = path.contains(&"http_headers") && *key == "secrets";
    let is_secret = (SECRETS.contains(key) && !is_open && !path.contains(&"http_headers")) || is_header;
    let is_grouped = path.contains(&"proxy_connect_header");
    if is_secret || is_grouped {
        return Some(MASK.to_owned());
    }
    let url = Url::parse(text).ok().filter(|url| !url.host().is_empty());
    match url {
        Some(url) if is_address => Some(format!("{}://{}/{MASK}", url.scheme(), url.host())),
        Some(url) if text.contains('@') && key.ends_with("url") => Some(url.to_string()),
        None if is_address => Some(MASK.to_owned()),
        _ => None,
    }
}

/// Whether a text can stand without quotes and stay what it is.
fn is_plain(text: &str) -> bool {
    let safe = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    !text.is_empty() && text.chars().all(safe) && !text.starts_with(['-', '.'])
}

fn put_text(out: &mut String, text: &str, plain: bool) {
    if plain {
        out.push_str(text);
        return;
    }
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || c == '\u{feff}' => {
                let _ = write!(out, "\\U{:08x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::parse;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let shown = show(&parse(text).expect("valid YAML"));
        assert_eq!(shown, want);
        parse(&shown).expect("what is shown is YAML");
    }

    #[test]
    fn what_is_shown_reads_the_same() {
        check(
            "a: {b: [1, x, '5', \"q\\\"\"], c: }",
            "a:\n  b:\n    - 1\n    - x\n    - \"5\"\n    - \"q\\\"\"\n  c: null\n",
        );
        check("[{a: 1, b: []}]", "-\n  a: 1\n  b: []\n");
    }

    #[test]
    fn secrets_are_masked() {
        check(
            "{bot_token: x, bot_token_file: y}",
            "bot_token: \"<secret>\"\nbot_token_file: y\n",
        );
        check(
            "webhook_configs: [{url: 'https://u:p@a.example:8/s?t=1'}]",
            "webhook_configs:\n  -\n    url: \"https://a.example:8/<secret>\"\n",
        );
        check(
            "jira_configs: [{api_url: 'https://a.example/rest'}]",
            "jira_configs:\n  -\n    api_url: \"https://a.example/rest\"\n",
        );
    }
}
