//! `watchfire query EXPR`: one question to a hub, or to any Prometheus-compatible API.

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::Context as _;
use model::{Clock as _, Millis};
use serde_json::Value;

use super::{Outcome, input, output};
use crate::cli::QueryArgs;
use crate::failure::Hinted;

/// How long to wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(130);

/// Steps of a range where none is asked for.
const STEPS: i64 = 250;

/// Moments further from the epoch (285 000 years) are no moments.
const MILLIS_MAX: f64 = 9e15;

/// Asks and prints the answer.
pub fn query(args: &QueryArgs) -> anyhow::Result<Outcome> {
    let expr = input::argument(&args.expr)?;
    let expr = match expr.and_then(|text| promql::parse(&text).map(|_| text.clone()).map_err(|e| e.render(&text))) {
        Ok(expr) => expr,
        Err(error) => {
            output::remark(error);
            return Ok(Outcome::No);
        }
    };
    let question = Question::new(args, expr)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    let answer = runtime.block_on(ask(&question))?;
    let is_success = answer["status"] == "success";
    if args.json {
        output::line(&answer)?;
    } else if !is_success {
        output::remark(
            answer["error"]
                .as_str()
                .unwrap_or("the answer is no answer of a query API"),
        );
        return Ok(Outcome::No);
    } else if args.csv {
        output::write(|out| write_csv(out, &answer["data"]))?;
    } else {
        output::write(|out| write_table(out, &answer["data"]))?;
    }
    for kind in ["warnings", "infos"] {
        for text in answer[kind].as_array().into_iter().flatten().filter_map(Value::as_str) {
            output::remark(format_args!("{}: {text}", kind.trim_end_matches('s')));
        }
    }
    Ok(Outcome::from(is_success))
}

/// What is asked, and whom.
struct Question {
    address: String,
    form: Vec<(&'static str, String)>,
}

impl Question {
    /// The flags as a question; a wrong one is a mistake in the words typed.
    fn new(args: &QueryArgs, expr: String) -> anyhow::Result<Self> {
        let time = args.time.as_deref().map(moment).transpose()?;
        let mut form = vec![("query", expr)];
        let path = if let Some(range) = &args.range {
            let range = model::time::parse_duration(range).with_context(|| format!("--range {range}"))?;
            let end = time.unwrap_or_else(|| model::SystemClock.now());
            let step = match &args.step {
                Some(step) => model::time::parse_duration(step).with_context(|| format!("--step {step}"))?,
                None => (range / STEPS).max(1000),
            };
            let start = end
                .checked_sub(range)
                .with_context(|| format!("--range {range} is too long"))?;
            form.extend([
                ("start", seconds(start)),
                ("end", seconds(end)),
                ("step", seconds(step)),
            ]);
            "query_range"
        } else {
            form.extend(time.map(|time| ("time", seconds(time))));
            "query"
        };
        let scheme = if args.url.contains("://") { "" } else { "http://" };
        let base = args.url.trim_end_matches('/');
        Ok(Self {
            address: format!("{scheme}{base}/api/v1/{path}"),
            form,
        })
    }
}

/// The moment of `--time`.
fn moment(text: &str) -> anyhow::Result<Millis> {
    let millis = match text.parse::<f64>() {
        Ok(seconds) => Some((seconds * 1000.0).round())
            .filter(|millis| millis.abs() < MILLIS_MAX)
            .map(|millis| millis as Millis),
        Err(_) => text
            .parse::<jiff::Timestamp>()
            .ok()
            .map(jiff::Timestamp::as_millisecond),
    };
    millis.with_context(|| format!("--time {text}: neither seconds since the epoch nor a date as 2026-01-31T12:00:00Z"))
}

async fn ask(question: &Question) -> anyhow::Result<Value> {
    crate::process::install_tls_provider();
    let client = reqwest::Client::builder()
        .timeout(TIMEOUT)
        .build()
        .context("cannot make an HTTP client")?;
    let address = &question.address;
    let response = client
        .post(address)
        .form(&question.form)
        .send()
        .await
        .map_err(|error| no_answer(address, error))?;
    let status = response.status();
    let body = response
        .text()
        .await
        .with_context(|| format!("cannot read the answer of {address}"))?;
    serde_json::from_str(&body).with_context(|| format!("{address} answered {status} and no JSON"))
}

/// Why nobody answers, and what to do where nobody is there.
fn no_answer(address: &str, error: reqwest::Error) -> anyhow::Error {
    let context = format!("cannot ask {address}");
    if !error.is_connect() {
        return anyhow::Error::new(error).context(context);
    }
    let mut cause: &dyn std::error::Error = &error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    anyhow::Error::new(Hinted {
        message: cause.to_string(),
        hint: "start a hub with `watchfire run`, or name another with --url".into(),
    })
    .context(context)
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
        output::remark("no series match: absent here, or not within the last 5 minutes");
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
