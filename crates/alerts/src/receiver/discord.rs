//! Discord: a webhook that shows one embed.

use serde_json::json;

use super::call::{Call, Form, cut_chars, object};
use super::exchange::Request;
use super::failure::Failure;

/// Discord's bounds, in characters.
const TITLE_MAX: usize = 256;
const DESCRIPTION_MAX: usize = 4096;
const CONTENT_MAX: usize = 2000;
const RED: u32 = 0x00c6_2828;
const GREEN: u32 = 0x002e_7d32;

pub async fn send(call: &Call<'_>) -> Result<(), Failure> {
    let url = call.secret("webhook_url", "webhook_url_file").await?;
    let title = call.text("title", r#"{{ template "discord.default.title" . }}"#);
    let content = call.text("content", r#"{{ template "discord.default.content" . }}"#);
    let message = call.body(Form::Text, "message", r#"{{ template "discord.default.message" . }}"#);
    let body = object([
        // Discord wants the content even where it says nothing.
        ("content", json!(cut_chars(&content, CONTENT_MAX))),
        (
            "embeds",
            json!([{
                "title": cut_chars(&title, TITLE_MAX),
                "description": cut_chars(&message, DESCRIPTION_MAX),
                "color": if call.is_resolved() { GREEN } else { RED },
            }]),
        ),
        ("username", json!(call.settings.text("username"))),
        ("avatar_url", json!(call.settings.text("avatar_url"))),
    ]);
    call.line.tell(Request::json(url, &body), &[]).await.map(drop)
}
