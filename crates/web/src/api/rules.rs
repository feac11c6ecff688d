//! `rules` and `alerts`: the rule groups with their state, and every alert that is pending or firing.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use model::Millis;
use rules::{Alert, AlertState, GroupStatus, RuleKind, RuleStatus};
use serde_json::{Map, Value, json};

use super::query::body;
use crate::error::ApiError;
use crate::hub::Hub;
use crate::params::Params;

/// `GET /api/v1/rules`
pub async fn rules(State(hub): State<Arc<Hub>>, params: Params) -> Result<Response, ApiError> {
    let wanted = params.get("type").unwrap_or("");
    if !matches!(wanted, "" | "alert" | "record") {
        return Err(ApiError::parameter("type", format!("not supported value {wanted:?}")));
    }
    let filter = Filter {
        kind: wanted,
        names: params.all("rule_name[]").collect(),
        groups: params.all("rule_group[]").collect(),
        files: params.all("file[]").collect(),
        with_alerts: params.get("exclude_alerts") != Some("true"),
    };
    let groups: Vec<Value> = hub
        .rules
        .status()
        .iter()
        .filter_map(|group| group_json(group, &filter))
        .collect();
    Ok(body(
        json!({"status": "success", "data": {"groups": groups}}).to_string(),
    ))
}

/// `GET /api/v1/alerts`
pub async fn alerts(State(hub): State<Arc<Hub>>) -> Response {
    let groups = hub.rules.status();
    let alerts: Vec<Value> = groups
        .iter()
        .flat_map(|g| &g.rules)
        .flat_map(|r| &r.alerts)
        .filter_map(alert_json)
        .collect();
    body(json!({"status": "success", "data": {"alerts": alerts}}).to_string())
}

struct Filter<'a> {
    kind: &'a str,
    names: Vec<&'a str>,
    groups: Vec<&'a str>,
    files: Vec<&'a str>,
    with_alerts: bool,
}

impl Filter<'_> {
    fn takes(&self, rule: &RuleStatus) -> bool {
        let kind = if rule.rule.kind == RuleKind::Recording {
            "record"
        } else {
            "alert"
        };
        (self.kind.is_empty() || self.kind == kind)
            && (self.names.is_empty() || self.names.contains(&rule.rule.name.as_str()))
    }
}

fn group_json(group: &GroupStatus, filter: &Filter<'_>) -> Option<Value> {
    let loaded = &group.loaded;
    let named = |list: &[&str], name: &str| list.is_empty() || list.contains(&name);
    if !named(&filter.groups, &loaded.name) || !named(&filter.files, &loaded.file) {
        return None;
    }
    let rules: Vec<Value> = group
        .rules
        .iter()
        .filter(|r| filter.takes(r))
        .map(|r| rule_json(r, filter.with_alerts))
        .collect();
    let filtering = !filter.kind.is_empty() || !filter.names.is_empty();
    if rules.is_empty() && filtering {
        return None;
    }
    Some(json!({
        "name": loaded.name,
        "file": loaded.file,
        "rules": rules,
        "interval": group.interval as f64 / 1000.0,
        "limit": loaded.limit,
        "evaluationTime": group.duration.as_secs_f64(),
        "lastEvaluation": date(group.last_evaluation),
        "missedEvaluations": group.missed,
    }))
}

fn rule_json(status: &RuleStatus, with_alerts: bool) -> Value {
    let rule = &status.rule;
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| {
        out.insert(name.to_owned(), value);
    };
    if let RuleKind::Alerting {
        hold,
        keep_firing,
        annotations,
    } = &rule.kind
    {
        put("state", json!(state(&status.alerts)));
        put("name", json!(rule.name));
        put("query", json!(rule.expr));
        put("duration", json!(*hold as f64 / 1000.0));
        put("keepFiringFor", json!(*keep_firing as f64 / 1000.0));
        put("labels", pairs(&rule.labels));
        put("annotations", pairs(annotations));
        let alerts: Vec<Value> = if with_alerts {
            status.alerts.iter().filter_map(alert_json).collect()
        } else {
            Vec::new()
        };
        put("alerts", Value::Array(alerts));
    } else {
        put("name", json!(rule.name));
        put("query", json!(rule.expr));
        put("labels", pairs(&rule.labels));
    }
    let health = match (&status.last_error, status.last_evaluation) {
        (_, None) => "unknown",
        (Some(_), _) => "err",
        (None, _) if !status.unknown.is_empty() => "unknown",
        (None, _) => "ok",
    };
    put("health", json!(health));
    if let Some(error) = &status.last_error {
        put("lastError", json!(error));
    }
    if !status.unknown.is_empty() {
        put("unknown", json!(status.unknown));
    }
    put("evaluationTime", json!(status.duration.as_secs_f64()));
    put("lastEvaluation", json!(date(status.last_evaluation)));
    put(
        "type",
        json!(if rule.kind == RuleKind::Recording {
            "recording"
        } else {
            "alerting"
        }),
    );
    Value::Object(out)
}

fn state(alerts: &[Alert]) -> &'static str {
    let has = |wanted| alerts.iter().any(|a| a.state == wanted);
    if has(AlertState::Firing) {
        "firing"
    } else if has(AlertState::Pending) {
        "pending"
    } else {
        "inactive"
    }
}

fn alert_json(alert: &Alert) -> Option<Value> {
    if alert.state == AlertState::Resolved {
        return None;
    }
    let mut out = json!({
        "labels": alert.labels.iter().map(|(n, v)| (n.to_owned(), json!(v))).collect::<Map<_, _>>(),
        "annotations": pairs(&alert.annotations),
        "state": alert.state.as_str(),
        "activeAt": date(Some(alert.active_at)),
        "value": model::number::Scientific(alert.value).to_string(),
    });
    if let Some(since) = alert.keep_firing_since {
        out["keepFiringSince"] = json!(date(Some(since)));
    }
    if let Some(unknown) = &alert.unknown {
        out["unknown"] = json!({"since": date(Some(unknown.since)), "reason": unknown.reason});
    }
    Some(out)
}

fn pairs(list: &[(String, String)]) -> Value {
    list.iter()
        .map(|(n, v)| (n.clone(), json!(v)))
        .collect::<Map<_, _>>()
        .into()
}

/// A moment in RFC 3339; the field's zero time stands for "never".
pub fn date(time: Option<Millis>) -> String {
    let stamp = time.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    stamp.map_or_else(|| "0001-01-01T00:00:00Z".to_owned(), |stamp| stamp.to_string())
}
