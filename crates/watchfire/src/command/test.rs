//! `watchfire test rules|promql FILE…`

use serde_json::json;

use super::{Outcome, input};
use crate::cli::{TestArgs, TestKind};

/// Runs every file and closes with `N passed, M failed, K skipped`.
pub fn test(args: &TestArgs) -> anyhow::Result<Outcome> {
    let mut passed = 0;
    let mut failures: Vec<String> = Vec::new();
    let mut skipped: Vec<String> = Vec::new();
    for path in &args.files {
        match args.kind {
            TestKind::Rules => {
                let report = rules::unit_test::run_file(path);
                passed += report.passed;
                failures.extend(report.failures);
                skipped.extend(report.skipped);
            }
            TestKind::Promql => {
                let bytes = input::bytes(path)?;
                let script = String::from_utf8_lossy(&bytes);
                let options = promql::EngineOptions {
                    experimental: true,
                    ..promql::EngineOptions::default()
                };
                let report = promql::testscript::run(&path.display().to_string(), &script, &options);
                passed += report.passed;
                failures.extend(report.failures.iter().map(ToString::to_string));
                skipped.extend(report.skipped.iter().map(ToString::to_string));
            }
        }
    }
    if args.json {
        println!(
            "{}",
            json!({"passed": passed, "failures": failures, "skipped": skipped})
        );
    } else {
        for failure in &failures {
            println!("FAIL {failure}");
        }
        for skip in &skipped {
            eprintln!("skip {skip}");
        }
        println!("{passed} passed, {} failed, {} skipped", failures.len(), skipped.len());
    }
    Ok(Outcome::from(failures.is_empty()))
}
