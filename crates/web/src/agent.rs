//! An agent's routes: pages of metrics, made when they are asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;

use crate::events::EventLog;
use crate::hub::metrics_page;
use crate::params::Params;
use crate::ring::Ring;

/// Makes a page of metrics in the text format.
pub type MetricsPage = Box<dyn Fn() -> String + Send + Sync>;

/// What an agent serves.
pub struct Agent {
    /// `/metrics`: everything.
    pub all: MetricsPage,
    /// `/metrics/{name}`: one source each.
    pub sources: BTreeMap<&'static str, MetricsPage>,
    /// `/events`: what was counted, the moment it was.
    pub events: Arc<EventLog>,
    /// `/api/watchfire/v1/ring`: the last half hour of GPU samples.
    pub ring: Ring,
}

/// The routes of an agent.
pub fn router(agent: Arc<Agent>) -> Router {
    let ring = Arc::clone(&agent.ring);
    Router::new()
        .route("/metrics", get(all))
        .route("/metrics/{name}", get(one))
        .route("/events", get(events))
        .route("/-/healthy", get(|| async { "Watchfire agent is healthy.\n" }))
        .route("/-/ready", get(|| async { "Watchfire agent is ready.\n" }))
        .route("/", get(index))
        .merge(crate::ring::router(ring))
        .layer(tower_http::compression::CompressionLayer::new())
        .with_state(agent)
}

async fn all(State(agent): State<Arc<Agent>>) -> Response {
    blocking(move || metrics_page(&agent.all)).await
}

async fn one(State(agent): State<Arc<Agent>>, Path(name): Path<String>) -> Response {
    blocking(move || match agent.sources.get(name.as_str()) {
        Some(page) => metrics_page(page),
        None => {
            let known: Vec<&str> = agent.sources.keys().copied().collect();
            (
                StatusCode::NOT_FOUND,
                format!("no source {name:?} here; there are: {}\n", known.join(", ")),
            )
                .into_response()
        }
    })
    .await
}

async fn events(State(agent): State<Arc<Agent>>, params: Params) -> Response {
    agent.events.stream(&params)
}

/// Collectors read files: off the threads that answer requests.
async fn blocking(make: impl FnOnce() -> Response + Send + 'static) -> Response {
    tokio::task::spawn_blocking(make).await.unwrap_or_else(|error| {
        (
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("the page's thread ended early: {error}\n"),
        )
            .into_response()
    })
}

async fn index(State(agent): State<Arc<Agent>>) -> Html<String> {
    let links: String = agent
        .sources
        .keys()
        .map(|name| format!("<li><a href=\"/metrics/{name}\">/metrics/{name}</a></li>"))
        .collect();
    Html(format!(
        "<!doctype html><html lang=\"en\"><title>Watchfire agent</title><h1>Watchfire agent</h1>\
         <ul><li><a href=\"/metrics\">/metrics</a></li>{links}</ul></html>"
    ))
}
