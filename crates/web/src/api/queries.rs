//! `/api/watchfire/v1/queries`: what runs now, and how to end it.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::json;

use super::query::body;
use crate::error::ApiError;
use crate::hub::Hub;

/// `GET /api/watchfire/v1/queries`
pub async fn list(State(hub): State<Arc<Hub>>) -> Response {
    let seconds = |ms: i64| ms as f64 / 1000.0;
    let active = hub.queries.active().into_iter().map(|query| {
        let (start, end, step) = query.asked.moments;
        json!({
            "id": query.id,
            "query": query.asked.text,
            "start": seconds(start),
            "end": seconds(end),
            "step": seconds(step),
            "age_seconds": query.age.as_secs_f64(),
            "canceled": query.canceled,
        })
    });
    let active: Vec<_> = active.collect();
    body(json!({"status": "success", "data": {"active": active, "slow_total": hub.queries.slow_total()}}).to_string())
}

/// `DELETE /api/watchfire/v1/queries/{id}`, `POST /api/watchfire/v1/queries/{id}/cancel`
pub async fn cancel(State(hub): State<Arc<Hub>>, Path(id): Path<u64>) -> Result<Response, ApiError> {
    if hub.queries.cancel(id) {
        Ok(body(json!({"status": "success"}).to_string()))
    } else {
        Err(ApiError::not_found(format!("no query {id} is running")))
    }
}
