//! Alerts and their groups; alerts of others come in here.

use std::collections::BTreeMap;
use std::sync::Arc;

use alerts::{Alert, AlertState, AlertView};
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use config::alertmanager::Config;
use model::labels::Labels;
use model::{MatchOp, Matcher};
use serde_json::{Value, json};

use super::{JsonBody, Refusal, filter, flag, json as answer, moment, object, stamp, texts};
use crate::hub::Hub;
use crate::params::Params;

/// The most bytes of one alert's labels and annotations.
const ALERT_BYTES_MAX: usize = 256 << 10;

/// `GET /api/v2/alerts`
pub async fn alerts(State(hub): State<Arc<Hub>>, params: Params) -> Result<Response, Refusal> {
    let wanted = Wanted::read(&params)?;
    let config = hub.alerts.config();
    let mut all = hub.alerts.alerts();
    all.retain(|view| wanted.takes(view) && view.receivers.iter().any(|r| wanted.takes_receiver(&config, r)));
    all.sort_by_key(|view| view.fingerprint);
    Ok(answer(&all.iter().map(|view| shown(view, &view.receivers)).collect()))
}

/// `GET /api/v2/alerts/groups`
pub async fn groups(State(hub): State<Arc<Hub>>, params: Params) -> Result<Response, Refusal> {
    let wanted = Wanted::read(&params)?;
    let is_muted_wanted = flag(&params, "muted")?;
    let config = hub.alerts.config();
    let receivers: BTreeMap<u64, Vec<String>> = hub
        .alerts
        .alerts()
        .into_iter()
        .map(|view| (view.fingerprint, view.receivers))
        .collect();
    let mut out = Vec::new();
    for group in hub.alerts.groups() {
        let is_muted = group.alerts.iter().all(|view| !view.muted.muted_by.is_empty());
        if !wanted.takes_receiver(&config, &group.receiver) || (is_muted && !is_muted_wanted) {
            continue;
        }
        let of = |view: &AlertView| shown(view, receivers.get(&view.fingerprint).unwrap_or(&view.receivers));
        let alerts: Vec<Value> = group.alerts.iter().filter(|view| wanted.takes(view)).map(of).collect();
        if alerts.is_empty() {
            continue;
        }
        let route_labels = group.route_labels.iter().map(|(n, v)| (n.as_str(), v.as_str()));
        out.push(json!({
            "labels": object(group.labels.iter()),
            "routeLabels": object(route_labels),
            "receiver": {"name": group.receiver},
            "alerts": alerts,
        }));
    }
    Ok(answer(&Value::Array(out)))
}

/// Which alerts are asked for.
struct Wanted {
    active: bool,
    silenced: bool,
    inhibited: bool,
    unprocessed: bool,
    matchers: Vec<Matcher>,
    receiver: Option<Matcher>,
    receiver_matchers: Vec<Matcher>,
}

impl Wanted {
    fn read(params: &Params) -> Result<Self, Refusal> {
        let receiver = params
            .get("receiver")
            .map(|text| Matcher::new(MatchOp::Regex, "receiver", text));
        let bad = |e| Refusal::bad(format!("failed to parse receiver param: {e}"));
        Ok(Self {
            active: flag(params, "active")?,
            silenced: flag(params, "silenced")?,
            inhibited: flag(params, "inhibited")?,
            unprocessed: flag(params, "unprocessed")?,
            matchers: filter(params, "filter")?,
            receiver: receiver.transpose().map_err(bad)?,
            receiver_matchers: filter(params, "receiver_matchers")?,
        })
    }

    fn takes(&self, view: &AlertView) -> bool {
        let kept_out = [
            !self.active && view.state == AlertState::Active,
            !self.unprocessed && view.state == AlertState::Unprocessed,
            !self.silenced && !view.muted.silenced_by.is_empty(),
            !self.inhibited && view.muted.inhibited_by.is_some(),
        ];
        !kept_out.contains(&true) && self.matchers.iter().all(|m| m.matches_labels(&view.alert.labels))
    }

    fn takes_receiver(&self, config: &Config, name: &str) -> bool {
        let own = config.receiver(name).map(|r| &r.labels);
        let pairs = own.into_iter().flatten().map(|(n, v)| (n.as_str(), v.as_str()));
        let labels = Labels::from_pairs(pairs);
        self.receiver.as_ref().is_none_or(|pattern| pattern.matches(name))
            && self.receiver_matchers.iter().all(|m| m.matches_labels(&labels))
    }
}

fn shown(view: &AlertView, receivers: &[String]) -> Value {
    let alert = &view.alert;
    let annotations = alert.annotations.iter().map(|(n, v)| (n.as_str(), v.as_str()));
    let inhibited_by = view.muted.inhibited_by.map(|f| format!("{f:016x}"));
    let mut out = json!({
        "annotations": object(annotations),
        "endsAt": stamp(alert.ends_at.unwrap_or(alert.updated_at)),
        "fingerprint": format!("{:016x}", view.fingerprint),
        "receivers": receivers.iter().map(|name| json!({"name": name})).collect::<Vec<_>>(),
        "startsAt": stamp(alert.starts_at),
        "status": {
            "inhibitedBy": inhibited_by.into_iter().collect::<Vec<_>>(),
            "mutedBy": view.muted.muted_by,
            "silencedBy": view.muted.silenced_by,
            "state": view.state.as_str(),
        },
        "updatedAt": stamp(alert.updated_at),
        "generatorURL": alert.generator_url,
        "labels": object(alert.labels.iter()),
    });
    if alert.external {
        out["external"] = true.into();
    }
    out
}

/// `POST /api/v2/alerts`: what is right is taken in, and what is wrong is told, both at once.
pub async fn post(State(hub): State<Arc<Hub>>, JsonBody(body): JsonBody) -> Result<Response, Refusal> {
    let list = body
        .as_array()
        .ok_or_else(|| Refusal::bad("the body is no list of alerts"))?;
    let mut good = Vec::new();
    let mut wrong = Vec::new();
    for value in list {
        match read(value) {
            Ok(alert) => good.push(alert),
            Err(Refusal(_, why)) => wrong.push(why),
        }
    }
    hub.alerts.send(good);
    if wrong.is_empty() {
        return Ok(().into_response());
    }
    wrong.dedup();
    wrong.truncate(20);
    Err(Refusal::bad(wrong.join("\n")))
}

fn read(value: &Value) -> Result<Alert, Refusal> {
    if !value.is_object() {
        return Err(Refusal::bad("an alert is no object"));
    }
    let (labels, annotations) = (texts(value, "labels")?, texts(value, "annotations")?);
    let size = labels
        .iter()
        .chain(&annotations)
        .map(|(n, v)| n.len() + v.len())
        .sum::<usize>();
    if size > ALERT_BYTES_MAX {
        return Err(Refusal::bad(format!("an alert of more than {ALERT_BYTES_MAX} bytes")));
    }
    if labels.iter().chain(&annotations).any(|(name, _)| name.is_empty()) {
        return Err(Refusal::bad("invalid label set: a name is empty"));
    }
    let labels = Labels::from_pairs(labels.iter().map(|(n, v)| (n.as_str(), v.as_str())));
    if labels.is_empty() {
        return Err(Refusal::bad("at least one label pair required"));
    }
    let (starts_at, ends_at) = (moment(value, "startsAt")?, moment(value, "endsAt")?);
    if let (Some(start), Some(end)) = (starts_at, ends_at)
        && end < start
    {
        return Err(Refusal::bad("start time must be before end time"));
    }
    Ok(Alert {
        annotations: annotations.into_iter().collect(),
        ends_at,
        generator_url: value["generatorURL"].as_str().unwrap_or("").to_owned(),
        external: true,
        ..Alert::new(labels, starts_at.unwrap_or(0))
    })
}
