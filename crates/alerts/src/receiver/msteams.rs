//! Microsoft Teams: the older connector's card, and the workflow's adaptive card.

use serde_json::{Value, json};

use super::call::{Call, Form, cut_bytes};
use super::exchange::Request;
use super::failure::Failure;

/// Teams takes 28 KB in a message; the card around the text takes some.
const TEXT_BYTES_MAX: usize = 24 << 10;

/// The connector's card.
pub async fn send(call: &Call<'_>) -> Result<(), Failure> {
    let title = call.text("title", r#"{{ template "msteams.default.title" . }}"#);
    let summary = call.text("summary", r#"{{ template "msteams.default.summary" . }}"#);
    let text = call.body(Form::Text, "text", r#"{{ template "msteams.default.text" . }}"#);
    let card = json!({
        "@context": "http://schema.org/extensions",
        "type": "MessageCard",
        "title": title,
        "summary": summary,
        "text": cut_bytes(&text, TEXT_BYTES_MAX),
        "themeColor": if call.is_resolved() { "2E7D32" } else { "C62828" },
    });
    post(call, &card).await
}

/// The workflow's card.
pub async fn send_v2(call: &Call<'_>) -> Result<(), Failure> {
    let title = call.text("title", r#"{{ template "msteamsv2.default.title" . }}"#);
    let text = call.body(Form::Text, "text", r#"{{ template "msteamsv2.default.text" . }}"#);
    let color = if call.is_resolved() { "Good" } else { "Attention" };
    let card = json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": null,
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.2",
                "body": [
                    {
                        "type": "TextBlock",
                        "text": title,
                        "weight": "Bolder",
                        "size": "Medium",
                        "wrap": true,
                        "style": "heading",
                        "color": color,
                    },
                    {"type": "TextBlock", "text": cut_bytes(&text, TEXT_BYTES_MAX), "wrap": true},
                ],
                "msteams": {"width": "full"},
            },
        }],
    });
    post(call, &card).await
}

async fn post(call: &Call<'_>, card: &Value) -> Result<(), Failure> {
    let url = call.secret("webhook_url", "webhook_url_file").await?;
    call.line.tell(Request::json(url, card), &[]).await.map(drop)
}
