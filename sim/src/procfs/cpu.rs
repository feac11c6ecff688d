//! Processors: `stat`, `loadavg`, `uptime`, `cpuinfo`, `softirqs`, `schedstat`.

use std::fmt::Write as _;

use crate::host::HostState;
use crate::load::{float, round_u64};
use crate::scenario::Scenario;

/// Ticks of one processor, in the order of the file.
struct Ticks {
    user: u64,
    system: u64,
    idle: u64,
    iowait: u64,
    softirq: u64,
}

impl Ticks {
    fn line(&self, name: &str) -> String {
        let Self {
            user,
            system,
            idle,
            iowait,
            softirq,
        } = self;
        format!("{name} {user} 0 {system} {idle} {iowait} 0 {softirq} 0 0 0\n")
    }
}

fn ticks(scenario: &Scenario, state: &HostState) -> Vec<Ticks> {
    let all = state.uptime * 100.0;
    scenario
        .cpu_shares()
        .into_iter()
        .map(|share| {
            let part = |ticks: u64| round_u64(float(ticks) * share);
            let (user, system) = (part(state.user_ticks), part(state.system_ticks));
            let (iowait, softirq) = (part(state.iowait_ticks), part(state.softirq_ticks));
            let idle = round_u64(all).saturating_sub(user + system + iowait + softirq);
            Ticks {
                user,
                system,
                idle,
                iowait,
                softirq,
            }
        })
        .collect()
}

pub(super) fn stat(scenario: &Scenario, state: &HostState, epoch_ms: i64) -> String {
    let each = ticks(scenario, state);
    let sum = |get: fn(&Ticks) -> u64| each.iter().map(get).sum();
    let total = Ticks {
        user: sum(|ticks| ticks.user),
        system: sum(|ticks| ticks.system),
        idle: sum(|ticks| ticks.idle),
        iowait: sum(|ticks| ticks.iowait),
        softirq: sum(|ticks| ticks.softirq),
    };
    let mut text = total.line("cpu ");
    for (cpu, ticks) in each.iter().enumerate() {
        text.push_str(&ticks.line(&format!("cpu{cpu}")));
    }
    let busy = float(state.user_ticks + state.system_ticks);
    let booted = (epoch_ms + scenario.host().booted.ms()).div_euclid(1000);
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "intr {} 0 0\nctxt {}\nbtime {booted}\nprocesses {}\nprocs_running {}\nprocs_blocked {}\nsoftirq {} 0 0 0 0 0 0 0 0 0 0\n",
        round_u64(busy * 190.0),
        round_u64(busy * 410.0),
        round_u64(state.uptime * 0.7) + 2_000,
        state.running,
        0,
        round_u64(busy * 75.0),
    );
    text
}

pub(super) fn loadavg(state: &HostState, t_ms: i64) -> String {
    let [one, five, fifteen] = state.load;
    let newest = 400_000 + t_ms.div_euclid(1000).rem_euclid(100_000);
    format!("{one:.2} {five:.2} {fifteen:.2} {}/2417 {newest}\n", state.running)
}

pub(super) fn uptime(scenario: &Scenario, state: &HostState) -> String {
    let idle: u64 = ticks(scenario, state).iter().map(|ticks| ticks.idle).sum();
    format!("{:.2} {}.{:02}\n", state.uptime, idle / 100, idle % 100)
}

pub(super) fn cpuinfo(scenario: &Scenario) -> String {
    let host = scenario.host();
    let per_socket = (host.cpus / host.sockets.max(1)).max(1);
    let mut text = String::new();
    for cpu in 0..host.cpus {
        let _ = write!(
            text,
            "processor\t: {cpu}\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n\
             model name\t: Intel(R) Xeon(R) Platinum 8468\nstepping\t: 8\nmicrocode\t: 0x2b000603\n\
             cpu MHz\t\t: 3100.000\ncache size\t: 107520 KB\nphysical id\t: {}\nsiblings\t: {per_socket}\n\
             core id\t\t: {}\ncpu cores\t: {per_socket}\nflags\t\t: fpu sse2 avx2 avx512f amx_bf16\nbugs\t\t: spectre_v1\n\n",
            cpu / per_socket,
            cpu % per_socket,
        );
    }
    text
}

pub(super) fn softirqs(scenario: &Scenario, state: &HostState) -> String {
    let shares = scenario.cpu_shares();
    let mut text = String::from("          ");
    for cpu in 0..shares.len() {
        let _ = write!(text, "      CPU{cpu}");
    }
    text.push('\n');
    let busy = float(state.user_ticks + state.system_ticks);
    for (name, factor) in [
        ("HI", 0.0),
        ("TIMER", 30.0),
        ("NET_TX", 0.2),
        ("NET_RX", 8.0),
        ("BLOCK", 1.5),
        ("SCHED", 25.0),
        ("RCU", 10.0),
    ] {
        let _ = write!(text, "{name:>12}:");
        for share in &shares {
            let _ = write!(text, " {}", round_u64(busy * factor * share));
        }
        text.push('\n');
    }
    text
}

pub(super) fn schedstat(scenario: &Scenario, state: &HostState) -> String {
    let mut text = String::from("version 15\ntimestamp 0\n");
    for (cpu, share) in scenario.cpu_shares().into_iter().enumerate() {
        let running = round_u64(float(state.user_ticks + state.system_ticks) * share * 1e7);
        let _ = writeln!(
            text,
            "cpu{cpu} 0 0 0 0 0 0 {running} {} {}",
            running / 90,
            running / 400_000
        );
    }
    text
}
