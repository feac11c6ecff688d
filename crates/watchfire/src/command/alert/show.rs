//! Answers as tables for people.

use std::io::{self, Write};

use serde_json::Value;

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Columns as wide as their widest cell; the last one is not padded.
fn table(out: &mut dyn Write, head: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([head[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let head: Vec<String> = head.iter().map(|word| (*word).to_owned()).collect();
    for row in [&head].into_iter().chain(rows) {
        let cells = row.iter().zip(&widths).map(|(cell, width)| {
            let width = *width;
            format!("{cell:width$}")
        });
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

/// Labels without the alert's name, which has a column of its own.
fn labels(alert: &Value) -> String {
    let pairs = alert["labels"].as_object().into_iter().flatten();
    let shown = pairs.filter(|(name, _)| *name != "alertname");
    shown
        .map(|(name, value)| format!("{name}={}", text(value)))
        .collect::<Vec<_>>()
        .join(" ")
}

pub fn alerts(out: &mut dyn Write, answer: &Value) -> io::Result<()> {
    let row = |alert: &Value| {
        vec![
            text(&alert["labels"]["alertname"]).to_owned(),
            text(&alert["status"]["state"]).to_owned(),
            text(&alert["startsAt"]).to_owned(),
            labels(alert),
            text(&alert["annotations"]["summary"]).to_owned(),
        ]
    };
    let rows: Vec<_> = list(answer).iter().map(row).collect();
    table(out, &["alert", "state", "since", "labels", "summary"], &rows)
}

pub fn silences(out: &mut dyn Write, answer: &Value) -> io::Result<()> {
    let matcher = |m: &Value| {
        let op = match (
            m["isEqual"].as_bool().unwrap_or(true),
            m["isRegex"].as_bool().unwrap_or(false),
        ) {
            (true, false) => "=",
            (false, false) => "!=",
            (true, true) => "=~",
            (false, true) => "!~",
        };
        format!("{}{op}{:?}", text(&m["name"]), text(&m["value"]))
    };
    let row = |silence: &Value| {
        let times = &silence["timeIntervals"];
        vec![
            text(&silence["id"]).to_owned(),
            text(&silence["status"]["state"]).to_owned(),
            text(&silence["endsAt"]).to_owned(),
            list(&silence["matchers"])
                .iter()
                .map(matcher)
                .collect::<Vec<_>>()
                .join(" "),
            text(&silence["createdBy"]).to_owned(),
            text(&silence["comment"]).to_owned(),
            if times.is_null() {
                String::new()
            } else {
                times.to_string()
            },
        ]
    };
    let rows: Vec<_> = list(answer).iter().map(row).collect();
    table(
        out,
        &["id", "state", "until", "matchers", "author", "comment", "times"],
        &rows,
    )
}

pub fn made(out: &mut dyn Write, answer: &Value) -> io::Result<()> {
    writeln!(out, "{}", text(&answer["silenceID"]))
}

pub fn deliveries(out: &mut dyn Write, answer: &Value) -> io::Result<()> {
    let row = |delivery: &Value| {
        let error = text(&delivery["error"]);
        let time = delivery["time"].as_f64().unwrap_or(0.0) * 1000.0;
        vec![
            super::moment(time as i64),
            text(&delivery["receiver"]).to_owned(),
            text(&delivery["integration"]).to_owned(),
            text(&delivery["status"]).to_owned(),
            format!(
                "{} ms",
                (delivery["duration_seconds"].as_f64().unwrap_or(0.0) * 1000.0).round()
            ),
            delivery["attempts"].to_string(),
            text(&delivery["address"]).to_owned(),
            if error.is_empty() {
                text(&delivery["remark"])
            } else {
                error
            }
            .to_owned(),
        ]
    };
    let rows: Vec<_> = list(answer).iter().map(row).collect();
    let head = [
        "time",
        "receiver",
        "integration",
        "status",
        "took",
        "attempts",
        "address",
        "error",
    ];
    table(out, &head, &rows)
}

pub fn receivers(out: &mut dyn Write, answer: &Value) -> io::Result<()> {
    let moment = |value: &Value| {
        value
            .as_f64()
            .map_or_else(|| "never".to_owned(), |s| super::moment((s * 1000.0) as i64))
    };
    let row = |receiver: &Value| {
        let state = if receiver["failing"] == true { "failing" } else { "ok" };
        vec![
            text(&receiver["receiver"]).to_owned(),
            text(&receiver["integration"]).to_owned(),
            state.to_owned(),
            moment(&receiver["last_success"]),
            text(&receiver["last_error"]).to_owned(),
        ]
    };
    let rows: Vec<_> = list(answer).iter().map(row).collect();
    table(
        out,
        &["receiver", "integration", "state", "last success", "last error"],
        &rows,
    )
}
