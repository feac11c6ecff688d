//! incident.io: Alertmanager's JSON with a token.

use serde_json::json;

use super::call::Call;
use super::exchange::Request;
use super::failure::Failure;
use crate::payload;

/// incident.io's bound, in bytes.
const BODY_BYTES_MAX: usize = 512 << 10;

pub async fn send(call: &Call<'_>) -> Result<(), Failure> {
    let settings = call.settings;
    let url = call.secret("url", "url_file").await?;
    let most = settings
        .number("max_alerts")
        .and_then(|n| u64::try_from(n).ok())
        .unwrap_or(0);
    let mut body = payload::webhook(call.notification, &call.line.external_url, most);
    body["version"] = json!("1");
    if body.to_string().len() > BODY_BYTES_MAX {
        // One alert of the group makes the incident; the others are counted.
        let one = payload::webhook(call.notification, &call.line.external_url, 1);
        body["alerts"] = one["alerts"].clone();
        body["truncatedAlerts"] = one["truncatedAlerts"].clone();
    }
    let mut request = Request::json(url, &body);
    if settings.any(&["alert_source_token", "alert_source_token_file"]) {
        let token = call.secret("alert_source_token", "alert_source_token_file").await?;
        request = request.header("Authorization", format!("Bearer {token}"));
    }
    call.line.tell(request, &[429]).await.map(drop)
}
