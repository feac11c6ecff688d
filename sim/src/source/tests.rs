use std::path::PathBuf;

use super::*;

/// A folder of the corpora, or nothing where there are none.
fn corpus(folder: &str) -> Vec<PathBuf> {
    let root = std::env::var_os("WATCHFIRE_CORPORA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpora"),
        PathBuf::from,
    );
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else {
        println!("SKIPPED: no corpus {folder}");
        return Vec::new();
    };
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn every_machine_profile_makes_a_server() {
    for path in corpus("nvidia-smi/machine-profiles") {
        let scenario = Scenario::read(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
        assert!(scenario.gpu_count() > 0, "{}", path.display());
        let (kind, state) = (scenario.kind(), scenario.state(0, 0));
        assert!(kind.architecture > 0, "{}", path.display());
        let idle = f64::from(state.power_mw) / 1000.0;
        assert!((idle - kind.power.idle).abs() < 5.0, "{}: {idle} W", path.display());
        assert!(state.temperature < kind.temperature.gpu_max, "{}", path.display());
    }
}

#[test]
fn every_capture_makes_a_server_that_tells_what_it_told() {
    for path in corpus("nvidia-smi/xml") {
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        let scenario = match Scenario::parse_any(&text) {
            Ok(scenario) => scenario,
            // Cut-outs without a bus id or UUID name no board.
            Err(Error::Invalid { message }) if message.contains("has no") => {
                println!("left out: {}: {message}", path.display());
                continue;
            }
            Err(err) => panic!("{}: {err}", path.display()),
        };
        for (gpu, board) in scenario.boards().iter().enumerate() {
            let still = board.still.as_ref().unwrap();
            let state = scenario.state(gpu, 0);
            assert_eq!(Some(state.temperature), still.temperature, "{}", path.display());
            assert!(state.memory_total > 0, "{}", path.display());
        }
    }
}

#[test]
fn a_document_that_does_not_close_is_an_error() {
    for text in ["<a>", "<a></b>", "</a>", "<a", "<nvidia_smi_log><!-- "] {
        assert!(parse(text).is_err(), "{text}");
    }
    let deep = "<a>".repeat(100_000);
    assert!(parse(&deep).is_err());
}
