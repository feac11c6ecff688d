//! Slack: an attachment through a webhook, or through a bot, whose messages can be changed later.

use config::alertmanager::Found;
use serde_json::{Value, json};

use super::call::{Call, Form, cut_chars, object};
use super::exchange::{Answer, Request};
use super::failure::Failure;
use crate::delivery::Reason;

/// Where a message of a bot is changed.
const UPDATE: &str = "chat.update";
const POST: &str = "chat.postMessage";
/// Slack's bounds, in characters; an attachment's text is cut by Slack itself far later than people read.
const TITLE_MAX: usize = 1024;
const TEXT_MAX: usize = 8000;
/// The most messages remembered for being changed.
const MESSAGES_MAX: usize = 10_000;

pub async fn send(call: &Call<'_>) -> Result<(), Failure> {
    let settings = call.settings;
    let mut url = call.secret("api_url", "api_url_file").await?;
    let mut channel = call.text("channel", "");
    let mut message = Value::Null;
    let updates = settings.flag("update_message", false);
    let known = call.line.memory().messages.get(&call.notification.group_key).cloned();
    if let Some((place, name)) = known.filter(|_| updates) {
        url = url.replace(POST, UPDATE);
        channel = place;
        message = json!(name);
    }
    let body = object([
        ("channel", json!(channel)),
        (
            "username",
            json!(call.text("username", r#"{{ template "slack.default.username" . }}"#)),
        ),
        (
            "icon_emoji",
            json!(call.text("icon_emoji", r#"{{ template "slack.default.iconemoji" . }}"#)),
        ),
        (
            "icon_url",
            json!(call.text("icon_url", r#"{{ template "slack.default.iconurl" . }}"#)),
        ),
        ("link_names", settings.flag("link_names", false).then_some(true).into()),
        ("text", json!(call.text("message_text", ""))),
        ("ts", message),
        ("attachments", json!([attachment(call)])),
    ]);
    let mut request = Request::json(url, &body);
    if settings.any(&["app_token", "app_token_file"]) {
        let token = call.secret("app_token", "app_token_file").await?;
        request = request.header("Authorization", format!("Bearer {token}"));
    }
    let answer = call.line.tell(request, &[]).await;
    let outcome = answer.and_then(|answer| judge(&answer));
    let (place, name) = outcome.map_err(|failure| failure.of(&format!("channel {channel:?}")))?;
    if updates && !name.is_empty() {
        let mut memory = call.line.memory();
        if memory.messages.len() >= MESSAGES_MAX {
            memory.messages.clear();
        }
        memory
            .messages
            .insert(call.notification.group_key.clone(), (place, name));
    }
    Ok(())
}

fn attachment(call: &Call<'_>) -> Value {
    let settings = call.settings;
    let text = |key: &str, name: &str| {
        let default = format!("{{{{ template \"slack.default.{name}\" . }}}}");
        json!(call.text(key, &default))
    };
    let own = |key: &str| json!(call.text(key, ""));
    let title = call.text("title", r#"{{ template "slack.default.title" . }}"#);
    let marked = settings.list("mrkdwn_in");
    let marked = if marked.is_empty() {
        json!(["fallback", "pretext", "text"])
    } else {
        json!(marked)
    };
    let fields = fields(call);
    let actions: Value = settings.sections("actions").map(|a| action(call, a)).collect();
    object([
        ("title", json!(cut_chars(&title, TITLE_MAX))),
        ("title_link", text("title_link", "titlelink")),
        ("pretext", text("pretext", "pretext")),
        ("fallback", text("fallback", "fallback")),
        ("callback_id", text("callback_id", "callbackid")),
        ("image_url", own("image_url")),
        ("thumb_url", own("thumb_url")),
        ("footer", text("footer", "footer")),
        ("color", text("color", "color")),
        ("mrkdwn_in", marked),
        ("fields", fields),
        ("actions", actions),
        (
            "text",
            json!(cut_chars(
                &call.body(Form::Text, "text", r#"{{ template "slack.default.text" . }}"#),
                TEXT_MAX
            )),
        ),
    ])
}

/// Fields in a table; also Mattermost's and Rocket.Chat's.
pub(super) fn fields(call: &Call<'_>) -> Value {
    fields_of(call, call.settings, call.settings.flag("short_fields", false))
}

/// Fields of a section.
pub(super) fn fields_of(call: &Call<'_>, section: &Found, short: bool) -> Value {
    let one = |field: &Found| {
        json!({
            "title": call.fill(Form::Text, "fields", field.text("title"), ""),
            "value": call.fill(Form::Text, "fields", field.text("value"), ""),
            "short": field.flag("short", short),
        })
    };
    section.sections("fields").map(one).collect()
}

fn action(call: &Call<'_>, action: &Found) -> Value {
    let text = |key: &str| json!(call.fill(Form::Text, "actions", action.text(key), ""));
    let confirm = action.sections("confirm").next().map_or(Value::Null, |confirm| {
        let text = |key: &str| json!(call.fill(Form::Text, "actions", confirm.text(key), ""));
        object([
            ("text", text("text")),
            ("title", text("title")),
            ("ok_text", text("ok_text")),
            ("dismiss_text", text("dismiss_text")),
        ])
    });
    object([
        ("type", text("type")),
        ("text", text("text")),
        ("url", text("url")),
        ("style", text("style")),
        ("name", text("name")),
        ("value", text("value")),
        ("confirm", confirm),
    ])
}

/// Slack tells of mistakes with status 200 too. Gives channel and name of the message, where told.
fn judge(answer: &Answer) -> Result<(String, String), Failure> {
    let mistake = |what: &str| Failure::last(format!("Slack: {what}")).because(Reason::Client);
    if !answer.content_type.starts_with("application/json") {
        let text = answer.beginning();
        // A webhook says "ok"; a stand-in of it often says nothing.
        return match text.as_str() {
            "ok" | "" => Ok(Default::default()),
            _ => Err(mistake(&text)),
        };
    }
    let said = answer.json();
    let text = |key: &str| said[key].as_str().unwrap_or("").to_owned();
    match said["ok"].as_bool() {
        Some(true) => Ok((text("channel"), text("ts"))),
        Some(false) => Err(mistake(&text("error"))),
        None => Err(Failure::passing("Slack: an answer that cannot be read")),
    }
}
