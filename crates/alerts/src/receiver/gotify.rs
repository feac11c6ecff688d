//! Gotify: a message to one's own server. Ours; Alertmanager does not know it.

use serde_json::{Value, json};

use super::call::{Call, Form, object};
use super::exchange::Request;
use super::failure::Failure;

pub async fn send(call: &Call<'_>) -> Result<(), Failure> {
    let token = call.secret("token", "token_file").await?;
    let title = call.text("title", r#"{{ template "gotify.default.title" . }}"#);
    let priority = call.text("priority", r#"{{ template "gotify.default.priority" . }}"#);
    let message = call.body(Form::Text, "message", r#"{{ template "gotify.default.message" . }}"#);
    let body = object([
        ("title", json!(title)),
        ("message", json!(message)),
        (
            "priority",
            priority
                .trim()
                .parse::<i64>()
                .map_or(Value::Null, |n| json!(n.clamp(0, 10))),
        ),
    ]);
    let url = format!("{}/message", call.settings.text("url").trim_end_matches('/'));
    let request = Request::json(url, &body).header("X-Gotify-Key", token);
    call.line.tell(request, &[429]).await.map(drop)
}
