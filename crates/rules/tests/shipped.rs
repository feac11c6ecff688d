//! The rules we ship: their unit tests hold, and they speak of what the collectors know.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn text(path: &str) -> String {
    fs::read_to_string(root(path)).expect("a file of this repository")
}

/// The expression of an alert in `gpu.yml`.
fn expr(alert: &str) -> String {
    let groups = rules::check_text("gpu.yml", &text("data/rules/gpu.yml")).expect("shipped rules load");
    let rules = groups.iter().flat_map(|g| &g.rules);
    rules
        .filter(|r| r.name == alert)
        .map(|r| r.expr.clone())
        .next()
        .expect("the rule is shipped")
}

/// The words of `label=~"a|b"` or `label="a"`.
fn words(expr: &str, label: &str) -> BTreeSet<String> {
    let after = expr.split_once(&format!("{label}=")).expect("the label is asked for").1;
    let list = after.split('"').nth(1).expect("a text in quotes");
    list.split('|').map(str::to_owned).collect()
}

/// The codes of `data/xid.yml` of one severity that are not a program's own fault.
fn codes(severity: &str) -> BTreeSet<String> {
    let catalog = text("data/xid.yml");
    let entries = catalog.split("\n  - code: ").skip(1);
    let wanted = entries.filter(|entry| {
        let says = |line: &str| entry.lines().any(|l| l.trim() == line);
        says(&format!("severity: {severity}")) && !says("side: application")
    });
    wanted
        .map(|entry| entry.lines().next().unwrap_or("").trim().to_owned())
        .collect()
}

#[test]
fn the_unit_tests_of_shipped_rules_hold() {
    let mut cases = 0;
    for entry in fs::read_dir(root("data/rules")).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.to_string_lossy().ends_with("_test.yml") {
            let report = rules::unit_test::run_file(&path);
            assert!(report.failures.is_empty() && report.skipped.is_empty(), "{report:#?}");
            cases += report.passed;
        }
    }
    assert!(cases >= 20, "{cases} cases only");
}

#[test]
fn xid_rules_agree_with_the_catalogue() {
    assert_eq!(words(&expr("GpuXidFatal"), "xid"), codes("critical"));
    assert_eq!(words(&expr("GpuXidHardware"), "xid"), codes("warning"));
}

#[test]
fn throttle_rules_name_reasons_that_are_counted() {
    let counted = text("crates/collect/src/gpu/throttle.rs");
    for alert in ["GpuThermalThrottling", "GpuPowerBrake"] {
        for reason in words(&expr(alert), "reason") {
            assert!(
                counted.contains(&format!("\"{reason}\"")),
                "{alert}: no such reason: {reason}"
            );
        }
    }
}
