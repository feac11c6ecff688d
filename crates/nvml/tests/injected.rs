//! What goes wrong with a driver, as the crate tells it: boards cut into instances, calls that fail, hang or lie,
//! a driver that goes and comes back.

#![expect(clippy::unwrap_used, reason = "a test may die of surprise")]

use std::path::PathBuf;
use std::time::Duration;

use nvml::{EccCounter, EccError, Error, FabricState, FieldId, GpmMetric, MemoryLocation, Nvml, PowerScope};
use sim::{Control, Scenario};

const EPOCH_MS: i64 = 1_796_000_000_000;

/// A copy of the simulated library with its own clock; it plays the shipped server without its faults.
struct Simulated {
    folder: tempfile::TempDir,
    control: Control,
}

impl Simulated {
    fn with_faults(faults: &[&str]) -> Self {
        let head = Scenario::DEFAULT.split("\nfaults:").next().unwrap();
        let list: String = faults.iter().map(|fault| format!("  - {fault}\n")).collect();
        let faults = if list.is_empty() {
            " []\n".to_owned()
        } else {
            format!("\n{list}")
        };
        Self::playing(&format!("{head}\nfaults:{faults}"))
    }

    fn playing(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libnvidia-ml.so.1");
        let built = std::env::current_exe().unwrap().parent().unwrap().join("libsim.so");
        std::fs::copy(built, &library).unwrap();
        let file = folder.path().join("scenario");
        std::fs::write(&file, text).unwrap();
        let control = Control::open(&library).unwrap();
        control.set_scenario(Some(&file)).unwrap();
        control.set_epoch_ms(Some(EPOCH_MS));
        let simulated = Self { folder, control };
        simulated.at(0);
        simulated
    }

    fn at(&self, t_ms: i64) {
        self.control.set_time_ms(Some(EPOCH_MS + t_ms));
    }

    fn load(&self) -> Nvml {
        self.try_load().unwrap()
    }

    fn try_load(&self) -> Result<Nvml, Error> {
        Nvml::load(Some(&self.folder.path().join("libnvidia-ml.so.1")))
    }
}

const LAYOUT: &str = "{ at: 0, gpu: 0, mig: [3g.40gb, 2g.20gb, 1g.10gb] }";

#[test]
fn instances_are_devices_and_agree_with_their_gpu() {
    let simulated = Simulated::with_faults(&[LAYOUT]);
    let gpu = simulated.load().device(0).unwrap();
    let devices = gpu.mig_devices().unwrap();
    let profiles: Vec<_> = devices
        .iter()
        .map(|device| device.mig_profile().unwrap().unwrap())
        .collect();
    assert_eq!(profiles, ["3g.40gb", "2g.20gb", "1g.10gb"]);
    let ids: Vec<_> = devices
        .iter()
        .map(|device| device.gpu_instance_id().unwrap().unwrap())
        .collect();
    assert_eq!(ids, [1, 3, 7]);
    let all = gpu.compute_processes().unwrap().unwrap();
    assert_eq!(all.len(), 3);
    let mut used = 0;
    for device in &devices {
        let parent = device.parent().unwrap().unwrap();
        assert_eq!((parent.index(), parent.uuid().unwrap()), (0, gpu.uuid().unwrap()));
        assert!(device.uuid().unwrap().unwrap().starts_with("MIG-"));
        let memory = device.memory().unwrap().unwrap();
        assert_eq!(memory.total, device.mig_attributes().unwrap().unwrap().memory);
        used += memory.used;
        let own = device.compute_processes().unwrap().unwrap();
        let id = device.gpu_instance_id().unwrap();
        let listed: Vec<_> = all
            .iter()
            .filter(|process| process.gpu_instance == id)
            .copied()
            .collect();
        assert_eq!(own, listed, "the GPU and its instance list the same");
        assert_eq!(
            own.iter().filter_map(|process| process.used_memory).sum::<u64>(),
            memory.used
        );
        assert_eq!(device.temperature().unwrap(), None, "the board's business");
    }
    assert_eq!(gpu.memory().unwrap().unwrap().used, used);
    assert_eq!(gpu.utilization().unwrap(), None, "not told under MIG");
    assert_eq!(gpu.process_utilization(0).unwrap(), None);
    assert_eq!(
        (gpu.is_mig_device().unwrap(), gpu.parent().unwrap().is_none()),
        (Some(false), true)
    );
    assert_eq!(
        (gpu.gpu_instance_id().unwrap(), gpu.mig_attributes().unwrap()),
        (None, None)
    );
}

#[test]
fn an_instance_is_found_by_its_uuid_and_gone_when_destroyed() {
    let simulated = Simulated::with_faults(&[LAYOUT, "{ at: 10s, gpu: 0, mig: [] }"]);
    let nvml = simulated.load();
    let device = nvml.device(0).unwrap().mig_devices().unwrap().remove(1);
    let uuid = device.uuid().unwrap().unwrap();
    let found = nvml.device_by_uuid(&uuid).unwrap();
    assert_eq!(found.gpu_instance_id().unwrap(), Some(3));
    simulated.at(10_000);
    assert!(nvml.device(0).unwrap().mig_devices().unwrap().is_empty());
    assert!(found.memory().is_err());
    assert!(matches!(nvml.device_by_uuid(&uuid), Err(Error::NoSuchDevice)));
}

#[test]
fn each_instance_has_performance_metrics_of_its_own() {
    let simulated = Simulated::with_faults(&[LAYOUT]);
    let gpu = simulated.load().device(0).unwrap();
    let first: Vec<_> = [1, 7].map(|id| gpu.gpm_mig_sample(id).unwrap().unwrap()).into();
    simulated.at(1_000);
    let mut values = Vec::new();
    for (sample, id) in first.iter().zip([1, 7]) {
        let later = gpu.gpm_mig_sample(id).unwrap().unwrap();
        values.push(sample.metrics_until(&later, &[GpmMetric::SmUtil]).unwrap()[0].unwrap());
    }
    assert!(values[0] > values[1] && values[1] > 0.0, "{values:?}");
    assert!(gpu.gpm_mig_sample(5).is_err(), "there is no such instance");
}

#[test]
fn an_error_of_one_function_or_field_takes_no_other_with_it() {
    let simulated = Simulated::with_faults(&[
        "{ at: 0, gpu: 1, call_error: { code: 999, function: nvmlDeviceGetTemperature } }",
        "{ at: 0, gpu: 1, call_error: { code: 999, field: 230 } }",
        "{ at: 0, gpu: 1, bad_value: { function: nvmlDeviceGetPowerUsage } }",
        "{ at: 0, gpu: 1, bad_value: { value: blank, field: 82 } }",
        "{ at: 0, gpu: 1, bad_value: { value: blank, function: nvmlDeviceGetTotalEnergyConsumption } }",
    ]);
    let nvml = simulated.load();
    let gpu = nvml.device(1).unwrap();
    assert!(matches!(gpu.temperature(), Err(Error::Unknown { code: 999, .. })));
    assert_eq!(gpu.power_usage().unwrap(), None, "all ones are no power");
    assert_eq!(gpu.energy_total().unwrap(), None, "nor is a blank energy");
    assert_eq!(gpu.memory_temperature().unwrap(), None);
    let values = gpu
        .field_values(&[FieldId::GPU_RECOVERY_ACTION, FieldId::POWER_INSTANT])
        .unwrap();
    assert!(values[0].value.is_err() && values[1].as_u64().is_some());
    assert!(gpu.memory().unwrap().is_some());
    assert!(nvml.device(2).unwrap().temperature().unwrap().is_some());
}

#[test]
fn only_the_call_of_that_number_fails() {
    let simulated = Simulated::with_faults(&[
        "{ at: 0, gpu: 2, call_error: { code: 10, function: nvmlDeviceGetPower*, call: 3 } }",
    ]);
    let gpu = simulated.load().device(2).unwrap();
    let outcomes: Vec<bool> = (0..5).map(|_| gpu.power_usage().is_ok()).collect();
    assert_eq!(outcomes, [true, true, false, true, true]);
}

#[test]
fn a_driver_that_comes_back_in_another_version_is_not_for_the_old_library() {
    let simulated =
        Simulated::with_faults(&["{ at: 10s, until: 20s, driver_unload: { version: 580.65.06, nvml: 13.580.65.06 } }"]);
    let nvml = simulated.load();
    let gpu = nvml.device(0).unwrap();
    simulated.at(10_000);
    assert!(matches!(gpu.temperature(), Err(Error::DriverNotLoaded)));
    assert!(matches!(simulated.try_load(), Err(Error::DriverNotLoaded)));
    simulated.at(20_000);
    assert!(
        gpu.temperature().is_err(),
        "who began before is no client of the new one"
    );
    drop((gpu, nvml));
    assert!(matches!(simulated.try_load(), Err(Error::VersionMismatch)));
}

#[test]
fn a_mismatch_at_the_start_ends_and_a_missing_gpu_is_not_counted() {
    let simulated = Simulated::with_faults(&[
        "{ at: 0, until: 5s, init_error: 18 }",
        "{ at: 0, gpu: 3, missing: true }",
    ]);
    assert!(matches!(simulated.try_load(), Err(Error::VersionMismatch)));
    simulated.at(5_000);
    let nvml = simulated.load();
    assert_eq!(nvml.device_count().unwrap(), 7);
    let uuid = Scenario::parse(Scenario::DEFAULT).unwrap().boards()[4].uuid.clone();
    assert_eq!(
        nvml.device(3).unwrap().uuid().unwrap(),
        Some(uuid),
        "the next one moves up"
    );
}

#[test]
fn faults_are_injected_and_ended_by_call() {
    let simulated = Simulated::with_faults(&[]);
    let nvml = simulated.load();
    let gpu = nvml.device(4).unwrap();
    let mut events = nvml.event_set().unwrap().unwrap();
    events.register(&gpu).unwrap();
    simulated
        .control
        .inject("{ gpu: 4, xid: { code: 48, seen_by: driver, repeat: 2 } }")
        .unwrap();
    simulated
        .control
        .inject("{ gpu: 4, xid: { code: 63, seen_by: kernel } }")
        .unwrap();
    simulated
        .control
        .inject("{ gpu: 4, ecc: { uncorrected: 2, location: l2_cache } }")
        .unwrap();
    let codes: Vec<_> = (0..3)
        .map(|_| events.wait(Duration::ZERO).unwrap().map(|event| event.xid))
        .collect();
    assert_eq!(codes, [Some(48), Some(48), None]);
    let count = |location| {
        gpu.memory_errors(EccError::Uncorrected, EccCounter::Volatile, location)
            .unwrap()
    };
    assert_eq!(
        (count(MemoryLocation::Sram), count(MemoryLocation::Dram)),
        (Some(2), Some(0))
    );
    assert_eq!(gpu.sram_errors().unwrap().and_then(|errors| errors.l2), Some(2));
    let lost = simulated.control.inject("{ gpu: 4, lost: true }").unwrap();
    assert!(matches!(gpu.temperature(), Err(Error::GpuLost)));
    simulated.at(100);
    simulated.control.end(lost);
    assert!(gpu.temperature().is_ok());
    assert!(simulated.control.inject("{ gpu: 44, lost: true }").is_err());
}

#[test]
fn ghosts_orphans_and_further_processes() {
    let simulated = Simulated::with_faults(&[
        "{ at: 0, gpu: 0, ghost: true }",
        "{ at: 0, gpu: 1, orphan_memory: { mib: 5000, pid: 99999 } }",
        "{ at: 0, until: 5s, gpu: 2, process: { pid: 777, memory_mib: 1024, graphics: true } }",
    ]);
    let nvml = simulated.load();
    let ghost = nvml.device(0).unwrap();
    assert_eq!(ghost.utilization().unwrap().unwrap().gpu, Some(100));
    assert!(ghost.compute_processes().unwrap().unwrap().is_empty());
    let orphan = nvml.device(1).unwrap().compute_processes().unwrap().unwrap();
    assert!(
        orphan
            .iter()
            .any(|process| (process.pid, process.used_memory) == (99_999, Some(5000 << 20)))
    );
    let third = nvml.device(2).unwrap();
    assert_eq!(third.graphics_processes().unwrap().unwrap().len(), 1);
    let used = third.memory().unwrap().unwrap().used;
    simulated.at(5_000);
    assert!(third.graphics_processes().unwrap().unwrap().is_empty());
    assert_eq!(used - third.memory().unwrap().unwrap().used, 1 << 30);
}

#[test]
fn links_and_fabric_fail() {
    let simulated = Simulated::with_faults(&[
        "{ at: 0, gpu: 0, nvlink: { link: 3, down: true, crc: 12, replay: 4 } }",
        "{ at: 0, gpu: 0, fabric: { state: in_progress } }",
    ]);
    let nvml = simulated.load();
    let gpu = nvml.device(0).unwrap();
    assert_eq!(
        (gpu.nvlink_up(3).unwrap(), gpu.nvlink_up(4).unwrap()),
        (Some(false), Some(true))
    );
    let errors = gpu.nvlink_errors(3).unwrap();
    assert_eq!((errors.crc_flit, errors.replay), (Some(12), Some(4)));
    assert_eq!(gpu.nvlink_version(3).unwrap(), Some(4));
    assert_eq!(gpu.fabric().unwrap().unwrap().state, FabricState::InProgress);
    let healthy = nvml.device(1).unwrap().fabric().unwrap().unwrap();
    assert_eq!((healthy.state, healthy.status), (FabricState::Completed, Some(0)));
    assert_eq!(healthy.health.degraded_bandwidth, Some(false));
    assert_eq!(healthy.health.misconfiguration, Some(None));
    assert_eq!(gpu.scoped_power(PowerScope::Module).unwrap().average, None);
    assert_eq!(gpu.scoped_power(PowerScope::Gpu).unwrap().limit_max, Some(700_000));
}

#[test]
fn a_server_has_as_many_gpus_as_asked() {
    for count in [1, 4, 16] {
        let text = format!("{}\ngpus: {count}\n", healthy());
        let simulated = Simulated::playing(&text);
        let nvml = simulated.load();
        assert_eq!(nvml.device_count().unwrap(), count);
        let mut uuids: Vec<_> = (0..count)
            .map(|gpu| nvml.device(gpu).unwrap().uuid().unwrap())
            .collect();
        uuids.sort();
        uuids.dedup();
        assert_eq!(uuids.len(), count as usize);
    }
}

/// The shipped server without work and faults, which name GPUs.
fn healthy() -> String {
    Scenario::DEFAULT.split("\njobs:").next().unwrap().to_owned()
}

#[test]
fn machine_profiles_and_captures_are_boards_too() {
    let root = std::env::var_os("WATCHFIRE_CORPORA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora"),
        PathBuf::from,
    );
    let Ok(capture) = std::fs::read_to_string(root.join("nvidia-smi/xml/telegraf-a100-sxm4-v12.xml")) else {
        println!("SKIPPED: no corpora");
        return;
    };
    let simulated = Simulated::playing(&capture);
    let gpu = simulated.load().device(0).unwrap();
    assert_eq!(gpu.power_usage().unwrap(), Some(67_030));
    assert_eq!(
        (gpu.temperature().unwrap(), gpu.memory_temperature().unwrap()),
        (Some(27), Some(44))
    );
    assert_eq!(gpu.utilization().unwrap(), None);
    assert_eq!(gpu.remapped_rows().unwrap(), None);
    assert_eq!(gpu.memory().unwrap().unwrap().used, 50 << 20);
    let profile = std::fs::read_to_string(root.join("nvidia-smi/machine-profiles/t4.yaml")).unwrap();
    let simulated = Simulated::playing(&profile);
    let gpu = simulated.load().device(0).unwrap();
    assert_eq!(gpu.mig_mode().unwrap(), None);
    assert!(gpu.retired_pages().unwrap().is_some(), "before rows were replaced");
    assert_eq!(gpu.remapped_rows().unwrap(), None);
}
