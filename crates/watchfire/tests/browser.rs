//! Every page in a real browser, against the real demonstration.

mod support;

use std::process::Command;

use support::{Process, root, tool};

#[test]
fn every_page_shows_values_with_units_and_gaps_as_gaps() {
    let (Some(node), Some(_chromium)) = (tool("node"), tool("chromium")) else {
        return;
    };
    let ui = root().join("ui");
    if !ui.join("node_modules").is_dir() {
        eprintln!("skipped: ui/node_modules is absent (make ui brings it)");
        return;
    }
    let data = tempfile::tempdir().expect("a temporary folder");
    let hub = Process::start(&["run", "--demo", "--data", data.path().to_str().expect("text")]).wait_ready();
    hub.wait_for("the lost GPU", |hub| {
        (!hub
            .query("ALERTS{alertname=\"GpuLost\", alertstate=\"firing\"}")
            .is_empty())
        .then_some(())
    });
    let output = Command::new(node)
        .args(["--test", "test/pages.mjs"])
        .env("WATCHFIRE_URL", format!("http://{}", hub.address))
        .current_dir(&ui)
        .output()
        .expect("node runs");
    assert!(
        output.status.success(),
        "{}\n{}",
        support::stdout(&output),
        support::stderr(&output)
    );
}
