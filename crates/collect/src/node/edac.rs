//! Errors that memory controllers saw.

use std::path::{Path, PathBuf};

use model::{Family, Kind, Millis};

use super::label;
use crate::source::{Reader, entries};
use crate::{Collector, Error, Paths, Readings};

/// Collects `node_edac_*`.
pub struct Edac {
    folder: PathBuf,
    reader: Reader,
}

/// Correctable and uncorrectable errors, as pairs of files and families.
struct Pair {
    files: [&'static str; 2],
    families: [Family; 2],
}

impl Edac {
    /// Reads below sysfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            folder: paths.sys("devices/system/edac/mc"),
            reader: Reader::default(),
        }
    }

    fn push(&mut self, pair: &mut Pair, files: [&str; 2], folder: &Path, labels: &[(&'static str, &str)]) {
        for (family, file) in pair.families.iter_mut().zip(files) {
            let labels = || labels.iter().map(|(name, value)| label(name, value)).collect();
            family.push_some(labels, self.reader.number(&folder.join(file)));
        }
    }
}

impl Collector for Edac {
    fn name(&self) -> &'static str {
        "edac"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        let mut of_controller = Pair::new("", "");
        let mut of_row = Pair::new("csrow_", " for this csrow");
        let mut of_channel = Pair::new("channel_", " for this channel");
        let controllers = entries(&self.folder);
        if !controllers.iter().any(|(name, _)| numbered(name, "mc").is_some()) {
            return Readings::failed(Error::Nothing {
                what: "memory controller with error counts",
            });
        }
        for (name, controller) in controllers {
            let Some(mc) = numbered(&name, "mc") else { continue };
            let of_mc = [("controller", mc)];
            let files = of_controller.files;
            self.push(&mut of_controller, files, &controller, &of_mc);
            let unknown = [("controller", mc), ("csrow", "unknown")];
            self.push(
                &mut of_row,
                ["ce_noinfo_count", "ue_noinfo_count"],
                &controller,
                &unknown,
            );
            for (name, row_folder) in entries(&controller) {
                let Some(row) = numbered(&name, "csrow") else { continue };
                let files = of_row.files;
                self.push(&mut of_row, files, &row_folder, &[("controller", mc), ("csrow", row)]);
                for (name, path) in entries(&row_folder) {
                    let channel = name.strip_suffix("_dimm_label").and_then(|n| numbered(n, "ch"));
                    let Some(channel) = channel else { continue };
                    let dimm = dimm_label(self.reader.word(&path).unwrap_or(""));
                    let files = of_channel.files.map(|file| format!("ch{channel}_{file}"));
                    let labels = [
                        ("channel", channel),
                        ("controller", mc),
                        ("csrow", row),
                        ("dimm_label", dimm.as_str()),
                    ];
                    self.push(&mut of_channel, [&files[0], &files[1]], &row_folder, &labels);
                }
            }
        }
        let pairs = [of_controller, of_row, of_channel];
        Readings::of(pairs.into_iter().flat_map(|pair| pair.families).collect())
    }
}

impl Pair {
    fn new(part: &str, of: &str) -> Self {
        let family = |kind: &str| {
            let name = format!("node_edac_{part}{kind}_errors_total");
            Family::new(name, Kind::Counter, format!("Total {kind} memory errors{of}."))
        };
        Self {
            files: ["ce_count", "ue_count"],
            families: [family("correctable"), family("uncorrectable")],
        }
    }
}

/// The kernel's own name for a slot nobody named, `mc#0csrow#0channel#1`, as `mc0_csrow0_channel1`; other names as they
/// are.
fn dimm_label(text: &str) -> String {
    let plain = text.replace('#', "");
    let parts = plain.split_once("csrow").and_then(|(mc, rest)| {
        let (row, channel) = rest.split_once("channel")?;
        Some((numbered(mc, "mc")?, row, channel))
    });
    parts.map_or_else(
        || text.to_owned(),
        |(mc, row, channel)| format!("mc{mc}_csrow{row}_channel{channel}"),
    )
}

/// The number after `prefix`, when there is nothing else.
fn numbered<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    name.strip_prefix(prefix)
        .filter(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}
