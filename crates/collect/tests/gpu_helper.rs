//! Driver calls in helper processes, against the simulated driver with the machine's own clock.
//!
//! The helper is this test's own executable: [`helper_process`] is what it runs then. Each test has a folder, a scenario and
//! an epoch of its own, which its helpers get through their environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use collect::gpu::ring::{Column, RingReader, Wanted};
use collect::gpu::{self, HelperCommand, Helpers, Place, Sampling};
use collect::kernel::{self, Classifier, Kernel, PATTERNS, XidCatalog, XidCounts};
use collect::page::Page;
use collect::{Paths, Runner};
use model::{Family, Metric, SystemClock};
use rustix::process::{Pid, Signal, kill_process};
use sim::Scenario;

/// How long a call of the driver may take here; all other times follow from it.
const CALL: Duration = Duration::from_millis(500);

/// How often samples are taken here.
const INTERVAL: Duration = Duration::from_millis(100);

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
#[ignore = "not a test: what the helpers of the other tests run"]
fn helper_process() {
    gpu::helper::serve_stdin().expect("a socket");
    std::process::exit(0);
}

/// Held by tests; the one that measures holds it alone.
static QUIET: RwLock<()> = RwLock::new(());

fn beside_others() -> RwLockReadGuard<'static, ()> {
    QUIET.read().unwrap_or_else(PoisonError::into_inner)
}

/// A simulated server, watched through helpers.
struct Server {
    runner: Runner,
    kernel: Arc<Kernel>,
    helpers: Helpers,
    folder: tempfile::TempDir,
}

impl Server {
    /// The demo's server with these faults instead of its own; the scenario starts now.
    fn with_faults(faults: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        install(folder.path());
        write_scenario(folder.path(), faults, |head| head);
        Self::of(folder)
    }

    fn of(folder: tempfile::TempDir) -> Self {
        let at = |name: &str| folder.path().join(name).display().to_string();
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("after 1970")
            .as_millis();
        let exe = std::env::current_exe().expect("this test").display().to_string();
        let env = [
            format!("WATCHFIRE_SIM_SCENARIO={}", at("scenario.yml")),
            format!("WATCHFIRE_SIM_EPOCH_MS={now}"),
        ];
        let run = ["helper_process", "--exact", "--ignored", "--nocapture"].map(str::to_owned);
        let args = env.into_iter().chain([exe]).chain(run);
        let sampling = Sampling {
            command: HelperCommand {
                program: "env".into(),
                args: args.map(Into::into).collect(),
            },
            interval: INTERVAL,
            ring: Some(folder.path().join("gpu-ring")),
        };
        let paths = Paths {
            sysfs: folder.path().join("sys"),
            nvml_library: Some(folder.path().join("libnvidia-ml.so.1")),
            ..Paths::default()
        };
        let catalog = XidCatalog::embedded().expect("our own table");
        let classifier = Classifier::new(PATTERNS).expect("our own table");
        let kernel = Arc::new(Kernel::new(Arc::new(classifier), XidCounts::new(&catalog)));
        kernel.attached();
        let clock = Arc::new(SystemClock);
        let options = gpu::Options {
            library: paths.nvml_library.clone(),
            hostname: "node-a".to_owned(),
            shown: gpu::Shown::usual().expect("our own tables"),
            deadline: CALL,
            tick: gpu::TICK,
            clock: clock.clone(),
            xids: kernel.xids().clone(),
            catalog,
            inventory: None,
        };
        let (mut workers, helpers) = gpu::start(&paths, options, Place::Helper(sampling)).expect("threads");
        workers.extend(kernel::workers(&kernel));
        Self {
            runner: Runner::start(workers, clock).expect("threads"),
            kernel,
            helpers: helpers.expect("helpers"),
            folder,
        }
    }

    fn page(&self) -> Vec<Family> {
        self.runner.collect(Page::Gpu)
    }

    /// Makes pages until one has what is looked for.
    #[track_caller]
    fn until(&self, what: &str, mut is_there: impl FnMut(&[Family]) -> bool) -> Vec<Family> {
        let begun = Instant::now();
        loop {
            let page = self.page();
            if is_there(&page) {
                return page;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "{what} did not come; there is {:?} {:?} {:?}",
                states(&page),
                family(&page, "watchfire_gpu_driver_state"),
                family(&page, "watchfire_gpu_trouble"),
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The ring's samples by GPU.
    fn ring(&self) -> Vec<Column> {
        let wanted = Wanted {
            from: 0,
            to: i64::MAX,
            gpus: None,
            max: 1_000_000,
        };
        let reader = RingReader::new(&self.folder.path().join("gpu-ring"));
        reader.read(&wanted).expect("a ring").gpus
    }

    /// The one helper at work.
    fn pid(&self) -> Pid {
        let pids = self.helpers.pids();
        assert_eq!(pids.len(), 1, "{pids:?}");
        pid(pids[0])
    }
}

fn pid(raw: u32) -> Pid {
    Pid::from_raw(i32::try_from(raw).expect("a process id")).expect("not zero")
}

fn install(folder: &Path) {
    fs::copy(built_library(), folder.join("libnvidia-ml.so.1")).expect("the simulated library");
}

fn write_scenario(folder: &Path, faults: &str, change: impl FnOnce(String) -> String) {
    let head = Scenario::DEFAULT.split("\nfaults:").next().expect("a head");
    let faults = if faults.is_empty() {
        "[]".to_owned()
    } else {
        format!("\n{faults}")
    };
    let text = format!("{}\nfaults: {faults}\n", change(head.to_owned()));
    fs::write(folder.join("scenario.yml"), text).expect("a scenario");
}

fn built_library() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    test.parent().expect("a folder").join("libsim.so")
}

fn family<'a>(page: &'a [Family], name: &str) -> &'a [Metric] {
    page.iter()
        .find(|f| f.name == name)
        .map_or(&[], |f| f.metrics.as_slice())
}

fn label<'a>(metric: &'a Metric, name: &str) -> &'a str {
    metric.labels.iter().find(|(n, _)| *n == name).map_or("", |(_, v)| v)
}

/// The state of each GPU, in order.
fn states(page: &[Family]) -> Vec<&str> {
    family(page, "watchfire_gpu_up")
        .iter()
        .map(|m| label(m, "state"))
        .collect()
}

fn all_ok(page: &[Family]) -> bool {
    states(page) == ["ok"; 8]
}

fn is(page: &[Family], gpu: usize, state: &str) -> bool {
    let mut want = ["ok"; 8];
    want[gpu] = state;
    states(page) == want
}

fn driver_state(page: &[Family]) -> Option<&str> {
    family(page, "watchfire_gpu_driver_state")
        .first()
        .map(|m| label(m, "state"))
}

/// The longest and the shortest time between two samples of a GPU, less the interval, in milliseconds.
fn jitter_ms(column: &Column) -> f64 {
    let interval = INTERVAL.as_secs_f64();
    let steps = column.time.windows(2).map(|two| (two[1] - two[0] - interval).abs());
    steps.fold(0.0, f64::max) * 1000.0
}

#[test]
fn a_gpu_that_hangs_is_marked_and_the_others_keep_their_beat() {
    let _alone = QUIET.write().unwrap_or_else(PoisonError::into_inner);
    let server = Server::with_faults("  - { at: 3s, gpu: 2, hang_call: true, until: 9s }");
    server.until("the server", all_ok);
    let page = server.until("the hung GPU", |page| is(page, 2, "hung"));
    let trouble = &family(&page, "watchfire_gpu_trouble")[0];
    let reason = label(trouble, "reason");
    assert_eq!((label(trouble, "gpu"), label(trouble, "state")), ("2", "hung"));
    assert!(reason.ends_with("did not answer within 500ms"), "{reason}");
    assert_eq!(family(&page, "DCGM_FI_DEV_GPU_TEMP").len(), 7);
    // Its quarantine ends once it has answered for a while, and a new helper serves all eight.
    server.until("the GPU's return", all_ok);
    server.until("one helper for all", |page| {
        all_ok(page) && server.helpers.pids().len() == 1
    });
    let ring = server.ring();
    let worst = ring
        .iter()
        .filter(|column| column.gpu != 2)
        .map(jitter_ms)
        .fold(0.0, f64::max);
    let of_hung = jitter_ms(&ring[2]);
    println!(
        "jitter while one GPU hangs, at {INTERVAL:?}: {worst:.0} ms at most for the others; {of_hung:.0} ms for it"
    );
    assert_eq!(ring.len(), 8);
    assert!(worst < 100.0, "{worst} ms");
    assert!(of_hung > 3_000.0, "it did hang");
}

#[test]
fn a_helper_that_crashes_is_replaced() {
    let _others = beside_others();
    let server = Server::with_faults("");
    server.until("the server", all_ok);
    let first = server.pid();
    // Rust's own handler looks whether a stack has overflowed and lets a first one pass.
    kill_process(first, Signal::SEGV).expect("it lives");
    std::thread::sleep(Duration::from_millis(20));
    kill_process(first, Signal::SEGV).expect("it lives");
    let page = server.until("the gap", |page| !all_ok(page));
    let driver = &family(&page, "watchfire_gpu_driver_state")[0];
    assert_eq!(label(driver, "state"), "helper_crashed");
    assert!(label(driver, "reason").contains("SIGSEGV"), "{driver:?}");
    server.until("the new helper", all_ok);
    assert_ne!(server.pid(), first);
}

#[test]
fn a_helper_that_falls_silent_is_replaced() {
    let _others = beside_others();
    let server = Server::with_faults("");
    server.until("the server", all_ok);
    let first = server.pid();
    kill_process(first, Signal::STOP).expect("it lives");
    server.until("the new helper", |page| {
        all_ok(page)
            && !server
                .helpers
                .pids()
                .contains(&first.as_raw_nonzero().get().unsigned_abs())
    });
    let gone = || kill_process(first, Signal::CONT).is_err();
    let begun = Instant::now();
    while !gone() {
        assert!(begun.elapsed() < PATIENCE, "the silent helper is killed and buried");
        std::thread::sleep(Duration::from_millis(50));
        let _ = server.page();
    }
}

#[test]
fn a_lost_gpu_has_a_state_and_the_others_go_on() {
    let _others = beside_others();
    let server = Server::with_faults("  - { at: 2s, gpu: 5, xid: 79 }");
    server.until("the server", all_ok);
    let page = server.until("the lost GPU", |page| is(page, 5, "lost"));
    let trouble = &family(&page, "watchfire_gpu_trouble")[0];
    assert_eq!(label(trouble, "reason"), "asked for its readings: the GPU is lost");
    let xid = |page: &[Family]| {
        let counted = family(page, "watchfire_gpu_xid_errors_total").iter();
        counted
            .filter(|m| label(m, "xid") == "79")
            .map(|m| m.value)
            .sum::<f64>()
    };
    server.until("the event of the driver", |page| {
        xid(page).to_bits() == 1.0_f64.to_bits()
    });
    assert!(server.kernel.xids().driver_attached());
}

#[test]
fn a_driver_that_comes_late_is_found() {
    let _others = beside_others();
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_scenario(folder.path(), "", |head| head);
    let library = folder.path().join("libnvidia-ml.so.1");
    let server = Server::of(folder);
    let page = server.page();
    assert_ne!(driver_state(&page), Some("ok"));
    assert!(states(&page).is_empty());
    let made = library.with_extension("new");
    fs::copy(built_library(), &made).expect("the simulated library");
    fs::rename(&made, &library).expect("in place");
    server.until("the driver", all_ok);
}

#[test]
fn library_and_module_of_different_versions_are_told_and_outlived() {
    let _others = beside_others();
    let folder = tempfile::tempdir().expect("a temporary folder");
    install(folder.path());
    write_scenario(folder.path(), "", |head| head);
    let server = Server::of(folder);
    let version = |page: &[Family]| {
        let info = family(page, "watchfire_gpu_driver_info").first();
        info.map(|m| label(m, "driver_version").to_owned())
    };
    let before = version(&server.until("the server", all_ok));
    // The driver goes, and for a while module and library do not fit.
    let other = |head: String| head.replace("loaded:", "init_error: 18\n  loaded:");
    write_scenario(server.folder.path(), "", other);
    kill_process(server.pid(), Signal::KILL).expect("it lives");
    let page = server.until("the mismatch", |page| driver_state(page) == Some("version_mismatch"));
    let reason = label(&family(&page, "watchfire_gpu_driver_state")[0], "reason");
    assert!(
        reason.ends_with("the NVML library and the loaded kernel driver are of different versions"),
        "{reason}"
    );
    let newer = |head: String| head.replace(before.as_deref().expect("a version"), "999.1.2");
    write_scenario(server.folder.path(), "", newer);
    let page = server.until("the newer driver", all_ok);
    assert_eq!(version(&page).as_deref(), Some("999.1.2"));
}

#[test]
fn helpers_end_in_order_and_leave_nothing_behind() {
    let _others = beside_others();
    let server = Server::with_faults("");
    server.until("the server", all_ok);
    let helper = server.pid();
    let begun = Instant::now();
    server.helpers.stop();
    println!("{:?} to shut the library down", begun.elapsed());
    assert!(kill_process(helper, Signal::CONT).is_err(), "gone, and no zombie");
    assert!(!states(&server.page()).contains(&"ok"));
}
