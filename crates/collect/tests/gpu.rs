//! The GPU page against the simulated driver, loaded as the real one is.
//!
//! Cargo builds the library beside this test because `sim` is a dependency of it. Each test loads a copy of its own, so
//! that each has its own clock.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use collect::gpu;
use collect::kernel::{self, Classifier, Kernel, PATTERNS, XidCatalog, XidCounts};
use collect::page::Page;
use collect::{Machine, Paths, Runner, State};
use model::{Clock, Family, Metric, Millis};
use sim::{Control, Scenario};

mod corpora;

const EPOCH_MS: i64 = 1_796_000_000_000;

/// Long enough for any machine, short enough for a test that must not get there.
const PATIENCE: Duration = Duration::from_secs(60);

struct Hands(AtomicI64);

impl Clock for Hands {
    fn now(&self) -> Millis {
        self.0.load(Ordering::Acquire)
    }
}

/// A simulated server with its agent.
struct Server {
    control: Control,
    clock: Arc<Hands>,
    kernel: Arc<Kernel>,
    runner: Runner,
    /// Last, so that it outlives those who read from it.
    folder: tempfile::TempDir,
}

impl Server {
    fn new() -> Self {
        Self::playing(Scenario::DEFAULT, PATIENCE)
    }

    /// The demo's server with these faults instead of its own.
    fn with_faults(faults: &str, deadline: Duration) -> Self {
        let head = Scenario::DEFAULT.split("\nfaults:").next().expect("a head");
        Self::playing(&format!("{head}\nfaults:\n{faults}\n"), deadline)
    }

    fn playing(scenario: &str, deadline: Duration) -> Self {
        Self::remembering(None, scenario, deadline)
    }

    /// With a file that keeps which GPUs there are: another server with the same one is the same after a restart.
    fn remembering(inventory: Option<&Path>, scenario: &str, deadline: Duration) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let library = folder.path().join("libnvidia-ml.so.1");
        fs::copy(built_library(), &library).expect("the simulated library");
        let script = folder.path().join("scenario.yml");
        fs::write(&script, scenario).expect("a scenario");
        let control = Control::open(&library).expect("the simulated library");
        control.set_scenario(Some(&script)).expect("a path");
        control.set_epoch_ms(Some(EPOCH_MS));
        let clock = Arc::new(Hands(AtomicI64::new(EPOCH_MS)));
        let paths = Paths {
            sysfs: folder.path().join("sys"),
            nvml_library: Some(library),
            ..Paths::default()
        };
        let (kernel, runner) = agent(&paths, Arc::clone(&clock), deadline, inventory);
        let server = Self {
            control,
            clock,
            kernel,
            runner,
            folder,
        };
        server.at(0);
        server
    }

    /// Turns both clocks to a time of the scenario, in milliseconds.
    fn at(&self, t_ms: i64) {
        self.control.set_time_ms(Some(EPOCH_MS + t_ms));
        self.clock.0.store(EPOCH_MS + t_ms, Ordering::Release);
    }

    fn page(&self) -> Vec<Family> {
        self.runner.collect(Page::Gpu)
    }
}

fn agent(paths: &Paths, clock: Arc<Hands>, deadline: Duration, inventory: Option<&Path>) -> (Arc<Kernel>, Runner) {
    let catalog = XidCatalog::embedded().expect("our own table");
    let classifier = Classifier::new(PATTERNS).expect("our own table");
    let kernel = Arc::new(Kernel::new(Arc::new(classifier), XidCounts::new(&catalog)));
    kernel.attached();
    let options = gpu::Options {
        library: paths.nvml_library.clone(),
        hostname: "node-a".to_owned(),
        shown: gpu::Shown::usual().expect("our own table"),
        deadline,
        tick: Duration::from_secs(3600),
        clock: clock.clone(),
        xids: kernel.xids().clone(),
        catalog,
        inventory: inventory.map(Path::to_owned),
    };
    let mut workers = gpu::workers(paths, options).expect("our own tables");
    workers.extend(kernel::workers(&kernel));
    (kernel, Runner::start(workers, clock).expect("threads"))
}

fn built_library() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let beside = test.parent().expect("a folder").join("libsim.so");
    assert!(
        beside.exists(),
        "{} is missing: is sim's crate-type still cdylib?",
        beside.display()
    );
    beside
}

fn family<'a>(page: &'a [Family], name: &str) -> &'a [Metric] {
    page.iter()
        .find(|f| f.name == name)
        .map_or(&[], |f| f.metrics.as_slice())
}

fn label<'a>(metric: &'a Metric, name: &str) -> &'a str {
    metric.labels.iter().find(|(n, _)| *n == name).map_or("", |(_, v)| v)
}

/// The value of the line whose labels hold all of `labels`.
fn value(page: &[Family], name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let matches = |m: &&Metric| labels.iter().all(|(n, v)| label(m, n) == *v);
    family(page, name).iter().find(matches).map(|m| m.value)
}

#[test]
fn the_page_has_the_exporters_families_with_its_labels_in_its_order() {
    let Some(file) = corpora::folder("dcgm/pages/default-h100x8.prom") else {
        return;
    };
    let server = Server::new();
    server.page();
    server.at(1_000);
    let page = server.page();
    let expected = fs::read_to_string(file).expect("the corpus");
    let mut wrong = Vec::new();
    let mut families = 0;
    let mut last = 0;
    for line in expected.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help");
            let at = page.iter().position(|f| f.name == name);
            match at {
                Some(at) if page[at].help == help && at >= last => last = at,
                _ => wrong.push(format!("{name}: {at:?} after {last}")),
            }
            families += 1;
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            if page.iter().find(|f| f.name == name).map(|f| f.kind.as_str()) != Some(kind) {
                wrong.push(format!("{name}: not a {kind}"));
            }
        } else if let Some((name, rest)) = line.split_once('{') {
            let names: Vec<&str> = rest
                .split('=')
                .map(|part| part.rsplit([',', '{']).next().unwrap_or(""))
                .collect();
            let metrics = family(&page, name);
            let ours: Vec<&str> = metrics
                .first()
                .map(|m| m.labels.iter().map(|(n, _)| *n).collect())
                .unwrap_or_default();
            if metrics.len() != 8 || ours != names[..names.len() - 1] {
                wrong.push(format!(
                    "{name}: {} lines, labels {ours:?}, expected {names:?}",
                    metrics.len()
                ));
            }
        }
    }
    println!("{families} families of the exporter's default page");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(families, 25);
}

#[test]
fn readings_are_the_simulators_in_the_exporters_units() {
    let server = Server::new();
    server.page();
    server.at(4_000);
    let page = server.page();
    let scenario = Scenario::parse(Scenario::DEFAULT).expect("the demo");
    for index in 0..8 {
        let want = scenario.state(index, 4_000);
        let gpu = index.to_string();
        let get = |name: &str| value(&page, name, &[("gpu", &gpu)]);
        assert_eq!(get("DCGM_FI_DEV_GPU_TEMP"), Some(want.temperature.into()));
        assert_eq!(get("DCGM_FI_DEV_POWER_USAGE"), Some(f64::from(want.power_mw) / 1000.0));
        assert_eq!(get("DCGM_FI_DEV_FB_USED"), Some((want.memory_used >> 20) as f64));
        assert_eq!(get("DCGM_FI_DEV_PCIE_LINK_WIDTH"), Some(16.0));
        assert_eq!(get("DCGM_FI_DEV_XID_ERRORS"), Some(0.0));
        assert_eq!(get("watchfire_gpu_up"), Some(1.0));
        assert_eq!(
            get("watchfire_gpu_temperature_margin_celsius"),
            Some(f64::from(want.margin + 2))
        );
        let engine = get("DCGM_FI_PROF_GR_ENGINE_ACTIVE").expect("a Hopper has its own counters");
        assert!((0.0..=1.0).contains(&engine));
    }
    assert_eq!(value(&page, "watchfire_gpus_present", &[]), Some(8.0));
    assert_eq!(value(&page, "watchfire_gpus_expected", &[]), Some(8.0));
    let absent = ["DCGM_FI_DEV_FAN_SPEED", "DCGM_FI_DEV_RETIRED_SBE"];
    assert!(
        absent.iter().all(|name| family(&page, name).is_empty()),
        "what the board lacks is no zero"
    );
    let blank = page
        .iter()
        .flat_map(|f| &f.metrics)
        .any(|m| m.value > 9.2e18 || m.value == 140_737_488_355_328.0);
    assert!(!blank, "no sentinel is a sample");
}

#[test]
fn the_whole_page_is_one_a_checker_accepts() {
    let server = Server::new();
    server.page();
    server.at(46_000);
    let text = exposition::write_page(&server.runner.collect(Page::All), exposition::Format::Text);
    let remarks = exposition::check_page(text.as_bytes(), false).expect("a page");
    println!("{} bytes, remarks: {remarks:?}", text.len());
}

#[test]
fn a_lost_gpu_keeps_its_name_and_the_other_seven_their_readings() {
    let server = Server::new();
    server.page();
    server.at(44_000);
    let lost = [("gpu", "1"), ("pci_bus_id", "00000000:43:00.0")];
    assert_eq!(value(&server.page(), "DCGM_FI_DEV_PCIE_LINK_WIDTH", &lost), Some(8.0));
    server.at(45_000);
    let message = "NVRM: Xid (PCI:0000:43:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.";
    server.kernel.message(message, EPOCH_MS + 45_000).expect("an event");

    let begun = Instant::now();
    let counted = [lost[1], ("xid", "79")];
    let driver_too = || {
        server.kernel.xids().driver_attached()
            && value(&server.page(), "watchfire_gpu_xid_errors_total", &counted) == Some(1.0)
    };
    while !driver_too() && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
    }
    let page = server.page();
    assert_eq!(
        value(&page, "watchfire_gpu_xid_errors_total", &counted),
        Some(1.0),
        "two sources, one error"
    );
    let named = family(&page, "watchfire_gpu_xid_errors_total");
    assert!(
        named
            .iter()
            .filter(|m| m.value > 0.0)
            .all(|m| label(m, "UUID").starts_with("GPU-"))
    );

    assert_eq!(value(&page, "DCGM_FI_DEV_GPU_TEMP", &lost), None);
    let mut state = lost.to_vec();
    state.push(("state", "lost"));
    assert_eq!(value(&page, "watchfire_gpu_up", &state), Some(0.0));
    assert!(
        family(&page, "watchfire_gpu_up")
            .iter()
            .all(|m| label(m, "UUID").starts_with("GPU-"))
    );
    assert_eq!(family(&page, "DCGM_FI_DEV_GPU_TEMP").len(), 7);
    assert_eq!(value(&page, "watchfire_gpus_present", &[]), Some(7.0));
    assert_eq!(value(&page, "watchfire_gpus_expected", &[]), Some(8.0));
    let status = server
        .runner
        .statuses()
        .into_iter()
        .find(|s| s.name == "gpu")
        .expect("a status");
    assert_eq!(status.state, State::Present);
    assert!(status.errors[0].contains("the GPU is lost"), "{:?}", status.errors);
}

/// The first server's life until a restart: all eight GPUs answer.
fn remembered(inventory: &Path) {
    let server = Server::remembering(Some(inventory), &calm(), PATIENCE);
    assert_eq!(value(&server.page(), "watchfire_gpus_present", &[]), Some(8.0));
}

/// The demo's server without its faults.
fn calm() -> String {
    let head = Scenario::DEFAULT.split("faults:").next().expect("a head");
    format!("{head}faults: []\n")
}

/// The demo's server without the lines of these words.
fn without(scenario: &str, word: &str) -> String {
    let lines: Vec<&str> = scenario.lines().filter(|line| !line.contains(word)).collect();
    lines.join("\n")
}

/// Who GPU 1 of the demo is.
const GPU_1: [(&str, &str); 3] = [
    ("gpu", "1"),
    ("UUID", "GPU-3f0c8a11-5e2d-4b76-9d10-7c1e5a90b202"),
    ("pci_bus_id", "00000000:43:00.0"),
];

/// GPU 1 is not up, in this state, and its errors count under its name.
#[track_caller]
fn check_gpu_1(server: &Server, state: &'static str) {
    let with = |name, value| [&GPU_1[..], &[(name, value)]].concat();
    let page = server.page();
    assert_eq!(value(&page, "watchfire_gpu_up", &with("state", state)), Some(0.0));
    assert_eq!(value(&page, "watchfire_gpus_present", &[]), Some(7.0));
    assert_eq!(value(&page, "watchfire_gpus_expected", &[]), Some(8.0));
    assert_eq!(family(&page, "DCGM_FI_DEV_GPU_TEMP").len(), 7);
    assert_eq!(family(&page, "watchfire_gpu_up").len(), 8);

    let errors = "watchfire_gpu_xid_errors_total";
    for watched in ["48", "79", "119"] {
        assert_eq!(value(&server.page(), errors, &with("xid", watched)), Some(0.0));
    }
    let message = "NVRM: Xid (PCI:0000:43:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.";
    server.kernel.message(message, EPOCH_MS).expect("an event");
    assert_eq!(value(&server.page(), errors, &with("xid", "79")), Some(1.0));
    let is_named = |m: &Metric| {
        ["gpu", "UUID", "pci_bus_id"]
            .iter()
            .all(|name| !label(m, name).is_empty())
    };
    assert!(family(&server.page(), errors).iter().all(is_named));
}

#[test]
fn a_gpu_lost_before_a_restart_keeps_its_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let inventory = folder.path().join("gpu-inventory.json");
    remembered(&inventory);
    let lost = calm().replace("faults: []", "faults:\n  - { at: -1h, gpu: 1, lost: true }");
    let server = Server::remembering(Some(&inventory), &lost, PATIENCE);
    check_gpu_1(&server, "lost");
}

#[test]
fn a_gpu_that_the_driver_counts_no_more_is_missing_until_the_file_is_deleted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let inventory = folder.path().join("gpu-inventory.json");
    remembered(&inventory);
    let server = Server::remembering(Some(&inventory), &without(&calm(), "0000:43:00.0"), PATIENCE);
    check_gpu_1(&server, "missing");
    // GPU 2 is the driver's GPU 1 now.
    let moved = [("gpu", "1"), ("pci_bus_id", "00000000:52:00.0"), ("state", "ok")];
    assert_eq!(value(&server.page(), "watchfire_gpu_up", &moved), Some(1.0));

    fs::remove_file(&inventory).expect("the file");
    let page = server.page();
    assert_eq!(value(&page, "watchfire_gpu_up", &GPU_1), None);
    assert_eq!(value(&page, "watchfire_gpus_expected", &[]), Some(7.0));
    assert!(inventory.exists(), "written anew");
}

#[test]
fn a_board_in_place_of_another_is_not_missed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let inventory = folder.path().join("gpu-inventory.json");
    remembered(&inventory);
    let replaced = calm().replace("7c1e5a90b202", "7c1e5a90beef");
    let server = Server::remembering(Some(&inventory), &replaced, PATIENCE);
    let page = server.page();
    assert_eq!(value(&page, "watchfire_gpu_up", &GPU_1), None);
    assert_eq!(value(&page, "watchfire_gpus_present", &[]), Some(8.0));
    assert_eq!(value(&page, "watchfire_gpus_expected", &[]), Some(8.0));
    let kept = fs::read_to_string(&inventory).expect("written");
    assert!(kept.contains("7c1e5a90beef") && !kept.contains("7c1e5a90b202"));
}

#[test]
fn a_damaged_inventory_is_set_aside_and_takes_no_reading_away() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let inventory = folder.path().join("gpu-inventory.json");
    fs::write(&inventory, "{\"gpus\": [{\"index\"").expect("a file");
    remembered(&inventory);
    assert!(folder.path().join("gpu-inventory.json.damaged").exists());
    assert!(
        fs::read_to_string(&inventory)
            .expect("written")
            .contains("7c1e5a90b208")
    );
}

#[test]
fn without_a_driver_the_errors_of_gpus_known_before_have_their_names() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let inventory = folder.path().join("gpu-inventory.json");
    remembered(&inventory);
    let paths = Paths {
        sysfs: folder.path().join("sys"),
        nvml_library: Some(folder.path().join("no-such-library.so")),
        ..Paths::default()
    };
    let clock = Arc::new(Hands(AtomicI64::new(EPOCH_MS)));
    let (_, runner) = agent(&paths, clock, PATIENCE, Some(&inventory));
    let _ = runner.collect(Page::Gpu);
    let page = runner.collect(Page::Gpu);
    assert_eq!(value(&page, "watchfire_gpus_expected", &[]), Some(8.0));
    assert_eq!(value(&page, "watchfire_gpus_present", &[]), Some(0.0));
    assert_eq!(value(&page, "watchfire_gpu_xid_errors_total", &GPU_1), Some(0.0));
}

#[test]
fn one_page_for_who_asks_once_has_what_lies_between_two_looks() {
    let server = Server::new();
    let clock: Arc<dyn Clock> = server.clock.clone();
    let paths = Paths {
        nvml_library: Some(server.folder.path().join("libnvidia-ml.so.1")),
        ..Paths::default()
    };
    // GPU 2 is hot by then.
    let hot = 15_000;
    server.at(hot);
    let machine = Machine::start(&paths, "node-a", Vec::new(), &clock, None).expect("threads");
    let look = |span: Duration| server.at(hot + i64::try_from(span.as_millis()).expect("a second"));
    let page = machine.page_once(Page::Gpu, look);
    assert_eq!(family(&page, "DCGM_FI_PROF_GR_ENGINE_ACTIVE").len(), 8);
    let thermal = [("gpu", "2"), ("reason", "sw_thermal_slowdown")];
    let seconds = value(&page, "watchfire_gpu_throttle_seconds_total", &thermal);
    assert!(seconds >= Some(1.0), "{seconds:?}");
}

#[test]
fn a_hung_gpu_leaves_the_other_seven_on_time_and_comes_back() {
    let server = Server::with_faults(
        "  - { at: 1s, until: 5s, gpu: 5, hang_call: true }",
        Duration::from_millis(400),
    );
    let begun = Instant::now();
    while family(&server.page(), "DCGM_FI_DEV_GPU_TEMP").len() < 8 && begun.elapsed() < PATIENCE {}
    server.at(1_000);
    let hung = [("gpu", "5"), ("state", "hung")];
    for _ in 0..2 {
        let page = server.page();
        assert_eq!(family(&page, "DCGM_FI_DEV_GPU_TEMP").len(), 7);
        assert_eq!(value(&page, "watchfire_gpu_up", &hung), Some(0.0));
    }
    server.at(5_000);
    let begun = Instant::now();
    while family(&server.page(), "DCGM_FI_DEV_GPU_TEMP").len() < 8 {
        assert!(begun.elapsed() < PATIENCE, "the GPU is asked again");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn throttling_is_counted_in_seconds_by_reason() {
    let server = Server::new();
    for t_ms in (0..30_000).step_by(1_000) {
        server.at(t_ms);
        server.page();
    }
    let page = server.page();
    let seconds = |gpu, reason| {
        value(
            &page,
            "watchfire_gpu_throttle_seconds_total",
            &[("gpu", gpu), ("reason", reason)],
        )
    };
    assert!(
        seconds("2", "sw_thermal_slowdown") > Some(5.0),
        "{:?}",
        seconds("2", "sw_thermal_slowdown")
    );
    assert_eq!(seconds("0", "hw_thermal_slowdown"), Some(0.0));
}

#[test]
fn a_board_without_a_field_keeps_the_others() {
    // A consumer board lacks memory temperature, ECC, row remapping and profiling.
    let text = Scenario::DEFAULT.replace("  nvlinks: 18\n", "  nvlinks: 0\n  datacenter: false\n");
    let text = text.replace("  architecture: 9\n", "  architecture: 8\n");
    let server = Server::playing(&text, PATIENCE);
    server.page();
    server.at(2_000);
    let page = server.page();
    for name in [
        "DCGM_FI_DEV_MEMORY_TEMP",
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        "DCGM_FI_DEV_ROW_REMAP_FAILURE",
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
    ] {
        assert!(family(&page, name).is_empty(), "{name}");
    }
    assert_eq!(family(&page, "DCGM_FI_DEV_GPU_TEMP").len(), 8);
    let status = server
        .runner
        .statuses()
        .into_iter()
        .find(|s| s.name == "gpu")
        .expect("a status");
    assert_eq!(status.errors, Vec::<String>::new());
}

#[test]
fn no_driver_is_a_state_and_gpus_on_the_bus_are_missed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let clock = Arc::new(Hands(AtomicI64::new(EPOCH_MS)));
    let paths = Paths {
        sysfs: folder.path().join("sys"),
        nvml_library: Some(folder.path().join("no-such-library.so")),
        ..Paths::default()
    };
    let (_, runner) = agent(&paths, Arc::clone(&clock), PATIENCE, None);
    let page = runner.collect(Page::Gpu);
    assert_eq!(
        value(&page, "watchfire_collector_up", &[("collector", "gpu")]),
        Some(0.0)
    );
    assert_eq!(
        value(
            &page,
            "watchfire_collector_state",
            &[("collector", "gpu"), ("state", "absent")]
        ),
        Some(1.0)
    );
    assert!(
        page.iter()
            .all(|f| !f.name.starts_with("DCGM_") && !f.name.starts_with("watchfire_gpus"))
    );

    for (slot, vendor, class) in [
        ("0000:1b:00.0", "0x10de", "0x030200"),
        ("0000:02:00.0", "0x1a03", "0x030000"),
    ] {
        let device = paths.sysfs.join("bus/pci/devices").join(slot);
        fs::create_dir_all(&device).expect("a folder");
        fs::write(device.join("vendor"), vendor).expect("a file");
        fs::write(device.join("class"), class).expect("a file");
    }
    clock.0.fetch_add(120_000, Ordering::AcqRel);
    let page = runner.collect(Page::Gpu);
    assert_eq!(value(&page, "watchfire_gpus_expected", &[]), Some(1.0));
    assert_eq!(value(&page, "watchfire_gpus_present", &[]), Some(0.0));
}

/// An agent of a machine without NVML, whose `nvidia-smi` is this script.
fn agent_with_smi(folder: &Path, script: &str, shown: gpu::Shown) -> Runner {
    use std::os::unix::fs::PermissionsExt as _;
    let program = folder.join("nvidia-smi");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("a script");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode");
    let paths = Paths {
        sysfs: folder.join("sys"),
        procfs: folder.join("proc"),
        ..Paths::default()
    };
    let catalog = XidCatalog::embedded().expect("our own table");
    let clock = Arc::new(Hands(AtomicI64::new(EPOCH_MS)));
    let options = gpu::Options {
        library: Some(folder.join("no-such-library.so")),
        hostname: "node-a".to_owned(),
        shown: gpu::Shown {
            nvidia_smi: Some(program),
            ..shown
        },
        deadline: PATIENCE,
        tick: Duration::from_secs(3600),
        clock: clock.clone(),
        xids: XidCounts::new(&catalog),
        catalog,
        inventory: None,
    };
    Runner::start(gpu::workers(&paths, options).expect("our own tables"), clock).expect("threads")
}

#[test]
fn without_the_library_what_nvidia_smi_says_is_shown_under_the_same_names() {
    let Some(xml) = corpora::folder("nvidia-smi/xml/telegraf-a100-sxm4-v12.xml") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let shown = gpu::Shown::usual().expect("our own table");
    let runner = agent_with_smi(folder.path(), &format!("cat '{}'", xml.display()), shown);
    let page = runner.collect(Page::Gpu);
    assert_eq!(
        value(&page, "watchfire_collector_up", &[("collector", "gpu")]),
        Some(1.0)
    );
    assert_eq!(
        value(&page, "watchfire_gpu_driver_state", &[("state", "ok")]),
        Some(1.0)
    );
    assert_eq!(value(&page, "DCGM_FI_DEV_GPU_TEMP", &[("gpu", "0")]), Some(27.0));
    assert_eq!(value(&page, "DCGM_FI_DEV_MEMORY_TEMP", &[("gpu", "0")]), Some(44.0));
}

#[test]
fn what_nvidia_smi_complains_of_is_a_state_and_gpus_seen_before_are_missed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let shown = gpu::Shown::usual().expect("our own table");
    let script = "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18";
    let runner = agent_with_smi(folder.path(), script, shown);
    let page = runner.collect(Page::Gpu);
    assert_eq!(
        value(&page, "watchfire_collector_up", &[("collector", "gpu")]),
        Some(0.0)
    );
    let state = [("state", "version_mismatch")];
    assert_eq!(value(&page, "watchfire_gpu_driver_state", &state), Some(1.0));
    assert!(page.iter().all(|f| !f.name.starts_with("DCGM_")));
}

#[test]
fn both_generations_on_one_page_have_equal_facts_and_their_own_labels() {
    let Some(xml) = corpora::folder("nvidia-smi/xml/telegraf-a100-sxm4-v12.xml") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let table = gpu::FieldTable::new(gpu::FIELDS).expect("our own table");
    let shown = gpu::Shown {
        selection: gpu::Selection::usual(&table, gpu::Names::Both),
        ..gpu::Shown::usual().expect("our own table")
    };
    let runner = agent_with_smi(folder.path(), &format!("cat '{}'", xml.display()), shown);
    let page = runner.collect(Page::Gpu);
    let mut compared = 0;
    for field in table
        .fields
        .iter()
        .filter(|f| f.new != f.name && f.show == gpu::Show::Default)
    {
        let (old, new) = (value(&page, &field.name, &[]), value(&page, &field.new, &[]));
        assert_eq!(old.is_some(), new.is_some(), "{}", field.name);
        if let Some((old, new)) = old.zip(new) {
            let want = old * field.factor.times / field.factor.divided_by;
            assert!(
                (new - want).abs() <= 1e-9 * want.abs(),
                "{}: {old} and {new}",
                field.name
            );
            compared += 1;
        }
    }
    assert!(compared >= 10, "{compared}");
    let labels = |name: &str| {
        family(&page, name)[0]
            .labels
            .iter()
            .map(|(n, _)| *n)
            .collect::<Vec<_>>()
    };
    let common = ["gpu", "UUID", "pci_bus_id", "device", "modelName"];
    assert_eq!(
        labels("DCGM_FI_DEV_GPU_TEMP"),
        [&common[..], &["Hostname", "DCGM_FI_DRIVER_VERSION"]].concat()
    );
    assert_eq!(
        labels("DCGM_FI_DEV_GPU_TEMP_CELSIUS"),
        [&common[..], &["hostname", "DCGM_FI_SYSTEM_DRIVER_VERSION"]].concat()
    );
}
