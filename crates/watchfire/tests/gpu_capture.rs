//! `watchfire collect gpu --from` and `gpu.counters_file`, through the real program.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder of the corpora; `None`, with a message, where there are none.
fn corpus(topic: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora");
    let root = std::env::var_os("WATCHFIRE_CORPORA").map_or_else(beside, PathBuf::from);
    let folder = root.join(topic);
    if folder.exists() {
        return Some(folder);
    }
    println!("skipped: no corpus {}", folder.display());
    None
}

fn watchfire(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_watchfire"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    child.stdin.take().expect("a pipe").write_all(input).expect("written");
    child.wait_with_output().expect("its end")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_complaint_on_standard_input_is_a_page_with_a_state() {
    let output = watchfire(&["collect", "gpu", "--from", "-"], b"No devices were found\n");
    let page = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        page.contains("watchfire_gpu_driver_state{state=\"no_devices\",reason=\"No devices were found\"} 1"),
        "{page}"
    );
    assert!(page.contains("watchfire_collector_up{collector=\"gpu\"} 0"), "{page}");
    assert!(!page.contains("DCGM_"), "{page}");
}

#[test]
fn a_counter_list_decides_what_is_on_the_page() {
    let Some(xml) = corpus("nvidia-smi/xml/telegraf-a100-sxm4-v12.xml") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("watchfire.yml");
    std::fs::write(&config, "gpu:\n  counters_file: counters.csv\n").expect("a file");
    let list = "# comment\nDCGM_FI_DEV_GPU_TEMP_CELSIUS, gauge, t\nDCGM_FI_DEV_SERIAL, label, s\n";
    std::fs::write(folder.path().join("counters.csv"), list).expect("a file");
    let (config, xml) = (config.to_string_lossy(), xml.to_string_lossy());
    let args = ["collect", "gpu", "--from", &xml, "--config", &config];
    let page = text(&watchfire(&args, b"").stdout);
    let dcgm: Vec<&str> = page.lines().filter(|line| line.starts_with("DCGM_")).collect();
    assert_eq!(dcgm.len(), 1, "{page}");
    assert!(
        dcgm[0].starts_with("DCGM_FI_DEV_GPU_TEMP_CELSIUS{gpu=\"0\"") && dcgm[0].ends_with("} 27"),
        "{}",
        dcgm[0]
    );
    assert!(dcgm[0].contains("DCGM_FI_DEV_SERIAL=\""), "{}", dcgm[0]);

    std::fs::write(
        folder.path().join("counters.csv"),
        "# c\nDCGM_FI_DEV_GPU_TEM, gauge, t\n",
    )
    .expect("a file");
    let output = watchfire(&args, b"");
    assert_ne!(output.status.code(), Some(0));
    let complaint = text(&output.stderr);
    assert!(
        complaint.contains("counters.csv, line 2: DCGM has no field"),
        "{complaint}"
    );
    let check = watchfire(&["check", "config", &config], b"");
    assert_eq!(check.status.code(), Some(1), "{}", text(&check.stdout));
}
