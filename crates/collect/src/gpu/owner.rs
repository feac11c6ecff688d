//! Whose a process is: name and user from procfs, container, pod, unit and job from the path of its cgroup.
//!
//! Cgroup paths are made by container engines and by systemd, each in its own way; an id of 64 hexadecimal digits is a
//! container's in all of them. Nothing is asked over the network.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::Paths;
use crate::source::Reader;

/// Processes remembered; far more than GPUs carry. When it is full it begins anew.
const OWNERS_MAX: usize = 4096;

/// Letters of a container's id that are shown, as its engine shows it.
const ID_LETTERS: usize = 12;

/// Letters of a name that are shown.
const NAME_LETTERS: usize = 64;

/// Whose a process is; texts are empty where nobody tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Owner {
    /// The command's name, as the kernel has it.
    pub name: String,
    /// The user's name, or number.
    pub user: String,
    /// Where it runs.
    pub place: Place,
}

/// Where a process runs, as its cgroup tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// A container, by the first letters of its id, or by its name where that is what stands there.
    pub container: String,
    /// A pod of Kubernetes, by its UID.
    pub pod: String,
    /// A unit of systemd.
    pub unit: String,
    /// A job of Slurm.
    pub job: String,
}

/// The state of a process in `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// `R`, `S`, `D`, `Z` and so on.
    pub state: char,
    /// When it began, in ticks since boot: a process id is used again, this pair is not.
    pub start: u64,
}

impl Status {
    /// Whether it can hold anything: neither dead nor a zombie.
    pub const fn is_live(self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x')
    }
}

/// Looks processes up, each once in its life.
pub struct Owners {
    procfs: PathBuf,
    passwd: PathBuf,
    users: HashMap<u32, String>,
    known: HashMap<(u32, u64), Owner>,
    reader: Reader,
}

impl Owners {
    pub fn new(paths: &Paths) -> Self {
        Self {
            procfs: paths.procfs.clone(),
            passwd: paths.root("/etc/passwd"),
            users: HashMap::new(),
            known: HashMap::new(),
            reader: Reader::default(),
        }
    }

    /// The state of a process; `None` where there is none of that id.
    pub fn status(&mut self, pid: u32) -> Option<Status> {
        let path = self.procfs.join(pid.to_string()).join("stat");
        parse_stat(self.reader.text(&path).ok()?)
    }

    /// Whose a live process is.
    pub fn owner(&mut self, pid: u32, status: Status) -> Owner {
        let key = (pid, status.start);
        if let Some(owner) = self.known.get(&key) {
            return owner.clone();
        }
        if self.known.len() >= OWNERS_MAX {
            self.known.clear();
        }
        let folder = self.procfs.join(pid.to_string());
        let name = self.reader.word(&folder.join("comm")).unwrap_or_default();
        let name: String = name.chars().take(NAME_LETTERS).collect();
        let uid = self.reader.text(&folder.join("status")).ok().and_then(parse_uid);
        let place = self
            .reader
            .text(&folder.join("cgroup"))
            .map(Place::parse)
            .unwrap_or_default();
        let user = uid.map(|uid| self.user(uid)).unwrap_or_default();
        let owner = Owner { name, user, place };
        self.known.insert(key, owner.clone());
        owner
    }

    fn user(&mut self, uid: u32) -> String {
        if !self.users.contains_key(&uid)
            && let Ok(passwd) = self.reader.text(&self.passwd)
        {
            self.users = passwd.lines().filter_map(parse_user).take(OWNERS_MAX).collect();
        }
        self.users.entry(uid).or_insert_with(|| uid.to_string()).clone()
    }
}

/// `1234 (a name) with ) in it) S 1 …`: the name ends at the last bracket.
pub fn parse_stat(text: &str) -> Option<Status> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    // The state is the third field of the line, the start the twenty-second.
    let start = fields.nth(18)?.parse().ok()?;
    Some(Status { state, start })
}

fn parse_uid(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

fn parse_user(line: &str) -> Option<(u32, String)> {
    let mut fields = line.split(':');
    let name = fields.next()?;
    Some((fields.nth(1)?.parse().ok()?, name.to_owned()))
}

impl Place {
    /// Reads `/proc/PID/cgroup`, of either version.
    ///
    /// Version 1 has a line for each hierarchy; the one that tells the most counts.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let paths = text.lines().take(64).filter_map(|line| line.splitn(3, ':').nth(2));
        let places = paths.map(Self::of_path);
        places.reduce(Self::merge).unwrap_or_default()
    }

    fn merge(self, other: Self) -> Self {
        let or = |a: String, b: String| if a.is_empty() { b } else { a };
        Self {
            container: or(self.container, other.container),
            pod: or(self.pod, other.pod),
            unit: or(self.unit, other.unit),
            job: or(self.job, other.job),
        }
    }

    fn of_path(path: &str) -> Self {
        let mut place = Self::default();
        let mut before = "";
        for part in path.split('/').filter(|part| !part.is_empty()) {
            if let Some(id) = container_id(part) {
                id.get(..ID_LETTERS).unwrap_or(id).clone_into(&mut place.container);
            } else if let Some(name) = part.strip_prefix("lxc.payload.") {
                name.clone_into(&mut place.container);
            } else if before == "lxc" && part != "payload" {
                part.clone_into(&mut place.container);
            } else if let Some(name) = part.strip_prefix("machine-").and_then(|p| p.strip_suffix(".scope")) {
                place.container = unescape(name);
            }
            if let Some(uid) = pod_uid(part) {
                place.pod = uid;
            }
            if let Some(job) = part.strip_prefix("job_").filter(|job| is_number(job)) {
                job.clone_into(&mut place.job);
            }
            // The deepest unit is the one that was started; a slice only holds others.
            if (part.ends_with(".service") || part.ends_with(".scope")) && container_id(part).is_none() {
                place.unit = unescape(part);
            }
            before = part;
        }
        // The engine's own unit says nothing of what runs in the container.
        if !place.container.is_empty() || !place.pod.is_empty() {
            place.unit.clear();
        }
        place
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// The id in `docker-<id>.scope`, `cri-containerd-<id>.scope`, `crio-<id>.scope`, `libpod-<id>.scope`, or `<id>` alone;
/// also `…:cri-containerd:<id>`.
fn container_id(part: &str) -> Option<&str> {
    let part = part.strip_suffix(".scope").unwrap_or(part);
    let id = part.rsplit(['-', ':']).next()?;
    // The scope of the process that watches a container carries its id too, and is not the container.
    let is_monitor = part.contains("conmon");
    (id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit()) && !is_monitor).then_some(id)
}

/// The UID in `pod<uid>`, `kubepods-besteffort-pod<uid with underscores>.slice`; those of static pods have 32 digits.
fn pod_uid(part: &str) -> Option<String> {
    let part = part.split(':').next().unwrap_or(part);
    let part = part.strip_suffix(".slice").unwrap_or(part);
    let uid = part.strip_prefix("pod").or_else(|| {
        let is_kubernetes = part.starts_with("kubepods") || part.starts_with("kubelet-kubepods");
        part.rsplit_once("-pod").map(|(_, uid)| uid).filter(|_| is_kubernetes)
    })?;
    let uid = uid.replace('_', "-");
    let digits = uid.bytes().filter(u8::is_ascii_hexdigit).count();
    let is_uid = digits == 32 && uid.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    is_uid.then_some(uid)
}

/// systemd writes `-` in a name as `\x2d`.
fn unescape(unit: &str) -> String {
    unit.replace("\\x2d", "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3f4e8a1c0d9b2f6e5a7c8d1e0f3b4a5c6d7e8f90a1b2c3d4e5f60718293a4b5c";

    #[track_caller]
    fn check(path: &str, container: &str, pod: &str, unit: &str) {
        let place = Place::parse(&format!("0::{}\n", path.replace("ID", ID)));
        assert_eq!(
            (place.container.as_str(), place.pod.as_str(), place.unit.as_str()),
            (container, pod, unit)
        );
    }

    #[test]
    fn containers_of_each_engine_are_known_by_their_id() {
        check("/system.slice/docker-ID.scope", "3f4e8a1c0d9b", "", "");
        check("/docker/ID", "3f4e8a1c0d9b", "", "");
        check("/system.slice/docker-ID.scope/init.scope", "3f4e8a1c0d9b", "", "");
        check("/machine.slice/libpod-ID.scope/container", "3f4e8a1c0d9b", "", "");
        check(
            "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope",
            "3f4e8a1c0d9b",
            "",
            "",
        );
        check("/system.slice/nerdctl-ID.scope", "3f4e8a1c0d9b", "", "");
        check("/lxc.payload.train/system.slice/a.service", "train", "", "");
        check("/machine.slice/machine-my\\x2dbox.scope/payload", "my-box", "", "");
        check(
            "/machine.slice/libpod-conmon-ID.scope",
            "",
            "",
            "libpod-conmon-3f4e8a1c0d9b2f6e5a7c8d1e0f3b4a5c6d7e8f90a1b2c3d4e5f60718293a4b5c.scope",
        );
    }

    #[test]
    fn pods_are_known_by_their_uid() {
        let uid = "0a1b2c3d-4e5f-4678-9abc-def012345678";
        check(
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b2c3d_4e5f_4678_9abc_def012345678.slice/cri-containerd-ID.scope",
            "3f4e8a1c0d9b",
            uid,
            "",
        );
        check(
            "/kubepods/besteffort/pod0a1b2c3d-4e5f-4678-9abc-def012345678/ID",
            "3f4e8a1c0d9b",
            uid,
            "",
        );
        check(
            "/kubepods.slice/kubepods-pod0a1b2c3d_4e5f_4678_9abc_def012345678.slice/crio-ID.scope",
            "3f4e8a1c0d9b",
            uid,
            "",
        );
        check(
            "/system.slice/containerd.service/kubepods-pod0a1b2c3d_4e5f_4678_9abc_def012345678.slice:cri-containerd:ID",
            "3f4e8a1c0d9b",
            uid,
            "",
        );
    }

    #[test]
    fn units_are_the_deepest_ones() {
        check("/system.slice/vllm.service", "", "", "vllm.service");
        check("/user.slice/user-1000.slice/session-3.scope", "", "", "session-3.scope");
        check(
            "/user.slice/user-1000.slice/user@1000.service/app.slice/app-code\\x2dx.scope",
            "",
            "",
            "app-code-x.scope",
        );
        check("/", "", "", "");
        check("/../../user.slice", "", "", "");
    }

    #[test]
    fn version_1_has_a_line_for_each_hierarchy() {
        let text =
            format!("12:pids:/docker/{ID}\n11:memory:/docker/{ID}\n1:name=systemd:/system.slice/x.service\n0::/\n");
        let place = Place::parse(&text);
        assert_eq!(place.container, "3f4e8a1c0d9b");
    }

    #[test]
    fn a_job_of_slurm_has_its_number() {
        let job = |text: &str| Place::parse(text).job;
        assert_eq!(
            job("0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n"),
            "4711"
        );
        assert_eq!(job("5:devices:/slurm/uid_1000/job_12/step_batch\n"), "12");
    }

    #[test]
    fn a_name_may_hold_brackets() {
        let stat = "77 (a) b) D 1 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        assert_eq!(
            parse_stat(stat),
            Some(Status {
                state: 'D',
                start: 12345
            })
        );
        assert_eq!(parse_stat("77 (a"), None);
    }

    #[test]
    fn a_broken_file_is_nobodys() {
        for text in ["", "\n", "0", "0::", "::", "a:b"] {
            assert_eq!(Place::parse(text), Place::default(), "{text:?}");
        }
    }
}
