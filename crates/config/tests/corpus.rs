//! The published corpora: every configuration is accepted or refused as the real programs do.
//!
//! The corpora lie beside the repository (`WATCHFIRE_CORPORA` names another place); without them these
//! tests say so and pass.

use std::fs;
use std::path::PathBuf;

use config::relabel::{NameScheme, apply, decode_list};
use model::labels::{Labels, LabelsBuilder};
use serde_json::Value;

fn corpora(topic: &str) -> Option<PathBuf> {
    let root = std::env::var_os("WATCHFIRE_CORPORA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora"),
        PathBuf::from,
    );
    let folder = root.join(topic);
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: no corpora at {}", folder.display());
    None
}

fn jsonl(path: &PathBuf) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("the table is readable");
    text.lines()
        .filter(|l| !l.trim().is_empty())
        .map(|l| serde_json::from_str(l).expect("a line of the table is JSON"))
        .collect()
}

/// Counts a corpus and fails at the end with every case that went wrong.
#[derive(Default)]
struct Tally {
    passed: usize,
    wrong: Vec<String>,
    skipped: Vec<String>,
}

impl Tally {
    fn case(&mut self, name: &str, result: Result<(), String>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(why) => self.wrong.push(format!("{name}: {why}")),
        }
    }

    fn skip(&mut self, name: &str, why: &str) {
        self.skipped.push(format!("{name} ({why})"));
    }

    #[track_caller]
    fn close(self, corpus: &str) {
        let total = self.passed + self.wrong.len() + self.skipped.len();
        println!(
            "{corpus}: {} / {total} passed, {} skipped",
            self.passed,
            self.skipped.len()
        );
        for skipped in &self.skipped {
            println!("  skipped: {skipped}");
        }
        assert!(self.wrong.is_empty(), "{corpus}:\n{}", self.wrong.join("\n"));
    }
}

fn label_set(value: &Value) -> Labels {
    let pairs = value.as_object().expect("labels are an object");
    Labels::from_pairs(pairs.iter().map(|(n, v)| (n.as_str(), v.as_str().expect("a text"))))
}

#[test]
fn relabelling_gives_the_published_results() {
    let Some(folder) = corpora("prometheus/tables") else {
        return;
    };
    let mut tally = Tally::default();
    for case in jsonl(&folder.join("relabel.jsonl")) {
        let name = case.to_string();
        // JSON is YAML, so the steps go through the real reader.
        let node = config::yaml::parse(&case["relabel_configs"].to_string()).expect("valid YAML");
        let rules =
            decode_list(node.list().expect("a list"), "relabeling rule", NameScheme::Utf8).expect("valid rules");
        let mut builder = LabelsBuilder::from(&label_set(&case["input"]));
        let kept = apply(&rules, &mut builder);
        let want = !case["drop"].as_bool().expect("a flag");
        let result = if kept != want {
            Err(format!("kept {kept}, want {want}"))
        } else if kept && builder.build() != label_set(&case["output"]) {
            Err(format!("got {}", builder.build()))
        } else {
            Ok(())
        };
        tally.case(&name, result);
    }
    tally.close("prometheus/tables/relabel.jsonl");
}

/// Pieces of messages that speak of Go's YAML library; we name the same thing in our words.
const IN_OUR_WORDS: [(&str, &str); 3] = [
    ("unmarshal errors", ""),
    ("field foo not found in type kubernetes.plain", "field foo not found"),
    (
        "field scrape_configs already set in type config.plain",
        "field scrape_configs already set",
    ),
];

fn in_our_words(want: &str) -> &str {
    let ours = IN_OUR_WORDS.iter().find(|(theirs, _)| *theirs == want);
    // The file's path stands before our message too, but it is the path given to us.
    let plain = want
        .strip_prefix("parsing YAML file ")
        .and_then(|rest| rest.split_once(": "));
    ours.map_or(plain.map_or(want, |(_, message)| message), |(_, ours)| ours)
}

/// Files whose names do not say it, refused by Prometheus all the same.
const REFUSED_TOO: [&str; 2] = [
    "otlp_allow_utf8.incompatible.yml",
    "otlp_no_translation.incompatible.yml",
];

fn tsv(path: &PathBuf) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).expect("the table is readable");
    let rows = text.lines().skip(1).filter(|l| !l.is_empty());
    rows.map(|l| l.split('\t').map(str::to_owned).collect()).collect()
}

/// Judges a result against the wanted message; an empty one is "refused, whatever the words".
fn judge(result: Result<(), String>, want: Option<&str>) -> Result<(), String> {
    match (result, want) {
        (Ok(()), None) => Ok(()),
        (Err(message), Some(want)) if message.contains(want) => Ok(()),
        (Ok(()), Some(want)) => Err(format!("accepted, want {want:?}")),
        (Err(message), None) => Err(format!("refused: {message}")),
        (Err(message), Some(want)) => Err(format!("got {message:?}, want {want:?}")),
    }
}

#[test]
fn prometheus_configurations_are_accepted_or_refused() {
    let Some(folder) = corpora("prometheus/config") else {
        return;
    };
    let errors = tsv(&folder.join("expected-errors.tsv"));
    let mut tally = Tally::default();
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("a folder")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "yml"))
        .collect();
    files.sort();
    for path in files {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let listed = errors
            .iter()
            .find(|row| row[0] == name)
            .map(|row| in_our_words(&row[1]));
        let refused = name.contains(".bad.") || REFUSED_TOO.contains(&name.as_str());
        let want = listed.or(refused.then_some(""));
        let result = config::prometheus::Config::load(&path)
            .map(drop)
            .map_err(|e| e.message());
        tally.case(&name, judge(result, want));
    }
    for name in ["prometheus.yml", "prometheus-agent.yml", "prometheus-kubernetes.yml"] {
        let path = folder.join("../examples").join(name);
        let result = config::prometheus::Config::load(&path)
            .map(drop)
            .map_err(|e| e.message());
        tally.case(name, judge(result, None));
    }
    tally.close("prometheus/config");
}

#[test]
fn the_example_configurations_load() {
    let Some(folder) = corpora("prometheus/examples") else {
        return;
    };
    let mut tally = Tally::default();
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("a folder")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "yml"))
        .collect();
    files.sort();
    for path in files {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        match name.as_str() {
            "rbac-setup.yml" => tally.skip(&name, "Kubernetes objects, not a configuration"),
            "promtool-http-config-file.yml" => tally.skip(&name, "flags of promtool"),
            "web-config.yml" => tally.skip(&name, "the web server's own file"),
            _ => {
                let result = config::prometheus::Config::load(&path)
                    .map(drop)
                    .map_err(|e| e.message());
                tally.case(&name, judge(result, None));
            }
        }
    }
    tally.close("prometheus/examples");
}

/// Rule files that are refused for their expression or template alone: the rules crate's to judge.
const REFUSED_BY_EXPRESSION: [&str; 1] = ["bad_expr.bad.yaml"];

#[test]
fn rule_files_are_accepted_or_refused() {
    use config::rules::RuleFile;
    let Some(folder) = corpora("prometheus/rule-files") else {
        return;
    };
    let errors = tsv(&folder.join("expected-errors.tsv"));
    let mut tally = Tally::default();
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("a folder")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "yaml"))
        .collect();
    files.sort();
    for path in files {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if REFUSED_BY_EXPRESSION.contains(&name.as_str()) {
            tally.skip(&name, "its expression is judged by the rules crate");
            continue;
        }
        let row = errors.iter().find(|row| row[0] == name);
        let legacy = row.is_some_and(|row| row[1] == "LegacyValidation");
        let scheme = if legacy { NameScheme::Legacy } else { NameScheme::Utf8 };
        // The one file that only its name calls invalid has an unknown field.
        let want = row
            .map(|row| row[2].as_str())
            .or((name == "fixtures-invalid_rules.yaml").then_some("not found"));
        let text = fs::read_to_string(&path).expect("readable");
        let result = RuleFile::parse(&name, &text, scheme).map(drop).map_err(|e| e.message());
        tally.case(&name, judge(result, want));
    }
    tally.close("prometheus/rule-files");
}

/// Holds in Alertmanager's classic mode only.
const CLASSIC_MODE_ONLY: &str = "TestGroupByInvalidLabel";

#[test]
fn alertmanager_configurations_are_accepted_or_refused() {
    use config::alertmanager::matchers::Mode;
    let Some(folder) = corpora("alertmanager") else { return };
    let mut tally = Tally::default();
    for row in tsv(&folder.join("config/expected.tsv")) {
        let path = folder.join("config").join(&row[0]);
        let error = row.get(2).map_or("", String::as_str);
        let want = (row[1] == "reject").then_some(error);
        let result = config::alertmanager::Config::load(&path);
        // Left out of reading again: it may name token and address together because of that very address, which is a
        // secret and not shown.
        let is_read_again = row[0] != "conf.slack-default-app-token.yml";
        if let Some(config) = result.as_ref().ok().filter(|_| is_read_again) {
            let shown = config::alertmanager::Config::parse("shown", &config.original);
            let again = shown.unwrap_or_else(|e| panic!("{}: what is shown is refused: {}", row[0], e.message()));
            assert_eq!(
                (again.route, again.inhibit_rules),
                (config.route.clone(), config.inhibit_rules.clone())
            );
            // The host of an address is shown, its path is not.
            let shown = config.original.replace("mysecret.example.com", "");
            assert!(!shown.contains("mysecret"), "{}: {}", row[0], config.original);
        }
        tally.case(&row[0], judge(result.map(drop).map_err(|e| e.message()), want));
    }
    tally.close("alertmanager/config");

    let mut tally = Tally::default();
    for case in jsonl(&folder.join("tables/config-inline.jsonl")) {
        let name = case["case"].as_str().expect("a name");
        let mode = if name == CLASSIC_MODE_ONLY {
            Mode::Classic
        } else {
            Mode::default()
        };
        let want = (!case["ok"].as_bool().expect("a flag")).then(|| case["error"].as_str().unwrap_or(""));
        let text = case["config"].as_str().expect("a text");
        let result = config::alertmanager::Config::parse_in(name, text, mode)
            .map(drop)
            .map_err(|e| e.message());
        tally.case(name, judge(result, want));
    }
    tally.close("alertmanager/tables/config-inline.jsonl");
}

#[test]
fn the_other_alertmanager_files_load() {
    use config::http::HttpClientConfig;
    let Some(folder) = corpora("alertmanager") else { return };
    let mut tally = Tally::default();
    for part in ["examples", "cli-config"] {
        let mut files: Vec<_> = fs::read_dir(folder.join(part))
            .expect("a folder")
            .map(|e| e.expect("an entry").path())
            .filter(|p| p.extension().is_some_and(|e| e == "yml" || e == "yaml"))
            .collect();
        files.sort();
        for path in files {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let want = name.contains(".bad.").then_some("");
            if name.starts_with("amtool.") {
                tally.skip(&name, "the settings of amtool itself");
            } else if name.starts_with("http_config.") {
                let text = fs::read_to_string(&path).expect("readable");
                let result = config::yaml::parse(&text).and_then(|node| HttpClientConfig::read(&node));
                tally.case(&name, judge(result.map(drop).map_err(|f| f.message), want));
            } else {
                let result = config::alertmanager::Config::load(&path)
                    .map(drop)
                    .map_err(|e| e.message());
                tally.case(&name, judge(result, want));
            }
        }
    }
    tally.close("alertmanager/examples, alertmanager/cli-config");
}

#[test]
fn matchers_are_read_in_both_syntaxes() {
    use config::alertmanager::matchers::{parse_classic, parse_list, parse_one, parse_utf8};
    let Some(folder) = corpora("alertmanager/tables") else {
        return;
    };
    let mut tally = Tally::default();
    for case in jsonl(&folder.join("matchers.jsonl")) {
        let input = case["input"].as_str().expect("a text");
        let parser = case["parser"].as_str().expect("a name");
        let single = case["form"] == "single";
        let show = |matchers: &[model::Matcher]| -> Vec<(String, String, String)> {
            let parts = |m: &model::Matcher| (m.name.clone(), m.op.to_string(), m.value.clone());
            matchers.iter().map(parts).collect()
        };
        let text = |v: &Value| v.as_str().expect("a text").to_owned();
        let want: Vec<_> = case["matchers"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|m| (text(&m["name"]), text(&m["op"]), text(&m["value"])))
            .collect();
        let mut results = Vec::new();
        if single {
            results.push(parse_one(input).map(|m| vec![m]));
        }
        match parser {
            "utf8" => results.push(parse_utf8(input)),
            "classic" => results.extend([parse_classic(input), parse_list(input)]),
            _ => results.extend([parse_classic(input), parse_utf8(input), parse_list(input)]),
        }
        let ok = case["ok"].as_bool().expect("a flag");
        let error = case["error"].as_str().unwrap_or("");
        for (nth, result) in results.into_iter().enumerate() {
            let name = format!("{parser} {nth} {input}");
            tally.case(
                &name,
                match result {
                    Ok(got) if ok && show(&got) == want => Ok(()),
                    Ok(got) => Err(format!("got {:?}, want ok={ok} {want:?}", show(&got))),
                    Err(message) if ok => Err(message),
                    // The table has one message for both syntaxes: that of the first.
                    Err(message) if nth == 0 && !error.contains("regexp") && message != error => {
                        Err(format!("got {message:?}, want {error:?}"))
                    }
                    Err(_) => Ok(()),
                },
            );
        }
    }
    tally.close("alertmanager/tables/matchers.jsonl (each syntax counted)");
}

/// A small generator of numbers, so that a run can be had again from its seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits fit") % bound.max(1)
    }
}

const INSERTED: [char; 10] = ['{', '[', '&', '*', ':', '\n', '"', '%', 'é', '\u{0}'];
const REPLACING: [char; 10] = ['-', '~', '!', '|', '}', ']', '$', '1', ' ', '\t'];

/// A text with a few places cut, doubled or replaced by signs that mean something in YAML.
fn damaged(text: &str, numbers: &mut Numbers) -> String {
    let mut signs: Vec<char> = text.chars().collect();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(signs.len());
        let end = (at + numbers.below(40)).min(signs.len());
        match numbers.below(4) {
            0 => drop(signs.drain(at.min(end)..end)),
            1 => signs.insert(at.min(signs.len()), INSERTED[numbers.below(10)]),
            2 if at < signs.len() => signs[at] = REPLACING[numbers.below(10)],
            _ => {
                let piece: Vec<char> = signs[at.min(end)..end].to_vec();
                let to = numbers.below(signs.len());
                signs.splice(to..to, piece);
            }
        }
    }
    signs.into_iter().collect()
}

#[test]
fn damaged_files_are_refused_or_accepted_and_nothing_panics() {
    let Some(folder) = corpora("prometheus/config") else {
        return;
    };
    let seed = 20_261_130;
    let mut numbers = Numbers(seed);
    let mut texts = 0;
    for part in [
        ".",
        "../rule-files",
        "../../alertmanager/config",
        "../../alertmanager/examples",
    ] {
        for entry in fs::read_dir(folder.join(part)).expect("a folder") {
            let Ok(text) = fs::read_to_string(entry.expect("an entry").path()) else {
                continue;
            };
            for _ in 0..20 {
                let text = damaged(&text, &mut numbers);
                let _ = config::prometheus::Config::parse("x", &text);
                let _ = config::alertmanager::Config::parse("x", &text);
                let _ = config::rules::RuleFile::parse("x", &text, NameScheme::Utf8);
                let _ = config::watchfire::Config::parse("x", &text, std::path::Path::new("/nowhere"));
                texts += 1;
            }
        }
    }
    println!("damaged files: {texts} read without a panic (seed {seed})");
}

#[test]
fn published_alert_rules_load() {
    use config::rules::RuleFile;
    let Some(folder) = corpora("alert-rules") else { return };
    let mut tally = Tally::default();
    let mut open = vec![folder.clone()];
    while let Some(place) = open.pop() {
        for entry in fs::read_dir(&place).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.strip_prefix(&folder).expect("inside").display().to_string();
            if !path
                .extension()
                .is_some_and(|e| e == "yml" || e == "yaml" || e == "rules")
            {
                continue;
            }
            let skip = match name.split('/').next() {
                _ if name.ends_with("rule-tests.yaml") => Some("unit tests, not rules"),
                Some("gpu-operator") => Some("an object of Kubernetes that holds rules; Prometheus refuses it too"),
                Some("ceems") => Some("a template with places to fill in, <eval_interval>"),
                _ => None,
            };
            if let Some(why) = skip {
                tally.skip(&name, why);
                continue;
            }
            let result = RuleFile::load(&path).map(drop).map_err(|e| e.to_string());
            tally.case(&name, judge(result, None));
        }
    }
    tally.close("alert-rules");
}
