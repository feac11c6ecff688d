//! The host, in node_exporter's words: names, helps, types, labels and default filters are its own, to the letter.
//!
//! One file per collector of node_exporter. [`workers`] puts those that read only procfs on one thread (the kernel
//! answers them from memory), those that ask drivers through sysfs on a second; file systems have a third.
//!
//! Absent, because neither the Node Exporter Full dashboard nor the known rules ask: bcache, btrfs, buddyinfo,
//! cgroups, drbd, fibrechannel, infiniband, ipvs, ksmd, lnstat, mountstats, nfs, nfsd, powersupplyclass, qdisc, rapl,
//! slabinfo, softirqs, sysctl, systemd, tapestats, watchdog, wifi, xfrm, xfs, zfs, zoneinfo. Absent for want of a safe
//! call: timex.

use std::time::Duration;

use model::{Family, Kind};

use crate::page::Page;
use crate::{Collector, Paths, Worker};

mod arp;
mod bonding;
mod conntrack;
mod cpu;
mod cpufreq;
mod diskstats;
mod dmi;
mod edac;
mod entropy;
mod filefd;
mod filesystem;
mod hwmon;
mod kernel_hung;
mod loadavg;
mod mdadm;
mod meminfo;
mod netclass;
mod netdev;
mod netstat;
mod nvme;
mod os;
mod pressure;
mod schedstat;
mod sockstat;
mod softnet;
mod stat;
mod textfile;
mod thermal_zone;
mod time;
mod udp_queues;
mod uname;
mod vmstat;

/// How long one round of collectors that read procfs may take; they need a few milliseconds.
const PROC_DEADLINE: Duration = Duration::from_secs(5);

/// Drivers may be slow to answer (a sensor behind a management controller), and one may never.
const DRIVER_DEADLINE: Duration = Duration::from_secs(5);

/// The node collectors, ready to run.
#[must_use]
pub fn workers(paths: &Paths) -> Vec<Worker> {
    let worker = |deadline, collectors| Worker {
        page: Page::Node,
        deadline,
        collectors,
    };
    let mut workers = vec![
        worker(PROC_DEADLINE, of_memory(paths)),
        worker(DRIVER_DEADLINE, of_drivers(paths)),
        worker(DRIVER_DEADLINE, vec![Box::new(filesystem::Filesystem::new(paths))]),
    ];
    // The folder may be on a disk that is gone.
    let textfile = textfile::Textfile::new(paths);
    workers.extend(textfile.map(|textfile| worker(DRIVER_DEADLINE, vec![Box::new(textfile)])));
    workers
}

/// Collectors that the kernel answers from its memory.
fn of_memory(paths: &Paths) -> Vec<Box<dyn Collector>> {
    vec![
        Box::new(cpu::Cpu::new(paths)),
        Box::new(meminfo::Meminfo::new(paths)),
        Box::new(loadavg::Loadavg::new(paths)),
        Box::new(stat::Stat::new(paths)),
        Box::new(vmstat::Vmstat::new(paths)),
        Box::new(diskstats::Diskstats::new(paths)),
        Box::new(netdev::Netdev::new(paths)),
        Box::new(pressure::Pressure::new(paths)),
        Box::new(uname::Uname::new(paths)),
        Box::new(time::Time::new(paths)),
        Box::new(filefd::Filefd::new(paths)),
        Box::new(sockstat::Sockstat::new(paths)),
        Box::new(netstat::Netstat::new(paths)),
        Box::new(conntrack::Conntrack::new(paths)),
        Box::new(entropy::Entropy::new(paths)),
        Box::new(schedstat::Schedstat::new(paths)),
        Box::new(softnet::Softnet::new(paths)),
        Box::new(arp::Arp::new(paths)),
        Box::new(udp_queues::UdpQueues::new(paths)),
        Box::new(kernel_hung::KernelHung::new(paths)),
        Box::new(os::Os::new(paths)),
        Box::new(dmi::Dmi::new(paths)),
    ]
}

/// Collectors behind which a driver answers.
fn of_drivers(paths: &Paths) -> Vec<Box<dyn Collector>> {
    vec![
        Box::new(netclass::Netclass::new(paths)),
        Box::new(bonding::Bonding::new(paths)),
        Box::new(mdadm::Mdadm::new(paths)),
        Box::new(edac::Edac::new(paths)),
        Box::new(nvme::Nvme::new(paths)),
        Box::new(cpufreq::Cpufreq::new(paths)),
        Box::new(thermal_zone::ThermalZone::new(paths)),
        Box::new(hwmon::Hwmon::new(paths)),
    ]
}

/// A gauge without labels.
fn gauge(name: impl Into<String>, help: impl Into<String>, value: f64) -> Family {
    single(name, Kind::Gauge, help, value)
}

/// A counter without labels.
fn counter(name: impl Into<String>, help: impl Into<String>, value: f64) -> Family {
    single(name, Kind::Counter, help, value)
}

/// A family of one line without labels.
fn single(name: impl Into<String>, kind: Kind, help: impl Into<String>, value: f64) -> Family {
    let mut family = Family::new(name, kind, help);
    family.push(Vec::new(), value);
    family
}

/// A label and its value.
fn label(name: &'static str, value: &str) -> (&'static str, String) {
    (name, value.to_owned())
}

/// The fields of a line, parsed; `None` when one is missing or is no number.
fn numbers<const N: usize>(fields: &mut std::str::SplitAsciiWhitespace<'_>) -> Option<[f64; N]> {
    let mut out = [0.0; N];
    for slot in &mut out {
        *slot = fields.next()?.parse().ok()?;
    }
    Some(out)
}
