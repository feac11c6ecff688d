//! A hub's routes and what they need.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, delete, get, post};
use model::{Clock, Millis, QueryEngine};
use tokio::sync::Semaphore;
use tower_http::compression::CompressionLayer;
use tower_http::set_header::SetResponseHeaderLayer;

use crate::agent::MetricsPage;
use crate::data::Data;
use crate::error::ApiError;
use crate::queries::Queries;
use crate::ring::Ring;
use crate::serve::Site;
use crate::{api, guard, page};

/// Queries that run at once; further ones wait for their timeout at most.
pub const QUERIES_AT_ONCE: usize = 20;

/// What a hub tells of itself.
#[derive(Debug, Clone, Default)]
pub struct HubStatus {
    /// The version of this program.
    pub version: &'static str,
    /// The name of this machine.
    pub hostname: String,
    /// `run` or `hub`.
    pub mode: &'static str,
    /// Whether a simulated server is among the targets.
    pub demo: bool,
    /// When this process started.
    pub started_at: Millis,
    /// How long metrics are kept, in milliseconds.
    pub retention: Millis,
    /// How much room metrics may take, in bytes.
    pub retention_bytes: u64,
    /// The address people reach this hub at.
    pub external_url: String,
}

/// Takes the configuration anew.
pub type Reload = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Everything the hub's routes ask.
pub struct Hub {
    /// Answers queries.
    pub engine: Arc<dyn QueryEngine>,
    /// The store, and the ways in and out of it.
    pub data: Data,
    /// The targets.
    pub targets: scrape::Manager,
    /// The rules.
    pub rules: Arc<rules::Manager>,
    /// Alerts on their way to people.
    pub alerts: alerts::Manager,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The last half hour of this machine's GPU samples.
    pub ring: Ring,
    /// This hub's own metrics.
    pub own_metrics: MetricsPage,
    /// Reads the configuration anew.
    pub reload: Reload,
    /// Number of series in the store's head.
    pub series_count: Box<dyn Fn() -> u64 + Send + Sync>,
    /// Whether replay and backfill are done.
    pub ready: AtomicBool,
    /// What it tells of itself.
    pub status: HubStatus,
    /// How long a query may take.
    pub query_timeout: Duration,
    /// Running queries.
    pub queries: Arc<Queries>,
    /// Places for running queries.
    pub query_slots: Arc<Semaphore>,
    /// Drills; not there until the hub can run them.
    pub drills: OnceLock<Arc<dyn crate::drill::Drills>>,
}

impl Hub {
    /// The present moment.
    pub fn now(&self) -> Millis {
        self.clock.now()
    }

    /// # Errors
    ///
    /// 503 until replay and backfill are done.
    pub fn check_ready(&self) -> Result<(), ApiError> {
        if self.ready.load(Ordering::Acquire) {
            Ok(())
        } else {
            Err(ApiError::unavailable(
                "not ready yet: the store replays its log, or the demonstration's history is being filled in",
            ))
        }
    }
}

/// The routes of a hub, which goes by its external address too.
pub fn router(hub: Arc<Hub>) -> Site {
    use api::alertmanager::{alerts as v2_alerts, silences, status as v2};
    use api::{
        admin, alerts, deliveries, drill, exemplars, federate, push, queries, query, read, rules, series, status,
        targets,
    };
    let ready = Arc::clone(&hub);
    let own = Arc::clone(&hub);
    let reload = Arc::clone(&hub);
    let ring = Arc::clone(&hub.ring);
    let names = guard::host_of(&hub.status.external_url).into_iter().collect();
    let router = Router::new()
        .route("/api/v1/query", get(query::instant).post(query::instant))
        .route("/api/v1/query_range", get(query::range).post(query::range))
        .route("/api/v1/format_query", get(query::format).post(query::format))
        .route(
            "/api/v1/query_exemplars",
            get(exemplars::exemplars).post(exemplars::exemplars),
        )
        .route("/api/v1/write", post(push::write))
        .route("/api/v1/otlp/v1/metrics", post(push::otlp))
        .route("/api/v1/read", post(read::read))
        .route("/federate", get(federate::federate))
        .route("/api/v1/series", get(series::series).post(series::series))
        .route("/api/v1/labels", get(series::labels).post(series::labels))
        .route("/api/v1/label/{name}/values", get(series::values))
        .route("/api/v1/rules", get(rules::rules))
        .route("/api/v1/alerts", get(rules::alerts))
        .route("/api/v1/targets", get(targets::targets))
        .route("/api/v1/targets/metadata", get(targets::of_targets))
        .route("/api/v1/targets/relabel_steps", get(targets::relabel_steps))
        .route("/api/v1/scrape_pools", get(targets::scrape_pools))
        .route("/api/v1/scrape_pools/config", get(targets::pool_config))
        .route("/api/v1/metadata", get(targets::metadata))
        .route("/api/v1/status/buildinfo", get(status::build_info))
        .route("/api/v1/status/runtimeinfo", get(status::runtime_info))
        .route("/api/v1/status/walreplay", get(status::replay))
        .route("/api/v1/status/config", get(status::config))
        .route("/api/v1/status/flags", get(status::flags))
        .route("/api/v1/status/tsdb", get(status::tsdb))
        .route("/api/v1/status/tsdb/blocks", get(status::blocks))
        .route("/api/v1/status/self_metrics", get(status::self_metrics))
        .route("/api/v1/features", get(status::features))
        .route("/api/v1/notifications", get(status::notifications))
        .route(
            "/api/v1/admin/tsdb/delete_series",
            post(admin::delete_series).put(admin::delete_series),
        )
        .route(
            "/api/v1/admin/tsdb/clean_tombstones",
            post(admin::clean_tombstones).put(admin::clean_tombstones),
        )
        .route(
            "/api/v1/admin/tsdb/snapshot",
            post(admin::snapshot).put(admin::snapshot),
        )
        .route("/api/v1/alertmanagers", get(status::alertmanagers))
        .route("/api/watchfire/v1/status", get(status::status))
        .route("/api/watchfire/v1/queries", get(queries::list))
        .route("/api/watchfire/v1/queries/{id}", delete(queries::cancel))
        .route("/api/watchfire/v1/queries/{id}/cancel", post(queries::cancel))
        .route("/api/watchfire/v1/notifications", get(alerts::notifications))
        .route("/api/watchfire/v1/deliveries", get(deliveries::deliveries))
        .route("/api/watchfire/v1/receivers", get(deliveries::receivers))
        .route("/api/watchfire/v1/receivers/{name}/test", post(deliveries::test))
        .route("/api/v2/status", get(v2::status))
        .route("/api/v2/receivers", get(v2::receivers))
        .route("/api/v2/alerts", get(v2_alerts::alerts).post(v2_alerts::post))
        .route("/api/v2/alerts/groups", get(v2_alerts::groups))
        .route("/api/v2/silences", get(silences::silences).post(silences::post))
        .route("/api/v2/silence/{id}", get(silences::silence).delete(silences::expire))
        .route("/api/watchfire/v1/drill", post(drill::start))
        .route("/api/watchfire/v1/drill/{id}", get(drill::look).delete(drill::stop))
        .route(
            "/api/watchfire/v1/drill/{id}/ack/{word}",
            get(drill::ask).post(drill::acknowledge),
        )
        .route("/api/watchfire/v1/drills/passed", get(drill::passed))
        .merge(crate::ring::router(ring))
        .route("/metrics", get(move || async move { metrics_page(&own.own_metrics) }))
        .route("/-/healthy", get(|| async { "Watchfire is healthy.\n" }))
        .route(
            "/-/ready",
            get(move || async move { ready_answer(ready.ready.load(Ordering::Acquire)) }),
        )
        .route("/-/reload", post(move || reload_answer(reload)))
        .route("/api", any(no_such_api))
        .route("/api/", any(no_such_api))
        .route("/api/{*rest}", any(no_such_api))
        .fallback(page::page)
        .method_not_allowed_fallback(wrong_method)
        .layer(CompressionLayer::new())
        .layer(SetResponseHeaderLayer::if_not_present(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ))
        .with_state(hub);
    Site { router, names }
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    ApiError::wrong_method(format!("{} does not take {method}", uri.path()))
}

async fn no_such_api() -> ApiError {
    ApiError::not_found("there is no such API here")
}

fn ready_answer(ready: bool) -> Response {
    if ready {
        "Watchfire is ready.\n".into_response()
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "Watchfire is replaying its log and not ready yet.\n",
        )
            .into_response()
    }
}

/// A page of metrics in the text format.
pub fn metrics_page(page: &MetricsPage) -> Response {
    (
        [(header::CONTENT_TYPE, exposition::Format::Text.content_type())],
        page(),
    )
        .into_response()
}

async fn reload_answer(hub: Arc<Hub>) -> Response {
    let outcome = tokio::task::spawn_blocking(move || (hub.reload)()).await;
    match outcome {
        Ok(Ok(())) => "".into_response(),
        Ok(Err(reason)) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("the configuration was not reloaded, the old one stays: {reason}\n"),
        )
            .into_response(),
        Err(error) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("the reload ended early: {error}\n"),
        )
            .into_response(),
    }
}
