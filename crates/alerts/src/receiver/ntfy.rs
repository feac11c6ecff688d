//! ntfy: a message to a topic. Ours; Alertmanager does not know it.

use serde_json::{Value, json};

use super::call::{Call, Form, cut_bytes, object, split};
use super::exchange::Request;
use super::failure::Failure;

const URL: &str = "https://ntfy.sh";
/// Beyond this many bytes ntfy makes a file of a message.
const MESSAGE_BYTES_MAX: usize = 4000;

pub async fn send(call: &Call<'_>) -> Result<(), Failure> {
    let settings = call.settings;
    let title = call.text("title", r#"{{ template "ntfy.default.title" . }}"#);
    let priority = call.text("priority", r#"{{ template "ntfy.default.priority" . }}"#);
    let tags = call.text("tags", r#"{{ template "ntfy.default.tags" . }}"#);
    let message = call.body(Form::Text, "message", r#"{{ template "ntfy.default.message" . }}"#);
    let body = object([
        ("topic", json!(call.needed("topic", settings.text("topic"))?)),
        ("title", json!(title)),
        ("message", json!(cut_bytes(&message, MESSAGE_BYTES_MAX))),
        (
            "priority",
            priority
                .trim()
                .parse::<i64>()
                .map_or(Value::Null, |n| json!(n.clamp(1, 5))),
        ),
        ("tags", json!(split(&tags))),
        (
            "click",
            json!(call.text("click", r#"{{ template "ntfy.default.click" . }}"#)),
        ),
    ]);
    let mut request = Request::json(settings.text_or("url", URL), &body);
    if settings.any(&["token", "token_file"]) {
        let token = call.secret("token", "token_file").await?;
        request = request.header("Authorization", format!("Bearer {token}"));
    }
    call.line.tell(request, &[429]).await.map(drop)
}
