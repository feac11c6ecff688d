//! Silences.

use std::cmp::Reverse;
use std::sync::Arc;

use alerts::{Error, Recurrence, Silence, SilenceState};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use model::{MatchOp, Matcher, Millis};
use serde_json::{Value, json};

use super::{JsonBody, Refusal, filter, flag, json as answer, moment, object, stamp, texts};
use crate::hub::Hub;
use crate::params::Params;

/// `GET /api/v2/silences`: the active ones first, of these the one that ends next.
pub async fn silences(State(hub): State<Arc<Hub>>, params: Params) -> Result<Response, Refusal> {
    let now = hub.alerts.now();
    let asked = filter(&params, "filter")?;
    let states = [
        (SilenceState::Active, flag(&params, "active")?),
        (SilenceState::Pending, flag(&params, "pending")?),
        (SilenceState::Expired, flag(&params, "expired")?),
    ];
    let mut all = hub.alerts.silences();
    all.retain(|silence| {
        let state = silence.state(now);
        states.contains(&(state, true)) && asked.iter().all(|m| silence.matchers.contains(m))
    });
    all.sort_by_key(|silence| match silence.state(now) {
        SilenceState::Active => (0, silence.ends_at, Reverse(0)),
        SilenceState::Pending => (1, silence.starts_at, Reverse(0)),
        SilenceState::Expired => (2, 0, Reverse(silence.ends_at)),
    });
    Ok(answer(&all.iter().map(|silence| shown(silence, now)).collect()))
}

/// `GET /api/v2/silence/{id}`
pub async fn silence(State(hub): State<Arc<Hub>>, Path(id): Path<String>) -> Result<Response, Refusal> {
    let found = hub.alerts.silence(&id).ok_or_else(|| refused(&Error::NoSilence(id)))?;
    Ok(answer(&shown(&found, hub.alerts.now())))
}

/// `DELETE /api/v2/silence/{id}`: it ends now.
pub async fn expire(State(hub): State<Arc<Hub>>, Path(id): Path<String>) -> Result<Response, Refusal> {
    hub.alerts.expire_silence(&id).map_err(|e| refused(&e))?;
    Ok(().into_response())
}

/// `POST /api/v2/silences`
pub async fn post(State(hub): State<Arc<Hub>>, JsonBody(body): JsonBody) -> Result<Response, Refusal> {
    let silence = read(&body, hub.alerts.now())?;
    let id = hub.alerts.set_silence(silence).map_err(|e| refused(&e))?;
    Ok(answer(&json!({"silenceID": id})))
}

fn refused(error: &Error) -> Refusal {
    let status = match error {
        Error::NoSilence(_) => StatusCode::NOT_FOUND,
        Error::SilenceExpired(_) => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    };
    Refusal(status, error.to_string())
}

fn read(body: &Value, now: Millis) -> Result<Silence, Refusal> {
    let text = |key: &str| body[key].as_str().unwrap_or("").to_owned();
    let list = body["matchers"].as_array();
    let list = list.ok_or_else(|| Refusal::bad("matchers in body is required"))?;
    let matchers = list.iter().map(matcher).collect::<Result<Vec<_>, _>>()?;
    let needed = |key: &str| moment(body, key)?.ok_or_else(|| Refusal::bad(format!("{key} in body is required")));
    let (starts_at, ends_at) = (needed("startsAt")?, needed("endsAt")?);
    if starts_at >= ends_at {
        return Err(Refusal::bad(
            "Failed to create silence: start time must be before end time",
        ));
    }
    if ends_at < now {
        return Err(Refusal::bad("Failed to create silence: end time can't be in the past"));
    }
    let times = match &body["timeIntervals"] {
        Value::Null => None,
        times => {
            let bad = |why| Refusal::bad(format!("timeIntervals: {why}"));
            Some(Recurrence::read(&times.to_string()).map_err(bad)?)
        }
    };
    Ok(Silence {
        id: text("id"),
        matchers,
        starts_at,
        ends_at,
        updated_at: now,
        created_by: text("createdBy"),
        comment: text("comment"),
        annotations: texts(body, "annotations")?.into_iter().collect(),
        times,
    })
}

fn matcher(value: &Value) -> Result<Matcher, Refusal> {
    let needed = |key: &str| {
        let text = value[key].as_str();
        text.ok_or_else(|| Refusal::bad(format!("matchers.{key} in body is required")))
    };
    let op = match (
        value["isEqual"].as_bool().unwrap_or(true),
        value["isRegex"].as_bool().unwrap_or(false),
    ) {
        (true, false) => MatchOp::Equal,
        (false, false) => MatchOp::NotEqual,
        (true, true) => MatchOp::Regex,
        (false, true) => MatchOp::NotRegex,
    };
    let made = Matcher::new(op, needed("name")?, needed("value")?);
    made.map_err(|e| Refusal::bad(format!("invalid matcher: {e}")))
}

fn shown(silence: &Silence, now: Millis) -> Value {
    let state = match silence.state(now) {
        SilenceState::Pending => "pending",
        SilenceState::Active => "active",
        SilenceState::Expired => "expired",
    };
    let matchers: Vec<Value> = silence
        .matchers
        .iter()
        .map(|m| {
            json!({
                "isEqual": matches!(m.op, MatchOp::Equal | MatchOp::Regex),
                "isRegex": matches!(m.op, MatchOp::Regex | MatchOp::NotRegex),
                "name": m.name,
                "value": m.value,
            })
        })
        .collect();
    let annotations = silence.annotations.iter().map(|(n, v)| (n.as_str(), v.as_str()));
    let mut out = json!({
        "id": silence.id,
        "status": {"state": state},
        "updatedAt": stamp(silence.updated_at),
        "annotations": object(annotations),
        "comment": silence.comment,
        "createdBy": silence.created_by,
        "endsAt": stamp(silence.ends_at),
        "matchers": matchers,
        "startsAt": stamp(silence.starts_at),
    });
    if let Some(times) = &silence.times {
        // It was read from JSON or from YAML; what is no JSON is shown as it was written.
        let value = serde_json::from_str(times.as_str());
        out["timeIntervals"] = value.unwrap_or_else(|_| Value::String(times.as_str().to_owned()));
    }
    out
}
