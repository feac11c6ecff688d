//! Webex: a message in Markdown to a room.

use serde_json::json;

use super::call::{Call, Form, cut_bytes};
use super::exchange::Request;
use super::failure::Failure;

const URL: &str = "https://webexapis.com/v1/messages";
/// Webex' bound, in bytes before encryption.
const MESSAGE_BYTES_MAX: usize = 7439;

pub async fn send(call: &Call<'_>) -> Result<(), Failure> {
    let room = call.needed("room_id", call.settings.text("room_id"))?;
    let message = call.body(Form::Text, "message", r#"{{ template "webex.default.message" . }}"#);
    let body = json!({"markdown": cut_bytes(&message, MESSAGE_BYTES_MAX), "roomId": room});
    let url = call.settings.text_or("api_url", URL);
    call.line.tell(Request::json(url, &body), &[]).await.map(drop)
}
