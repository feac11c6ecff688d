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
        // A fake has no such link, and then has all processes that its driver lists.
        let namespace = fs::read_link(paths.proc("self/ns/pid")).ok();
        Self {
            owners: Owners::new(paths),
            procfs: paths.procfs.clone(),
            rootfs: paths.rootfs.clone(),
            sees_all: namespace.is_none_or(|link| link.to_string_lossy() == FIRST_NAMESPACE),
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
