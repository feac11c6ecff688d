//! Rocket.Chat: a message with an attachment, as a user with a token.

use config::alertmanager::Found;
use serde_json::{Value, json};

use super::call::{Call, Form, cut_chars, object};
use super::exchange::Request;
use super::failure::Failure;
use super::slack::fields;
use crate::delivery::Reason;

const URL: &str = "https://open.rocket.chat/";
/// Bounds, in characters.
const TITLE_MAX: usize = 1024;
const TEXT_MAX: usize = 5000;

pub async fn send(call: &Call<'_>) -> Result<(), Failure> {
    let token = call.secret("token", "token_file").await?;
    let user = call.secret("token_id", "token_id_file").await?;
    let text = |key: &str, name: &str| {
        let default = format!("{{{{ template \"rocketchat.default.{name}\" . }}}}");
        json!(call.text(key, &default))
    };
    let channel = call.text("channel", "");
    let title = call.text("title", r#"{{ template "rocketchat.default.title" . }}"#);
    let color = r#"{{ if eq .Status "firing" }}red{{ else }}green{{ end }}"#;
    let actions: Value = call.settings.sections("actions").map(|a| action(call, a)).collect();
    let attachment = object([
        ("title", json!(cut_chars(&title, TITLE_MAX))),
        ("title_link", text("title_link", "titlelink")),
        ("image_url", json!(call.text("image_url", ""))),
        ("thumb_url", json!(call.text("thumb_url", ""))),
        ("color", json!(call.text("color", color))),
        ("fields", fields(call)),
        ("actions", actions),
        (
            "text",
            json!(cut_chars(
                &call.body(Form::Text, "text", r#"{{ template "rocketchat.default.text" . }}"#),
                TEXT_MAX
            )),
        ),
    ]);
    let body = object([
        ("channel", json!(channel)),
        ("emoji", text("emoji", "emoji")),
        ("avatar", text("icon_url", "iconurl")),
        ("attachments", json!([attachment])),
    ]);
    let base = call.settings.text_or("api_url", URL).trim_end_matches('/');
    let request = Request::json(format!("{base}/api/v1/chat.postMessage"), &body)
        .header("X-Auth-Token", token)
        .header("X-User-Id", user);
    let answer = call.line.tell(request, &[]).await;
    let answer = answer.map_err(|failure| failure.of(&format!("channel {channel:?}")))?;
    // Mistakes are told with status 200 too.
    let said = answer.json();
    if said["success"] == false {
        let why = said["error"].as_str().unwrap_or("refused");
        return Err(Failure::last(format!("channel {channel:?}: Rocket.Chat: {why}")).because(Reason::Client));
    }
    Ok(())
}

/// Rocket.Chat shows buttons only.
fn action(call: &Call<'_>, action: &Found) -> Value {
    let text = |key: &str| json!(call.fill(Form::Text, "actions", action.text(key), ""));
    object([
        ("type", json!("button")),
        ("text", text("text")),
        ("url", text("url")),
        ("msg", text("msg")),
    ])
}
