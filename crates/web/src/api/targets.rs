//! `targets`, `scrape_pools`, and what targets say of their metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use model::Labels;
use model::family::Metadata;
use scrape::{DroppedTarget, TargetStatus};
use serde_json::{Map, Value, json};

use super::query::body;
use super::rules::date;
use crate::error::ApiError;
use crate::hub::Hub;
use crate::params::{Params, parse_selector};

/// `GET /api/v1/targets`
pub async fn targets(State(hub): State<Arc<Hub>>, params: Params) -> Result<Response, ApiError> {
    let state = params.get("state").unwrap_or("any").to_ascii_lowercase();
    let (active, dropped) = match state.as_str() {
        "active" => (true, false),
        "dropped" => (false, true),
        _ => (true, true),
    };
    let pool = params.get("scrapePool");
    let wanted = |job: &str| pool.is_none_or(|pool| pool == job);
    let all = hub.targets.targets();
    let mut data = Map::new();
    let list: Vec<Value> = all
        .active
        .iter()
        .filter(|t| active && wanted(&t.job))
        .map(target_json)
        .collect();
    data.insert("activeTargets".into(), Value::Array(list));
    let list: Vec<Value> = all
        .dropped
        .iter()
        .filter(|t| dropped && wanted(&t.job))
        .map(dropped_json)
        .collect();
    data.insert("droppedTargets".into(), Value::Array(list));
    let mut counts = Map::new();
    for target in all.dropped.iter().filter(|t| dropped && wanted(&t.job)) {
        let count = counts.get(&target.job).and_then(Value::as_u64).unwrap_or(0);
        counts.insert(target.job.clone(), json!(count + 1));
    }
    data.insert("droppedTargetCounts".into(), Value::Object(counts));
    Ok(body(json!({"status": "success", "data": data}).to_string()))
}

fn target_json(status: &TargetStatus) -> Value {
    let target = &status.target;
    json!({
        "discoveredLabels": labels_json(&target.discovered),
        "labels": labels_json(&target.labels),
        "scrapePool": status.job,
        "scrapeUrl": target.url,
        "globalUrl": target.url,
        "lastError": status.last_error,
        "lastScrape": date(status.last_scrape),
        "lastScrapeDuration": status.last_duration_seconds,
        "health": status.health.as_str(),
        "scrapeInterval": model::time::DurationText(target.interval).to_string(),
        "scrapeTimeout": model::time::DurationText(target.timeout).to_string(),
        "lastScrapeSamples": status.samples,
        "lastScrapeBytes": status.body_bytes,
        "refusedSamples": status.refused_total,
        "limitCulprit": status.culprit,
    })
}

fn dropped_json(target: &DroppedTarget) -> Value {
    json!({"discoveredLabels": labels_json(&target.discovered), "scrapePool": target.job})
}

fn labels_json(labels: &Labels) -> Value {
    labels
        .iter()
        .map(|(n, v)| (n.to_owned(), json!(v)))
        .collect::<Map<_, _>>()
        .into()
}

/// `GET /api/v1/scrape_pools`
pub async fn scrape_pools(State(hub): State<Arc<Hub>>) -> Response {
    let all = hub.targets.targets();
    let jobs = all
        .active
        .iter()
        .map(|t| &t.job)
        .chain(all.dropped.iter().map(|t| &t.job));
    let pools: BTreeSet<&String> = jobs.collect();
    body(json!({"status": "success", "data": {"scrapePools": pools}}).to_string())
}

/// `GET /api/v1/targets/metadata`
pub async fn of_targets(State(hub): State<Arc<Hub>>, params: Params) -> Result<Response, ApiError> {
    let limit = params.limit()?;
    let wanted = params.get("metric");
    let selectors = params.get("match_target").map(parse_selector).transpose()?;
    let passes = |labels: &Labels| {
        selectors
            .as_ref()
            .is_none_or(|any| any.iter().any(|all| all.iter().all(|m| m.matches_labels(labels))))
    };
    let mut out = Vec::new();
    for (labels, metrics) in hub.targets.metadata().iter().filter(|(labels, _)| passes(labels)) {
        for (name, metadata) in metrics.iter() {
            let mut entry = json!({"target": labels_json(labels)});
            match wanted {
                Some(wanted) if wanted != name => continue,
                Some(_) => {}
                None => entry["metric"] = json!(name),
            }
            entry["type"] = json!(metadata.kind.as_str());
            entry["help"] = json!(metadata.help);
            entry["unit"] = json!(metadata.unit);
            if out.len() < limit {
                out.push(entry);
            }
        }
    }
    Ok(body(json!({"status": "success", "data": out}).to_string()))
}

/// `GET /api/v1/metadata`
pub async fn metadata(State(hub): State<Arc<Hub>>, params: Params) -> Result<Response, ApiError> {
    let limit = params.limit()?;
    let per_metric = match params.get("limit_per_metric") {
        None => usize::MAX,
        Some(text) => text.parse().map_err(|_| {
            ApiError::parameter("limit_per_metric", "limit_per_metric must be a number of zero or more")
        })?,
    };
    let wanted = params.get("metric");
    let mut out = Map::new();
    for (metric, found) in told(&hub.targets) {
        if wanted.is_none_or(|wanted| wanted == metric) && out.len() < limit {
            let list: Vec<Value> = found.iter().take(per_metric).map(metadata_json).collect();
            out.insert(metric, Value::Array(list));
        }
    }
    Ok(body(json!({"status": "success", "data": out}).to_string()))
}

/// What all targets say of each metric, every different saying once.
fn told(targets: &scrape::Manager) -> BTreeMap<String, Vec<Metadata>> {
    let mut out: BTreeMap<String, Vec<Metadata>> = BTreeMap::new();
    for (_, metrics) in targets.metadata() {
        for (name, metadata) in metrics.iter() {
            let sayings = out.entry(name.to_string()).or_default();
            if !sayings.contains(metadata) {
                sayings.push(metadata.clone());
            }
        }
    }
    out
}

fn metadata_json(metadata: &Metadata) -> Value {
    json!({"type": metadata.kind.as_str(), "help": metadata.help, "unit": metadata.unit})
}
