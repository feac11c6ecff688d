//! `query`, `query_range`, `format_query`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use model::{Millis, QueryOutcome, Value};
use serde_json::json;

use crate::error::ApiError;
use crate::hub::Hub;
use crate::json;
use crate::params::Params;
use crate::queries::Asked;
use crate::work::{Cost, run_query};

/// The most steps of a range query.
const POINTS_MAX: i64 = 11_000;

/// `GET|POST /api/v1/query`
pub async fn instant(State(hub): State<Arc<Hub>>, params: Params) -> Result<Response, ApiError> {
    let time = params.time("time", hub.now())?;
    let expr = params.get("query").unwrap_or("").to_owned();
    let limit = params.limit()?;
    let asked = Asked {
        text: expr.clone(),
        moments: (time, time, 0),
    };
    let (outcome, cost) = run_query(&hub, &params, asked, move |hub, deadline| {
        hub.engine.instant(&expr, time, deadline)
    })
    .await?;
    Ok(answer(outcome, limit, &params, &cost))
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
    let asked = Asked {
        text: expr.clone(),
        moments: (start, end, step),
    };
    let (outcome, cost) = run_query(&hub, &params, asked, move |hub, deadline| {
        hub.engine.range(&expr, start, end, step, deadline)
    })
    .await?;
    Ok(answer(outcome, limit, &params, &cost))
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

fn answer(mut outcome: QueryOutcome, limit: usize, params: &Params, cost: &Cost) -> Response {
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
    let stats = params.get("stats").map(|_| stats(cost));
    body(json::query_body(&outcome, stats.as_ref()))
}

/// What a query cost, in Prometheus' shape; samples by step where `stats=all` asked for them.
fn stats(cost: &Cost) -> serde_json::Value {
    let meter = cost.deadline.meter();
    let evaluated = meter.evaluated().saturating_sub(meter.sorted());
    let seconds = |d: std::time::Duration| d.as_secs_f64();
    let by_step = meter.steps();
    let mut samples = json!({
        "totalQueryableSamples": if by_step.is_empty() { meter.read() } else { by_step.iter().map(|s| s.1).sum() },
        "peakSamples": meter.peak(),
        "samplesRead": meter.read(),
        "fromCache": meter.from_cache(),
    });
    if meter.wants_steps() {
        let steps = by_step
            .iter()
            .map(|(time, count)| json!([*time as f64 / 1000.0, count]));
        samples["totalQueryableSamplesPerStep"] = steps.collect();
    }
    json!({
        "timings": {
            "evalTotalTime": seconds(meter.evaluated()),
            "resultSortTime": seconds(meter.sorted()),
            "queryPreparationTime": seconds(meter.prepared()),
            "innerEvalTime": seconds(evaluated),
            "execQueueTime": seconds(cost.queued),
            "execTotalTime": seconds(cost.total),
        },
        "samples": samples,
    })
}

/// A JSON answer.
pub fn body(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}
