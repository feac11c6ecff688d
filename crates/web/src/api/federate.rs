//! `/federate`: the latest sample of each series asked for, as a page that another server scrapes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use exposition::{Format, escape_label, write_float};
use model::{Column, Labels, Matcher, Millis, QueryError, is_stale};

use crate::error::ApiError;
use crate::hub::Hub;
use crate::params::Params;
use crate::work::run;

/// How far back the latest sample may lie, in milliseconds: as far as a query looks.
const LOOKBACK: Millis = 5 * 60 * 1000;

/// `GET /federate`
pub async fn federate(State(hub): State<Arc<Hub>>, params: Params) -> Result<Response, ApiError> {
    let selectors = params.selectors()?;
    let now = hub.now();
    let page = run(&hub, &params, move |hub, deadline| {
        let external = (hub.data.config)().external_labels;
        let latest = latest(hub, &selectors, now, deadline)?;
        Ok(page(&latest, &external))
    })
    .await?;
    Ok(([(header::CONTENT_TYPE, Format::Text.content_type())], page).into_response())
}

type Latest = BTreeMap<Labels, (Millis, f64)>;

fn latest(
    hub: &Hub,
    selectors: &[Vec<Matcher>],
    now: Millis,
    deadline: &model::Deadline,
) -> Result<Latest, QueryError> {
    let mut out = Latest::new();
    let mut column = Column::default();
    let internal = |e: model::StoreError| QueryError::Internal(e.to_string());
    for matchers in selectors {
        let found = hub.data.store.select(matchers, now - LOOKBACK, now).map_err(internal)?;
        for series in found.series {
            deadline.check()?;
            column.clear();
            series.read(now - LOOKBACK, now, &mut column).map_err(internal)?;
            // A text page has no place for native histograms.
            let is_native = column.histograms.last().is_some_and(Option::is_some);
            if let (Some(&time), Some(&value), false) = (column.times.last(), column.values.last(), is_native)
                && !is_stale(value)
            {
                out.insert(series.labels().clone(), (time, value));
            }
        }
    }
    Ok(out)
}

fn page(latest: &Latest, external: &Labels) -> String {
    // By metric name first, whatever other labels sort before it.
    let mut families: BTreeMap<&str, Vec<&Labels>> = BTreeMap::new();
    for labels in latest.keys() {
        families.entry(labels.name()).or_default().push(labels);
    }
    let mut out = String::new();
    for (name, series) in families {
        let is_legacy = model::labels::is_legacy_metric_name(name);
        out.push_str("# TYPE ");
        put_name(name, is_legacy, &mut out);
        out.push_str(" untyped\n");
        for labels in series {
            let (time, value) = latest[labels];
            if is_legacy {
                out.push_str(name);
            }
            put_labels(labels, external, (!is_legacy).then_some(name), &mut out);
            out.push(' ');
            write_float(value, &mut out);
            let _ = writeln!(out, " {time}");
        }
    }
    out
}

fn put_name(name: &str, is_legacy: bool, out: &mut String) {
    if is_legacy {
        out.push_str(name);
        return;
    }
    out.push('"');
    escape_label(name, out);
    out.push('"');
}

/// The labels with the external ones; a series without an `instance` says so, lest the scraper gives it its own.
fn put_labels(labels: &Labels, external: &Labels, quoted: Option<&str>, out: &mut String) {
    let mut all: BTreeMap<&str, &str> = external.iter().collect();
    all.insert("instance", external.get("instance").unwrap_or(""));
    all.extend(labels.iter().filter(|(name, _)| *name != model::METRIC_NAME));
    let mut joint = "{";
    if let Some(name) = quoted {
        out.push('{');
        put_name(name, false, out);
        joint = ",";
    }
    for (name, value) in all {
        out.push_str(joint);
        joint = ",";
        put_name(name, model::labels::is_legacy_label_name(name), out);
        out.push_str("=\"");
        escape_label(value, out);
        out.push('"');
    }
    out.push('}');
}
