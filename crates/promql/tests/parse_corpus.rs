//! The parser against expressions written by others: tables of cases, query scripts, rules, dashboards.
//!
//! The folder is named by `WATCHFIRE_CORPORA`, else it is `shared/corpora` beside the workspace; without
//! it the tests pass and say so. Run with `--nocapture` to see the counts.

use std::path::{Path, PathBuf};
use std::{env, fs};

use promql::parse;
use promql::pretty::pretty_at;
use serde_json::Value;

#[path = "parse_corpus/shape.rs"]
mod shape;
#[path = "parse_corpus/yaml.rs"]
mod yaml;

/// The width at which the table of wrapped expressions was made.
const TABLE_WIDTH: usize = 10;

/// Syntax trees that differ by intent.
const SHAPE_LEFT_OUT: &[(&str, &str)] = &[
    (
        r#""\a\b\f\n\r\t\v\\\" - \xFF\377"#,
        "a text here is UTF-8; lone bytes become U+FFFD",
    ),
    (
        r"'\a\b\f\n\r\t\v\\\' - \xFF\377",
        "a text here is UTF-8; lone bytes become U+FFFD",
    ),
];

fn corpora() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora");
    let folder = env::var_os("WATCHFIRE_CORPORA").map_or_else(beside, PathBuf::from);
    if !folder.is_dir() {
        println!("skipped: no corpora at {}", folder.display());
        return None;
    }
    Some(folder)
}

/// The lines of a JSONL table. A lone surrogate stands for a byte that is no UTF-8; it becomes U+FFFD.
fn table(path: &str) -> Vec<Value> {
    let Some(folder) = corpora() else { return Vec::new() };
    let text = fs::read_to_string(folder.join(path)).expect("the table is in the corpora");
    text.lines()
        .map(|line| {
            let line = ["dcff", "dcFF"]
                .iter()
                .fold(line.to_owned(), |l, s| l.replace(&format!("\\u{s}"), "\\ufffd"));
            serde_json::from_str(&line).expect("a line of the table is JSON")
        })
        .collect()
}

/// Counts, and what failed.
#[derive(Default)]
struct Tally {
    passed: usize,
    total: usize,
    skipped: usize,
    failures: Vec<String>,
}

impl Tally {
    fn note(&mut self, result: Result<(), String>) {
        self.total += 1;
        match result {
            Ok(()) => self.passed += 1,
            Err(why) => self.failures.push(why),
        }
    }

    fn skip(&mut self) {
        self.total += 1;
        self.skipped += 1;
    }

    fn close(self, name: &str) {
        let Self {
            passed,
            total,
            skipped,
            failures,
        } = self;
        println!("{name}: {passed} passed of {total}, {skipped} skipped");
        assert!(failures.is_empty(), "{name}:\n{}", failures.join("\n"));
    }
}

fn field<'a>(case: &'a Value, name: &str) -> &'a str {
    case[name].as_str().expect("the field is a text")
}

#[test]
fn expressions_are_accepted_and_rejected_as_in_the_table() {
    let mut tally = Tally::default();
    for case in table("prometheus/tables/promql-parse.jsonl") {
        let (query, ok) = (field(&case, "query"), case["ok"] == true);
        let result = match (parse(query), ok) {
            (Ok(_), true) | (Err(_), false) => Ok(()),
            (Ok(expr), false) => Err(format!("{query}\n  should fail with {}\n  gave {expr}", case["errors"])),
            (Err(error), true) => Err(error.render(query)),
        };
        tally.note(result);
    }
    tally.close("promql-parse, accept or reject");
}

#[test]
fn trees_have_the_shape_of_the_table() {
    let mut tally = Tally::default();
    for case in table("prometheus/tables/promql-parse.jsonl") {
        let query = field(&case, "query");
        if case["ok"] != true {
            continue;
        }
        if SHAPE_LEFT_OUT.iter().any(|(start, _)| query.starts_with(start)) {
            tally.skip();
            continue;
        }
        let want = shape::normal(&case["ast"]);
        let got = parse(query).map(|expr| shape::normal(&shape::of(&expr)));
        tally.note(match got {
            Ok(got) if got == want => Ok(()),
            got => Err(format!("{query}\n  want {want}\n  got  {got:?}")),
        });
    }
    tally.close("promql-parse, trees");
}

/// Messages with the first byte of each; the ends of operators are inclusive there and exclusive here.
#[test]
fn errors_have_the_words_and_places_of_the_table() {
    let mut tally = Tally::default();
    for case in table("prometheus/tables/promql-parse.jsonl") {
        let query = field(&case, "query");
        let Err(error) = parse(query) else { continue };
        let want: Vec<(u64, &str)> = case["errors"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|e| (e["start"].as_u64().unwrap_or(0), field(e, "message")))
            .collect();
        let got: Vec<(u64, &str)> = error
            .problems()
            .iter()
            .map(|p| (p.span.start as u64, p.message.as_str()))
            .collect();
        tally.note(if got == want {
            Ok(())
        } else {
            Err(format!("{query}\n  want {want:?}\n  got  {got:?}"))
        });
    }
    tally.close("promql-parse, errors");
}

#[test]
fn expressions_print_as_in_the_table() {
    let mut tally = Tally::default();
    for case in table("prometheus/tables/promql-print.jsonl") {
        tally.note(compare(&case, ToString::to_string));
    }
    tally.close("promql-print");
}

#[test]
fn expressions_wrap_as_in_the_table() {
    let mut tally = Tally::default();
    for case in table("prometheus/tables/promql-pretty.jsonl") {
        tally.note(compare(&case, |expr| pretty_at(expr, TABLE_WIDTH)));
    }
    tally.close("promql-pretty");
}

fn compare(case: &Value, print: impl Fn(&promql::ast::Expr) -> String) -> Result<(), String> {
    let (input, want) = (field(case, "in"), field(case, "out"));
    let expr = parse(input).map_err(|error| error.render(input))?;
    let got = print(&expr);
    if got == want {
        // What is printed means the same.
        let again = parse(&got).map_err(|error| error.render(&got))?;
        return if print(&again) == want {
            Ok(())
        } else {
            Err(format!("{input} prints twice differently: {again}"))
        };
    }
    Err(format!("{input}\nwant:\n{want}\ngot:\n{got}"))
}

#[test]
fn queries_of_the_scripts_parse_and_print_to_themselves() {
    let Some(folder) = corpora() else { return };
    let mut tally = Tally::default();
    for path in files(&folder.join("prometheus/promqltest"), "test") {
        let text = fs::read_to_string(&path).expect("a script is UTF-8");
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let Some(query) = script_query(line) else { continue };
            let may_fail = line.starts_with("eval_fail")
                || lines
                    .clone()
                    .take_while(|l| l.starts_with([' ', '\t']))
                    .any(|l| l.trim().starts_with("expect fail"));
            // A lone byte in a text becomes U+FFFD, which cannot be written again.
            if query.contains(r"\xc5z") || may_fail && parse(query).is_err() {
                tally.skip();
                continue;
            }
            tally.note(round_trip(query));
        }
    }
    tally.close("promqltest queries");
}

/// What stands after `eval instant at T` or `eval range from A to B step S`.
fn script_query(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("eval")?;
    let (_, rest) = rest.split_once(' ')?;
    let words = match rest.split(' ').next()? {
        "instant" => 3,
        "range" => 7,
        _ => return None,
    };
    rest.splitn(words + 1, ' ').nth(words)
}

/// What is printed parses to a tree that prints the same, on one line and wrapped.
fn round_trip(query: &str) -> Result<(), String> {
    let expr = parse(query).map_err(|error| error.render(query))?;
    let line = expr.to_string();
    for printed in [line.clone(), pretty_at(&expr, 20)] {
        let again = parse(&printed).map_err(|error| format!("{query}\n{}", error.render(&printed)))?;
        if again.to_string() != line {
            return Err(format!("{query}\n  prints {line}\n  then   {again}"));
        }
    }
    Ok(())
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|e| e.to_string_lossy().starts_with(extension))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn expressions_of_rule_files_parse() {
    let Some(folder) = corpora() else { return };
    let mut tally = Tally::default();
    for path in ["alert-rules", "prometheus/rule-files", "prometheus/compliance"] {
        for path in files(&folder.join(path), "y") {
            // Rules over logs are written in another language, a bad file is bad by intent,
            // and aliases of YAML need a whole YAML reader.
            let name = path.to_string_lossy().into_owned();
            let is_bad = name.contains(".bad.") || name.contains("invalid");
            let text = fs::read_to_string(&path).expect("a rule file is UTF-8");
            for expr in yaml::values(&text, "expr") {
                if is_bad || is_logql(&expr) || expr.starts_with(['&', '*']) {
                    tally.skip();
                } else {
                    // A template of a rule file has placeholders.
                    let expr = expr.replace("<rate_interval>", "5m");
                    tally.note(round_trip(&expr).map_err(|why| format!("{name}: {why}")));
                }
            }
        }
    }
    tally.close("rule files");
}

#[test]
fn compliance_queries_parse() {
    let Some(folder) = corpora() else { return };
    let mut tally = Tally::default();
    let text = fs::read_to_string(folder.join("prometheus/compliance/promql-test-queries.yml"))
        .expect("the query list is in the corpora");
    for query in yaml::values(&text, "query") {
        // The list marks this one as failing: it could select everything.
        if query == r#"{__name__=~".*"}"# {
            tally.skip();
            continue;
        }
        tally.note(round_trip(&fill_in(&query)));
    }
    tally.close("compliance queries");
}

/// Puts one value in for each placeholder.
fn fill_in(query: &str) -> String {
    let mut query = query.to_owned();
    for (name, value) in [
        ("range", "5m"),
        ("offset", "1m"),
        ("simpleAggrOp", "sum"),
        ("topBottomOp", "topk"),
        ("quantile", "0.9"),
        ("arithBinOp", "+"),
        ("compBinOp", "=="),
        ("binOp", "*"),
        ("logicBinOp", "and"),
        ("simpleMathFunc", "abs"),
        ("extrapolatedRateFunc", "rate"),
        ("instantRateFunc", "irate"),
        ("simpleTimeAggrOp", "sum"),
        ("dateFunc", "hour"),
        ("smoothingFactor", "0.5"),
        ("trendFactor", "0.1"),
        ("clampFunc", "clamp_max"),
    ] {
        query = query.replace(&format!("{{{{.{name}}}}}"), value);
    }
    query
}

#[test]
fn expressions_of_dashboards_parse() {
    let Some(folder) = corpora() else { return };
    let mut tally = Tally::default();
    for path in files(&folder.join("dashboards"), "json") {
        let name = path
            .file_name()
            .expect("a file has a name")
            .to_string_lossy()
            .into_owned();
        let text = fs::read_to_string(&path).expect("a dashboard is UTF-8");
        let dashboard: Value = serde_json::from_str(&text).expect("a dashboard is JSON");
        let mut exprs = Vec::new();
        expressions(&dashboard, &mut exprs);
        for expr in exprs {
            if is_logql(&expr) || expr.trim().is_empty() {
                tally.skip();
            } else {
                tally.note(round_trip(&substitute(&expr)).map_err(|why| format!("{name}: {why}")));
            }
        }
    }
    tally.close("dashboards");
}

fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| expressions(item, found)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name == "expr" => found.push(text.clone()),
                    _ => expressions(value, found),
                }
            }
        }
        _ => {}
    }
}

fn is_logql(expr: &str) -> bool {
    ["|=", "|~", "| json", "| logfmt", "| pattern", "|json"]
        .iter()
        .any(|mark| expr.contains(mark))
}

/// Replaces `$name`, `${name}`, `${name:format}` and `[[name]]`.
fn substitute(expr: &str) -> String {
    let mut out = String::new();
    let mut rest = expr;
    while let Some(at) = rest.find(['$', '[']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (name, len) = if let Some(tail) = rest.strip_prefix("${") {
            let end = tail.find('}').expect("a brace closes");
            (&tail[..end], end + 3)
        } else if let Some(tail) = rest.strip_prefix("[[") {
            let end = tail.find("]]").expect("a bracket closes");
            (&tail[..end], end + 4)
        } else {
            let tail = &rest[1..];
            let end = tail
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(tail.len());
            (&tail[..end], end + 1)
        };
        let is_variable = len > 1
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && (rest.starts_with('$') || rest.starts_with("[["));
        if is_variable {
            out.push_str(value_of(name));
            rest = &rest[len..];
        } else {
            out.push_str(&rest[..1]);
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out
}

fn value_of(name: &str) -> &str {
    let name = name.split(':').next().unwrap_or(name);
    match name {
        "quantile" | "percentile" => "0.9",
        _ if name.ends_with("_s") || name.ends_with("_ms") => "300",
        _ if ["interval", "range", "window", "resolution", "duration"]
            .iter()
            .any(|w| name.contains(w)) =>
        {
            "5m"
        }
        _ => "x",
    }
}
