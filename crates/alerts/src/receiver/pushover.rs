//! Pushover: a message to telephones.

use super::call::{Call, Form, cut_chars};
use super::exchange::Request;
use super::failure::Failure;

const URL: &str = "https://api.pushover.net/1/messages.json";
/// Pushover's bounds, in characters.
const TITLE_MAX: usize = 250;
const MESSAGE_MAX: usize = 1024;
const LINK_MAX: usize = 512;
/// How often and how long an emergency is repeated unless told, in milliseconds.
const RETRY: i64 = 60_000;
const EXPIRE: i64 = 3_600_000;

pub async fn send(call: &Call<'_>) -> Result<(), Failure> {
    send_to(call, URL).await
}

/// Sends to an address; Pushover has one, tests have another.
pub async fn send_to(call: &Call<'_>, url: &str) -> Result<(), Failure> {
    let settings = call.settings;
    let seconds = |key: &str, default: i64| (settings.number(key).unwrap_or(default) / 1000).to_string();
    let html = settings.flag("html", false);
    let mut form = vec![
        ("token", call.secret("token", "token_file").await?),
        ("user", call.secret("user_key", "user_key_file").await?),
        (
            "title",
            cut_chars(
                &call.text("title", r#"{{ template "pushover.default.title" . }}"#),
                TITLE_MAX,
            ),
        ),
        (
            "url",
            cut_chars(
                &call.text("url", r#"{{ template "pushover.default.url" . }}"#),
                LINK_MAX,
            ),
        ),
        ("url_title", call.text("url_title", "")),
        (
            "priority",
            call.text("priority", r#"{{ if eq .Status "firing" }}2{{ else }}0{{ end }}"#),
        ),
        ("retry", seconds("retry", RETRY)),
        ("expire", seconds("expire", EXPIRE)),
        ("device", call.text("device", "")),
        ("sound", call.text("sound", "")),
    ];
    let flags = [("html", html), ("monospace", settings.flag("monospace", false))];
    form.extend(
        flags
            .iter()
            .filter(|(_, on)| *on)
            .map(|(key, _)| (*key, "1".to_owned())),
    );
    if settings.number("ttl").unwrap_or(0) >= 1000 {
        form.push(("ttl", seconds("ttl", 0)));
    }
    let as_what = if html { Form::Html } else { Form::Text };
    let message = call.body(as_what, "message", r#"{{ template "pushover.default.message" . }}"#);
    let message = cut_chars(message.trim(), MESSAGE_MAX);
    // Pushover refuses a message without words.
    form.push((
        "message",
        if message.is_empty() {
            "(no details)".to_owned()
        } else {
            message
        },
    ));
    let pairs: Vec<(&str, &str)> = form
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| (*key, value.as_str()))
        .collect();
    call.line.tell(Request::form(url, &pairs), &[]).await.map(drop)
}
