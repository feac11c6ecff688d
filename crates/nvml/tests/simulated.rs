//! The crate against the simulated library, loaded as the driver's would be.
//!
//! Cargo builds the library beside this test because `sim` is a dependency of it. Each test
//! loads a copy of its own, so that each has its own clock.

#![expect(clippy::unwrap_used, reason = "a test may die of surprise")]
#![expect(unsafe_code, reason = "asks a symbol past the crate")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nvml::{
    Architecture, ClockReasons, ClockType, ComputeMode, EccCounter, EccError, Error, FieldId, GpmMetric, MigMode, Nvml,
    PerfPolicy, TemperatureThreshold,
};
use sim::{BoardState, Control, Scenario};

/// Any time will do, if it is a whole tick.
const EPOCH_MS: i64 = 1_796_000_000_000;

/// A copy of the simulated library with its own clock.
struct Simulated {
    folder: tempfile::TempDir,
    control: Control,
    scenario: Arc<Scenario>,
}

impl Simulated {
    fn new() -> Self {
        Self::playing(Scenario::DEFAULT)
    }

    fn playing(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libnvidia-ml.so.1");
        std::fs::copy(built_library(), &library).unwrap();
        let file = folder.path().join("scenario.yml");
        std::fs::write(&file, text).unwrap();
        let control = Control::open(&library).unwrap();
        control.set_scenario(Some(&file)).unwrap();
        control.set_epoch_ms(Some(EPOCH_MS));
        let simulated = Self {
            folder,
            control,
            scenario: Scenario::parse(text).unwrap(),
        };
        simulated.at(0);
        simulated
    }

    /// Turns the clock to a time of the scenario, in milliseconds.
    fn at(&self, t_ms: i64) {
        self.control.set_time_ms(Some(EPOCH_MS + t_ms));
    }

    fn load(&self) -> Nvml {
        Nvml::load(Some(&self.path())).unwrap()
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("libnvidia-ml.so.1")
    }

    fn state(&self, gpu: usize, t_ms: i64) -> BoardState {
        self.scenario.state(gpu, t_ms)
    }
}

fn built_library() -> PathBuf {
    let beside = std::env::current_exe().unwrap().parent().unwrap().join("libsim.so");
    assert!(
        beside.exists(),
        "{} is missing: is sim's crate-type still cdylib?",
        beside.display()
    );
    beside
}

#[test]
fn the_server_has_a_driver_and_eight_gpus() {
    let simulated = Simulated::new();
    let nvml = simulated.load();
    assert_eq!(nvml.driver_version().unwrap().as_deref(), Some("570.133.20"));
    assert_eq!(nvml.nvml_version().unwrap().as_deref(), Some("12.570.133.20"));
    assert_eq!(nvml.cuda_version().unwrap(), Some((12, 8)));
    assert_eq!(nvml.device_count().unwrap(), 8);
    assert!(matches!(nvml.device(8), Err(Error::NoSuchDevice)));
}

#[test]
fn a_gpu_tells_who_it_is() {
    let simulated = Simulated::new();
    let nvml = simulated.load();
    for (index, board) in (0..).zip(simulated.scenario.boards()) {
        let device = nvml.device(index).unwrap();
        assert_eq!(device.uuid().unwrap().as_deref(), Some(board.uuid.as_str()));
        assert_eq!(device.serial().unwrap().as_deref(), Some(board.serial.as_str()));
        assert_eq!(device.name().unwrap().as_deref(), Some("NVIDIA H100 80GB HBM3"));
        assert_eq!(device.minor_number().unwrap(), Some(index));
        assert_eq!(device.vbios_version().unwrap().as_deref(), Some("96.00.89.00.01"));
        assert_eq!(device.architecture().unwrap(), Some(Architecture::Hopper));
        assert_eq!(device.compute_capability().unwrap(), Some((9, 0)));
        let pci = device.pci_info().unwrap().unwrap();
        assert_eq!(pci.bus_id, board.pci.nvml());
        assert_eq!(pci.kernel_address(), board.pci.kernel());
        assert_eq!((pci.device_id, pci.subsystem_id), (0x2330_10DE, 0x16C1_10DE));
        assert_eq!(
            device.mig_mode().unwrap(),
            Some(MigMode {
                current: false,
                pending: false
            })
        );
        assert_eq!(device.compute_mode().unwrap(), Some(ComputeMode::Default));
        assert_eq!(device.persistence_mode().unwrap(), Some(true));
    }
}

#[test]
fn readings_are_those_of_the_scenario() {
    let simulated = Simulated::new();
    let nvml = simulated.load();
    for t_ms in [-80_000_000, -20_000_000, -1_000, 0, 9_000, 20_000, 44_900] {
        simulated.at(t_ms);
        for index in 0..8 {
            let device = nvml.device(index).unwrap();
            let want = simulated.state(index as usize, t_ms);
            let utilization = device.utilization().unwrap().unwrap();
            assert_eq!(
                (utilization.gpu, utilization.memory),
                (Some(want.gpu_util), Some(want.memory_util))
            );
            let memory = device.memory().unwrap().unwrap();
            assert_eq!((memory.total, memory.used), (want.memory_total, want.memory_used));
            assert_eq!(
                (memory.free, memory.reserved),
                (want.memory_free, Some(want.memory_reserved))
            );
            assert_eq!(device.temperature().unwrap(), Some(want.temperature));
            assert_eq!(device.memory_temperature().unwrap(), Some(want.memory_temperature));
            assert_eq!(device.margin_temperature().unwrap(), Some(want.margin));
            assert_eq!(device.clock(ClockType::Sm).unwrap(), Some(want.sm_clock));
            assert_eq!(device.clock(ClockType::Memory).unwrap(), Some(2619));
            assert_eq!(device.power_usage().unwrap(), Some(want.power_mw));
            assert_eq!(device.power_instant().unwrap(), Some(want.power_mw));
            assert_eq!(device.energy_total().unwrap(), Some(want.energy_mj));
            assert_eq!(device.clock_reasons().unwrap(), Some(ClockReasons(want.reasons)));
            let thermal = device.violation(PerfPolicy::Thermal).unwrap().unwrap();
            assert_eq!(thermal.violation_ns, want.thermal_violation_ns);
            let link = device.pcie_link().unwrap();
            assert_eq!((link.width, link.width_max), (Some(want.pcie_width), Some(16)));
            assert_eq!((link.generation, link.generation_max), (Some(5), Some(5)));
            assert_eq!(device.pcie_replays().unwrap(), Some(want.pcie_replays));
            let nvlink = device.nvlink_throughput(None).unwrap();
            assert_eq!(
                (nvlink.data_tx, nvlink.data_rx),
                (Some(want.nvlink_tx), Some(want.nvlink_rx))
            );
            let processes = device.compute_processes().unwrap().unwrap();
            let pids: Vec<(u32, Option<u64>)> = processes.iter().map(|p| (p.pid, p.used_memory)).collect();
            let wanted: Vec<(u32, Option<u64>)> = want.processes.iter().map(|p| (p.pid, Some(p.memory))).collect();
            assert_eq!(pids, wanted);
            let samples = device.process_utilization(0).unwrap().unwrap();
            assert_eq!(samples.len(), want.processes.len());
        }
    }
}

#[test]
fn limits_are_told() {
    let simulated = Simulated::new();
    let device = simulated.load().device(0).unwrap();
    assert_eq!(
        device.temperature_threshold(TemperatureThreshold::Shutdown).unwrap(),
        Some(92)
    );
    assert_eq!(
        device.temperature_threshold(TemperatureThreshold::Slowdown).unwrap(),
        Some(89)
    );
    assert_eq!(
        device.temperature_threshold(TemperatureThreshold::GpuMax).unwrap(),
        Some(87)
    );
    assert_eq!(
        device.temperature_threshold(TemperatureThreshold::MemoryMax).unwrap(),
        Some(95)
    );
    let margins = device.margin_thresholds().unwrap();
    assert_eq!(
        (margins.shutdown, margins.slowdown, margins.gpu_max),
        (Some(-5), Some(-2), Some(0))
    );
    assert_eq!(device.power_limit_enforced().unwrap(), Some(700_000));
    assert_eq!(device.power_limit_default().unwrap(), Some(700_000));
    assert_eq!(
        device.power_limit_range().unwrap().map(|range| (range.min, range.max)),
        Some((200_000, 700_000))
    );
    assert_eq!(device.clock_max(ClockType::Sm).unwrap(), Some(1980));
    assert_eq!(device.performance_state().unwrap(), Some(0));
    assert!(device.bar1().unwrap().is_some_and(|bar1| bar1.total == 128 << 30));
}

#[test]
fn what_the_board_lacks_is_none_and_not_zero() {
    let simulated = Simulated::new();
    let device = simulated.load().device(0).unwrap();
    assert_eq!(device.fan_speed().unwrap(), None);
    assert_eq!(device.retired_pages().unwrap(), None);
    assert_eq!(device.nvlink_up(18).unwrap(), None);
    assert_eq!(device.gpu_instance_id().unwrap(), None, "the symbol is absent");
    assert_eq!(
        device.encoder_utilization().unwrap(),
        Some(0),
        "this one is there, and idle"
    );
    let values = device
        .field_values(&[FieldId::RETIRED_SBE, FieldId::MEMORY_TEMP, FieldId::new(9999)])
        .unwrap();
    let known: Vec<bool> = values.iter().map(|value| value.as_f64().is_some()).collect();
    assert_eq!(known, [false, true, false]);
}

#[test]
fn a_consumer_board_lacks_what_such_boards_lack() {
    let text = Scenario::DEFAULT.replace("  nvlinks: 18\n", "  nvlinks: 0\n  datacenter: false\n");
    let text = text.replace("  architecture: 9\n", "  architecture: 8\n");
    let simulated = Simulated::playing(&text);
    let device = simulated.load().device(0).unwrap();
    assert_eq!(device.serial().unwrap(), None);
    assert_eq!(device.memory_temperature().unwrap(), None);
    assert_eq!(device.ecc_mode().unwrap(), None);
    assert_eq!(
        device.ecc_errors(EccError::Corrected, EccCounter::Volatile).unwrap(),
        None
    );
    assert_eq!(device.remapped_rows().unwrap(), None);
    assert_eq!(device.mig_mode().unwrap(), None);
    assert_eq!(device.nvlink_count().unwrap(), None);
    assert_eq!(
        device.nvlink_throughput(None).unwrap(),
        nvml::NvLinkThroughput::default()
    );
    assert_eq!(device.gpm_supported().unwrap(), Some(false));
    assert!(device.gpm_sample().unwrap().is_none());
}

#[test]
fn errors_and_rows_are_counted() {
    let faults = "faults:\n  - { at: 10s, gpu: 3, ecc: { corrected: 12, uncorrected: 1 } }\n  \
                  - { at: 10s, gpu: 3, remap: { uncorrectable: 1, pending: true } }\n  - { at: 10s, gpu: 3, xid: 63 }";
    let head = Scenario::DEFAULT.split("\nfaults:").next().unwrap();
    let simulated = Simulated::playing(&format!("{head}\n{faults}\n"));
    let device = simulated.load().device(3).unwrap();
    let count = |error| device.ecc_errors(error, EccCounter::Volatile).unwrap();
    assert_eq!(
        (count(EccError::Corrected), count(EccError::Uncorrected)),
        (Some(0), Some(0))
    );
    assert_eq!(device.recovery_action().unwrap(), Some(0));
    simulated.at(10_000);
    assert_eq!(
        (count(EccError::Corrected), count(EccError::Uncorrected)),
        (Some(12), Some(1))
    );
    let rows = device.remapped_rows().unwrap().unwrap();
    assert_eq!(
        (rows.correctable, rows.uncorrectable, rows.pending, rows.failure),
        (0, 1, true, false)
    );
    assert_eq!(device.recovery_action().unwrap(), Some(1));
    let fields = device
        .field_values(&[FieldId::REMAPPED_UNC, FieldId::ECC_DBE_VOL_TOTAL])
        .unwrap();
    assert_eq!(
        fields.iter().map(nvml::FieldValue::as_u64).collect::<Vec<_>>(),
        [Some(1), Some(1)]
    );
}

#[test]
fn a_lost_gpu_does_not_hide_the_other_seven() {
    let simulated = Simulated::new();
    let nvml = simulated.load();
    let lost = nvml.device(1).unwrap();
    simulated.at(45_000);
    assert!(matches!(lost.temperature(), Err(Error::GpuLost)));
    assert!(matches!(lost.uuid(), Err(Error::GpuLost)));
    assert!(matches!(
        lost.field_values(&[FieldId::MEMORY_TEMP]),
        Err(Error::GpuLost)
    ));
    assert!(matches!(lost.compute_processes(), Err(Error::GpuLost)));
    assert!(matches!(lost.gpm_sample(), Err(Error::GpuLost)));
    let devices = nvml.devices().unwrap();
    assert_eq!(devices.len(), 8);
    for (index, device) in devices.into_iter().enumerate() {
        match device {
            Ok(device) => assert!(device.temperature().unwrap().is_some()),
            Err(err) => assert!(index == 1 && err.is_gpu_gone(), "{index}: {err}"),
        }
    }
}

#[test]
fn an_xid_is_delivered_once_with_the_gpus_name() {
    let simulated = Simulated::new();
    let nvml = simulated.load();
    let mut events = nvml.event_set().unwrap().unwrap();
    for device in nvml.devices().unwrap() {
        assert!(events.register(&device.unwrap()).unwrap());
    }
    let none = Duration::ZERO;
    assert_eq!(events.wait(none).unwrap(), None);
    simulated.at(45_000);
    let event = events.wait(none).unwrap().unwrap();
    assert_eq!((event.gpu, event.xid), (1, 79));
    assert_eq!(event.pci_bus_id.as_deref(), Some("00000000:43:00.0"));
    assert_eq!(
        event.uuid.as_deref(),
        Some(simulated.scenario.boards()[1].uuid.as_str())
    );
    simulated.at(60_000);
    assert_eq!(events.wait(none).unwrap(), None);
}

#[test]
fn a_wait_ends_when_the_event_comes() {
    let simulated = Simulated::new();
    let nvml = simulated.load();
    simulated.at(44_000);
    let mut events = nvml.event_set().unwrap().unwrap();
    events.register(&nvml.device(1).unwrap()).unwrap();
    let waiter = std::thread::spawn(move || events.wait(Duration::from_secs(20)).unwrap());
    std::thread::sleep(Duration::from_millis(50));
    simulated.at(45_100);
    assert_eq!(waiter.join().unwrap().map(|event| event.xid), Some(79));
}

#[test]
fn gpm_gives_averages_between_two_samples() {
    let simulated = Simulated::new();
    let device = simulated.load().device(0).unwrap();
    assert_eq!(device.gpm_supported().unwrap(), Some(true));
    let first = device.gpm_sample().unwrap().unwrap();
    simulated.at(1_000);
    let second = device.gpm_sample().unwrap().unwrap();
    let metrics = [
        GpmMetric::GraphicsUtil,
        GpmMetric::AnyTensorUtil,
        GpmMetric::NvlinkTotalTxPerSec,
        GpmMetric::Other(30),
    ];
    let values = first.metrics_until(&second, &metrics).unwrap();
    let want = simulated.scenario.mean_load(0, 0, 1_000);
    let close = |value: Option<f64>, want: f64| (value.unwrap() / want - 1.0).abs() < 1e-9;
    assert!(close(values[0], want.util * 100.0));
    assert!(close(values[1], want.tensor * 100.0));
    assert!(close(values[2], want.nvlink_tx / 1_048_576.0));
    assert_eq!(values[3], None);
}

#[test]
fn a_slow_gpu_does_not_slow_the_others() {
    let head = Scenario::DEFAULT.split("\nfaults:").next().unwrap();
    let text = format!("{head}\nfaults:\n  - {{ at: 0, gpu: 5, slow_call: {{ takes: 150ms }} }}\n");
    let simulated = Simulated::playing(&text);
    let nvml = simulated.load();
    let (slow, quick) = (nvml.device(5).unwrap(), nvml.device(4).unwrap());
    let start = Instant::now();
    let thread = std::thread::spawn(move || slow.temperature().unwrap());
    assert!(quick.temperature().unwrap().is_some());
    assert!(start.elapsed() < Duration::from_millis(120), "{:?}", start.elapsed());
    assert!(thread.join().unwrap().is_some());
    assert!(start.elapsed() >= Duration::from_millis(150));
}

#[test]
fn a_call_that_hangs_returns_when_the_fault_ends() {
    let head = Scenario::DEFAULT.split("\nfaults:").next().unwrap();
    let text = format!("{head}\nfaults:\n  - {{ at: 0, until: 5s, gpu: 5, hang_call: true }}\n");
    let simulated = Simulated::playing(&text);
    let nvml = simulated.load();
    let hung = nvml.device(5).unwrap();
    let thread = std::thread::spawn(move || hung.temperature().unwrap());
    std::thread::sleep(Duration::from_millis(80));
    assert!(!thread.is_finished());
    assert!(nvml.device(4).unwrap().temperature().unwrap().is_some());
    simulated.at(5_000);
    assert!(thread.join().unwrap().is_some());
}

#[test]
fn the_last_user_shuts_the_library_down() {
    let simulated = Simulated::new();
    // SAFETY: our own library, whose loading runs nothing.
    let library = unsafe { libloading::Library::new(simulated.path()) }.unwrap();
    let count = || {
        let mut count = 0_u32;
        // SAFETY: the symbol has this signature.
        let code = unsafe {
            let get: libloading::Symbol<'_, unsafe extern "C" fn(*mut u32) -> u32> =
                library.get(b"nvmlDeviceGetCount_v2\0").unwrap();
            get(&raw mut count)
        };
        (code, count)
    };
    assert_eq!(count(), (1, 0), "uninitialised");
    let nvml = simulated.load();
    let device = nvml.device(0).unwrap();
    drop(nvml);
    assert_eq!(count(), (0, 8), "a device keeps it open");
    drop(device);
    assert_eq!(count(), (1, 0));
}

#[test]
fn no_library_is_told_from_a_wrong_library() {
    let missing = Nvml::load(Some("/nowhere/libnvidia-ml.so.1".as_ref())).unwrap_err();
    assert!(
        matches!(&missing, Error::LibraryNotFound { tried } if tried.len() == 1),
        "{missing}"
    );
    let wrong = Nvml::load(Some("libm.so.6".as_ref())).unwrap_err();
    assert!(
        matches!(
            wrong,
            Error::SymbolMissing {
                symbol: "nvmlInit_v2",
                ..
            }
        ),
        "{wrong}"
    );
}

#[test]
fn a_driver_that_is_not_loaded_and_one_of_another_version_are_told_apart() {
    let failing = |code: u32| {
        let text = Scenario::DEFAULT.replace("  loaded: -21d\n", &format!("  loaded: -21d\n  init_error: {code}\n"));
        let simulated = Simulated::playing(&text);
        Nvml::load(Some(&simulated.path())).unwrap_err()
    };
    assert!(matches!(failing(9), Error::DriverNotLoaded));
    assert!(matches!(failing(18), Error::VersionMismatch));
    assert!(matches!(failing(4), Error::NoPermission { call: "nvmlInit_v2" }));
    assert!(matches!(failing(17), Error::Unknown { code: 17, .. }));
}

#[test]
fn a_scenario_that_does_not_parse_is_an_error_of_the_library() {
    let simulated = Simulated::new();
    simulated
        .control
        .set_scenario(Some("/nowhere/scenario.yml".as_ref()))
        .unwrap();
    let err = Nvml::load(Some(&simulated.path())).unwrap_err();
    assert!(
        matches!(
            err,
            Error::Unknown {
                call: "nvmlInit_v2",
                code: 999
            }
        ),
        "{err}"
    );
}
