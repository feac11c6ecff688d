//! `watchfire test rules|promql FILE…`

use std::path::Path;

use serde_json::json;

use super::{Outcome, input, output};
use crate::cli::{TestArgs, TestKind};

/// What all files together came to.
#[derive(Default)]
struct Sum {
    passed: usize,
    failures: Vec<String>,
    skipped: Vec<String>,
    /// Files that cannot be read, and why.
    unread: Vec<String>,
}

/// Runs every file and closes with `N passed, M failed, K skipped`.
pub fn test(args: &TestArgs) -> anyhow::Result<Outcome> {
    let mut sum = Sum::default();
    for path in &args.files {
        match input::bytes(path) {
            Ok(bytes) => run(args.kind, path, &bytes, &mut sum),
            Err(error) => sum.unread.push(format!("{error:#}")),
        }
    }
    print(args, &sum)?;
    Ok(if sum.unread.is_empty() {
        Outcome::from(sum.failures.is_empty())
    } else {
        Outcome::Unread
    })
}

fn run(kind: TestKind, path: &Path, bytes: &[u8], sum: &mut Sum) {
    let name = path.display().to_string();
    match kind {
        TestKind::Rules => {
            let report = match std::str::from_utf8(bytes) {
                // The folder of `-` is the working one.
                Ok(text) => rules::unit_test::run_text(&name, text, path.parent().unwrap_or(Path::new(""))),
                Err(error) => {
                    let at = error.valid_up_to();
                    sum.failures.push(format!("{name}: not valid UTF-8 at byte {at}"));
                    return;
                }
            };
            sum.passed += report.passed;
            sum.failures.extend(report.failures);
            sum.skipped.extend(report.skipped);
        }
        TestKind::Promql => {
            let script = String::from_utf8_lossy(bytes);
            let report = promql::testscript::run(&name, &script, &promql::testscript::script_options());
            sum.passed += report.passed;
            sum.failures.extend(report.failures.iter().map(ToString::to_string));
            sum.skipped.extend(report.skipped.iter().map(ToString::to_string));
        }
    }
}

fn print(args: &TestArgs, sum: &Sum) -> anyhow::Result<()> {
    let Sum {
        passed,
        failures,
        skipped,
        unread,
    } = sum;
    if args.json {
        return output::line(json!({"passed": passed, "failures": failures, "skipped": skipped, "unread": unread}));
    }
    for failure in failures {
        output::line(format_args!("FAIL {failure}"))?;
    }
    for text in unread {
        output::remark(text);
    }
    for skip in skipped {
        output::remark(format_args!("skip {skip}"));
    }
    output::line(format_args!(
        "{passed} passed, {} failed, {} skipped",
        failures.len(),
        skipped.len()
    ))
}
