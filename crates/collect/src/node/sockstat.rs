//! `/proc/net/sockstat`: sockets by protocol and state.

use model::{Family, Millis};

use super::gauge;
use crate::source::{Reader, to_f64};
use crate::{Collector, Error, Paths, Readings, State};

/// Collects `node_sockstat_*`.
pub struct Sockstat {
    paths: Paths,
    reader: Reader,
}

impl Sockstat {
    /// Reads below procfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            paths: paths.clone(),
            reader: Reader::default(),
        }
    }

    fn read(&mut self, file: &str, families: &mut Vec<Family>) -> Result<(), Error> {
        let path = self.paths.proc(file);
        let text = self.reader.text(&path)?;
        for (i, line) in text.lines().enumerate() {
            let form = || Error::form(&path, i + 1, "a protocol with names and counts", line);
            let (protocol, rest) = line.split_once(':').ok_or_else(form)?;
            let mut words = rest.split_ascii_whitespace();
            while let Some(key) = words.next() {
                let count = words.next().and_then(|c| c.parse().ok()).ok_or_else(form)?;
                families.push(family(protocol, key, count));
                if key == "mem" {
                    families.push(family(protocol, "mem_bytes", count * page_bytes()));
                }
            }
        }
        Ok(())
    }
}

impl Collector for Sockstat {
    fn name(&self) -> &'static str {
        "sockstat"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        let mut families = Vec::new();
        if let Err(error) = self.read("net/sockstat", &mut families) {
            return Readings::failed(error);
        }
        let six = self.read("net/sockstat6", &mut families);
        let mut readings = Readings::of(families);
        // A host without IPv6 has no such file.
        readings.errors.extend(six.err().filter(|e| e.state() != State::Absent));
        readings
    }
}

fn family(protocol: &str, key: &str, count: f64) -> Family {
    let help = if protocol == "sockets" {
        "Number of IPv4 sockets in use.".to_owned()
    } else {
        format!("Number of {protocol} sockets in state {key}.")
    };
    gauge(format!("node_sockstat_{protocol}_{key}"), help, count)
}

fn page_bytes() -> f64 {
    u64::try_from(rustix::param::page_size()).map_or(4096.0, to_f64)
}
