//! The evaluator against scripts, notations and queries written by others.
//!
//! The folder is named by `WATCHFIRE_CORPORA`, else it is `shared/corpora` beside the workspace; without
//! it the tests pass and say so. Run with `--nocapture` to see the counts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use model::{Deadline, Labels, Millis, QueryEngine, QueryError};
use promql::testscript::notation::parse_series;
use promql::testscript::{MemStore, Point, Report, run, script_options};
use promql::{Engine, EngineOptions};
use serde_json::Value;

/// What evaluations may be skipped for; they are counted by reason.
const MAY_BE_SKIPPED: &[&str] = &["start timestamps", "native histograms under anchored or smoothed"];

fn corpora() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora");
    let folder = env::var_os("WATCHFIRE_CORPORA").map_or_else(beside, PathBuf::from);
    if !folder.is_dir() {
        println!("skipped: no corpora at {}", folder.display());
        return None;
    }
    Some(folder.join("prometheus"))
}

/// The lines of a table. A lone surrogate stands for a byte that is no UTF-8; such lines are left out.
fn table(path: &str) -> Vec<Value> {
    let Some(folder) = corpora() else { return Vec::new() };
    let text = fs::read_to_string(folder.join(path)).expect("the table is in the corpora");
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

#[test]
fn scripts_give_what_prometheus_gives() {
    let Some(folder) = corpora() else { return };
    let entries = fs::read_dir(folder.join("promqltest")).expect("the scripts are in the corpora");
    let mut files: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
    files.sort();
    let mut all = Report::default();
    println!(
        "{:28} {:>7} {:>7} {:>7} {:>7}",
        "script", "passed", "failed", "skipped", "total"
    );
    for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "test")) {
        let name = file
            .file_name()
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default();
        let bytes = fs::read(file).expect("a corpus file can be read");
        let report = run(&name, &String::from_utf8_lossy(&bytes), &script_options());
        let (failed, skipped) = (report.failures.len(), report.skipped.len());
        println!(
            "{name:28} {:7} {failed:7} {skipped:7} {:7}",
            report.passed,
            report.total()
        );
        all.extend(report);
    }
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for skip in &all.skipped {
        assert!(MAY_BE_SKIPPED.contains(&skip.reason), "{skip}");
        *reasons.entry(skip.reason).or_default() += 1;
    }
    println!("{all} {reasons:?}");
    let failures: Vec<String> = all.failures.iter().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn series_notations_mean_what_they_mean_to_prometheus() {
    for case in table("tables/series-notation.jsonl") {
        let input = case["input"].as_str().expect("an input is a text");
        let parsed = parse_series(input);
        assert_eq!(parsed.is_ok(), case["ok"] == true, "{input}: {parsed:?}");
        let Ok(line) = parsed else { continue };
        let pairs = case["metric"].as_object().expect("a metric is an object");
        let want = Labels::from_pairs(pairs.iter().map(|(k, v)| (k.as_str(), v.as_str().unwrap_or(""))));
        assert_eq!(line.labels, want, "{input}");
        let values: Vec<Value> = line
            .points
            .iter()
            .map(|p| match p {
                Point::Float(value) => Value::from(*value),
                Point::Absent | Point::Histogram { .. } => Value::from("none"),
            })
            .collect();
        let want = case["values"].as_array().expect("values are a list");
        let same = |a: &Value, b: &Value| a == b || (a.is_number() && a.as_f64() == b.as_f64());
        assert!(
            values.len() == want.len() && values.iter().zip(want).all(|(a, b)| same(a, b)),
            "{input}: {values:?}"
        );
    }
}

/// Every expression that parses gives a value or an error at any moment, and no panic.
#[test]
fn no_query_at_no_moment_panics() {
    let store = MemStore::new();
    for (name, le) in [
        ("some_metric", "0.1"),
        ("some_metric", "+Inf"),
        ("foo", "x"),
        ("bar", "x"),
        ("test", "x"),
    ] {
        let labels = Labels::from_pairs([("__name__", name), ("le", le), ("job", "a"), ("instance", "b")]);
        for (time, value) in [
            (-1000, 1.0),
            (0, f64::NAN),
            (1000, 5.0),
            (2000, 4.0),
            (3000, f64::INFINITY),
        ] {
            store.add(&labels, time, value);
        }
    }
    let limits = EngineOptions {
        samples_max: 100_000,
        ..script_options()
    };
    let engine = Engine::new(Arc::new(store), limits);
    let moments: [Millis; 8] = [0, 1, -1, 2500, 1 << 40, -(1 << 40), Millis::MAX, Millis::MIN];
    let mut answered = 0;
    for case in table("tables/promql-parse.jsonl") {
        let Some(query) = case["query"].as_str() else { continue };
        for time in moments {
            let outcome = engine.instant(query, time, &Deadline::never());
            answered += usize::from(outcome.is_ok());
            assert!(
                !matches!(outcome, Err(QueryError::Internal(_))),
                "{query} at {time}: {outcome:?}"
            );
        }
        for (start, end, step) in [(0, 5000, 500), (-5000, 5000, 1), (Millis::MIN, Millis::MAX, 1 << 55)] {
            let outcome = engine.range(query, start, end, step, &Deadline::never());
            answered += usize::from(outcome.is_ok());
            assert!(!matches!(outcome, Err(QueryError::Internal(_))), "{query}: {outcome:?}");
        }
    }
    println!("{answered} answers");
}
