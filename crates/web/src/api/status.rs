//! What this server tells of itself.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::response::Response;
use exposition::{Entry, Format, Reader};
use model::{Kind, Millis, QueryError};
use scrape::Health;
use serde_json::{Map, Value, json};

use super::query::body;
use super::rules::date;
use crate::data::{Cardinality, Ranking};
use crate::error::ApiError;
use crate::hub::Hub;
use crate::params::Params;
use crate::work::run;

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

/// `GET /api/v1/status/runtimeinfo`. What speaks of Go is empty: there is none.
pub async fn runtime_info(State(hub): State<Arc<Hub>>) -> Response {
    let (config, facts) = ((hub.data.config)(), (hub.data.facts)());
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let folder = std::env::current_dir()
        .map(|f| f.display().to_string())
        .unwrap_or_default();
    let data = json!({
        "startTime": date(Some(hub.status.started_at)),
        "CWD": folder,
        "hostname": hub.status.hostname,
        "serverTime": date(Some(hub.now())),
        "reloadConfigSuccess": config.is_last_good,
        "lastConfigTime": date(config.loaded_at.or(Some(hub.status.started_at))),
        "timeSeriesCount": (hub.series_count)(),
        "corruptionCount": facts.corruptions,
        "goroutineCount": 0,
        "GOMAXPROCS": threads,
        "GOMEMLIMIT": 0,
        "GOGC": "",
        "GODEBUG": "",
        "storageRetention": model::time::DurationText(hub.status.retention).to_string(),
    });
    body(json!({"status": "success", "data": data}).to_string())
}

/// `GET /api/v1/status/config`
pub async fn config(State(hub): State<Arc<Hub>>) -> Response {
    let yaml = (hub.data.config)().yaml;
    body(json!({"status": "success", "data": {"yaml": yaml}}).to_string())
}

/// `GET /api/v1/status/flags`
pub async fn flags(State(hub): State<Arc<Hub>>) -> Response {
    let flags: Map<String, Value> = hub
        .data
        .flags
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect();
    body(json!({"status": "success", "data": flags}).to_string())
}

/// Entries of each ranking unless told, and at most.
const RANKING: usize = 10;
const RANKING_MAX: usize = 10_000;

/// How far back the series are counted, in milliseconds: what is in the head.
const COUNTED: Millis = 3 * 3600 * 1000;

/// `GET /api/v1/status/tsdb`
pub async fn tsdb(State(hub): State<Arc<Hub>>, params: Params) -> Result<Response, ApiError> {
    let most = match params.get("limit").map(str::parse::<usize>) {
        None => RANKING,
        Some(Ok(most)) if (1..=RANKING_MAX).contains(&most) => most,
        Some(_) => {
            return Err(ApiError::parameter(
                "limit",
                "limit must be a positive number, at most 10000",
            ));
        }
    };
    let now = hub.now();
    let counted = run(&hub, &params, move |hub, _| {
        let counted = Cardinality::count(&*hub.data.store, now - COUNTED, now, most);
        counted.map_err(|e| QueryError::Internal(e.to_string()))
    })
    .await?;
    let facts = (hub.data.facts)();
    let list = |ranking: &Ranking| -> Vec<Value> {
        ranking
            .iter()
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect()
    };
    let data = json!({
        "headStats": {
            "numSeries": facts.series,
            "numLabelPairs": counted.pairs,
            "chunkCount": facts.chunks,
            "minTime": facts.mint.unwrap_or(0),
            "maxTime": facts.maxt.unwrap_or(0),
        },
        "seriesCountByMetricName": list(&counted.by_metric),
        "labelValueCountByLabelName": list(&counted.values_by_label),
        "memoryInBytesByLabelName": list(&counted.bytes_by_label),
        "seriesCountByLabelValuePair": list(&counted.by_pair),
    });
    Ok(body(json!({"status": "success", "data": data}).to_string()))
}

/// `GET /api/v1/status/tsdb/blocks`
pub async fn blocks(State(hub): State<Arc<Hub>>) -> Response {
    let blocks: Vec<Value> = (hub.data.facts)()
        .blocks
        .iter()
        .map(|block| {
            let (samples, series, chunks) = block.counts;
            json!({
                "ulid": block.ulid,
                "minTime": block.span.0,
                "maxTime": block.span.1,
                "stats": {"numSamples": samples, "numSeries": series, "numChunks": chunks},
                "compaction": {"level": block.level, "sources": block.sources},
                "version": 1,
            })
        })
        .collect();
    body(json!({"status": "success", "data": {"blocks": blocks}}).to_string())
}

/// `GET /api/v1/status/self_metrics`
pub async fn self_metrics(State(hub): State<Arc<Hub>>, params: Params) -> Result<Response, ApiError> {
    let pattern = params.get("metric_name_pattern").unwrap_or(".*");
    let pattern = model::matcher::anchored(pattern).map_err(|e| ApiError::parameter("metric_name_pattern", e))?;
    let page = (hub.own_metrics)();
    let mut families: Vec<(String, Value)> = Vec::new();
    let mut reader = Reader::new(page.as_bytes(), Format::Text);
    // Our own page: it is well formed, and what were not would only be missing here.
    while let Ok(Some(entry)) = reader.next_entry() {
        match entry {
            Entry::Help { name, help } => family(&mut families, &name)["help"] = json!(help),
            Entry::Type { name, kind } => {
                let kind = match kind {
                    Kind::Unknown => "UNTYPED".to_owned(),
                    kind => kind.as_str().to_ascii_uppercase(),
                };
                family(&mut families, &name)["type"] = json!(kind);
            }
            Entry::Sample(sample) => {
                let Ok(labels) = sample.series.labels() else { continue };
                let pairs: Vec<Value> = labels
                    .iter()
                    .filter(|(name, _)| *name != model::METRIC_NAME)
                    .map(|(name, value)| json!({"name": name, "value": value}))
                    .collect();
                let family = family(&mut families, labels.name());
                let kind = family["type"].as_str().unwrap_or("UNTYPED").to_ascii_lowercase();
                if let Some(list) = family["metric"].as_array_mut() {
                    list.push(json!({"label": pairs, kind: {"value": sample.value}}));
                }
            }
            Entry::Unit { .. } | Entry::Comment => {}
        }
    }
    let found: Vec<Value> = families
        .into_iter()
        .filter(|(name, _)| pattern.is_match(name))
        .map(|(_, family)| family)
        .collect();
    Ok(body(json!({"status": "success", "data": found}).to_string()))
}

/// The family of that name, begun if it is not there.
fn family<'a>(families: &'a mut Vec<(String, Value)>, name: &str) -> &'a mut Value {
    let at = families.iter().position(|(have, _)| have == name).unwrap_or_else(|| {
        let empty = json!({"name": name, "help": "", "type": "UNTYPED", "metric": []});
        families.push((name.to_owned(), empty));
        families.len() - 1
    });
    &mut families[at].1
}

/// `GET /api/v1/features`: what this server does of what its peers do by choice.
pub async fn features(State(hub): State<Arc<Hub>>) -> Response {
    let data = json!({
        "api": {
            "admin": hub.data.admin.is_some(),
            "exclude_alerts": true,
            "label_values_match": true,
            "query_stats": false,
            "remote_write_receiver": true,
            "otlp_write_receiver": true,
            "time_range_labels": true,
            "time_range_series": true,
            "query_warnings": true,
        },
        "otlp_receiver": {"delta_conversion": false, "native_delta_ingestion": false},
        "prometheus": {"agent_mode": false, "auto_reload_config": false},
        "promql": {"at_modifier": true, "negative_offset": true, "subqueries": true, "duration_expr": true},
        "rules": {"concurrent_rule_eval": false, "keep_firing_for": true, "query_offset": true},
        "scrape": {
            "extra_metrics": true,
            "metric_name_validation": true,
            "start_timestamp_zero_ingestion": true,
            "native_histograms": true,
            "zstd": true,
        },
        "service_discovery": {"static": true, "file": true, "http": true},
        "templating": {"args": true, "externalURL": true, "externalLabels": true},
        "tsdb": {"exemplar_storage": true, "delayed_compaction": false, "out_of_order": true},
    });
    body(json!({"status": "success", "data": data}).to_string())
}

/// `GET /api/v1/notifications`: what an operator should know of this server at present.
pub async fn notifications(State(hub): State<Arc<Hub>>) -> Response {
    let config = (hub.data.config)();
    let mut active = Vec::new();
    if !config.is_last_good {
        active.push(json!({
            "text": "Configuration reload has failed.",
            "date": date(Some(hub.now())),
            "active": true,
        }));
    }
    body(json!({"status": "success", "data": active}).to_string())
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
