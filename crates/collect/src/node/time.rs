//! The clock, its zone and its source.

use model::{Family, Kind, Millis};

use super::{gauge, label};
use crate::runner::seconds;
use crate::source::{Reader, entries};
use crate::{Collector, Paths, Readings};

/// Collects `node_time_*`.
pub struct Time {
    paths: Paths,
    reader: Reader,
}

impl Time {
    /// Reads below sysfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            paths: paths.clone(),
            reader: Reader::default(),
        }
    }

    fn clock_sources(&mut self) -> [Family; 2] {
        let mut available = Family::new(
            "node_time_clocksource_available_info",
            Kind::Gauge,
            "Available clocksources read from '/sys/devices/system/clocksource'.",
        );
        let mut current = Family::new(
            "node_time_clocksource_current_info",
            Kind::Gauge,
            "Current clocksource read from '/sys/devices/system/clocksource'.",
        );
        for (name, folder) in entries(&self.paths.sys("devices/system/clocksource")) {
            let Some(device) = name.strip_prefix("clocksource") else {
                continue;
            };
            let labels = |source: &str| vec![label("clocksource", source), label("device", device)];
            let sources = self.reader.word(&folder.join("available_clocksource")).unwrap_or("");
            for source in sources.split_ascii_whitespace() {
                available.push(labels(source), 1.0);
            }
            if let Some(source) = self.reader.word(&folder.join("current_clocksource")) {
                current.push(labels(source), 1.0);
            }
        }
        [available, current]
    }
}

impl Collector for Time {
    fn name(&self) -> &'static str {
        "time"
    }

    fn collect(&mut self, now: Millis) -> Readings {
        let mut families = vec![gauge(
            "node_time_seconds",
            "System time in seconds since epoch (1970).",
            seconds(now),
        )];
        if let Ok(at) = jiff::Timestamp::from_millisecond(now) {
            let zone = jiff::tz::TimeZone::system();
            let info = zone.to_offset_info(at);
            let mut offset = Family::new(
                "node_time_zone_offset_seconds",
                Kind::Gauge,
                "System time zone offset in seconds.",
            );
            offset.push(
                vec![label("time_zone", info.abbreviation())],
                f64::from(info.offset().seconds()),
            );
            families.push(offset);
        }
        families.extend(self.clock_sources());
        Readings::of(families)
    }
}
