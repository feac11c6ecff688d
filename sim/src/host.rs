//! The host around the GPUs: processors, memory, disks and network as the work needs them.

use crate::counter::{Counts, Rates};
use crate::load::{round_u32, round_u64};
use crate::noise::{smooth, unit};
use crate::scenario::{FaultKind, JobKind, OomKill, Scenario};

const GIB: f64 = 1_073_741_824.0;
/// The kernel's unit of processor time.
const USER_HZ: f64 = 100.0;
/// What the host does on average before the history begins: the same slots as [`Scenario::host_rates`].
const EVEN: Rates = [1_900.0, 210.0, 60.0, 25.0, 1.1e9, 0.4e9, 6e6, 4e6];

/// The host at a moment. Memory and traffic are in bytes, processor time in the kernel's ticks
/// of 10 ms, counters since boot.
#[derive(Clone, Debug, PartialEq)]
pub struct HostState {
    /// Seconds since boot.
    pub uptime: f64,
    /// Processors at work in user mode.
    pub user_cpus: f64,
    /// Ticks in user mode, all processors.
    pub user_ticks: u64,
    /// Ticks in the kernel.
    pub system_ticks: u64,
    /// Ticks waiting for disks.
    pub iowait_ticks: u64,
    /// Ticks in soft interrupts.
    pub softirq_ticks: u64,
    /// Load averages over 1, 5 and 15 minutes.
    pub load: [f64; 3],
    /// Runnable tasks.
    pub running: u32,
    /// All memory.
    pub memory_total: u64,
    /// Memory of processes.
    pub memory_anonymous: u64,
    /// Cached files.
    pub memory_cached: u64,
    /// Neither.
    pub memory_free: u64,
    /// What could be had without swapping.
    pub memory_available: u64,
    /// Share of time in which some task waited for memory, in percent, now.
    pub memory_pressure: f64,
    /// Microseconds in which some task waited for memory.
    pub memory_stall_us: u64,
    /// Processes killed for memory.
    pub oom_kills: u64,
    /// Bytes read from all drives.
    pub disk_read: u64,
    /// Bytes written to all drives.
    pub disk_written: u64,
    /// Bytes received.
    pub net_received: u64,
    /// Bytes sent.
    pub net_sent: u64,
}

impl Scenario {
    /// The host at a time; pure, as [`state`](Self::state).
    #[must_use]
    pub fn host_state(&self, t_ms: i64) -> HostState {
        let counters = self.host_counters(t_ms);
        let (anonymous, pressure) = self.host_memory(t_ms);
        #[expect(clippy::cast_precision_loss, reason = "GiB of one host")]
        let total = self.host().memory_gib as f64 * GIB;
        let room = (total - anonymous - 6.0 * GIB).max(0.6 * GIB);
        let cached = (room * 0.72).min(640.0 * GIB);
        let free = room - cached;
        let rates = self.host_rates(t_ms);
        HostState {
            uptime: crate::Offset(t_ms - self.host().booted.ms()).seconds().max(0.0),
            user_cpus: rates[0] / USER_HZ,
            user_ticks: counters[0],
            system_ticks: counters[1],
            iowait_ticks: counters[2],
            softirq_ticks: counters[3],
            load: [60.0, 300.0, 900.0].map(|tau| self.load_average(t_ms, tau)),
            running: round_u32((rates[0] + rates[1]) / USER_HZ).max(1),
            memory_total: round_u64(total),
            memory_anonymous: round_u64(anonymous),
            memory_cached: round_u64(cached),
            memory_free: round_u64(free),
            memory_available: round_u64(free + cached * 0.97),
            memory_pressure: pressure,
            memory_stall_us: self.memory_stall_us(t_ms),
            oom_kills: self.oom_kills(t_ms),
            disk_read: counters[4],
            disk_written: counters[5],
            net_received: counters[6],
            net_sent: counters[7],
        }
    }

    fn host_counters(&self, t_ms: i64) -> Counts {
        let Some(prefix) = self.prefixes.last() else {
            return Counts::default();
        };
        // A poisoned lock only means that a reader died; the sums are valid at every moment.
        let mut prefix = prefix.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        prefix.integral(self.host().booted.ms(), t_ms, &EVEN, |t| self.host_rates(t))
    }

    /// User, system, waiting and soft-interrupt ticks per second; bytes read, written, received, sent.
    fn host_rates(&self, t_ms: i64) -> Rates {
        let noise = |channel: u64, period| smooth(self.seed(), 900 + channel, t_ms, period);
        let mut user = 1.1 + 0.4 * noise(1, 9_000);
        let mut system = 0.6 + 0.2 * noise(2, 7_000);
        let (mut read, mut written) = (0.8e6 * (1.0 + noise(3, 11_000)), 3.0e6 * (1.0 + 0.6 * noise(4, 13_000)));
        let (mut received, mut sent) = (0.3e6 * (1.0 + noise(5, 6_000)), 0.4e6 * (1.0 + noise(6, 6_000)));
        for gpu in 0..self.gpu_count() {
            let Some(job) = self.job_on(gpu, t_ms) else {
                continue;
            };
            if self.is_lost(gpu, t_ms) {
                continue;
            }
            let load = self.load(gpu, t_ms);
            match job.kind {
                // A data loader for each GPU; a checkpoint goes to the drives, data comes from them.
                JobKind::Training => {
                    user += 0.9 + 2.6 * load.intensity;
                    system += 0.25 + load.pcie_tx / 20e9;
                    read += load.pcie_rx * 0.11;
                    written += if load.pcie_tx > 4e9 { load.pcie_tx * 0.16 } else { 0.4e6 };
                    received += 0.6e6;
                    sent += 0.5e6;
                }
                JobKind::Inference => {
                    user += 0.5 + 1.4 * load.util;
                    system += 0.2 + 0.4 * load.util;
                    received += 1.4e6 * load.util;
                    sent += 3.1e6 * load.util;
                }
            }
        }
        if let Some((_, share)) = self.growing(t_ms) {
            user += 9.0;
            system += 14.0 + 9.0 * share;
        }
        let waiting = written / 1.4e9 + read / 9e9;
        [
            user * USER_HZ,
            system * USER_HZ,
            waiting * USER_HZ,
            0.12 * system * USER_HZ,
            read,
            written,
            received,
            sent,
        ]
    }

    /// Memory of processes in bytes, and the share of time in which some wait for it in percent.
    fn host_memory(&self, t_ms: i64) -> (f64, f64) {
        let mut gib = 13.5 + 0.4 * smooth(self.seed(), 950, t_ms, 600_000);
        for gpu in 0..self.gpu_count() {
            if let Some(job) = self.job_on(gpu, t_ms) {
                #[expect(clippy::cast_precision_loss, reason = "GiB of one job")]
                let all = job.host_memory_gib as f64;
                gib += all * crate::Offset(t_ms - job.from.ms()).seconds().clamp(0.0, 120.0) / 120.0;
            }
        }
        let mut pressure = 0.0;
        if let Some((kill, share)) = self.growing(t_ms) {
            #[expect(clippy::cast_precision_loss, reason = "GiB of one process")]
            let all = kill.rss_gib as f64;
            gib += all * share;
            if !kill.memcg {
                pressure = ((share - 0.9) * 10.0).clamp(0.0, 1.0) * 62.0;
            }
        }
        (gib * GIB, pressure)
    }

    /// The process that grows until the kernel kills it, and how far it is.
    fn growing(&self, t_ms: i64) -> Option<(&OomKill, f64)> {
        self.faults().iter().find_map(|fault| match &fault.kind {
            FaultKind::OomKill(kill) if t_ms < fault.at.ms() => {
                let length = kill.grew_for.ms().max(1);
                let since = t_ms - (fault.at.ms() - length);
                (since > 0).then(|| (kill, crate::Offset(since).seconds() / crate::Offset(length).seconds()))
            }
            _ => None,
        })
    }

    /// Tasks wait in the last tenth of the growth.
    fn memory_stall_us(&self, t_ms: i64) -> u64 {
        let stalls = self.faults().iter().filter_map(|fault| match &fault.kind {
            FaultKind::OomKill(kill) if !kill.memcg => {
                let length = kill.grew_for.ms() / 10;
                Some((t_ms - (fault.at.ms() - length)).clamp(0, length.max(0)))
            }
            _ => None,
        });
        u64::try_from(stalls.sum::<i64>()).unwrap_or(0) * 400
    }

    fn oom_kills(&self, t_ms: i64) -> u64 {
        let killed = self
            .faults()
            .iter()
            .filter(|fault| matches!(fault.kind, FaultKind::OomKill(_)) && fault.begun_by(t_ms));
        u64::try_from(killed.count()).unwrap_or(0)
    }

    /// Runnable and waiting tasks, weighted by age with the average's time constant.
    fn load_average(&self, t_ms: i64, tau_seconds: f64) -> f64 {
        let (mut sum, mut weights) = (0.0, 0.0);
        for step in 0..12 {
            let age = (f64::from(step) + 0.5) * tau_seconds / 4.0;
            let weight = (-age / tau_seconds).exp();
            #[expect(clippy::cast_possible_truncation, reason = "an hour at most")]
            let rates = self.host_rates(t_ms - (age * 1000.0) as i64);
            sum += weight * (rates[0] + rates[1] + rates[2]) / USER_HZ;
            weights += weight;
        }
        sum / weights
    }

    /// A processor's share of all work; they differ, and the shares add up to one.
    pub(crate) fn cpu_shares(&self) -> Vec<f64> {
        let raw: Vec<f64> = (0..self.host().cpus)
            .map(|cpu| 0.7 + 0.6 * unit(self.seed(), 970, cpu.into()))
            .collect();
        let sum: f64 = raw.iter().sum();
        raw.into_iter().map(|share| share / sum).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    #[test]
    fn counters_of_the_host_never_fall() {
        let demo = Scenario::parse(Scenario::DEFAULT).unwrap();
        let mut last = demo.host_state(-24 * HOUR);
        for t in (-24 * HOUR..120_000).step_by(31_000) {
            let now = demo.host_state(t);
            assert!(
                now.user_ticks >= last.user_ticks && now.disk_written >= last.disk_written,
                "at {t}"
            );
            assert!(now.net_received >= last.net_received && now.memory_stall_us >= last.memory_stall_us);
            assert!(now.memory_free < now.memory_total && now.memory_available < now.memory_total);
            assert!(now.user_cpus < 60.0);
            last = now;
        }
    }

    #[test]
    fn memory_runs_out_before_the_kill_and_comes_back() {
        let demo = Scenario::parse(Scenario::DEFAULT).unwrap();
        let share = |t| {
            let state = demo.host_state(t);
            state.memory_available as f64 / state.memory_total as f64
        };
        assert!(share(4_000) > 0.4, "{}", share(4_000));
        assert!(share(24_900) < 0.05, "{}", share(24_900));
        assert!(share(25_000) > 0.4);
        assert_eq!(demo.host_state(24_999).oom_kills, 0);
        assert_eq!(demo.host_state(25_000).oom_kills, 1);
    }
}
