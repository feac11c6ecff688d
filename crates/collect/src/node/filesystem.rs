//! Mounted file systems and how full they are.
//!
//! Asking a dead network mount for its size blocks inside the kernel, and the thread that asked cannot be killed. So
//! another thread asks ([`Prober`]); the mount on which it is late is *stuck*: it is reported with
//! `node_filesystem_device_error` and not asked again until that thread comes back.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use model::{Family, Kind, Millis};

use super::label;
use crate::source::Reader;
use crate::{Collector, Error, Paths, Readings, State};

use probe::{Answer, Prober};

mod probe;

/// Mount points beyond this are not looked at, and the rest is named in an error.
const MOUNTS_MAX: usize = 4096;

/// Collects `node_filesystem_*`.
pub struct Filesystem {
    paths: Paths,
    reader: Reader,
    prober: Prober,
}

/// A line of `mountinfo`.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    major: String,
    minor: String,
    mount_point: String,
    fstype: String,
    device: String,
    read_only: bool,
}

impl Filesystem {
    /// Reads below procfs; mount points are looked up below rootfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            paths: paths.clone(),
            reader: Reader::default(),
            prober: Prober::default(),
        }
    }

    /// The mounts that are wanted: those of process 1, which sees the host's, else our own.
    fn mounts(&mut self) -> Result<Vec<Mount>, Error> {
        let host = self.paths.proc("1/mountinfo");
        let own = self.paths.proc("self/mountinfo");
        let path = if std::fs::File::open(&host).is_ok() { host } else { own };
        let text = self.reader.text(&path)?;
        let mut mounts = Vec::new();
        let mut seen = HashSet::new();
        for (i, line) in text.lines().enumerate() {
            let mount = parse(line).ok_or_else(|| Error::form(&path, i + 1, "a mount", line))?;
            let mount = below_root(mount, &self.paths.rootfs);
            if is_ignored_point(&mount.mount_point) || is_ignored_type(&mount.fstype) {
                continue;
            }
            let identity = (mount.device.clone(), mount.mount_point.clone(), mount.fstype.clone());
            if seen.insert(identity) {
                mounts.push(mount);
            }
        }
        Ok(mounts)
    }
}

impl Collector for Filesystem {
    fn name(&self) -> &'static str {
        "filesystem"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        let mut mounts = match self.mounts() {
            Ok(mounts) => mounts,
            Err(error) => return Readings::failed(error),
        };
        let mut readings = Readings::of(Vec::new());
        if mounts.len() > MOUNTS_MAX {
            readings.errors.push(Error::Source {
                what: "mounts",
                state: State::Unsupported,
                reason: format!("{} mounts, of which {MOUNTS_MAX} are looked at", mounts.len()),
            });
            mounts.truncate(MOUNTS_MAX);
        }
        let points: Vec<PathBuf> = mounts.iter().map(|m| self.paths.root(&m.mount_point)).collect();
        let answers = self.prober.ask(&points);
        for (answer, point) in answers.iter().zip(&points) {
            if let Some(error) = answer.error(point) {
                readings.errors.push(error);
            }
        }
        readings.families = families(&mounts, &answers);
        readings
    }
}

fn families(mounts: &[Mount], answers: &[Answer]) -> Vec<Family> {
    let gauge = |name: &str, help: &str| Family::new(name, Kind::Gauge, help);
    let mut error = gauge(
        "node_filesystem_device_error",
        "Whether an error occurred while getting statistics for the given device.",
    );
    let mut read_only = gauge("node_filesystem_readonly", "Filesystem read-only status.");
    let mut info = gauge("node_filesystem_mount_info", "Filesystem mount information.");
    let mut sizes = [
        ("node_filesystem_size_bytes", "Filesystem size in bytes."),
        ("node_filesystem_free_bytes", "Filesystem free space in bytes."),
        (
            "node_filesystem_avail_bytes",
            "Filesystem space available to non-root users in bytes.",
        ),
        ("node_filesystem_files", "Filesystem total file nodes."),
        ("node_filesystem_files_free", "Filesystem total free file nodes."),
    ]
    .map(|(name, help)| gauge(name, help));
    for (mount, answer) in mounts.iter().zip(answers) {
        let failure = answer.failure();
        let labels = || {
            vec![
                label("device", &mount.device),
                ("device_error", failure.clone()),
                label("fstype", &mount.fstype),
                label("mountpoint", &mount.mount_point),
            ]
        };
        error.push(labels(), f64::from(u8::from(!failure.is_empty())));
        read_only.push(labels(), f64::from(u8::from(mount.read_only)));
        if let Answer::Sizes(values) = answer {
            for (family, value) in sizes.iter_mut().zip(values) {
                family.push(labels(), *value);
            }
            let labels = vec![
                label("device", &mount.device),
                label("major", &mount.major),
                label("minor", &mount.minor),
                label("mountpoint", &mount.mount_point),
            ];
            info.push(labels, 1.0);
        }
    }
    [error, read_only, info].into_iter().chain(sizes).collect()
}

/// The mount with its mount point as the host knows it. In a container, process 1 may be the host's (points without
/// the prefix) or the container's (points with it).
fn below_root(mut mount: Mount, root: &Path) -> Mount {
    let root = root.to_str().unwrap_or("").trim_end_matches('/');
    let rest = mount.mount_point.strip_prefix(root).filter(|_| !root.is_empty());
    if let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
        mount.mount_point = if rest.is_empty() { "/".into() } else { rest.into() };
    }
    mount
}

/// `36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=continue`.
fn parse(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split_ascii_whitespace().skip(2);
    let (major, minor) = fields.next()?.split_once(':')?;
    let mount_point = unescape(fields.nth(1)?);
    let options = fields.next()?;
    let mut rest = after.split_ascii_whitespace();
    let (fstype, device) = (rest.next()?, rest.next()?);
    let super_options = rest.next().unwrap_or("");
    let read_only = options.split(',').chain(super_options.split(',')).any(|o| o == "ro");
    Some(Mount {
        major: major.to_owned(),
        minor: minor.to_owned(),
        mount_point,
        fstype: fstype.to_owned(),
        device: unescape(device),
        read_only,
    })
}

/// The kernel writes space, tab, newline and backslash as `\ooo`.
fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| first == b'\\').and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 8).ok()
        });
        if let Some(byte) = octal {
            out.push(byte);
            rest = &after[3..];
        } else {
            out.push(first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// node_exporter's default: `^/(dev|proc|run/credentials/.+|sys|var/lib/docker/.+|var/lib/containers/storage/.+)($|/)`.
fn is_ignored_point(point: &str) -> bool {
    let within = |root: &str| {
        let rest = point.strip_prefix(root);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let below = |root: &str| point.strip_prefix(root).is_some_and(|rest| !rest.is_empty());
    ["/dev", "/proc", "/sys"].into_iter().any(within)
        || ["/run/credentials/", "/var/lib/docker/", "/var/lib/containers/storage/"]
            .into_iter()
            .any(below)
}

/// node_exporter's default list of file systems that hold no files of anybody.
fn is_ignored_type(fstype: &str) -> bool {
    matches!(
        fstype,
        "autofs"
            | "binfmt_misc"
            | "bpf"
            | "cgroup"
            | "cgroup2"
            | "configfs"
            | "debugfs"
            | "devpts"
            | "devtmpfs"
            | "fusectl"
            | "hugetlbfs"
            | "iso9660"
            | "mqueue"
            | "nsfs"
            | "overlay"
            | "proc"
            | "procfs"
            | "pstore"
            | "rpc_pipefs"
            | "securityfs"
            | "selinuxfs"
            | "squashfs"
            | "erofs"
            | "sysfs"
            | "tracefs"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo_is_read_with_its_escapes() {
        let line = r"36 35 98:0 /r /mnt/a\040b rw,noatime shared:1 master:2 - ext4 /dev/sda1 ro,errors=continue";
        let want = Mount {
            major: "98".into(),
            minor: "0".into(),
            mount_point: "/mnt/a b".into(),
            fstype: "ext4".into(),
            device: "/dev/sda1".into(),
            read_only: true,
        };
        assert_eq!(parse(line), Some(want));
        assert_eq!(parse("36 35 98:0 / /x rw"), None);
        assert_eq!(unescape(r"a\134b\9"), r"a\b\9");
    }

    #[test]
    fn points_of_the_system_are_left_out() {
        for point in [
            "/dev",
            "/dev/shm",
            "/proc/sys",
            "/sys",
            "/var/lib/docker/x",
            "/run/credentials/a",
        ] {
            assert!(is_ignored_point(point), "{point}");
        }
        for point in ["/", "/devices", "/run", "/var/lib/docker", "/home"] {
            assert!(!is_ignored_point(point), "{point}");
        }
    }
}
