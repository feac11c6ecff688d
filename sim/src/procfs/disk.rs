//! Drives and file systems: `diskstats`, `mounts`, `mountinfo`.

use crate::host::HostState;
use crate::load::round_u64;
use crate::scenario::Scenario;

/// Device, mount point, type, options. Sizes come from whatever file system the reader asks about,
/// so only mount points that every machine has are here.
const MOUNTS: [(&str, &str, &str, &str); 5] = [
    ("/dev/nvme0n1p2", "/", "ext4", "rw,relatime"),
    ("tmpfs", "/run", "tmpfs", "rw,nosuid,nodev,size=211288064k,mode=755"),
    ("tmpfs", "/dev/shm", "tmpfs", "rw,nosuid,nodev"),
    ("sysfs", "/sys", "sysfs", "rw,nosuid,nodev,noexec,relatime"),
    ("proc", "/proc", "proc", "rw,nosuid,nodev,noexec,relatime"),
];

pub(super) fn mounts() -> String {
    MOUNTS
        .iter()
        .map(|(device, point, kind, options)| format!("{device} {point} {kind} {options} 0 0\n"))
        .collect()
}

pub(super) fn mountinfo() -> String {
    MOUNTS
        .iter()
        .enumerate()
        .map(|(index, (device, point, kind, options))| {
            format!(
                "{} 1 259:{index} / {point} {options} shared:{} - {kind} {device} rw\n",
                25 + index,
                1 + index
            )
        })
        .collect()
}

/// The data drives are one striped array.
pub(super) fn mdstat(scenario: &Scenario) -> String {
    let members: String = (1..scenario.host().drives)
        .map(|drive| format!(" nvme{drive}n1[{}]", drive - 1))
        .collect();
    let blocks = u64::from(scenario.host().drives.saturating_sub(1)) * 7_501_343_744;
    format!(
        "Personalities : [raid0] [raid1]\nmd0 : active raid0{members}\n      {blocks} blocks super 1.2 512k chunks\n      \nunused devices: <none>\n"
    )
}

/// Data drives share the work evenly; the first also holds the system.
pub(super) fn diskstats(scenario: &Scenario, state: &HostState) -> String {
    let drives = u64::from(scenario.host().drives.max(1));
    let mut text = String::new();
    let system = round_u64(state.uptime * 42_000.0);
    let mut line = |major: u64, minor: u64, name: &str, read: u64, written: u64| {
        // Large requests: 256 KiB each; a read takes 90 microseconds, a write 130.
        let (reads, writes) = (read / 262_144, written / 262_144);
        let (read_ms, write_ms) = (reads * 90 / 1000, writes * 130 / 1000);
        let busy_ms = read_ms / 3 + write_ms / 3;
        text.push_str(&format!(
            "{major:>4} {minor:>7} {name} {reads} {} {} {read_ms} {writes} {} {} {write_ms} 0 {busy_ms} {} 0 0 0 0 {} {}\n",
            reads / 40,
            read / 512,
            writes / 6,
            written / 512,
            read_ms + write_ms,
            writes / 900,
            writes / 1800,
        ));
    };
    for drive in 0..drives {
        let extra = if drive == 0 { system } else { 0 };
        let (read, written) = (
            state.disk_read / drives + extra / 4,
            state.disk_written / drives + extra,
        );
        line(259, drive * 4, &format!("nvme{drive}n1"), read, written);
        if drive == 0 {
            line(259, 1, "nvme0n1p1", 9_437_184, 40_960);
            line(259, 2, "nvme0n1p2", read, written);
        }
    }
    line(
        9,
        0,
        "md0",
        state.disk_read / drives * (drives - 1),
        state.disk_written / drives * (drives - 1),
    );
    text
}
