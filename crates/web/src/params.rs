//! Request parameters: the query string and a form body together, as the field's clients send either.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{Method, header};
use model::time::parse_duration;
use model::{Matcher, Millis};

use crate::error::ApiError;

/// The largest form body, in bytes.
const FORM_BYTES_MAX: usize = 10 << 20;

/// How long a client may take to send its form.
const FORM_TIMEOUT: Duration = Duration::from_secs(30);

/// The parameters of a request, in order; a name may stand several times.
#[derive(Debug, Default)]
pub struct Params(Vec<(String, String)>);

impl<S: Send + Sync> FromRequest<S> for Params {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        let mut pairs = parse_form(request.uri().query().unwrap_or("").as_bytes());
        let is_form = request
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|v| v.to_str().ok())
            .is_some_and(|v| v.starts_with("application/x-www-form-urlencoded"));
        if matches!(*request.method(), Method::POST | Method::PUT) && is_form {
            let body = read_form(request.into_body()).await?;
            // The body goes first: its value wins where both name a parameter.
            let mut all = parse_form(&body);
            all.append(&mut pairs);
            pairs = all;
        }
        Ok(Self(pairs))
    }
}

async fn read_form(body: Body) -> Result<Bytes, ApiError> {
    let read = tokio::time::timeout(FORM_TIMEOUT, axum::body::to_bytes(body, FORM_BYTES_MAX)).await;
    let read = read.map_err(|_| ApiError::bad_data(format!("the form did not arrive within {FORM_TIMEOUT:?}")))?;
    read.map_err(|e| ApiError::bad_data(format!("cannot read the form (at most {FORM_BYTES_MAX} bytes): {e}")))
}

fn parse_form(bytes: &[u8]) -> Vec<(String, String)> {
    form_urlencoded::parse(bytes)
        .map(|(n, v)| (n.into_owned(), v.into_owned()))
        .collect()
}

impl Params {
    /// Those of a query string.
    #[cfg(test)]
    pub fn of(query: &str) -> Self {
        Self(parse_form(query.as_bytes()))
    }

    /// The first value of a parameter; an empty one counts as absent.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(n, v)| n == name && !v.is_empty())
            .map(|(_, v)| v.as_str())
    }

    /// Every value of a parameter.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// A moment, or `default` where it is not given.
    pub fn time(&self, name: &str, default: Millis) -> Result<Millis, ApiError> {
        self.get(name).map_or(Ok(default), |text| {
            parse_time(text).map_err(|e| ApiError::parameter(name, e))
        })
    }

    /// A moment that must be given.
    pub fn time_needed(&self, name: &str) -> Result<Millis, ApiError> {
        let text = self.get(name).unwrap_or("");
        parse_time(text).map_err(|e| ApiError::parameter(name, e))
    }

    /// A span in milliseconds, from `15s` or a number of seconds.
    pub fn duration(&self, name: &str) -> Result<Option<Millis>, ApiError> {
        self.get(name)
            .map(|text| parse_span(text).map_err(|e| ApiError::parameter(name, e)))
            .transpose()
    }

    /// How many entries the answer may have at most; 0 and absent are no limit.
    pub fn limit(&self) -> Result<usize, ApiError> {
        let Some(text) = self.get("limit") else {
            return Ok(usize::MAX);
        };
        match text.parse::<usize>() {
            Ok(0) => Ok(usize::MAX),
            Ok(limit) => Ok(limit),
            Err(_) => Err(ApiError::parameter("limit", "limit must be a number of zero or more")),
        }
    }

    /// The selectors given as `match[]`.
    pub fn selectors(&self) -> Result<Vec<Vec<Matcher>>, ApiError> {
        let mut out = Vec::new();
        for text in self.all("match[]") {
            out.extend(parse_selector(text)?);
        }
        Ok(out)
    }
}

/// The matchers of a selector, one list for each of its alternatives.
pub fn parse_selector(text: &str) -> Result<Vec<Vec<Matcher>>, ApiError> {
    let expr = promql::parse(text).map_err(|e| ApiError::parameter("match[]", e.render(text)))?;
    let promql::ast::ExprKind::Vector(selector) = expr.kind else {
        return Err(ApiError::parameter(
            "match[]",
            format!("not a series selector: {text:?}"),
        ));
    };
    let mut all = vec![selector.matchers];
    all.extend(selector.or_matchers);
    if all.iter().any(|matchers| matchers.iter().all(Matcher::matches_empty)) {
        return Err(ApiError::parameter(
            "match[]",
            "match[] must contain at least one non-empty matcher",
        ));
    }
    Ok(all)
}

/// A moment as a number of seconds since the epoch or an RFC 3339 date.
fn parse_time(text: &str) -> Result<Millis, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        let millis = (seconds * 1000.0).round();
        if !millis.is_finite() || millis.abs() > 9e15 {
            return Err(format!("cannot parse {text:?} to a valid timestamp: out of range"));
        }
        return Ok(millis as Millis);
    }
    text.parse::<jiff::Timestamp>()
        .map(jiff::Timestamp::as_millisecond)
        .map_err(|_| format!("cannot parse {text:?} to a valid timestamp"))
}

fn parse_span(text: &str) -> Result<Millis, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        let millis = (seconds * 1000.0).round();
        if !millis.is_finite() || millis.abs() > 9e15 {
            return Err(format!("cannot parse {text:?} to a valid duration: out of range"));
        }
        return Ok(millis as Millis);
    }
    parse_duration(text).map_err(|_| format!("cannot parse {text:?} to a valid duration"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_dates() {
        assert_eq!(parse_time("1764530000.1234"), Ok(1_764_530_000_123));
        assert_eq!(parse_time("1970-01-01T00:00:01.5Z"), Ok(1500));
        assert_eq!(parse_time("1970-01-01T01:00:00+01:00"), Ok(0));
        assert!(parse_time("").is_err() && parse_time("soon").is_err() && parse_time("1e300").is_err());
        assert!(parse_time("NaN").is_err());
    }

    #[test]
    fn spans_are_seconds_or_durations() {
        assert_eq!(parse_span("15"), Ok(15_000));
        assert_eq!(parse_span("1.5"), Ok(1500));
        assert_eq!(parse_span("1h30m"), Ok(5_400_000));
        assert!(parse_span("x").is_err());
    }

    #[test]
    fn a_selector_must_select_something() {
        assert!(parse_selector("up").is_ok());
        assert!(parse_selector("{job=~\".*\"}").is_err());
        assert!(parse_selector("rate(up[5m])").is_err());
        assert!(parse_selector("{").is_err());
    }
}
