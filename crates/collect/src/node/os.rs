//! `os-release`: the distribution.

use std::collections::HashMap;

use model::{Family, Kind, Millis};

use super::label;
use crate::source::Reader;
use crate::{Collector, Error, Paths, Readings};

/// Labels of `node_os_info`; the file's keys are the same in capitals.
const LABELS: [&str; 12] = [
    "build_id",
    "id",
    "id_like",
    "image_id",
    "image_version",
    "name",
    "pretty_name",
    "variant",
    "variant_id",
    "version",
    "version_codename",
    "version_id",
];

/// Collects `node_os_*`.
pub struct Os {
    paths: Paths,
    reader: Reader,
}

impl Os {
    /// Reads below rootfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            paths: paths.clone(),
            reader: Reader::default(),
        }
    }

    fn read(&mut self) -> Result<Vec<Family>, Error> {
        let local = self.paths.root("/etc/os-release");
        let shipped = self.paths.root("/usr/lib/os-release");
        let path = if local.is_file() { local } else { shipped };
        let facts: HashMap<String, String> = self.reader.text(&path)?.lines().filter_map(assignment).collect();
        let fact = |name: &str| facts.get(&name.to_ascii_uppercase()).map_or("", String::as_str);
        let mut info = Family::new(
            "node_os_info",
            Kind::Gauge,
            "A metric with a constant '1' value labeled by build_id, id, id_like, image_id, image_version, name, \
             pretty_name, variant, variant_id, version, version_codename, version_id.",
        );
        info.push(LABELS.iter().map(|name| label(name, fact(name))).collect(), 1.0);
        let mut version = Family::new(
            "node_os_version",
            Kind::Gauge,
            "Metric containing the major.minor part of the OS version.",
        );
        let labels = || ["id", "id_like", "name"].map(|name| label(name, fact(name))).into();
        version.push_some(labels, leading_number(fact("version")));
        Ok(vec![info, version])
    }
}

impl Collector for Os {
    fn name(&self) -> &'static str {
        "os"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        self.read().into()
    }
}

/// `NAME="value"` without its quotes.
fn assignment(line: &str) -> Option<(String, String)> {
    let (name, value) = line.trim().split_once('=')?;
    let quoted = |quote: char| value.strip_prefix(quote).and_then(|v| v.strip_suffix(quote));
    let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
    (!name.starts_with('#')).then(|| (name.to_owned(), value.to_owned()))
}

/// `20.04` of `20.04.2 LTS (Focal Fossa)`.
fn leading_number(text: &str) -> Option<f64> {
    let whole = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text[whole..].strip_prefix('.').unwrap_or("");
    let part = rest.bytes().take_while(u8::is_ascii_digit).count();
    let end = if part > 0 { whole + 1 + part } else { whole };
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_its_first_two_numbers() {
        assert_eq!(leading_number("20.04.2 LTS"), Some(20.04));
        assert_eq!(leading_number("12 (bookworm)"), Some(12.0));
        assert_eq!(leading_number("rolling"), None);
    }
}
