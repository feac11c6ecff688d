//! Prometheus' own query scripts, from the corpora.

use std::path::PathBuf;

use promql::EngineOptions;
use promql::testscript::{Report, run};

/// Scripts, or evaluations in them, that need what Prometheus has off by default or we have not yet.
/// (file, line or 0 for all, reason)
const LEFT_OUT: &[(&str, usize, &str)] = &[];

fn scripts() -> Option<Vec<PathBuf>> {
    let root = std::env::var_os("WATCHFIRE_CORPORA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora"),
        PathBuf::from,
    );
    let folder = root.join("prometheus/promqltest");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("skipped: no corpus at {}", folder.display());
        return None;
    };
    let mut files: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "test"));
    files.sort();
    Some(files)
}

/// The options that the scripts were written for.
fn options() -> EngineOptions {
    EngineOptions {
        experimental: true,
        delayed_name_removal: true,
        ..EngineOptions::default()
    }
}

#[test]
fn queries_answer_as_prometheus_answers_them() {
    let Some(files) = scripts() else { return };
    let mut all = Report::default();
    println!(
        "{:32} {:>6} {:>6} {:>6} {:>6}",
        "script", "passed", "failed", "skipped", "total"
    );
    for file in files {
        let name = file
            .file_name()
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default();
        let bytes = std::fs::read(&file).expect("a corpus file can be read");
        let mut report = run(&name, &String::from_utf8_lossy(&bytes), &options());
        report.failures.retain(|failure| {
            let listed = LEFT_OUT
                .iter()
                .any(|(f, line, _)| *f == name && (*line == 0 || *line == failure.line));
            !listed
        });
        println!(
            "{name:32} {:6} {:6} {:6} {:6}",
            report.passed,
            report.failures.len(),
            report.skipped.len(),
            report.total()
        );
        all.extend(report);
    }
    println!("{all}");
    for failure in &all.failures {
        println!("{failure}");
    }
    if std::env::var_os("SHOW_SKIPPED").is_some() {
        for skip in &all.skipped {
            println!("{skip}");
        }
    }
    assert_eq!(all.failures.len(), 0);
}
