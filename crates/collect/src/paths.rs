//! Where the machine is to be found.

use std::path::{Path, PathBuf};

/// Where the machine is to be found: parameters, so that containers and fakes use the same code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// `--path.procfs`, `/proc`.
    pub procfs: PathBuf,
    /// `--path.sysfs`, `/sys`.
    pub sysfs: PathBuf,
    /// `--path.rootfs`, `/`: put before mount points that are asked for their size.
    pub rootfs: PathBuf,
    /// `--path.udev`, `/run/udev/data`.
    pub udev: PathBuf,
    /// `--path.kmsg`, `/dev/kmsg`.
    pub kmsg: PathBuf,
    /// `--nvml-library`; by default the system's `libnvidia-ml.so.1`.
    pub nvml_library: Option<PathBuf>,
    /// The textfile collector's folder; by default none.
    pub textfile: Option<PathBuf>,
}

impl Default for Paths {
    fn default() -> Self {
        Self {
            procfs: "/proc".into(),
            sysfs: "/sys".into(),
            rootfs: "/".into(),
            udev: "/run/udev/data".into(),
            kmsg: "/dev/kmsg".into(),
            nvml_library: None,
            textfile: None,
        }
    }
}

impl Paths {
    /// A file below procfs.
    #[must_use]
    pub fn proc(&self, rest: impl AsRef<Path>) -> PathBuf {
        self.procfs.join(rest)
    }

    /// A file below sysfs.
    #[must_use]
    pub fn sys(&self, rest: impl AsRef<Path>) -> PathBuf {
        self.sysfs.join(rest)
    }

    /// A mount point as it is seen from here.
    #[must_use]
    pub fn root(&self, mount_point: &str) -> PathBuf {
        self.rootfs.join(mount_point.trim_start_matches('/'))
    }
}
