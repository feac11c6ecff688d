//! `series`, `labels`, `label/…/values`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use model::{Matcher, Millis};

use super::query::body;
use crate::error::ApiError;
use crate::hub::Hub;
use crate::json;
use crate::params::Params;
use crate::work::run;

/// The whole of time: what a request without `start` and `end` asks for.
const ALWAYS: (Millis, Millis) = (Millis::MIN / 2, Millis::MAX / 2);

/// `GET|POST /api/v1/series`
pub async fn series(State(hub): State<Arc<Hub>>, params: Params) -> Result<Response, ApiError> {
    if params.all("match[]").next().is_none() {
        return Err(ApiError::bad_data("no match[] parameter provided"));
    }
    let ask = Ask::read(&params)?;
    let limit = params.limit()?;
    let sets = run(&hub, &params, move |hub, deadline| {
        hub.engine.series(&ask.selectors, ask.start, ask.end, deadline)
    })
    .await?;
    Ok(limited(sets, limit, json::label_sets))
}

/// `GET|POST /api/v1/labels`
pub async fn labels(State(hub): State<Arc<Hub>>, params: Params) -> Result<Response, ApiError> {
    let ask = Ask::read(&params)?;
    let limit = params.limit()?;
    let names = run(&hub, &params, move |hub, deadline| {
        hub.engine.label_names(&ask.selectors, ask.start, ask.end, deadline)
    })
    .await?;
    Ok(limited(names, limit, json::texts))
}

/// `GET /api/v1/label/{name}/values`
pub async fn values(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    if name.is_empty() {
        return Err(ApiError::bad_data("invalid label name: \"\""));
    }
    let name = unescape(&name);
    let ask = Ask::read(&params)?;
    let limit = params.limit()?;
    let values = run(&hub, &params, move |hub, deadline| {
        hub.engine
            .label_values(&name, &ask.selectors, ask.start, ask.end, deadline)
    })
    .await?;
    Ok(limited(values, limit, json::texts))
}

/// A label name in an address may be escaped: `U__http_2e_status` is `http.status`.
fn unescape(name: &str) -> String {
    let Some(escaped) = name.strip_prefix("U__") else {
        return name.to_owned();
    };
    let mut out = String::new();
    let mut rest = escaped;
    while let Some(at) = rest.find('_') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('_') {
            out.push('_');
            rest = after;
            continue;
        }
        let code = rest.split_once('_').and_then(|(hex, after)| {
            let c = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32)?;
            Some((c, after))
        });
        let Some((c, after)) = code else { return name.to_owned() };
        out.push(c);
        rest = after;
    }
    out.push_str(rest);
    out
}

struct Ask {
    selectors: Vec<Vec<Matcher>>,
    start: Millis,
    end: Millis,
}

impl Ask {
    fn read(params: &Params) -> Result<Self, ApiError> {
        let (start, end) = (params.time("start", ALWAYS.0)?, params.time("end", ALWAYS.1)?);
        if end < start {
            return Err(ApiError::parameter(
                "end",
                "end timestamp must not be before start time",
            ));
        }
        Ok(Self {
            selectors: params.selectors()?,
            start,
            end,
        })
    }
}

fn limited<T>(mut list: Vec<T>, limit: usize, write: impl Fn(&[T]) -> String) -> Response {
    if list.len() <= limit {
        return body(json::success(&write(&list)));
    }
    list.truncate(limit);
    let warnings = r#"["results truncated due to limit"]"#;
    body(format!(
        r#"{{"status":"success","data":{},"warnings":{warnings}}}"#,
        write(&list)
    ))
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn escaped_label_names_are_read_back() {
        assert_eq!(unescape("job"), "job");
        assert_eq!(unescape("U__http_2e_status"), "http.status");
        assert_eq!(unescape("U__a__b"), "a_b");
        assert_eq!(unescape("U__bad_zz_x"), "U__bad_zz_x");
    }
}
