//! Telegram: a message of a bot to a chat.

use serde_json::{Value, json};

use super::call::{Call, Form, cut_chars, object};
use super::client;
use super::exchange::Request;
use super::failure::Failure;

const URL: &str = "https://api.telegram.org";
/// Telegram's bound, in characters.
const MESSAGE_MAX: usize = 4096;

pub async fn send(call: &Call<'_>) -> Result<(), Failure> {
    let settings = call.settings;
    let token = call.secret("bot_token", "bot_token_file").await?;
    let chat = chat(call).await?;
    let mode = settings.text_or("parse_mode", "HTML");
    let form = if mode == "HTML" { Form::Html } else { Form::Text };
    let text = call.body(form, "message", r#"{{ template "telegram.default.message" . }}"#);
    // Markup that is cut would be refused; then what remains is sent without markup.
    let (text, mode) = if text.chars().count() <= MESSAGE_MAX {
        (text, mode)
    } else {
        let plain = call.body(Form::Text, "message", r#"{{ template "telegram.default.message" . }}"#);
        (cut_chars(&plain, MESSAGE_MAX), "")
    };
    let body = object([
        ("chat_id", chat),
        ("text", json!(text)),
        ("parse_mode", json!(mode)),
        ("disable_web_page_preview", json!(true)),
        (
            "disable_notification",
            json!(settings.flag("disable_notifications", false)),
        ),
        (
            "message_thread_id",
            settings
                .number("message_thread_id")
                .filter(|n| *n != 0)
                .map_or(Value::Null, Value::from),
        ),
    ]);
    let base = settings.text_or("api_url", URL).trim_end_matches('/');
    let url = format!("{base}/bot{token}/sendMessage");
    let answer = call.line.exchange(Request::json(url, &body)).await?;
    let told = answer.json()["description"].as_str().unwrap_or("").to_owned();
    // As in Alertmanager, whatever Telegram answers may pass.
    let judged = answer.check(&[]).map(drop);
    judged.map_err(|mut failure| {
        failure.retry = true;
        if told.is_empty() { failure } else { failure.of(&told) }
    })
}

async fn chat(call: &Call<'_>) -> Result<Value, Failure> {
    if let Some(number) = call.settings.number("chat_id").filter(|n| *n != 0) {
        return Ok(json!(number));
    }
    let file = call.settings.text("chat_id_file");
    let text = client::secret("", file).await.map_err(Failure::passing)?;
    match text.parse::<i64>() {
        Ok(number) => Ok(json!(number)),
        Err(_) => Err(Failure::last(format!("{file} holds no chat's number"))),
    }
}
