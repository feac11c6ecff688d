//! Mattermost: an attachment through a webhook.

use config::alertmanager::Found;
use serde_json::{Value, json};

use super::call::{Call, Form, cut_chars, object};
use super::exchange::Request;
use super::failure::Failure;
use super::slack::fields_of;

/// Mattermost's bound for a post, in characters.
const TEXT_MAX: usize = 16_383;

pub async fn send(call: &Call<'_>) -> Result<(), Failure> {
    let url = call.secret("webhook_url", "webhook_url_file").await?;
    let settings = call.settings;
    let own = |key: &str| json!(call.text(key, ""));
    let username = call.text("username", r#"{{ template "mattermost.default.username" . }}"#);
    let card = settings.sections("props").next().map_or("", |props| props.text("card"));
    let card = call.fill(Form::Text, "props", card, "");
    let mut told: Vec<Value> = settings.sections("attachments").map(|a| attachment(call, a)).collect();
    let is_own = !told.is_empty();
    if !is_own {
        told.push(default_attachment(call));
    }
    let text = if is_own {
        let text = call.body(Form::Text, "text", r#"{{ template "mattermost.default.text" . }}"#);
        cut_chars(&text, TEXT_MAX)
    } else {
        String::new()
    };
    let body = object([
        ("channel", own("channel")),
        ("username", json!(username)),
        ("icon_url", own("icon_url")),
        ("icon_emoji", own("icon_emoji")),
        ("type", own("type")),
        ("text", json!(text)),
        (
            "props",
            if card.is_empty() {
                Value::Null
            } else {
                json!({"card": card})
            },
        ),
        ("priority", priority(call)),
        ("attachments", Value::Array(told)),
    ]);
    call.line.tell(Request::json(url, &body), &[]).await.map(drop)
}

fn priority(call: &Call<'_>) -> Value {
    let told = call
        .settings
        .sections("priority")
        .next()
        .filter(|p| !p.text("priority").is_empty());
    told.map_or(Value::Null, |told| {
        json!({
            "priority": call.fill(Form::Text, "priority", told.text("priority"), ""),
            "requested_ack": told.flag("requested_ack", false),
            "persistent_notifications": told.flag("persistent_notifications", false),
        })
    })
}

/// Texts of an attachment that have no default.
const TEXTS: [&str; 8] = [
    "pretext",
    "author_name",
    "author_link",
    "author_icon",
    "thumb_url",
    "footer",
    "footer_icon",
    "image_url",
];

fn default_attachment(call: &Call<'_>) -> Value {
    let text = |key: &str, name: &str| {
        let default = format!("{{{{ template \"mattermost.default.{name}\" . }}}}");
        json!(call.text(key, &default))
    };
    let mut shown = object([
        ("fallback", text("fallback", "fallback")),
        ("color", text("color", "color")),
        ("title", text("title", "title")),
        ("title_link", text("title_link", "titlelink")),
        ("fields", fields_of(call, call.settings, false)),
    ]);
    put_texts(call, call.settings, &TEXTS, &mut shown);
    let text = call.body(Form::Text, "text", r#"{{ template "mattermost.default.text" . }}"#);
    shown["text"] = json!(cut_chars(&text, TEXT_MAX));
    shown
}

fn attachment(call: &Call<'_>, section: &Found) -> Value {
    let mut shown = object([("fields", fields_of(call, section, false))]);
    put_texts(
        call,
        section,
        &["fallback", "color", "text", "title", "title_link"],
        &mut shown,
    );
    put_texts(call, section, &TEXTS, &mut shown);
    shown
}

fn put_texts(call: &Call<'_>, section: &Found, keys: &[&str], into: &mut Value) {
    for key in keys.iter().filter(|key| !section.text(key).is_empty()) {
        into[*key] = json!(call.fill(Form::Text, key, section.text(key), ""));
    }
}
