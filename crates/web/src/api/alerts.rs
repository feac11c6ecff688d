//! What was told to whom.

use std::sync::Arc;

use alerts::delivery::DeliveryStatus;
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use super::query::body;
use crate::hub::Hub;

/// `GET /api/watchfire/v1/notifications`: the latest deliveries, newest first.
pub async fn notifications(State(hub): State<Arc<Hub>>) -> Response {
    let list: Vec<Value> = hub
        .alerts
        .deliveries()
        .iter()
        .map(|delivery| {
            json!({
                "time": delivery.at as f64 / 1000.0,
                "receiver": delivery.receiver,
                "integration": delivery.integration,
                "status": if delivery.firing > 0 { "firing" } else { "resolved" },
                "alerts": delivery.firing + delivery.resolved,
                "firing": delivery.firing,
                "resolved": delivery.resolved,
                "group": delivery.group_key,
                "ok": delivery.status == DeliveryStatus::Sent,
                "state": delivery.status.as_str(),
                "attempts": delivery.attempts,
                "duration_seconds": delivery.latency as f64 / 1000.0,
                "error": (!delivery.error.is_empty()).then_some(&delivery.error),
            })
        })
        .collect();
    body(json!({"notifications": list}).to_string())
}
