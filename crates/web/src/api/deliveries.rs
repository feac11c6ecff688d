//! What was told to whom, how receivers are, and a test of one.

use std::sync::Arc;

use alerts::delivery::{Delivery, DeliveryStatus};
use axum::extract::{Path, State};
use axum::response::Response;
use model::Millis;
use serde_json::{Value, json};

use super::query::body;
use crate::error::ApiError;
use crate::hub::Hub;
use crate::params::Params;

/// `GET /api/watchfire/v1/deliveries`: newest first; by `fingerprint`, `receiver`, `status`, `since`, at most `limit`.
pub async fn deliveries(State(hub): State<Arc<Hub>>, params: Params) -> Result<Response, ApiError> {
    let since = params.time("since", Millis::MIN)?;
    let bad = |_| ApiError::parameter("fingerprint", "not 16 hexadecimal digits");
    let fingerprint = params.get("fingerprint").map(|text| u64::from_str_radix(text, 16));
    let fingerprint = fingerprint.transpose().map_err(bad)?;
    let (receiver, status) = (params.get("receiver"), params.get("status"));
    let limit = params.limit()?;
    let all = hub.alerts.deliveries();
    let found = all.iter().filter(|d| {
        d.at >= since
            && fingerprint.is_none_or(|f| d.fingerprints.contains(&f))
            && receiver.is_none_or(|name| d.receiver == name)
            && status.is_none_or(|word| d.status.as_str() == word)
    });
    let list: Vec<Value> = found.take(limit).map(shown).collect();
    Ok(body(json!({"deliveries": list}).to_string()))
}

/// A delivery as it is shown.
fn shown(delivery: &Delivery) -> Value {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    json!({
        "id": delivery.id,
        "time": delivery.at as f64 / 1000.0,
        "receiver": delivery.receiver,
        "integration": delivery.integration,
        "address": text(&delivery.address),
        "group": delivery.group_key,
        "fingerprints": delivery.fingerprints.iter().map(|f| format!("{f:016x}")).collect::<Vec<_>>(),
        "firing": delivery.firing,
        "resolved": delivery.resolved,
        "ok": delivery.status == DeliveryStatus::Sent,
        "status": delivery.status.as_str(),
        "attempts": delivery.attempts,
        "duration_seconds": delivery.latency as f64 / 1000.0,
        "error": text(&delivery.error),
        "remark": text(&delivery.remark),
        "test": delivery.test,
    })
}

/// `GET /api/watchfire/v1/receivers`: every way of every receiver, and how it is.
pub async fn receivers(State(hub): State<Arc<Hub>>) -> Response {
    let seconds = |at: Option<Millis>| at.map(|at| at as f64 / 1000.0);
    let health = hub.alerts.health();
    let list: Vec<Value> = health
        .iter()
        .map(|(receiver, integration, health)| {
            json!({
                "receiver": receiver,
                "integration": integration,
                "failing": health.failing_since.is_some(),
                "failing_since": seconds(health.failing_since),
                "last_success": seconds(health.last_success),
                "last_failure": seconds(health.last_failure),
                "last_error": (!health.last_error.is_empty()).then_some(&health.last_error),
            })
        })
        .collect();
    body(json!({"receivers": list}).to_string())
}

/// `POST /api/watchfire/v1/receivers/{name}/test`: tells it that this is a test, and answers when it is known how that
/// went.
pub async fn test(State(hub): State<Arc<Hub>>, Path(name): Path<String>) -> Result<Response, ApiError> {
    let told = hub.alerts.test(&name).await;
    let told = told.map_err(|e| ApiError::not_found(e.to_string()))?;
    let list: Vec<Value> = told.iter().map(shown).collect();
    let ok = told.iter().all(|d| d.status == DeliveryStatus::Sent);
    Ok(body(json!({"ok": ok, "deliveries": list}).to_string()))
}
