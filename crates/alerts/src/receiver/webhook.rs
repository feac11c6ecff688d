//! The webhook: a POST of Alertmanager's JSON, or of a body of the user's own.
//!
//! A header `Idempotency-Key` is the same for every attempt at a message, over a crash of this program too: who must
//! not act twice can tell by it.

use config::alertmanager::WebhookConfig;
use serde_json::Value;

use super::call::{Call, Form};
use super::client;
use super::exchange::Request;
use super::failure::Failure;
use crate::payload;

pub async fn send(call: &Call<'_>, config: &WebhookConfig) -> Result<(), Failure> {
    let url = client::secret(config.url.expose(), &config.url_file).await;
    let url = call.needed("url", &url.map_err(Failure::passing)?)?;
    if url.is_empty() {
        return Err(Failure::last("the url is empty"));
    }
    let body = match &config.payload {
        None => usual(call, config),
        Some(node) => call.tree("payload", node),
    };
    let request = Request::json(url, &body).header("Idempotency-Key", call.notification.key());
    call.line.tell(request, &[]).await.map(drop)
}

/// Alertmanager's JSON, with the labels of the route where it has some.
fn usual(call: &Call<'_>, config: &WebhookConfig) -> Value {
    let mut body = payload::webhook(call.notification, &call.line.external_url, config.max_alerts);
    let labels = &call.notification.route_labels;
    if !labels.is_empty() {
        let filled = |(name, text): (&String, &String)| {
            let text = call.fill(Form::Text, "a route label", text, "");
            (name.clone(), Value::String(text))
        };
        body["routeLabels"] = Value::Object(labels.iter().map(filled).collect());
    }
    body
}
