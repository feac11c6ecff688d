//! Alertmanager's API, version 2, under `/api/v2`: what `amtool`, Prometheus and dashboards of alerts ask.
//!
//! Shapes are those of its OpenAPI text. Ours beside them: `external` at an alert that came by this API, and
//! `timeIntervals` at a silence that comes again. Errors are JSON texts.

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use config::alertmanager::matchers::parse_list;
use jiff::Timestamp;
use model::{Matcher, Millis};
use serde_json::{Map, Value};

use crate::params::Params;

pub mod alerts;
pub mod silences;
pub mod status;

/// The largest body, in bytes.
const BODY_BYTES_MAX: usize = 16 << 20;
/// How long a client may take to send its body.
const BODY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);

/// Why a request has no answer: a status and a sentence.
#[derive(Debug)]
pub struct Refusal(pub StatusCode, pub String);

impl Refusal {
    /// The request is wrong.
    pub fn bad(message: impl Into<String>) -> Self {
        Self(StatusCode::BAD_REQUEST, message.into())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut answer = json(&Value::String(self.1));
        *answer.status_mut() = self.0;
        answer
    }
}

/// An answer of JSON.
pub fn json(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// A body of JSON.
#[derive(Debug)]
pub struct JsonBody(pub Value);

impl<S: Send + Sync> FromRequest<S> for JsonBody {
    type Rejection = Refusal;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Refusal> {
        let body: Body = request.into_body();
        let read = tokio::time::timeout(BODY_TIMEOUT, axum::body::to_bytes(body, BODY_BYTES_MAX)).await;
        let bytes = match read {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) => {
                let message = format!("cannot read the body (at most {BODY_BYTES_MAX} bytes): {error}");
                return Err(Refusal(StatusCode::PAYLOAD_TOO_LARGE, message));
            }
            Err(_) => {
                return Err(Refusal(
                    StatusCode::REQUEST_TIMEOUT,
                    "the body did not come in time".to_owned(),
                ));
            }
        };
        let value = serde_json::from_slice(&bytes);
        value
            .map(Self)
            .map_err(|e| Refusal::bad(format!("the body is not JSON: {e}")))
    }
}

/// A moment as the API writes it.
pub fn stamp(at: Millis) -> String {
    let moment = Timestamp::from_millisecond(at).unwrap_or_default();
    moment.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// A moment of a body; `None` when not told, in Go's way too.
fn moment(value: &Value, key: &str) -> Result<Option<Millis>, Refusal> {
    let text = match &value[key] {
        Value::Null => return Ok(None),
        Value::String(text) if text.is_empty() || text.starts_with("0001-01-01T") => return Ok(None),
        Value::String(text) => text,
        _ => return Err(Refusal::bad(format!("{key} is no text"))),
    };
    let parsed = text.parse::<Timestamp>();
    let parsed = parsed.map_err(|_| Refusal::bad(format!("{key}: cannot parse {text:?} as a moment")))?;
    Ok(Some(parsed.as_millisecond()))
}

/// Texts by name of a body; none when not told.
fn texts(value: &Value, key: &str) -> Result<Vec<(String, String)>, Refusal> {
    let map = match &value[key] {
        Value::Null => return Ok(Vec::new()),
        Value::Object(map) => map,
        _ => return Err(Refusal::bad(format!("{key} is no object"))),
    };
    let pair = |(name, value): (&String, &Value)| match value.as_str() {
        Some(text) => Ok((name.clone(), text.to_owned())),
        None => Err(Refusal::bad(format!("{key}: the value of {name:?} is no text"))),
    };
    map.iter().map(pair).collect()
}

/// Pairs as an object.
fn object<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Value {
    let pairs: Map<String, Value> = pairs.map(|(name, value)| (name.to_owned(), value.into())).collect();
    Value::Object(pairs)
}

/// The matchers of every parameter of a name.
fn filter(params: &Params, name: &str) -> Result<Vec<Matcher>, Refusal> {
    let mut all = Vec::new();
    for text in params.all(name) {
        let bad = |why: String| Refusal::bad(format!("bad matcher format: {why}"));
        all.extend(parse_list(text).map_err(bad)?);
    }
    Ok(all)
}

/// A truth value; true when not given.
fn flag(params: &Params, name: &str) -> Result<bool, Refusal> {
    match params.get(name) {
        None => Ok(true),
        Some("true" | "1" | "t" | "T" | "TRUE" | "True") => Ok(true),
        Some("false" | "0" | "f" | "F" | "FALSE" | "False") => Ok(false),
        Some(other) => Err(Refusal::bad(format!("{name}: {other:?} is neither true nor false"))),
    }
}
