//! promtool's own unit-test files, with promtool's verdicts; and rule files of others, which must load.

use std::path::{Path, PathBuf};

fn corpora() -> Option<PathBuf> {
    let told = std::env::var_os("WATCHFIRE_CORPORA").map(PathBuf::from);
    let folder = told.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora"));
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: the corpora are not here (WATCHFIRE_CORPORA names their folder)");
    None
}

/// Cases left out, with the reason.
const SKIPPED: &[(&str, &str)] = &[
    ("Disabled feature (@ modifier)", "a feature flag that no longer exists"),
    (
        "Disabled feature (negative offset)",
        "a feature flag that no longer exists",
    ),
];

/// The value of `"name": …` in a line of JSON that has it once.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let start = line.find(&format!("\"{name}\": ")).map_or(0, |at| at + name.len() + 4);
    line[start..].trim_start_matches('"')
}

#[test]
fn unit_tests_get_promtools_verdicts() {
    let Some(corpora) = corpora() else { return };
    let folder = corpora.join("prometheus/promtool");
    let text = std::fs::read_to_string(folder.join("expectations.jsonl")).expect("the table");
    let (mut passed, mut total, mut skipped, mut wrong) = (0, 0, 0, Vec::new());
    for line in text.lines().filter(|l| l.contains("\"TestRulesUnitTest\"")) {
        total += 1;
        let case = field(line, "case").split('"').next().unwrap_or("");
        if SKIPPED.iter().any(|(name, _)| *name == case) {
            skipped += 1;
            continue;
        }
        let file = field(line, "files")
            .trim_start_matches(['[', '"'])
            .split('"')
            .next()
            .unwrap_or("");
        let want: usize = field(line, "exit_code")
            .split([',', '}'])
            .next()
            .and_then(|n| n.trim().parse().ok())
            .expect("a code");
        let report = rules::unit_test::run_file(&folder.join(file));
        if usize::from(!report.failures.is_empty()) == want {
            passed += 1;
        } else {
            wrong.push(format!("{case} ({file}): want {want}, got {report:#?}"));
        }
    }
    for (case, reason) in SKIPPED {
        println!("left out: {case}: {reason}");
    }
    println!(
        "promtool unit tests: {passed} passed, {} failed, {skipped} skipped of {total}",
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(total >= 10, "the table was read");
}

#[test]
fn rule_tests_of_others_pass() {
    let Some(corpora) = corpora() else { return };
    let report = rules::unit_test::run_file(&corpora.join("alert-rules/nvidia_gpu_exporter/rule-tests.yaml"));
    println!("rule tests: {} passed, {} failed", report.passed, report.failures.len());
    assert!(report.failures.is_empty() && report.passed > 0, "{report:#?}");
}

#[test]
fn rule_files_of_others_load() {
    let Some(corpora) = corpora() else { return };
    let mut files = Vec::new();
    walk(&corpora.join("alert-rules"), &mut files);
    let (mut passed, mut wrong) = (0, Vec::new());
    for path in &files {
        let text = std::fs::read_to_string(path).expect("a rule file");
        // Kubernetes objects and templates of them carry rules; they are not rule files.
        if !text
            .lines()
            .any(|l| l.starts_with("groups:") || l.starts_with("\"groups\":"))
        {
            println!("left out: {}: not a rule file", path.display());
            continue;
        }
        // One project's files are patterns, filled in when they are installed.
        let text = text.replace("<eval_interval>", "30s").replace("<rate_interval>", "2m");
        match rules::check_text(&path.display().to_string(), &text) {
            Ok(_) => passed += 1,
            Err(errors) => wrong.push(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
        }
    }
    println!("rule files: {passed} passed, {} failed of {}", wrong.len(), files.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn walk(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            walk(&path, into);
        } else if path
            .extension()
            .is_some_and(|e| e == "yml" || e == "yaml" || e == "rules")
        {
            into.push(path);
        }
    }
}
