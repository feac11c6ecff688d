//! Our own query scripts, `testdata/*.test`, in both ways of removing metric names.

use std::path::Path;

use promql::EngineOptions;
use promql::testscript::run;

#[test]
fn scripts_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut passed = 0;
    for entry in std::fs::read_dir(&folder).expect("testdata is beside the manifest") {
        let path = entry.expect("testdata can be listed").path();
        let text = std::fs::read_to_string(&path).expect("a script is a text");
        for delayed_name_removal in [false, true] {
            let options = EngineOptions {
                delayed_name_removal,
                ..EngineOptions::default()
            };
            let report = run(&path.display().to_string(), &text, &options);
            let failures: Vec<String> = report.failures.iter().map(ToString::to_string).collect();
            assert!(
                failures.is_empty(),
                "delayed: {delayed_name_removal}\n{}",
                failures.join("\n")
            );
            assert!(report.skipped.is_empty(), "{:?}", report.skipped);
            passed += report.passed;
        }
    }
    assert!(passed > 0);
}
