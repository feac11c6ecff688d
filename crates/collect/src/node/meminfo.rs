//! `/proc/meminfo`, line by line.

use std::path::PathBuf;

use model::{Family, Millis};

use super::gauge;
use crate::source::Reader;
use crate::{Collector, Error, Paths, Readings};

/// Collects `node_memory_*`.
pub struct Meminfo {
    path: PathBuf,
    reader: Reader,
}

impl Meminfo {
    /// Reads below procfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            path: paths.proc("meminfo"),
            reader: Reader::default(),
        }
    }

    fn read(&mut self) -> Result<Vec<Family>, Error> {
        let text = self.reader.text(&self.path)?;
        let mut families = Vec::with_capacity(64);
        for (i, line) in text.lines().enumerate() {
            if let Some((name, value)) = field(line) {
                let help = format!("Memory information field {name}.");
                families.push(gauge(format!("node_memory_{name}"), help, value));
            } else if !line.trim().is_empty() {
                return Err(Error::form(&self.path, i + 1, "a name and a size", line));
            }
        }
        Ok(families)
    }
}

impl Collector for Meminfo {
    fn name(&self) -> &'static str {
        "meminfo"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        self.read().into()
    }
}

/// `Active(anon):  12 kB` as `Active_anon_bytes` and 12288.
fn field(line: &str) -> Option<(String, f64)> {
    let (name, rest) = line.split_once(':')?;
    let mut words = rest.split_ascii_whitespace();
    let value: f64 = words.next()?.parse().ok()?;
    let name = name.trim().replace('(', "_").replace(')', "");
    match words.next() {
        Some("kB") => Some((format!("{name}_bytes"), value * 1024.0)),
        _ => Some((name, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_becomes_bytes_and_a_count_stays() {
        assert_eq!(
            field("Active(anon):  12 kB"),
            Some(("Active_anon_bytes".into(), 12_288.0))
        );
        assert_eq!(field("HugePages_Total:       8"), Some(("HugePages_Total".into(), 8.0)));
        assert_eq!(field("no colon"), None);
        assert_eq!(field("Name: many kB"), None);
    }
}
