//! `query_exemplars`: examples of what the series of an expression counted.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use model::{Millis, QueryError};

use super::query::body;
use crate::error::ApiError;
use crate::hub::Hub;
use crate::json;
use crate::params::Params;
use crate::work::run;

const ALWAYS: (Millis, Millis) = (Millis::MIN / 2, Millis::MAX / 2);

/// `GET|POST /api/v1/query_exemplars`
pub async fn exemplars(State(hub): State<Arc<Hub>>, params: Params) -> Result<Response, ApiError> {
    let (start, end) = (params.time("start", ALWAYS.0)?, params.time("end", ALWAYS.1)?);
    if end < start {
        return Err(ApiError::bad_data("end timestamp must not be before start timestamp"));
    }
    let text = params.get("query").unwrap_or("");
    let expr = promql::parse(text).map_err(|e| ApiError::parameter("query", e.render(text)))?;
    let mut selectors = Vec::new();
    expr.each_selector(&mut |selector| {
        selectors.push(selector.matchers.clone());
        selectors.extend(selector.or_matchers.iter().cloned());
    });
    let found = run(&hub, &params, move |hub, _| {
        if selectors.is_empty() {
            return Ok(Vec::new());
        }
        let found = hub.data.exemplars.exemplars(&selectors, start, end);
        found.map_err(|e| QueryError::Internal(e.to_string()))
    })
    .await?;
    let mut out = String::from("[");
    for (i, series) in found.iter().enumerate() {
        out.push_str(if i > 0 { "," } else { "" });
        out.push_str(r#"{"seriesLabels":"#);
        json::put_labels(&mut out, &series.labels);
        out.push_str(r#","exemplars":["#);
        for (i, exemplar) in series.exemplars.iter().enumerate() {
            out.push_str(if i > 0 { "," } else { "" });
            out.push_str(r#"{"labels":"#);
            json::put_labels(&mut out, &exemplar.labels);
            out.push_str(r#","value":""#);
            json::put_float(&mut out, exemplar.value);
            out.push_str(r#"","timestamp":"#);
            json::put_time(&mut out, exemplar.time);
            out.push('}');
        }
        out.push_str("]}");
    }
    out.push(']');
    Ok(body(json::success(&out)))
}
