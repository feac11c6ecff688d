//! `/proc/net/udp`: bytes that wait in the sockets' queues.

use model::{Family, Kind, Millis};

use super::label;
use crate::source::{Reader, to_f64};
use crate::{Collector, Error, Paths, Readings, State};

/// Collects `node_udp_queues`.
pub struct UdpQueues {
    paths: Paths,
    reader: Reader,
}

impl UdpQueues {
    /// Reads below procfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            paths: paths.clone(),
            reader: Reader::default(),
        }
    }

    /// Sums of the sending and the receiving queues.
    fn sums(&mut self, file: &str) -> Result<(u64, u64), Error> {
        let path = self.paths.proc(file);
        let text = self.reader.text(&path)?;
        let mut sums = (0_u64, 0_u64);
        for (i, line) in text.lines().enumerate().skip(1) {
            let queues = line.split_ascii_whitespace().nth(4).and_then(|field| {
                let (sending, receiving) = field.split_once(':')?;
                let hex = |text| u64::from_str_radix(text, 16).ok();
                Some((hex(sending)?, hex(receiving)?))
            });
            let (sending, receiving) = queues.ok_or_else(|| Error::form(&path, i + 1, "two queue sizes", line))?;
            sums.0 = sums.0.saturating_add(sending);
            sums.1 = sums.1.saturating_add(receiving);
        }
        Ok(sums)
    }
}

impl Collector for UdpQueues {
    fn name(&self) -> &'static str {
        "udp_queues"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        let mut family = Family::new(
            "node_udp_queues",
            Kind::Gauge,
            "Number of allocated memory in the kernel for UDP datagrams in bytes.",
        );
        let mut readings = Readings::of(Vec::new());
        for (file, ip) in [("net/udp", "v4"), ("net/udp6", "v6")] {
            match self.sums(file) {
                Ok((sending, receiving)) => {
                    family.push(vec![label("ip", ip), label("queue", "tx")], to_f64(sending));
                    family.push(vec![label("ip", ip), label("queue", "rx")], to_f64(receiving));
                }
                // A host without IPv6, or without IPv4, has no such file.
                Err(error) if error.state() == State::Absent => {}
                Err(error) => readings.errors.push(error),
            }
        }
        if family.metrics.is_empty() {
            readings.state = readings.errors.first().map_or(State::Absent, Error::state);
        }
        readings.families.push(family);
        readings
    }
}
