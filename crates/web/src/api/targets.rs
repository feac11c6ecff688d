//! `targets`, `scrape_pools`, and what targets say of their metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use config::relabel::RelabelConfig;
use model::family::Metadata;
use model::{Labels, LabelsBuilder};
use scrape::{DroppedTarget, Job, TargetStatus};
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
    let configured = hub.targets.jobs();
    let jobs = all
        .active
        .iter()
        .map(|t| &t.job)
        .chain(all.dropped.iter().map(|t| &t.job))
        .chain(configured.iter().map(|j| &j.name));
    let pools: BTreeSet<&String> = jobs.collect();
    body(json!({"status": "success", "data": {"scrapePools": pools}}).to_string())
}

fn pool(hub: &Hub, params: &Params) -> Result<Arc<Job>, ApiError> {
    let name = params
        .get("scrapePool")
        .ok_or_else(|| ApiError::bad_data("no scrapePool parameter provided"))?;
    let jobs = hub.targets.jobs();
    let found = jobs.into_iter().find(|job| job.name == name);
    found.ok_or_else(|| ApiError::not_found(format!("scrape pool {name:?} not found")))
}

/// `GET /api/v1/scrape_pools/config`
pub async fn pool_config(State(hub): State<Arc<Hub>>, params: Params) -> Result<Response, ApiError> {
    let job = pool(&hub, &params)?;
    let yaml = job.config.as_deref().map_or_else(
        || format!("job_name: {}\n# A collector of this process.\n", job.name),
        crate::yaml::job,
    );
    Ok(body(json!({"status": "success", "data": {"yaml": yaml}}).to_string()))
}

/// `GET /api/v1/targets/relabel_steps`
pub async fn relabel_steps(State(hub): State<Arc<Hub>>, params: Params) -> Result<Response, ApiError> {
    let text = params
        .get("labels")
        .ok_or_else(|| ApiError::bad_data("no labels parameter provided"))?;
    let labels: BTreeMap<String, String> = serde_json::from_str(text).map_err(|e| ApiError::parameter("labels", e))?;
    let job = pool(&hub, &params)?;
    let mut builder: LabelsBuilder = LabelsBuilder::from(&Labels::from_pairs(
        labels.iter().map(|(n, v)| (n.as_str(), v.as_str())),
    ));
    let mut steps = Vec::new();
    let mut keep = true;
    for rule in &job.relabel {
        keep = keep && config::relabel::apply(std::slice::from_ref(rule), &mut builder);
        let output = if keep { builder.build() } else { Labels::empty() };
        steps.push(json!({"rule": rule_json(rule), "output": labels_json(&output), "keep": keep}));
        if !keep {
            break;
        }
    }
    Ok(body(json!({"status": "success", "data": {"steps": steps}}).to_string()))
}

fn rule_json(rule: &RelabelConfig) -> Value {
    let mut out = json!({
        "action": rule.action.to_string(),
        "regex": rule.regex_text,
        "replacement": rule.replacement,
        "separator": rule.separator,
    });
    if !rule.source_labels.is_empty() {
        out["source_labels"] = json!(rule.source_labels);
    }
    if !rule.target_label.is_empty() {
        out["target_label"] = json!(rule.target_label);
    }
    if rule.modulus != 0 {
        out["modulus"] = json!(rule.modulus);
    }
    out
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
    for (metric, found) in told(&hub) {
        if wanted.is_none_or(|wanted| wanted == metric) && out.len() < limit {
            let list: Vec<Value> = found.iter().take(per_metric).map(metadata_json).collect();
            out.insert(metric, Value::Array(list));
        }
    }
    Ok(body(json!({"status": "success", "data": out}).to_string()))
}

/// What all targets and pushers say of each metric, every different saying once.
fn told(hub: &Hub) -> BTreeMap<String, Vec<Metadata>> {
    let mut out: BTreeMap<String, Vec<Metadata>> = BTreeMap::new();
    let mut say = |name: &str, metadata: &Metadata| {
        let sayings = out.entry(name.to_owned()).or_default();
        if !sayings.contains(metadata) {
            sayings.push(metadata.clone());
        }
    };
    for (_, metrics) in hub.targets.metadata() {
        metrics.iter().for_each(|(name, metadata)| say(name, metadata));
    }
    for (name, metadata) in hub.data.sayings.all() {
        say(&name, &metadata);
    }
    out
}

fn metadata_json(metadata: &Metadata) -> Value {
    json!({"type": metadata.kind.as_str(), "help": metadata.help, "unit": metadata.unit})
}
