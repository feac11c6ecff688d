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
