//! `watchfire query EXPR`: one question to a hub, or to any Prometheus-compatible API.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use anyhow::{Context as _, bail};
use model::Clock as _;
use serde_json::Value;

use super::{Outcome, input};
use crate::cli::QueryArgs;

/// How long to wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(130);

/// Steps of a range where none is asked for.
const STEPS: i64 = 250;

/// Asks and prints the answer.
pub fn query(args: &QueryArgs) -> anyhow::Result<Outcome> {
    let expr = input::argument(&args.expr)?;
    if let Err(error) = promql::parse(&expr) {
        eprintln!("{}", error.render(&expr));
        return Ok(Outcome::No);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    let answer = runtime.block_on(ask(args, &expr))?;
    let mut out = std::io::stdout().lock();
    let written = if args.json {
        writeln!(out, "{answer}")
    } else if answer["status"] != "success" {
        eprintln!(
            "{}",
            answer["error"]
                .as_str()
                .unwrap_or("the answer is no answer of a query API")
        );
        return Ok(Outcome::No);
    } else if args.csv {
        write_csv(&mut out, &answer["data"])
    } else {
        write_table(&mut out, &answer["data"])
    };
    // A reader that closed the pipe has seen enough.
    let _ = written;
    for kind in ["warnings", "infos"] {
        for text in answer[kind].as_array().into_iter().flatten().filter_map(Value::as_str) {
            eprintln!("{}: {text}", kind.trim_end_matches('s'));
        }
    }
    Ok(Outcome::from(answer["status"] == "success"))
}

async fn ask(args: &QueryArgs, expr: &str) -> anyhow::Result<Value> {
    crate::process::install_tls_provider();
    let client = reqwest::Client::builder()
        .timeout(TIMEOUT)
        .build()
        .context("cannot make an HTTP client")?;
    let base = args.url.trim_end_matches('/');
    let mut form = vec![("query", expr.to_owned())];
    let path = if let Some(range) = &args.range {
        let range = model::time::parse_duration(range).with_context(|| format!("--range {range}"))?;
        let end = args.time.clone().unwrap_or_else(|| seconds(model::SystemClock.now()));
        let Ok(end_seconds) = end.parse::<f64>() else {
            bail!("--time must be seconds since the epoch when --range is given");
        };
        let end = (end_seconds * 1000.0) as i64;
        let step = match &args.step {
            Some(step) => model::time::parse_duration(step).with_context(|| format!("--step {step}"))?,
            None => (range / STEPS).max(1000),
        };
        form.extend([
            ("start", seconds(end - range)),
            ("end", seconds(end)),
            ("step", seconds(step)),
        ]);
        "query_range"
    } else {
        form.extend(args.time.clone().map(|time| ("time", time)));
        "query"
    };
    let address = format!("{base}/api/v1/{path}");
    let response = client
        .post(&address)
        .form(&form)
        .send()
        .await
        .with_context(|| format!("cannot ask {address}"))?;
    let status = response.status();
    let body = response
        .text()
        .await
        .with_context(|| format!("cannot read the answer of {address}"))?;
    serde_json::from_str(&body).with_context(|| format!("{address} answered {status} and no JSON"))
}

fn seconds(millis: i64) -> String {
    format!("{}.{:03}", millis.div_euclid(1000), millis.rem_euclid(1000))
}

fn series_text(metric: &Value) -> String {
    let pairs = metric
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(n, v)| Some((n.as_str(), v.as_str()?)));
    model::labels::SeriesText(&model::Labels::from_pairs(pairs)).to_string()
}

/// Each series with each of its samples: (series, time, value).
fn rows(data: &Value) -> Vec<(String, String, String)> {
    let sample = |pair: &Value| (pair[0].to_string(), pair[1].as_str().unwrap_or("").to_owned());
    let result = &data["result"];
    match data["resultType"].as_str() {
        Some("scalar" | "string") => {
            let (time, value) = sample(result);
            vec![(String::new(), time, value)]
        }
        _ => {
            let mut rows = Vec::new();
            for series in result.as_array().into_iter().flatten() {
                let name = series_text(&series["metric"]);
                let one = std::iter::once(&series["value"]).filter(|v| !v.is_null());
                for pair in one.chain(series["values"].as_array().into_iter().flatten()) {
                    let (time, value) = sample(pair);
                    rows.push((name.clone(), time, value));
                }
            }
            rows
        }
    }
}

fn write_csv(out: &mut impl std::io::Write, data: &Value) -> std::io::Result<()> {
    writeln!(out, "series,time,value")?;
    for (series, time, value) in rows(data) {
        writeln!(out, "\"{}\",{time},{value}", series.replace('"', "\"\""))?;
    }
    Ok(())
}

fn write_table(out: &mut impl std::io::Write, data: &Value) -> std::io::Result<()> {
    let rows = rows(data);
    if rows.is_empty() && std::io::stdout().is_terminal() {
        eprintln!("no series match: absent here, or not within the last 5 minutes");
    }
    let is_range = data["resultType"] == "matrix";
    let width = rows
        .iter()
        .map(|(series, ..)| series.chars().count())
        .max()
        .unwrap_or(0);
    let mut last = None;
    for (series, time, value) in &rows {
        if is_range {
            if last != Some(series) {
                writeln!(out, "{series}")?;
                last = Some(series);
            }
            writeln!(out, "  {time}  {value}")?;
        } else if series.is_empty() {
            writeln!(out, "{value}")?;
        } else {
            writeln!(out, "{series:<width$}  {value}")?;
        }
    }
    Ok(())
}
