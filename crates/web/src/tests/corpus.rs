//! The field's documented requests: ours must have every key of the documented answer, with the same type.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::stage::Stage;

/// Sections left out, with the reason.
const SKIPPED: &[(&str, &str)] = &[
    ("Parsing a PromQL expressions", "a tree for Prometheus' own page"),
    ("Alertmanagers", "alerts are told from here"),
];

fn corpora() -> Option<PathBuf> {
    let told = std::env::var_os("WATCHFIRE_CORPORA").map(PathBuf::from);
    let folder = told.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora"));
    let found = folder.is_dir();
    if !found {
        eprintln!("skipped: the corpora are not here (WATCHFIRE_CORPORA names their folder)");
    }
    found.then_some(folder)
}

/// Where the answer's own data decide what is there: not compared below this key.
const FREE: &[(&str, &str)] = &[
    ("Features", ".data"),
    ("Self Metrics", ".data"),
    ("Querying metric metadata", ".data"),
];

/// The path and query of a `curl` line.
fn path_of(request: &str) -> Option<String> {
    let words: Vec<&str> = request.split_whitespace().map(|w| w.trim_matches('\'')).collect();
    // A quoted address holds what stands in it as it is.
    let address = words.iter().find(|w| w.contains("localhost:909"))?;
    let address = address.replace('{', "%7B").replace('}', "%7D").replace('"', "%22");
    let mut path = address[address.find("/api")?..].trim_end_matches('?').to_owned();
    for pair in words.windows(2).filter(|w| w[0] == "--data-urlencode") {
        let (name, value) = pair[1].split_once('=')?;
        let value: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
        let joint = if path.contains('?') { '&' } else { '?' };
        path = format!("{path}{joint}{name}={value}");
    }
    Some(path)
}

fn lacks(documented: &Value, ours: &Value, at: &str, out: &mut Vec<String>) {
    match (documented, ours) {
        (Value::Object(want), Value::Object(got)) => {
            // Names that are data, not structure.
            let free = [
                ".metric",
                ".labels",
                ".annotations",
                ".discoveredLabels",
                ".droppedTargetCounts",
                ".target",
            ];
            if free.iter().any(|end| at.ends_with(end)) {
                return;
            }
            for (key, value) in want {
                match got.get(key) {
                    Some(ours) => lacks(value, ours, &format!("{at}.{key}"), out),
                    None => out.push(format!("{at}.{key} is missing")),
                }
            }
        }
        (Value::Array(want), Value::Array(got)) => {
            for (want, got) in want.iter().zip(got) {
                lacks(want, got, &format!("{at}[]"), out);
            }
        }
        _ if std::mem::discriminant(documented) == std::mem::discriminant(ours) => {}
        _ => out.push(format!("{at}: {documented} is documented, {ours} is ours")),
    }
}

#[tokio::test]
async fn documented_requests_get_answers_of_the_documented_shape() {
    let Some(corpora) = corpora() else { return };
    let stage = Stage::new().await;
    let text = std::fs::read_to_string(corpora.join("prometheus/http-api/response-examples.jsonl")).expect("the table");
    let (mut passed, mut skipped, mut wrong) = (0, 0, Vec::new());
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).expect("a case");
        let section = case["section"].as_str().unwrap_or("");
        if SKIPPED.iter().any(|(name, _)| section.starts_with(name)) {
            skipped += 1;
            continue;
        }
        let request = case["request"].as_str().unwrap_or("");
        let Some(path) = path_of(request) else {
            wrong.push(format!("{section}: cannot read {request}"));
            continue;
        };
        // The examples' jobs are not ours.
        let path = path.replace("scrapePool=prometheus", "scrapePool=node");
        let method = if request.contains("-XPOST") { "POST" } else { "GET" };
        let answer = stage.send(method, &path, "", "").await;
        let mut faults = Vec::new();
        if answer.status == 200 {
            lacks(&case["response"], &answer.json(), "", &mut faults);
            let free = FREE.iter().find(|(name, _)| *name == section).map(|(_, key)| *key);
            faults.retain(|fault| free.is_none_or(|key| !fault.starts_with(&format!("{key}."))));
        } else {
            faults.push(format!("{} {}", answer.status, answer.text()));
        }
        match faults.is_empty() {
            true => passed += 1,
            false => wrong.push(format!("{section}: {path}: {}", faults.join("; "))),
        }
    }
    for (section, reason) in SKIPPED {
        println!("skipped: {section}: {reason}");
    }
    println!(
        "documented requests: {passed} passed, {skipped} skipped, {} wrong",
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
