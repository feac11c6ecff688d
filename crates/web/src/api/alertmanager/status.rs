//! What this Alertmanager is, and its receivers.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use model::labels::Labels;
use serde_json::{Value, json};

use super::{Refusal, filter, json as answer, object, stamp};
use crate::hub::Hub;
use crate::params::Params;

/// `GET /api/v2/status`. Clients look at the version to learn which API they may use: it names the Alertmanager whose
/// API this is, and ours beside it.
pub async fn status(State(hub): State<Arc<Hub>>) -> Response {
    answer(&json!({
        "cluster": {"name": "", "status": "disabled", "peers": []},
        "config": {"original": hub.alerts.config().original},
        "uptime": stamp(hub.alerts.started_at()),
        "versionInfo": {
            "version": "0.28.0",
            "revision": format!("watchfire {}", hub.status.version),
            "branch": "",
            "buildUser": "",
            "buildDate": "",
            "goVersion": "",
        },
    }))
}

/// `GET /api/v2/receivers`
pub async fn receivers(State(hub): State<Arc<Hub>>, params: Params) -> Result<Response, Refusal> {
    let wanted = filter(&params, "receiver_matchers")?;
    let config = hub.alerts.config();
    let mut out = Vec::new();
    for receiver in &config.receivers {
        let pairs = || receiver.labels.iter().map(|(n, v)| (n.as_str(), v.as_str()));
        let labels = Labels::from_pairs(pairs());
        if wanted.iter().all(|m| m.matches_labels(&labels)) {
            out.push(json!({"name": receiver.name, "labels": object(pairs())}));
        }
    }
    Ok(answer(&Value::Array(out)))
}
