//! What goes wrong at a start is said in words that show the way out.

mod support;

use std::net::TcpListener;

use support::{answer, stderr};

/// Runs `watchfire ARGS` and expects exit code 2 and these words on standard error.
#[track_caller]
fn check(args: &[&str], words: &[&str]) {
    let output = answer(args);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{args:?} gave:\n{text}");
    for word in words {
        assert!(text.contains(word), "{args:?} should say {word:?} and says:\n{text}");
    }
    assert!(!text.contains("panicked"), "{text}");
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[test]
fn an_address_off_loopback_needs_a_word() {
    let data = folder();
    let data = data.path().to_str().expect("a path of text");
    check(
        &["run", "--data", data, "--listen", "0.0.0.0:0"],
        &["0.0.0.0:0", "insecure", "127.0.0.1"],
    );
    check(&["hub", "--data", data, "--listen", "[::]:0"], &["insecure"]);
    check(&["agent", "--listen", "0.0.0.0:0"], &["insecure"]);
}

#[test]
fn a_taken_port_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("its address").to_string();
    let data = folder();
    let data = data.path().to_str().expect("a path of text");
    check(
        &["run", "--data", data, "--listen", &address],
        &[&address, "taken", "--listen"],
    );
    check(&["agent", "--listen", &address], &[&address, "taken"]);
}

#[test]
fn a_data_folder_that_cannot_be_written_is_named() {
    let data = folder();
    // A file in the folder's place refuses root too, whom permissions do not stop.
    let path = data.path().join("not-a-folder");
    std::fs::write(&path, "x").expect("a file");
    let path = path.to_str().expect("a path of text");
    check(&["run", "--data", path, "--listen", "127.0.0.1:0"], &[path]);
    check(
        &["hub", "--data", "/proc/nowhere", "--listen", "127.0.0.1:0"],
        &["/proc/nowhere"],
    );
}

#[test]
fn a_data_folder_in_use_is_named() {
    let data = folder();
    let path = data.path().to_str().expect("a path of text");
    let first = support::Process::start(&["hub", "--data", path]).wait_ready();
    check(&["hub", "--data", path, "--listen", "127.0.0.1:0"], &[path, "in use"]);
    drop(first);
}

#[test]
fn a_broken_configuration_is_shown_with_its_place() {
    let data = folder();
    let file = data.path().join("watchfire.yml");
    let path = file.to_str().expect("a path of text");
    for (text, words) in [
        ("prometeus: {}\n", &["watchfire.yml:1:1", "prometheus"][..]),
        (
            "prometheus:\n  scrape_configs:\n    - job_name: a\n      scrape_intervall: 5s\n",
            &["watchfire.yml:4:7", "scrape_interval", "^"],
        ),
        ("listen: [\n", &["watchfire.yml:"]),
        ("prometheus:\n  rule_files: [rules.yml]\n", &["rules.yml"]),
    ] {
        std::fs::write(&file, text).expect("a file");
        std::fs::write(
            data.path().join("rules.yml"),
            "groups: [{name: g, rules: [{alert: A, expr: 'up ==='}]}]\n",
        )
        .expect("a file");
        let store = data.path().join("data");
        check(
            &[
                "hub",
                "--config",
                path,
                "--data",
                store.to_str().expect("text"),
                "--listen",
                "127.0.0.1:0",
            ],
            words,
        );
    }
    check(
        &["hub", "--config", "/nonexistent/w.yml", "--listen", "127.0.0.1:0"],
        &["/nonexistent/w.yml"],
    );
}

#[test]
fn a_missing_source_is_said_once_and_ends_nothing() {
    let empty = folder();
    let nowhere = empty.path().join("nowhere");
    let nowhere = nowhere.to_str().expect("a path of text");
    let agent = support::Process::start(&["agent", "--path.kmsg", nowhere, "--nvml-library", nowhere]).wait_ready();
    for _ in 0..3 {
        let page = agent.get("/metrics").expect("a page").body;
        assert!(page.contains("watchfire_collector_up{collector=\"gpu\"} 0"), "{page}");
        assert!(
            page.contains("watchfire_collector_up{collector=\"kernel\"} 0"),
            "{page}"
        );
        assert!(page.contains("node_memory_MemTotal_bytes "), "{page}");
        assert!(!page.contains("DCGM_FI_"), "a GPU that is not there has no series");
    }
    let log = agent.log();
    assert_eq!(log.matches("collector=\"gpu\"").count(), 1, "said once:\n{log}");
}
