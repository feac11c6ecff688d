//! `/api/watchfire/v1/ring`: the last half hour of quick GPU samples of this machine.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use model::Millis;

use crate::error::ApiError;
use crate::params::Params;

/// A GPU's index has fewer digits than this; a list is not longer than a server has GPUs.
const GPUS_MAX: usize = 64;

/// What is wanted of the ring.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RingQuery {
    /// The first moment; half an hour ago where not given.
    pub from: Option<Millis>,
    /// The last moment; now where not given.
    pub to: Option<Millis>,
    /// Only these GPUs, by the driver's index; all where not given.
    pub gpus: Option<Vec<u16>>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RingRefusal {
    /// More samples than an answer may hold.
    TooLong(String),
    /// No ring is kept here, and why.
    Absent(String),
    /// It cannot be read.
    Failed(String),
}

/// Gives a window of the ring as JSON.
pub type Ring = Arc<dyn Fn(&RingQuery) -> Result<String, RingRefusal> + Send + Sync>;

/// The route.
pub fn router<S: Clone + Send + Sync + 'static>(ring: Ring) -> Router<S> {
    Router::new()
        .route("/api/watchfire/v1/ring", get(window))
        .with_state(ring)
}

async fn window(State(ring): State<Ring>, params: Params) -> Result<Response, ApiError> {
    let query = query(&params)?;
    let answer = tokio::task::spawn_blocking(move || ring(&query)).await;
    let answer = answer.map_err(|error| ApiError::internal(format!("the answer's thread ended early: {error}")))?;
    let data = answer.map_err(|refusal| match refusal {
        RingRefusal::TooLong(text) => ApiError::bad_data(text),
        RingRefusal::Absent(text) => ApiError::not_found(text),
        RingRefusal::Failed(text) => ApiError::internal(text),
    })?;
    let body = format!("{{\"status\":\"success\",\"data\":{data}}}");
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

fn query(params: &Params) -> Result<RingQuery, ApiError> {
    let time = |name| params.get(name).map(|_| params.time_needed(name)).transpose();
    let (from, to) = (time("from")?, time("to")?);
    if let (Some(from), Some(to)) = (from, to)
        && to < from
    {
        return Err(ApiError::parameter("to", "the end must not be before the beginning"));
    }
    let words: Vec<&str> = params
        .all("gpu")
        .flat_map(|text| text.split(','))
        .filter(|w| !w.is_empty())
        .collect();
    if words.len() > GPUS_MAX {
        return Err(ApiError::parameter(
            "gpu",
            format!("at most {GPUS_MAX} GPUs can be named"),
        ));
    }
    let index = |word: &&str| {
        let reason = || format!("{word:?} is no index of a GPU: write numbers such as 0 or 0,3");
        word.trim()
            .parse::<u16>()
            .map_err(|_| ApiError::parameter("gpu", reason()))
    };
    let gpus = words.iter().map(index).collect::<Result<Vec<u16>, _>>()?;
    Ok(RingQuery {
        from,
        to,
        gpus: (!gpus.is_empty()).then_some(gpus),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a query asks for: from, to, GPUs.
    type Asked = (Option<Millis>, Option<Millis>, &'static [u16]);

    /// What a query string asks for; or a part of the refusal.
    #[track_caller]
    fn check(text: &str, want: Result<Asked, &str>) {
        match (query(&Params::of(text)), want) {
            (Ok(got), Ok((from, to, gpus))) => {
                assert_eq!(
                    (got.from, got.to, got.gpus.unwrap_or_default().as_slice()),
                    (from, to, gpus),
                    "{text}"
                );
            }
            (Err(got), Err(part)) => assert!(format!("{got:?}").contains(part), "{text}: {got:?}"),
            (got, want) => panic!("{text}: {got:?}, expected {want:?}"),
        }
    }

    #[test]
    fn a_window_is_asked_for_by_time_and_gpu() {
        check("", Ok((None, None, &[])));
        check(
            "from=1796000000.5&to=1796000001",
            Ok((Some(1_796_000_000_500), Some(1_796_000_001_000), &[])),
        );
        check("gpu=0,3", Ok((None, None, &[0, 3])));
        check("gpu=0&gpu=3&gpu=", Ok((None, None, &[0, 3])));
    }

    #[test]
    fn what_cannot_be_asked_is_refused_by_name() {
        check("from=noon", Err("from"));
        check("to=x", Err("to"));
        check("from=10&to=9", Err("before the beginning"));
        check("gpu=two", Err("no index of a GPU"));
        check("gpu=-1", Err("no index of a GPU"));
        check(&format!("gpu={}", vec!["1"; 65].join(",")), Err("at most 64"));
    }
}
