//! The webhook: a POST of Alertmanager's JSON, or of a body of the user's own.

use config::alertmanager::WebhookConfig;

use super::call::Call;
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
        None => payload::webhook(call.notification, &call.line.external_url, config.max_alerts),
        Some(node) => call.tree("payload", node),
    };
    call.line.tell(Request::json(url, &body), &[]).await.map(drop)
}
