//! What was told to whom.

use std::sync::Arc;

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
                "time": delivery.time as f64 / 1000.0,
                "receiver": delivery.receiver,
                "integration": delivery.integration,
                "status": delivery.status,
                "alerts": delivery.alerts,
                "group": delivery.group,
                "ok": delivery.error.is_none(),
                "attempts": delivery.attempts,
                "duration_seconds": delivery.duration.as_secs_f64(),
                "error": delivery.error,
            })
        })
        .collect();
    body(json!({"notifications": list}).to_string())
}
