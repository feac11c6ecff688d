//! What this server tells of itself.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::response::Response;
use scrape::Health;
use serde_json::json;

use super::query::body;
use super::rules::date;
use crate::hub::Hub;

/// `GET /api/watchfire/v1/status`
pub async fn status(State(hub): State<Arc<Hub>>) -> Response {
    let targets = hub.targets.targets();
    let count = |health| targets.active.iter().filter(|t| t.health == health).count();
    let (up, down) = (count(Health::Up), count(Health::Down));
    let status = &hub.status;
    body(
        json!({
            "version": status.version,
            "ready": hub.ready.load(Ordering::Acquire),
            "now": hub.now() as f64 / 1000.0,
            "hostname": status.hostname,
            "mode": status.mode,
            "demo": status.demo,
            "targets": {"up": up, "down": down},
            "series": (hub.series_count)(),
            "retention": {"time_seconds": status.retention / 1000, "size_bytes": status.retention_bytes},
        })
        .to_string(),
    )
}

/// `GET /api/v1/status/buildinfo`. Clients look at the version to learn which API they may use: it names the
/// Prometheus whose API this is, and ours beside it.
pub async fn build_info(State(hub): State<Arc<Hub>>) -> Response {
    let data = json!({
        "version": "3.5.0",
        "revision": "",
        "branch": "",
        "buildUser": "",
        "buildDate": "",
        "goVersion": "",
        "application": "watchfire",
        "watchfireVersion": hub.status.version,
    });
    body(json!({"status": "success", "data": data}).to_string())
}

/// `GET /api/v1/status/runtimeinfo`
pub async fn runtime_info(State(hub): State<Arc<Hub>>) -> Response {
    let data = json!({
        "startTime": date(Some(hub.status.started_at)),
        "serverTime": date(Some(hub.now())),
        "hostname": hub.status.hostname,
        "storageRetention": model::time::DurationText(hub.status.retention).to_string(),
        "timeSeriesCount": (hub.series_count)(),
    });
    body(json!({"status": "success", "data": data}).to_string())
}

/// `GET /api/v1/status/walreplay`
pub async fn replay(State(hub): State<Arc<Hub>>) -> Response {
    let state = if hub.ready.load(Ordering::Acquire) {
        "done"
    } else {
        "in progress"
    };
    let data = json!({"min": 0, "max": 0, "current": 0, "state": state});
    body(json!({"status": "success", "data": data}).to_string())
}

/// `GET /api/v1/alertmanagers`: none, alerts are told from here.
pub async fn alertmanagers() -> Response {
    let data = json!({"activeAlertmanagers": [], "droppedAlertmanagers": []});
    body(json!({"status": "success", "data": data}).to_string())
}
