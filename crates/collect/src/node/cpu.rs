//! `/proc/stat`, the lines of the processors: seconds in each mode; and throttling from sysfs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use model::{Family, Kind, Millis};

use super::{label, numbers};
use crate::source::{Reader, entries};
use crate::{Collector, Error, Paths, Readings};

/// The kernel counts in hundredths of a second for user space, whatever its own tick (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// Idle time that jumps back by more than this, in seconds, means that the processor was taken off and put back.
const JUMP_BACK: f64 = 3.0;

/// Columns of a line of `/proc/stat`, and where the idle one stands.
const MODES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
const IDLE: usize = 3;

/// Collects `node_cpu_*`.
pub struct Cpu {
    stat: PathBuf,
    devices: PathBuf,
    reader: Reader,
    /// Seconds per processor so far: `iowait` and others go backwards now and then, counters must not.
    seen: BTreeMap<u32, [f64; 10]>,
    /// Processor folders with the throttle counters they share: (core, package).
    topology: Vec<(PathBuf, String, String)>,
}

impl Cpu {
    /// Reads below procfs and sysfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            stat: paths.proc("stat"),
            devices: paths.sys("devices/system/cpu"),
            reader: Reader::default(),
            seen: BTreeMap::new(),
            topology: Vec::new(),
        }
    }

    fn seconds(&mut self) -> Result<Vec<Family>, Error> {
        let text = self.reader.text(&self.stat)?;
        let mut present = BTreeSet::new();
        for (i, line) in text.lines().enumerate() {
            let mut fields = line.split_ascii_whitespace();
            let Some(Ok(cpu)) = fields.next().and_then(|w| w.strip_prefix("cpu")).map(str::parse::<u32>) else {
                continue;
            };
            // Kernels before 2.6.33 have no guest_nice; none of those runs a GPU of today.
            let ticks: [f64; 10] =
                numbers(&mut fields).ok_or_else(|| Error::form(&self.stat, i + 1, "ten tick counts", line))?;
            present.insert(cpu);
            advance(self.seen.entry(cpu).or_default(), ticks.map(|t| t / TICKS_PER_SECOND));
        }
        self.seen.retain(|cpu, _| present.contains(cpu));
        let mut modes = Family::new(
            "node_cpu_seconds_total",
            Kind::Counter,
            "Seconds the CPUs spent in each mode.",
        );
        let mut guests = Family::new(
            "node_cpu_guest_seconds_total",
            Kind::Counter,
            "Seconds the CPUs spent in guests (VMs) for each mode.",
        );
        for (cpu, seconds) in &self.seen {
            let cpu = cpu.to_string();
            for (mode, value) in MODES.iter().zip(seconds) {
                modes.push(vec![("cpu", cpu.clone()), label("mode", mode)], *value);
            }
            guests.push(vec![("cpu", cpu.clone()), label("mode", "user")], seconds[8]);
            guests.push(vec![("cpu", cpu), label("mode", "nice")], seconds[9]);
        }
        Ok(vec![modes, guests])
    }

    /// Which cores and packages there are; read again only when the number of processors changes.
    fn learn_topology(&mut self) {
        let mut seen = BTreeSet::new();
        self.topology.clear();
        for (name, folder) in entries(&self.devices) {
            let is_cpu = name.strip_prefix("cpu").is_some_and(|n| n.parse::<u32>().is_ok());
            if !is_cpu {
                continue;
            }
            let mut word = |file: &str| self.reader.word(&folder.join(file)).map(str::to_owned);
            let (Some(core), Some(package)) = (word("topology/core_id"), word("topology/physical_package_id")) else {
                continue;
            };
            if seen.insert((core.clone(), package.clone())) {
                self.topology.push((folder.join("thermal_throttle"), core, package));
            }
        }
    }

    fn throttles(&mut self) -> Vec<Family> {
        let mut cores = Family::new(
            "node_cpu_core_throttles_total",
            Kind::Counter,
            "Number of times this CPU core has been throttled.",
        );
        let mut packages = Family::new(
            "node_cpu_package_throttles_total",
            Kind::Counter,
            "Number of times this CPU package has been throttled.",
        );
        let mut seen = BTreeSet::new();
        for (folder, core, package) in &self.topology {
            let count = self.reader.number(&folder.join("core_throttle_count"));
            cores.push_some(|| vec![label("core", core), label("package", package)], count);
            if seen.insert(package) {
                let count = self.reader.number(&folder.join("package_throttle_count"));
                packages.push_some(|| vec![label("package", package)], count);
            }
        }
        vec![cores, packages]
    }

    fn isolated(&mut self) -> Family {
        let mut family = Family::new(
            "node_cpu_isolated",
            Kind::Gauge,
            "Whether each core is isolated, information from /sys/devices/system/cpu/isolated.",
        );
        let list = self.reader.word(&self.devices.join("isolated")).unwrap_or("");
        for cpu in cpu_list(list) {
            family.push(vec![("cpu", cpu.to_string())], 1.0);
        }
        family
    }
}

impl Collector for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        let before = self.seen.len();
        let mut readings = Readings::from(self.seconds());
        if before != self.seen.len() {
            self.learn_topology();
        }
        readings.families.extend(self.throttles());
        readings.families.push(self.isolated());
        readings
    }
}

/// Takes over `now`, column by column where it is not behind.
fn advance(seen: &mut [f64; 10], now: [f64; 10]) {
    if now[IDLE] + JUMP_BACK < seen[IDLE] {
        *seen = now;
    }
    for (seen, now) in seen.iter_mut().zip(now) {
        *seen = seen.max(now);
    }
}

/// `0-3,8` as numbers; a part that is none is left out, and so is what lies beyond any machine.
fn cpu_list(text: &str) -> Vec<u32> {
    const CPU_MAX: u32 = 65_535;
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.trim().parse::<u32>().ok()?..=to.trim().parse::<u32>().ok()?.min(CPU_MAX))
    };
    text.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_never_goes_back_unless_idle_jumps() {
        let mut seen = [5.0; 10];
        let mut now = [6.0; 10];
        now[4] = 4.9;
        advance(&mut seen, now);
        assert_eq!((seen[0], seen[4]), (6.0, 5.0));
        advance(&mut seen, [1.0; 10]);
        assert_eq!(seen, [1.0; 10]);
    }

    #[test]
    fn lists_of_processors_unfold() {
        assert_eq!(cpu_list("1,3-5,9"), [1, 3, 4, 5, 9]);
        assert_eq!(cpu_list(""), Vec::<u32>::new());
        assert_eq!(cpu_list("5-2,x,7"), [7]);
    }
}
