//! Templates written by others: Prometheus' rule functions, templates in rules, Alertmanager's functions.
//!
//! The folder is named by `WATCHFIRE_CORPORA`, else it is `shared/corpora` beside the workspace; without
//! it the tests pass and say so. Run with `--nocapture` to see the counts.

use std::path::{Path, PathBuf};
use std::{env, fs};

use model::Labels;
use serde_json::Value as Json;
use template::{Env, Error, Mode, Query, RuleTemplate, Set, Value, notification, rule};

/// The moment at which the tables were made: 2012-11-24 11:14:12.
const NOW: i64 = 1_353_755_652_000;
const EXTERNAL_URL: &str = "http://testhost:9090/path/prefix";

fn table(path: &str) -> Vec<Json> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora");
    let folder = env::var_os("WATCHFIRE_CORPORA").map_or_else(beside, PathBuf::from);
    if !folder.is_dir() {
        println!("skipped: no corpora at {}", folder.display());
        return Vec::new();
    }
    let text = fs::read_to_string(folder.join(path)).expect("the table is in the corpora");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a line of the table is JSON"))
        .collect()
}

fn field<'a>(case: &'a Json, name: &str) -> &'a str {
    case[name].as_str().unwrap_or("")
}

fn close(name: &str, total: usize, failures: &[String]) {
    println!("{name}: {} passed of {total}, 0 skipped", total - failures.len());
    assert!(failures.is_empty(), "{name}:\n{}", failures.join("\n"));
}

/// Answers every query with the same samples.
struct Canned(Vec<(Labels, f64)>);

impl Query for Canned {
    fn query(&self, _expr: &str) -> Result<Vec<(Labels, f64)>, String> {
        Ok(self.0.clone())
    }
}

fn samples(case: &Json) -> Canned {
    let one = |sample: &Json| {
        let labels = sample["metric"].as_object().expect("labels are an object");
        let pairs = labels
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str().expect("a label is a text")));
        (
            Labels::from_pairs(pairs),
            sample["value"].as_f64().expect("a value is a number"),
        )
    };
    Canned(case["query_result"].as_array().into_iter().flatten().map(one).collect())
}

/// The dot: a list with the type of its elements, or plain JSON.
fn data(json: &Json) -> Value {
    let typed = |value: &Json| match (json["type"].as_str(), value) {
        (Some("[]float64"), Json::String(text)) => Value::Float(text.parse().expect("a special float")),
        (Some("[]float64"), value) => Value::Float(value.as_f64().expect("a float")),
        (Some("[]uint64"), value) => Value::Uint(value.as_u64().expect("an unsigned integer")),
        (Some("[]int64" | "[]int"), value) => Value::Int(value.as_i64().expect("an integer")),
        (_, value) => Value::text(value.as_str().expect("a text")),
    };
    match json {
        Json::Object(fields) if fields.contains_key("values") => {
            Value::list(json["values"].as_array().expect("a list").iter().map(typed).collect())
        }
        Json::Array(items) => Value::list(items.iter().map(data).collect()),
        Json::Object(fields) => Value::map(fields.iter().map(|(k, v)| (k.as_str().into(), data(v))).collect()),
        Json::String(text) => Value::text(text),
        Json::Number(number) => number
            .as_i64()
            .map_or_else(|| Value::Float(number.as_f64().unwrap_or(0.0)), Value::Int),
        Json::Bool(b) => Value::Bool(*b),
        Json::Null => Value::Nil,
    }
}

/// The message with the words that the program around templates puts before it.
fn wrapped(error: &Error) -> String {
    let doing = match error {
        Error::Parse { .. } | Error::Twice(_) => "parsing",
        Error::Execute(_) | Error::Unknown(_) => "executing",
    };
    format!("error {doing} template test: {error}")
}

#[test]
fn rule_functions_give_what_the_table_says() {
    let cases = table("prometheus/tables/alert-template.jsonl");
    let mut failures = Vec::new();
    for case in &cases {
        let mode = if case["html"] == true { Mode::Html } else { Mode::Text };
        let mut set = Set::new(mode, rule::FUNCTIONS);
        if case["options"].to_string().contains("missingkey=error") {
            set = set.strict();
        }
        let canned = samples(case);
        let env = Env {
            external_url: EXTERNAL_URL,
            query: Some(&canned),
            ..Env::at(NOW)
        };
        let text = field(case, "template");
        let result = set
            .parse("test", text, &[])
            .and_then(|parsed| set.execute(&parsed, &data(&case["data"]), &[], &env));
        let got = result.map_err(|error| wrapped(&error));
        let want = match case["ok"] == true {
            true => Ok(field(case, "output").to_owned()),
            false => Err(field(case, "error").to_owned()),
        };
        if got != want {
            failures.push(format!("{text}\n  want {want:?}\n  got  {got:?}"));
        }
    }
    close("alert-template", cases.len(), &failures);
}

#[test]
fn templates_of_rules_are_accepted_and_rejected_as_in_the_table() {
    let cases = table("prometheus/rule-files/template-parsing.jsonl");
    let mut failures = Vec::new();
    for case in &cases {
        let yaml = field(case, "rule_yaml");
        // The texts are the quoted values of the rule.
        let texts = yaml
            .lines()
            .filter_map(|l| l.split_once(": \""))
            .map(|(_, v)| v.trim_end_matches('"'));
        let ok = texts
            .map(|text| RuleTemplate::parse("InstanceDown", text))
            .all(|r| r.is_ok());
        if ok != (case["ok"] == true) {
            failures.push(yaml.to_owned());
        }
    }
    close("template-parsing", cases.len(), &failures);
}

#[test]
fn notification_functions_give_what_the_table_says() {
    let cases = table("alertmanager/tables/templates.jsonl");
    let mut failures = Vec::new();
    for case in &cases {
        let mode = if case["html"] == true { Mode::Html } else { Mode::Text };
        let set = Set::new(mode, notification::FUNCTIONS);
        let got = set
            .expand(field(case, "template"), &data(&case["data"]), &Env::at(NOW))
            .ok();
        let want = (case["ok"] == true).then(|| field(case, "output").to_owned());
        if got != want {
            failures.push(format!("{}\n  want {want:?}\n  got  {got:?}", field(case, "template")));
        }
    }
    close("alertmanager templates", cases.len(), &failures);
}
