//! A `/proc` tree of the simulated host, in a folder, for a reader that takes its path as a parameter.
//!
//! [`Tree::write`] brings every file up to a time; each is replaced in one step, so a reader never
//! sees half of one. Files and formats are those that host collectors read, no more.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::folder::Folder;
use crate::host::HostState;
use crate::load::round_u64;
use crate::scenario::Scenario;

mod cpu;
mod disk;
mod memory;
mod network;
mod process;

/// A `/proc` tree in a folder.
#[derive(Debug)]
pub struct Tree {
    scenario: Arc<Scenario>,
    folder: Folder,
    epoch_ms: i64,
    pids: Vec<u32>,
}

impl Tree {
    /// A tree in `root` (created if missing) for a scenario that starts at `epoch_ms`, milliseconds
    /// since 1970. Nothing is written yet.
    #[must_use]
    pub fn new(scenario: Arc<Scenario>, root: &Path, epoch_ms: i64) -> Self {
        Self {
            scenario,
            folder: Folder::new(root),
            epoch_ms,
            pids: Vec::new(),
        }
    }

    /// From now on writes into the files where they are: several times quicker, and only for a reader that reads
    /// between two calls of [`write`](Self::write), never during one.
    #[must_use]
    pub fn in_place(mut self) -> Self {
        self.folder.write_in_place();
        self
    }

    /// Brings the tree to a time of the scenario.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] with the file that could not be written; others may be new already.
    pub fn write(&mut self, t_ms: i64) -> Result<(), Error> {
        for (name, text) in self.files(t_ms) {
            self.folder.put(name, text)?;
        }
        self.write_processes(t_ms)
    }

    /// The files at a time, by name below the root.
    #[must_use]
    pub fn files(&self, t_ms: i64) -> Vec<(&'static str, String)> {
        let scenario = &self.scenario;
        let state = scenario.host_state(t_ms);
        let mounts = disk::mounts();
        vec![
            ("stat", cpu::stat(scenario, &state, self.epoch_ms)),
            ("loadavg", cpu::loadavg(&state, t_ms)),
            ("uptime", cpu::uptime(scenario, &state)),
            ("cpuinfo", cpu::cpuinfo(scenario)),
            ("softirqs", cpu::softirqs(scenario, &state)),
            ("meminfo", memory::meminfo(&state)),
            ("vmstat", memory::vmstat(&state)),
            ("pressure/cpu", pressure(0.4, cpu_stall_us(&state), false)),
            (
                "pressure/io",
                pressure(io_share(scenario, t_ms), io_stall_us(&state), true),
            ),
            (
                "pressure/memory",
                pressure(state.memory_pressure, state.memory_stall_us, true),
            ),
            ("diskstats", disk::diskstats(scenario, &state)),
            ("mounts", mounts.clone()),
            ("1/mounts", mounts.clone()),
            ("1/mountinfo", disk::mountinfo()),
            ("self/mountinfo", disk::mountinfo()),
            ("mdstat", disk::mdstat(scenario)),
            ("self/mounts", mounts),
            (
                "filesystems",
                "nodev\tsysfs\nnodev\ttmpfs\nnodev\tproc\n\text4\n\txfs\n".into(),
            ),
            ("net/dev", network::dev(&state)),
            ("net/sockstat", network::sockstat(&state)),
            ("net/sockstat6", network::sockstat6()),
            ("net/arp", network::arp()),
            ("net/udp", network::udp()),
            ("net/udp6", network::udp()),
            ("net/stat/nf_conntrack", network::conntrack(scenario)),
            ("net/snmp6", network::snmp6(&state)),
            ("net/snmp", network::snmp(&state)),
            ("net/netstat", network::netstat(&state)),
            ("sys/kernel/hostname", format!("{}\n", scenario.host().name)),
            ("sys/kernel/osrelease", format!("{}\n", scenario.host().kernel)),
            ("sys/kernel/ostype", "Linux\n".into()),
            ("sys/kernel/version", "#60-Ubuntu SMP PREEMPT_DYNAMIC\n".into()),
            ("sys/kernel/random/entropy_avail", "256\n".into()),
            ("sys/kernel/random/poolsize", "256\n".into()),
            ("sys/kernel/hung_task_detect_count", "0\n".into()),
            (
                "sys/fs/file-nr",
                format!("{}\t0\t9223372036854775807\n", 9_800 + u64::from(state.running) * 40),
            ),
            ("sys/net/netfilter/nf_conntrack_count", "184\n".into()),
            ("sys/net/netfilter/nf_conntrack_max", "262144\n".into()),
            (
                "version",
                format!(
                    "Linux version {} (buildd@build) #60-Ubuntu SMP PREEMPT_DYNAMIC\n",
                    scenario.host().kernel
                ),
            ),
        ]
    }
}

/// The kernel's pressure file: shares over 10, 60 and 300 seconds, and a total in microseconds.
fn pressure(percent: f64, total_us: u64, full: bool) -> String {
    let mut text = String::new();
    let (a, b, c) = (percent, percent * 0.45, percent * 0.15);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "some avg10={a:.2} avg60={b:.2} avg300={c:.2} total={total_us}");
    let (share, total) = if full { (0.8, total_us / 5 * 4) } else { (0.0, 0) };
    let _ = writeln!(
        text,
        "full avg10={:.2} avg60={:.2} avg300={:.2} total={total}",
        a * share,
        b * share,
        c * share
    );
    text
}

fn cpu_stall_us(state: &HostState) -> u64 {
    round_u64(state.uptime * 1e6 * 0.004)
}

fn io_stall_us(state: &HostState) -> u64 {
    // A tick is 10 ms; some eight processors wait together.
    state.iowait_ticks * 10_000 / 8
}

fn io_share(scenario: &Scenario, t_ms: i64) -> f64 {
    let (now, before) = (scenario.host_state(t_ms), scenario.host_state(t_ms - 10_000));
    let us = io_stall_us(&now).saturating_sub(io_stall_us(&before));
    #[expect(clippy::cast_precision_loss, reason = "ten seconds")]
    let share = us as f64 / 10e6 * 100.0;
    share.min(100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_written_whole_and_changes_with_time() {
        let root = std::env::temp_dir().join(format!("sim-procfs-{}", std::process::id()));
        let demo = Scenario::parse(Scenario::DEFAULT).unwrap();
        let mut tree = Tree::new(demo, &root, 1_800_000_000_000);
        tree.write(-10_000).unwrap();
        let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
        let (stat, memory) = (read("stat"), read("meminfo"));
        assert_eq!(stat.lines().filter(|line| line.starts_with("cpu")).count(), 65);
        assert!(stat.contains("\nbtime 1798185600\n"), "{}", &stat[stat.len() - 300..]);
        assert_eq!(read("31544/comm"), "python3\n");
        tree.write(24_800).unwrap();
        assert_ne!(read("meminfo"), memory);
        assert!(read("vmstat").contains("\noom_kill 0\n"));
        tree.write(25_200).unwrap();
        assert!(read("vmstat").contains("\noom_kill 1\n"));
        let left: Vec<_> = std::fs::read_dir(&root)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert!(
            left.iter().all(|name| !name.to_string_lossy().ends_with(".new")),
            "{left:?}"
        );
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn processor_time_adds_up_to_the_time_since_boot() {
        let demo = Scenario::parse(Scenario::DEFAULT).unwrap();
        let tree = Tree::new(demo, Path::new("/"), 1_800_000_000_000);
        let stat = tree
            .files(3_000)
            .into_iter()
            .find(|(name, _)| *name == "stat")
            .unwrap()
            .1;
        let ticks: u64 = stat
            .lines()
            .nth(5)
            .unwrap()
            .split_whitespace()
            .skip(1)
            .map(|n| n.parse::<u64>().unwrap())
            .sum();
        let uptime = 21 * 86_400 + 3;
        assert!(ticks.abs_diff(uptime * 100) < 10, "{ticks} against {}", uptime * 100);
    }
}
