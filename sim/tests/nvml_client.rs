//! The simulated library as the vendor's own Python client sees it, against the scenario's word.
//!
//! The client lays out structures by itself, so equal numbers mean equal layouts. It needs Python
//! with the package nvidia-ml-py; `WATCHFIRE_PYTHON` names an interpreter that has it. Where there
//! is none, the test says so and passes.

#![recursion_limit = "256"] // one table of facts, in one json!
#![expect(clippy::unwrap_used, reason = "a test may die of surprise")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use sim::{BoardState, Scenario};

const EPOCH_MS: i64 = 1_796_000_000_000;
const TIMES: [i64; 5] = [-70_000_000, -20_000_000, -600_000, 20_000, 50_000];

#[test]
fn the_vendors_python_client_reads_what_the_scenario_says() {
    let Some(python) = python() else {
        // Not by a macro: the harness hides what macros print in a test that passes.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED nvml_client: no Python with nvidia-ml-py; set WATCHFIRE_PYTHON to an interpreter that has it"
        );
        return;
    };
    let read = run(&python);
    let scenario = Scenario::parse(Scenario::DEFAULT).unwrap();
    assert_eq!(read["driver"], json!(scenario.driver().version));
    assert_eq!(read["cuda"], json!(scenario.driver().cuda));
    assert_eq!(read["before_init"], json!(1), "nothing works before nvmlInit");
    for (time, gpus) in TIMES.iter().zip(read["times"].as_array().unwrap()) {
        for gpu in 0..scenario.gpu_count() {
            let state = scenario.state(gpu, *time);
            if state.lost {
                check_lost(&gpus[gpu]);
            } else {
                check(&scenario, gpu, *time, &state, &gpus[gpu]);
            }
        }
    }
    let timeout = json!({"error": 10});
    assert_eq!(read["events"], json!([timeout, timeout, timeout, timeout, 79]));
}

#[track_caller]
fn check(scenario: &Scenario, gpu: usize, time: i64, state: &BoardState, read: &Value) {
    let want = expected(scenario, gpu, time, state);
    for (name, want) in want.as_object().unwrap() {
        assert_eq!(&read[name], want, "{name} of GPU {gpu} at {time} ms");
    }
    let load = scenario.mean_load(gpu, time, time + 1000);
    let averages = [
        load.util * 100.0,
        load.occupancy * 100.0,
        load.tensor * 100.0,
        load.dram * 100.0,
        load.pcie_rx / 1_048_576.0,
    ];
    for (got, want) in read["gpm"].as_array().unwrap().iter().zip(averages) {
        assert!(
            (got.as_f64().unwrap() - want).abs() < 1e-6,
            "GPM of GPU {gpu} at {time} ms: {got} for {want}"
        );
    }
    // Every fact that the client prints is judged; the averages were judged above.
    let judged = want.as_object().unwrap().len() + 1;
    assert_eq!(
        read.as_object().unwrap().len(),
        judged,
        "{:?}",
        read.as_object().unwrap().keys()
    );
}

fn expected(scenario: &Scenario, gpu: usize, time: i64, state: &BoardState) -> Value {
    let (kind, board) = (scenario.kind(), &scenario.boards()[gpu]);
    let refused = |code: u32| json!({ "error": code });
    let processes: Vec<Value> = state.processes.iter().map(|p| json!([p.pid, p.memory])).collect();
    let utilization: Vec<Value> = state
        .processes
        .iter()
        .map(|p| json!([p.pid, p.sm_util, p.memory_util]))
        .collect();
    let bar1_used = if state.load.busy { 6 } else { 2 } << 20;
    let bar1 = kind.bar1_mib << 20;
    let kib = |bytes: f64| (bytes / 1024.0).round() as u64;
    json!({
        "name": kind.model,
        "uuid": board.uuid,
        "serial": board.serial,
        "minor": gpu,
        "vbios": kind.vbios,
        "part": kind.part_number,
        "architecture": kind.architecture,
        "capability": [9, 0],
        "pci": {
            "domain": board.pci.domain, "bus": board.pci.bus, "device": board.pci.device,
            "pciDeviceId": kind.pci_device_id, "pciSubSystemId": kind.pci_subsystem_id,
            "busId": board.pci.nvml(), "busIdLegacy": board.pci.nvml_legacy(),
        },
        "utilization": { "gpu": state.gpu_util, "memory": state.memory_util },
        "encoder": [0, 167_000],
        "memory": {
            "total": state.memory_total, "reserved": state.memory_reserved,
            "free": state.memory_free, "used": state.memory_used,
        },
        "memory_v1": {
            "total": state.memory_total, "free": state.memory_free,
            "used": state.memory_used + state.memory_reserved,
        },
        "bar1": { "bar1Total": bar1, "bar1Free": bar1 - bar1_used, "bar1Used": bar1_used },
        "temperature": state.temperature,
        "temperature_v": state.temperature,
        "margin": state.margin,
        "thresholds": [92, 89, 95, 87],
        "fan": refused(3),
        "clocks": [state.sm_clock, state.sm_clock, state.memory_clock, state.video_clock],
        "clocks_max": [1980, 1980, 2619, 1545],
        "power": state.power_mw,
        "limit": 700_000,
        "limit_range": [200_000, 700_000],
        "energy": state.energy_mj,
        "reasons": state.reasons,
        "thermal_ns": state.thermal_violation_ns,
        "pstate": 0,
        "ecc_mode": [1, 1],
        "ecc": [state.ecc_corrected, state.ecc_uncorrected],
        "remapped": [0, 0, 0, 0],
        "retired": refused(3),
        "pcie": [state.pcie_generation, state.pcie_width, 5, 16, state.pcie_replays],
        "pcie_kib": [kib(state.load.pcie_tx), kib(state.load.pcie_rx)],
        "nvlink": [1, 1, refused(2)],
        "mig": [0, 0],
        "persistence": 1,
        "compute_mode": 0,
        "processes": processes,
        "process_utilization": if utilization.is_empty() { refused(6) } else { json!(utilization) },
        "fields": {
            "memory_temp": state.memory_temperature,
            "energy": state.energy_mj,
            "power_instant": state.power_mw,
            "thermal_ns": state.thermal_violation_ns,
            "nvlink_count": 18,
            "remapped_unc": 0,
            "shutdown_margin": -5,
            "pcie_tx": state.pcie_tx,
            "retired_sbe": refused(3),
            "nvlink_tx_kib": state.nvlink_tx / 1024,
        },
        // A GPU that falls off the bus can no longer be opened.
        "reopen": if scenario.is_lost(gpu, time) { 15 } else { 0 },
    })
}

/// Every answer of a lost GPU is that it is lost.
#[track_caller]
fn check_lost(read: &Value) {
    for (name, value) in read.as_object().unwrap() {
        let answers = match value {
            Value::Array(answers) => answers.clone(),
            other => vec![other.clone()],
        };
        for answer in answers {
            assert!(
                answer == json!({"error": 15}) || answer == json!(15),
                "{name}: {answer}"
            );
        }
    }
}

fn run(python: &Path) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let built = std::env::current_exe().unwrap().parent().unwrap().join("libsim.so");
    std::fs::copy(&built, folder.path().join("libnvidia-ml.so.1")).unwrap();
    let output = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nvml_client.py"))
        .arg(EPOCH_MS.to_string())
        .args(TIMES.map(|time| time.to_string()))
        .env("LD_LIBRARY_PATH", folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// An interpreter that has the client.
fn python() -> Option<PathBuf> {
    let named = std::env::var_os("WATCHFIRE_PYTHON")
        .filter(|name| !name.is_empty())
        .map(PathBuf::from);
    let python = named.unwrap_or_else(|| "python3".into());
    let probe = Command::new(&python)
        .args(["-c", "import pynvml; pynvml.c_nvmlGpmMetricsGet_t"])
        .output()
        .ok()?;
    probe.status.success().then_some(python)
}
