//! `query`, `query_range`, `format_query`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use model::{Millis, QueryOutcome, Value};

use crate::error::ApiError;
use crate::hub::Hub;
use crate::json;
use crate::params::Params;
use crate::work::run;

/// The most steps of a range query.
const POINTS_MAX: i64 = 11_000;

/// `GET|POST /api/v1/query`
pub async fn instant(State(hub): State<Arc<Hub>>, params: Params) -> Result<Response, ApiError> {
    let time = params.time("time", hub.now())?;
    let expr = params.get("query").unwrap_or("").to_owned();
    let limit = params.limit()?;
    let outcome = run(&hub, &params, move |hub, deadline| {
        hub.engine.instant(&expr, time, deadline)
    })
    .await?;
    Ok(answer(outcome, limit))
}

/// `GET|POST /api/v1/query_range`
pub async fn range(State(hub): State<Arc<Hub>>, params: Params) -> Result<Response, ApiError> {
    let (start, end) = (params.time_needed("start")?, params.time_needed("end")?);
    if end < start {
        return Err(ApiError::parameter(
            "end",
            "end timestamp must not be before start time",
        ));
    }
    let step = params
        .duration("step")?
        .ok_or_else(|| ApiError::parameter("step", "cannot parse \"\" to a valid duration"))?;
    check_step(start, end, step)?;
    let expr = params.get("query").unwrap_or("").to_owned();
    let limit = params.limit()?;
    let outcome = run(&hub, &params, move |hub, deadline| {
        hub.engine.range(&expr, start, end, step, deadline)
    })
    .await?;
    Ok(answer(outcome, limit))
}

/// `GET|POST /api/v1/format_query`
pub async fn format(params: Params) -> Result<Response, ApiError> {
    let text = params.get("query").unwrap_or("");
    let expr = promql::parse(text).map_err(|e| ApiError::parameter("query", e.render(text)))?;
    let mut data = String::new();
    json::put_text(&mut data, &promql::pretty::pretty(&expr));
    Ok(body(json::success(&data)))
}

fn check_step(start: Millis, end: Millis, step: Millis) -> Result<(), ApiError> {
    if step <= 0 {
        let reason = "zero or negative query resolution step widths are not accepted. Try a positive integer";
        return Err(ApiError::parameter("step", reason));
    }
    if (end - start) / step > POINTS_MAX {
        return Err(ApiError::bad_data(
            "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)",
        ));
    }
    Ok(())
}

fn answer(mut outcome: QueryOutcome, limit: usize) -> Response {
    let cut = match &mut outcome.value {
        Value::Vector(samples) if samples.len() > limit => {
            samples.truncate(limit);
            true
        }
        Value::Matrix(series) if series.len() > limit => {
            series.truncate(limit);
            true
        }
        _ => false,
    };
    if cut {
        outcome.warnings.push("results truncated due to limit".into());
    }
    body(json::query_body(&outcome))
}

/// A JSON answer.
pub fn body(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}
