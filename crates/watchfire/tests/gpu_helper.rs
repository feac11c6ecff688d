//! The real binary and its GPU helper: they start, end and die together, and the ring outlives both.

mod support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use support::{PATIENCE, Process};

/// The simulated driver's library, as the build of the binary made it.
fn library() -> PathBuf {
    PathBuf::from(env!("WATCHFIRE_SIM_LIBRARY"))
}

struct Agent {
    process: Process,
}

impl Agent {
    fn start(folder: &Path) -> Self {
        let library = folder.join("libnvidia-ml.so.1");
        if !library.exists() {
            std::fs::copy(self::library(), &library).expect("the simulated library");
        }
        let (data, library) = (folder.join("data"), library.display().to_string());
        let data = data.display().to_string();
        let process = Process::start(&["agent", "--data", &data, "--nvml-library", &library]).wait_ready();
        let agent = Self { process };
        agent.until("eight GPUs", |agent| {
            let page = agent.process.get("/metrics/gpu").map(|a| a.body).unwrap_or_default();
            page.lines()
                .filter(|l| l.starts_with("watchfire_gpu_up{") && l.contains("state=\"ok\""))
                .count()
                == 8
        });
        agent
    }

    #[track_caller]
    fn until(&self, what: &str, mut is_there: impl FnMut(&Self) -> bool) {
        let begun = Instant::now();
        while !is_there(self) {
            assert!(
                begun.elapsed() < PATIENCE,
                "{what} did not come:\n{}",
                self.process.log()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn samples(&self) -> usize {
        let answer = self.process.json("/api/watchfire/v1/ring");
        let gpus = answer["data"]["gpus"].as_array().map(Vec::as_slice).unwrap_or_default();
        gpus.iter()
            .map(|gpu| gpu["power_watts"].as_array().map_or(0, Vec::len))
            .sum()
    }
}

/// The one child of a process.
fn child_of(parent: u32) -> Option<u32> {
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        rest.split(' ').nth(1).and_then(|n| n.parse().ok()) == Some(parent)
    };
    let entries = std::fs::read_dir("/proc").expect("the proc file system");
    let mut pids = entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.find(is_child)
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a process id")).expect("not zero");
    kill_process(pid, signal).expect("it lives");
}

fn wait_end(pid: u32) {
    let begun = Instant::now();
    while is_alive(pid) {
        assert!(begun.elapsed() < Duration::from_secs(20), "{pid} lives on");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_killed_agent_takes_its_helper_along_and_its_ring_is_still_there() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let agent = Agent::start(folder.path());
    agent.until("samples of three seconds", |agent| agent.samples() >= 24);
    let helper = child_of(agent.process.id()).expect("a helper");
    let before = agent.samples();
    send(agent.process.id(), Signal::KILL);
    wait_end(helper);
    drop(agent);
    let agent = Agent::start(folder.path());
    assert!(agent.samples() >= before, "{} of {before}", agent.samples());
}

#[test]
fn asked_to_end_agent_and_helper_end_in_order() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let agent = Agent::start(folder.path());
    let helper = child_of(agent.process.id()).expect("a helper");
    send(agent.process.id(), Signal::TERM);
    wait_end(helper);
    wait_end(agent.process.id());
}

#[test]
fn a_helper_asked_to_end_alone_is_replaced() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let agent = Agent::start(folder.path());
    let helper = child_of(agent.process.id()).expect("a helper");
    send(helper, Signal::TERM);
    wait_end(helper);
    agent.until("another helper", |agent| {
        child_of(agent.process.id()).is_some_and(|pid| pid != helper && is_alive(pid))
    });
}

#[test]
fn a_window_that_makes_no_sense_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let agent = Agent::start(folder.path());
    for (query, status) in [
        ("from=noon", 400),
        ("from=20&to=10", 400),
        ("gpu=all", 400),
        ("gpu=3", 200),
        ("to=10", 200),
    ] {
        let answer = agent
            .process
            .get(&format!("/api/watchfire/v1/ring?{query}"))
            .expect("an answer");
        assert_eq!(answer.status, status, "{query}: {}", answer.body);
    }
}
