//! What this process tells of itself on `/metrics`: what every exporter of the field tells of its process.

use model::{Family, Kind};

/// Ticks of a second in `/proc/self/stat`; the kernel's fixed unit towards programs on Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// How many rules failed when they were last evaluated.
pub fn rules_failing(rules: &rules::Manager) -> Family {
    let groups = rules.status();
    let failing = groups
        .iter()
        .flat_map(|group| &group.rules)
        .filter(|rule| rule.last_error.is_some());
    let mut family = Family::new(
        "watchfire_rules_failing",
        Kind::Gauge,
        "Rules whose last evaluation failed: their alerts are silent, not fine.",
    );
    family.push(Vec::new(), failing.count() as f64);
    family
}

/// What the cache of range queries has done.
pub fn result_cache(cache: &promql::CachedEngine) -> Vec<Family> {
    let stats = cache.stats();
    let one = |name: &str, kind, help: &str, value: u64| {
        let mut family = Family::new(name, kind, help);
        family.push(Vec::new(), value as f64);
        family
    };
    vec![
        one(
            "watchfire_result_cache_hits_total",
            Kind::Counter,
            "Range queries answered from known results, whole or in part.",
            stats.hits,
        ),
        one(
            "watchfire_result_cache_misses_total",
            Kind::Counter,
            "Range queries that could be known and were computed whole.",
            stats.misses,
        ),
        one(
            "watchfire_result_cache_steps_total",
            Kind::Counter,
            "Steps of range queries served from known results.",
            stats.steps,
        ),
        one(
            "watchfire_result_cache_bytes",
            Kind::Gauge,
            "Memory that known results take, in bytes.",
            stats.bytes,
        ),
    ]
}

/// The families of the process itself; a figure that the kernel does not give is left out.
pub fn families(version: &str) -> Vec<Family> {
    let mut out = Vec::new();
    let mut build = Family::new(
        "watchfire_build_info",
        Kind::Gauge,
        "The version of this program; always 1.",
    );
    build.push(vec![("version", version.to_owned())], 1.0);
    out.push(build);
    let mut put = |name: &str, kind, help: &str, value: Option<f64>| {
        let mut family = Family::new(name, kind, help);
        family.push_some(Vec::new, value);
        out.push(family);
    };
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    put(
        "process_cpu_seconds_total",
        Kind::Counter,
        "Processor time spent by this process, in seconds.",
        stat_field(&stat, 14)
            .zip(stat_field(&stat, 15))
            .map(|(user, system)| (user + system) / TICKS_PER_SECOND),
    );
    put(
        "process_start_time_seconds",
        Kind::Gauge,
        "When this process started, in seconds since the epoch.",
        stat_field(&stat, 22)
            .zip(boot_time())
            .map(|(ticks, boot)| boot + ticks / TICKS_PER_SECOND),
    );
    put(
        "process_resident_memory_bytes",
        Kind::Gauge,
        "Memory of this process that is in RAM, in bytes.",
        stat_field(&stat, 24).map(|pages| pages * rustix::param::page_size() as f64),
    );
    put(
        "process_virtual_memory_bytes",
        Kind::Gauge,
        "Address space of this process, in bytes.",
        stat_field(&stat, 23),
    );
    put(
        "process_open_fds",
        Kind::Gauge,
        "Files this process has open.",
        std::fs::read_dir("/proc/self/fd")
            .ok()
            .map(|entries| entries.count() as f64),
    );
    out
}

/// Field `number` (from 1) of `/proc/self/stat`; the name in field 2 may hold spaces and parentheses.
fn stat_field(stat: &str, number: usize) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(number - 3)?.parse().ok()
}

fn boot_time() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    stat.lines()
        .find_map(|line| line.strip_prefix("btime "))?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_after_the_name() {
        let stat = "12 (a) b) S 1 2 3 4 5 6 7 8 9 10 400 50 0";
        assert_eq!(stat_field(stat, 14), Some(400.0));
        assert_eq!(stat_field(stat, 15), Some(50.0));
        assert_eq!(stat_field(stat, 99), None);
    }
}
