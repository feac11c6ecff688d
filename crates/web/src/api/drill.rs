//! Drills: `POST /api/watchfire/v1/drill` begins one, `GET …/{id}` looks at it, `DELETE …/{id}` ends it, and `…/{id}/ack/{word}` is the
//! link in the message.
//!
//! Looking acknowledges nothing: programs that read mail follow links. The page that the link opens has a button.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use super::query::body;
use crate::drill::{DrillRequest, Drills};
use crate::error::ApiError;
use crate::hub::Hub;

/// The longest wait for an acknowledgement, in seconds.
const ACKNOWLEDGE_MAX: u64 = 3_600;

/// `POST /api/watchfire/v1/drill`, with `{"alerts": ["GpuLost"], "acknowledge_seconds": 0}`; every alert without a list.
pub async fn start(State(hub): State<Arc<Hub>>, text: Bytes) -> Result<Response, ApiError> {
    hub.check_ready()?;
    let asked: Value = match text.is_empty() {
        true => json!({}),
        false => serde_json::from_slice(&text).map_err(|error| ApiError::bad_data(format!("no JSON: {error}")))?,
    };
    let names = asked["alerts"].as_array().map_or(&[][..], Vec::as_slice);
    let alerts: Option<Vec<String>> = names.iter().map(|name| name.as_str().map(str::to_owned)).collect();
    let request = DrillRequest {
        alerts: alerts.ok_or_else(|| ApiError::bad_data("`alerts` is a list of names"))?,
        acknowledge_seconds: asked["acknowledge_seconds"].as_u64().unwrap_or(0).min(ACKNOWLEDGE_MAX),
    };
    let state = drills(&hub)?.start(request).map_err(ApiError::bad_data)?;
    Ok(success(&state))
}

/// `GET /api/watchfire/v1/drill/{id}`
pub async fn look(State(hub): State<Arc<Hub>>, Path(id): Path<String>) -> Result<Response, ApiError> {
    let state = drills(&hub)?.look(&id).ok_or_else(no_such)?;
    Ok(success(&state))
}

/// `DELETE /api/watchfire/v1/drill/{id}`
pub async fn stop(State(hub): State<Arc<Hub>>, Path(id): Path<String>) -> Result<Response, ApiError> {
    match drills(&hub)?.stop(&id) {
        true => Ok(success(&Value::Null)),
        false => Err(no_such()),
    }
}

/// `GET /api/watchfire/v1/drills/passed`
pub async fn passed(State(hub): State<Arc<Hub>>) -> Result<Response, ApiError> {
    Ok(success(&drills(&hub)?.passed()))
}

/// `GET /api/watchfire/v1/drill/{id}/ack/{word}`: asks for the button.
pub async fn ask(State(hub): State<Arc<Hub>>, Path((id, word)): Path<(String, String)>) -> Result<Response, ApiError> {
    let alert = drills(&hub)?.asked(&id, &word).ok_or_else(no_such)?;
    let alert = escaped(&alert);
    Ok(page(&format!(
        "<h1>[DRILL] {alert}</h1><p>This is a drill. Press the button to say that its message reached you.</p>\
         <form method=\"post\"><button>It reached me</button></form>"
    )))
}

/// `POST /api/watchfire/v1/drill/{id}/ack/{word}`: the button was pressed.
pub async fn acknowledge(
    State(hub): State<Arc<Hub>>,
    Path((id, word)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let alert = drills(&hub)?.acknowledge(&id, &word).ok_or_else(no_such)?;
    Ok(page(&format!(
        "<h1>[DRILL] {}</h1><p>Noted. Thank you.</p>",
        escaped(&alert)
    )))
}

fn drills(hub: &Hub) -> Result<&Arc<dyn Drills>, ApiError> {
    hub.drills
        .get()
        .ok_or_else(|| ApiError::unavailable("no drills yet: the hub is still starting"))
}

fn no_such() -> ApiError {
    ApiError::not_found("there is no such drill, or it is over")
}

fn success(data: &Value) -> Response {
    body(json!({"status": "success", "data": data}).to_string())
}

fn page(inner: &str) -> Response {
    let head = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>Watchfire drill</title>";
    let policy = "default-src 'none'; form-action 'self'";
    (
        [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CONTENT_SECURITY_POLICY, policy),
        ],
        format!("{head}<body>{inner}</body></html>"),
    )
        .into_response()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
