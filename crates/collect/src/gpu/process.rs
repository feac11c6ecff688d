//! Who uses the GPUs: memory and share by process with its owner, GPUs busy without anybody, memory that nobody holds, and
//! processes that hang in the kernel with a GPU open.
//!
//! Series by process are bounded: of each GPU the processes with the most memory, the others summed up as one. What the
//! driver lists is compared with procfs; where we sit in a container that does not see the machine's processes, nothing
//! is concluded from a missing one.

use std::fs;
use std::path::PathBuf;

use model::{Family, Kind, Millis};

use super::boards::Boards;
use super::owner::{Owner, Owners, parse_stat};
use super::reading::{GpuProcess, GpuState, Reading};
use crate::Paths;
use crate::source::{Reader, to_f64};

/// Processes of one GPU that have lines of their own.
pub const PROCESSES_MAX: usize = 10;

/// Processes in the kernel that have lines of their own.
const BLOCKED_MAX: usize = 10;

/// The whole of procfs is looked through at most so often, in milliseconds.
const SCAN_MS: Millis = 60_000;

/// Processes looked at in one scan.
const SCAN_MAX: usize = 65_536;

/// Open files of a process that are looked at.
const FILES_MAX: usize = 4096;

/// The first namespace of processes, as the kernel numbers it since 3.8.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// What the processes on the GPUs come to.
pub struct Tenants {
    owners: Owners,
    procfs: PathBuf,
    rootfs: PathBuf,
    sees_all: bool,
    top: usize,
    blocked_at: Option<Millis>,
    blocked: Vec<Blocked>,
    reader: Reader,
}

/// A process that hangs in the kernel with a GPU open.
#[derive(Debug, Clone, PartialEq)]
struct Blocked {
    pid: u32,
    device: String,
    owner: Owner,
}

/// A process with what procfs knows of it.
struct Tenant<'a> {
    process: &'a GpuProcess,
    /// `None` for a process that procfs does not have.
    owner: Option<Owner>,
}

impl Tenants {
    /// `top`: processes of one GPU that have lines of their own.
    pub fn new(paths: &Paths, top: usize) -> Self {
        // A fake has no such link; then it has the processes that its driver lists, or none at all.
        let namespace = fs::read_link(paths.proc("self/ns/pid")).ok();
        let has_processes = || paths.proc("1/stat").exists();
        Self {
            owners: Owners::new(paths),
            procfs: paths.procfs.clone(),
            rootfs: paths.rootfs.clone(),
            sees_all: namespace.map_or_else(has_processes, |link| link.to_string_lossy() == FIRST_NAMESPACE),
            top,
            blocked_at: None,
            blocked: Vec::new(),
            reader: Reader::default(),
        }
    }

    /// The families of the readings.
    pub fn families(&mut self, now: Millis, boards: &Boards, readings: &[Reading]) -> Vec<Family> {
        let mut lines = Lines::new();
        for reading in readings.iter().filter(|r| r.state == GpuState::Ok) {
            let Some(processes) = &reading.processes else { continue };
            let mut tenants: Vec<Tenant<'_>> = processes.iter().map(|process| self.tenant(process)).collect();
            tenants.sort_by_key(|t| (std::cmp::Reverse(t.process.memory_bytes), t.process.pid));
            lines.of_gpu(reading, &tenants, self.top);
            if self.sees_all {
                lines.concluded(reading, boards, tenants.iter().any(|t| t.owner.is_some()));
            }
        }
        self.scan(now, readings);
        lines.blocked(&self.blocked);
        lines.families()
    }

    fn tenant<'a>(&mut self, process: &'a GpuProcess) -> Tenant<'a> {
        let status = self.owners.status(process.pid).filter(|status| status.is_live());
        let owner = status.map(|status| self.owners.owner(process.pid, status));
        Tenant { process, owner }
    }

    /// Looks for processes that sleep where no signal reaches them, with a GPU open.
    fn scan(&mut self, now: Millis, readings: &[Reading]) {
        if self.blocked_at.is_some_and(|at| (0..SCAN_MS).contains(&(now - at))) {
            return;
        }
        self.blocked_at = Some(now);
        self.blocked.clear();
        let pids = fs::read_dir(&self.procfs)
            .into_iter()
            .flatten()
            .flatten()
            .take(SCAN_MAX);
        let pids: Vec<u32> = pids.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
        for pid in pids {
            let folder = self.procfs.join(pid.to_string());
            let stat = self.reader.text(&folder.join("stat")).ok().and_then(parse_stat);
            let Some(status) = stat.filter(|status| status.state == 'D') else {
                continue;
            };
            // Without the right to look into its files, the driver's list tells that it has one open.
            let listed = || {
                let on = readings
                    .iter()
                    .find(|r| r.processes.iter().flatten().any(|p| p.pid == pid));
                on.map(|reading| format!("nvidia{}", reading.identity.index))
            };
            if let Some(device) = self.open_device(&folder).or_else(listed) {
                let owner = self.owners.owner(pid, status);
                self.blocked.push(Blocked { pid, device, owner });
            }
        }
        self.blocked.sort_by_key(|blocked| blocked.pid);
    }

    /// The first `/dev/nvidia*` that the process has open.
    fn open_device(&self, folder: &std::path::Path) -> Option<String> {
        let dev = self.rootfs.join("dev");
        let files = fs::read_dir(folder.join("fd")).ok()?.flatten().take(FILES_MAX);
        let mut names = files.filter_map(|file| {
            let target = fs::read_link(file.path()).ok()?;
            let path = target
                .strip_prefix("/dev")
                .or_else(|_| target.strip_prefix(&dev))
                .ok()?;
            path.to_str()
                .filter(|name| name.starts_with("nvidia"))
                .map(str::to_owned)
        });
        names.next()
    }
}

/// The families of a capture: what it tells of processes, and nothing that only a live machine knows.
pub fn told(readings: &[Reading]) -> Vec<Family> {
    let mut lines = Lines::new();
    for reading in readings.iter().filter(|r| r.state == GpuState::Ok) {
        let Some(processes) = &reading.processes else { continue };
        let mut tenants: Vec<Tenant<'_>> = processes
            .iter()
            .map(|process| Tenant { process, owner: None })
            .collect();
        tenants.sort_by_key(|t| (std::cmp::Reverse(t.process.memory_bytes), t.process.pid));
        lines.of_gpu(reading, &tenants, PROCESSES_MAX);
    }
    lines.families()
}

/// The lines, family by family.
struct Lines {
    memory: Family,
    share: Family,
    bandwidth: Family,
    count: Family,
    ghost: Family,
    orphan: Family,
    blocked: Family,
    blocked_count: Family,
}

impl Lines {
    fn new() -> Self {
        let gauge = |name: &str, help: &str| Family::new(name, Kind::Gauge, help);
        Self {
            memory: gauge(
                "watchfire_gpu_process_memory_bytes",
                "Device memory of a process; those beyond the largest are summed up without a pid.",
            ),
            share: gauge(
                "watchfire_gpu_process_sm_ratio",
                "Share of the multiprocessors' time that a process had (0 to 1).",
            ),
            bandwidth: gauge(
                "watchfire_gpu_process_memory_busy_ratio",
                "Share of the time in which a process read or wrote device memory (0 to 1).",
            ),
            count: gauge("watchfire_gpu_processes", "Processes with a context on the GPU."),
            ghost: gauge(
                "watchfire_gpu_ghost",
                "Whether the GPU is busy and no live process has a context on it.",
            ),
            orphan: gauge(
                "watchfire_gpu_orphan_memory_bytes",
                "Device memory in use while no live process has a context on the GPU.",
            ),
            blocked: gauge(
                "watchfire_gpu_blocked_process",
                "A process with a GPU open that sleeps in the kernel where no signal reaches it; the value is always 1.",
            ),
            blocked_count: gauge(
                "watchfire_gpu_blocked_processes",
                "Processes with a GPU open that sleep in the kernel where no signal reaches them.",
            ),
        }
    }

    fn of_gpu(&mut self, reading: &Reading, tenants: &[Tenant<'_>], top: usize) {
        let (shown, rest) = tenants.split_at(tenants.len().min(top));
        for tenant in shown {
            let labels = || labels_of(reading, tenant);
            let share = |percent: Option<u32>| percent.map(|percent| f64::from(percent) / 100.0);
            self.memory.push_some(labels, tenant.process.memory_bytes.map(to_f64));
            self.share.push_some(labels, share(tenant.process.sm_percent));
            self.bandwidth.push_some(labels, share(tenant.process.memory_percent));
        }
        if !rest.is_empty() {
            let mut labels = reading.identity.labels();
            labels.push(("name", format!("{} others", rest.len())));
            let sum = rest
                .iter()
                .filter_map(|tenant| tenant.process.memory_bytes)
                .map(to_f64)
                .sum();
            self.memory.push(labels, sum);
        }
        let count = u32::try_from(tenants.len()).unwrap_or(u32::MAX);
        self.count.push(reading.identity.labels(), count.into());
    }

    /// What follows from there being a live process or none.
    fn concluded(&mut self, reading: &Reading, boards: &Boards, is_used: bool) {
        let ghost = boards.is_loaded(reading).map(|loaded| loaded && !is_used);
        let labels = || reading.identity.labels();
        self.ghost
            .push_some(labels, ghost.map(|ghost| f64::from(u8::from(ghost))));
        let used = reading.number("memory_used");
        let orphan = used.map(|used| {
            if is_used || used <= boards.idle_memory() {
                0.0
            } else {
                used
            }
        });
        self.orphan.push_some(labels, orphan);
    }

    fn blocked(&mut self, blocked: &[Blocked]) {
        for one in blocked.iter().take(BLOCKED_MAX) {
            let mut labels = vec![("pid", one.pid.to_string()), ("device", one.device.clone())];
            labels.extend(owner_labels(&one.owner));
            self.blocked.push(labels, 1.0);
        }
        let count = u32::try_from(blocked.len()).unwrap_or(u32::MAX);
        self.blocked_count.push(Vec::new(), count.into());
    }

    fn families(self) -> Vec<Family> {
        vec![
            self.memory,
            self.share,
            self.bandwidth,
            self.count,
            self.ghost,
            self.orphan,
            self.blocked,
            self.blocked_count,
        ]
    }
}

fn labels_of(reading: &Reading, tenant: &Tenant<'_>) -> Vec<(&'static str, String)> {
    let process = tenant.process;
    let mut labels = reading.identity.labels();
    if let Some(instance) = process.gpu_instance {
        labels.push(("GPU_I_ID", instance.to_string()));
    }
    labels.push(("pid", process.pid.to_string()));
    labels.push(("type", process.kind.as_str().to_owned()));
    match &tenant.owner {
        Some(owner) if process.name.is_empty() => labels.extend(owner_labels(owner)),
        Some(owner) => {
            labels.push(("name", process.name.clone()));
            labels.extend(owner_labels(owner).into_iter().filter(|(name, _)| *name != "name"));
        }
        None => labels.push(("name", process.name.clone())),
    }
    labels.retain(|(_, value)| !value.is_empty());
    labels
}

fn owner_labels(owner: &Owner) -> Vec<(&'static str, String)> {
    let place = &owner.place;
    let mut labels = vec![
        ("name", owner.name.clone()),
        ("user", owner.user.clone()),
        ("container", place.container.clone()),
        ("pod", place.pod.clone()),
        ("unit", place.unit.clone()),
        ("slurm_job", place.job.clone()),
    ];
    labels.retain(|(_, value)| !value.is_empty());
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::identity::Identity;
    use std::path::Path;

    const ID: &str = "3f4e8a1c0d9b2f6e5a7c8d1e0f3b4a5c6d7e8f90a1b2c3d4e5f60718293a4b5c";

    /// A machine with a process in a container, a zombie, and one that hangs with a GPU open.
    fn machine() -> (tempfile::TempDir, Paths) {
        let folder = tempfile::tempdir().expect("a folder");
        let proc = folder.path().join("proc");
        let put = |pid: u32, state: char, name: &str, cgroup: &str| {
            let own = proc.join(pid.to_string());
            fs::create_dir_all(own.join("fd")).expect("a folder");
            let stat = format!("{pid} ({name}) {state} 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {pid} 0 0");
            fs::write(own.join("stat"), stat).expect("a file");
            fs::write(own.join("comm"), format!("{name}\n")).expect("a file");
            fs::write(own.join("status"), "Name:\tx\nUid:\t1000\t1000\t1000\t1000\n").expect("a file");
            fs::write(own.join("cgroup"), cgroup).expect("a file");
        };
        put(1, 'S', "init", "0::/init.scope\n");
        put(100, 'R', "python3", &format!("0::/system.slice/docker-{ID}.scope\n"));
        put(200, 'Z', "gone", "0::/\n");
        put(300, 'D', "stuck", "0::/system.slice/train.service\n");
        std::os::unix::fs::symlink("/dev/nvidia3", proc.join("300/fd/7")).expect("a link");
        put(301, 'D', "disk", "0::/system.slice/backup.service\n");
        std::os::unix::fs::symlink("/dev/sda", proc.join("301/fd/7")).expect("a link");
        fs::create_dir_all(folder.path().join("etc")).expect("a folder");
        fs::write(
            folder.path().join("etc/passwd"),
            "root:x:0:0::/:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n",
        )
        .expect("a file");
        let paths = Paths {
            procfs: proc,
            rootfs: folder.path().to_owned(),
            ..Paths::default()
        };
        (folder, paths)
    }

    fn reading(utilization: f64, used_mib: f64, processes: &[(u32, u64)]) -> Reading {
        let process = |(pid, memory): &(u32, u64)| GpuProcess {
            pid: *pid,
            memory_bytes: Some(*memory),
            sm_percent: Some(40),
            ..GpuProcess::default()
        };
        Reading {
            numbers: [
                ("utilization_gpu", utilization),
                ("memory_used", used_mib * 1_048_576.0),
            ]
            .into(),
            processes: Some(processes.iter().map(process).collect()),
            ..Reading::without(Identity::unknown(0), GpuState::Ok)
        }
    }

    fn families(paths: &Paths, reading: Reading, top: usize) -> Vec<Family> {
        let boards = Boards::embedded().expect("our own table");
        Tenants::new(paths, top).families(0, &boards, &[reading])
    }

    fn first(families: &[Family], name: &str) -> Option<f64> {
        families
            .iter()
            .find(|f| f.name == name)?
            .metrics
            .first()
            .map(|m| m.value)
    }

    #[test]
    fn a_process_has_its_owner_and_the_smaller_ones_are_summed_up() {
        let (_folder, paths) = machine();
        let all = families(&paths, reading(97.0, 50_000.0, &[(300, 5), (100, 10), (1, 2)]), 2);
        let memory = &all
            .iter()
            .find(|f| f.name == "watchfire_gpu_process_memory_bytes")
            .expect("a family")
            .metrics;
        let has = |i: usize, name: &str, value: &str| {
            memory[i].labels.contains(&(
                match name {
                    "user" => "user",
                    "container" => "container",
                    "unit" => "unit",
                    "pid" => "pid",
                    _ => "name",
                },
                value.to_owned(),
            ))
        };
        assert!(
            has(0, "name", "python3") && has(0, "user", "ada") && has(0, "container", "3f4e8a1c0d9b"),
            "{memory:?}"
        );
        assert!(has(1, "pid", "300") && has(1, "unit", "train.service"), "{memory:?}");
        assert!(has(2, "name", "1 others") && memory[2].value == 2.0, "{memory:?}");
        assert_eq!(first(&all, "watchfire_gpu_process_sm_ratio"), Some(0.4));
        assert_eq!(first(&all, "watchfire_gpu_ghost"), Some(0.0));
    }

    #[test]
    fn a_busy_gpu_without_a_live_process_is_a_ghost_and_its_memory_an_orphan() {
        let (_folder, paths) = machine();
        for processes in [&[][..], &[(200, 7)], &[(4711, 7)]] {
            let all = families(&paths, reading(100.0, 40_000.0, processes), 10);
            assert_eq!(first(&all, "watchfire_gpu_ghost"), Some(1.0), "{processes:?}");
            assert_eq!(
                first(&all, "watchfire_gpu_orphan_memory_bytes"),
                Some(40_000.0 * 1_048_576.0)
            );
        }
        let idle = families(&paths, reading(0.0, 600.0, &[]), 10);
        assert_eq!(first(&idle, "watchfire_gpu_ghost"), Some(0.0));
        assert_eq!(
            first(&idle, "watchfire_gpu_orphan_memory_bytes"),
            Some(0.0),
            "the driver's own"
        );
    }

    #[test]
    fn where_not_all_processes_are_seen_nothing_is_concluded() {
        let (folder, paths) = machine();
        fs::create_dir_all(folder.path().join("proc/self/ns")).expect("a folder");
        std::os::unix::fs::symlink("pid:[4026532999]", folder.path().join("proc/self/ns/pid")).expect("a link");
        let all = families(&paths, reading(100.0, 40_000.0, &[]), 10);
        assert_eq!(first(&all, "watchfire_gpu_ghost"), None);
        assert_eq!(first(&all, "watchfire_gpu_orphan_memory_bytes"), None);
        let empty = Paths {
            procfs: Path::new("/nonexistent").to_owned(),
            ..Paths::default()
        };
        assert_eq!(
            first(
                &families(&empty, reading(100.0, 40_000.0, &[]), 10),
                "watchfire_gpu_ghost"
            ),
            None
        );
    }

    #[test]
    fn what_hangs_in_the_kernel_with_a_gpu_open_is_named_and_a_slow_disk_is_not() {
        let (_folder, paths) = machine();
        let all = families(&paths, reading(0.0, 0.0, &[]), 10);
        assert_eq!(first(&all, "watchfire_gpu_blocked_processes"), Some(1.0));
        let line = &all
            .iter()
            .find(|f| f.name == "watchfire_gpu_blocked_process")
            .expect("a family")
            .metrics[0];
        assert!(line.labels.contains(&("device", "nvidia3".to_owned())), "{line:?}");
        assert!(line.labels.contains(&("unit", "train.service".to_owned())), "{line:?}");
    }
}
