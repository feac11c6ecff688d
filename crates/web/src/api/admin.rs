//! `admin/tsdb/*`: deletions and snapshots, where the configuration allows them.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use model::{Millis, StoreAdmin};
use serde_json::json;

use super::query::body;
use crate::error::ApiError;
use crate::hub::Hub;
use crate::params::Params;

const ALWAYS: (Millis, Millis) = (Millis::MIN / 2, Millis::MAX / 2);

/// `POST|PUT /api/v1/admin/tsdb/delete_series`
pub async fn delete_series(State(hub): State<Arc<Hub>>, params: Params) -> Result<Response, ApiError> {
    let admin = admin(&hub)?;
    let selectors = params.selectors()?;
    if selectors.is_empty() {
        return Err(ApiError::bad_data("no match[] parameter provided"));
    }
    let (start, end) = (params.time("start", ALWAYS.0)?, params.time("end", ALWAYS.1)?);
    if end < start {
        return Err(ApiError::parameter(
            "end",
            "end timestamp must not be before start time",
        ));
    }
    work(move || admin.delete_series(&selectors, start, end)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST|PUT /api/v1/admin/tsdb/clean_tombstones`
pub async fn clean_tombstones(State(hub): State<Arc<Hub>>) -> Result<Response, ApiError> {
    let admin = admin(&hub)?;
    work(move || admin.clean_tombstones()).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST|PUT /api/v1/admin/tsdb/snapshot`
pub async fn snapshot(State(hub): State<Arc<Hub>>, params: Params) -> Result<Response, ApiError> {
    let admin = admin(&hub)?;
    let head = match params.get("skip_head") {
        None | Some("false") => true,
        Some("true") => false,
        Some(other) => {
            return Err(ApiError::parameter(
                "skip_head",
                format!("unable to parse boolean {other:?} skip_head argument"),
            ));
        }
    };
    let name = snapshot_name(hub.now());
    let named = name.clone();
    work(move || admin.snapshot(&named, head)).await?;
    Ok(body(json!({"status": "success", "data": {"name": name}}).to_string()))
}

/// `20171210T211224Z-2be650b6d019eb54`: the moment, and what keeps two of one second apart.
fn snapshot_name(now: Millis) -> String {
    use std::hash::{BuildHasher as _, Hasher as _};
    let time = jiff::Timestamp::from_millisecond(now).unwrap_or_default();
    let odd = std::hash::RandomState::new().build_hasher().finish();
    format!("{}-{odd:016x}", time.strftime("%Y%m%dT%H%M%SZ"))
}

fn admin(hub: &Hub) -> Result<Arc<dyn StoreAdmin>, ApiError> {
    let admin = hub.data.admin.as_ref().map(Arc::clone);
    admin.ok_or_else(|| {
        ApiError::forbidden("admin APIs disabled: set `admin_api: true` in watchfire.yml, or start with --admin-api")
    })
}

async fn work<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, model::StoreError> + Send + 'static,
) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|e| ApiError::internal(format!("BUG: the request's thread ended early: {e}")))?;
    Ok(done?)
}
