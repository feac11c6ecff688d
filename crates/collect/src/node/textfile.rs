//! Metrics that other programs leave in files: every `*.prom` of a folder.
//!
//! A file with an error, or with timestamps of its own, is left out as a whole, and the others are shown. Files may add
//! to each other's families as long as their helps do not differ.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use exposition::{Entry, Format, Reader as Page};
use model::{Family, Kind, METRIC_NAME, Metric, Millis};

use super::gauge;
use crate::source::entries;
use crate::{Collector, Error, Paths, Readings, State};

/// A file longer than this is left out.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Lines of all files together; what comes after is left out.
const LINES_MAX: usize = 20_000;

/// Distinct label names; they are kept as long as the program runs.
const NAMES_MAX: usize = 1_024;

/// Collects what is in the files, and `node_textfile_*`.
pub struct Textfile {
    folder: PathBuf,
}

impl Textfile {
    /// Reads the `*.prom` files of this folder; `None` without one.
    pub fn new(paths: &Paths) -> Option<Self> {
        let folder = paths.textfile.clone()?;
        Some(Self { folder })
    }
}

impl Collector for Textfile {
    fn name(&self) -> &'static str {
        "textfile"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        let mut mtimes = Family::new(
            "node_textfile_mtime_seconds",
            Kind::Gauge,
            "Unixtime mtime of textfiles successfully read.",
        );
        let mut merged = Merged::default();
        let mut readings = Readings::of(Vec::new());
        for folder in folders(&self.folder) {
            if let Err(source) = fs::read_dir(&folder) {
                readings.errors.push(Error::read(&folder, source));
            }
            let files = entries(&folder).into_iter().map(|(_, path)| path);
            for file in files.filter(|path| path.extension().is_some_and(|e| e == "prom")) {
                match read(&file) {
                    Ok((families, mtime)) => {
                        mtimes.push(vec![("file", file.display().to_string())], mtime);
                        readings.errors.extend(merged.add(&file, families));
                    }
                    Err(error) => readings.errors.push(error),
                }
            }
        }
        let failed = f64::from(u8::from(!readings.errors.is_empty()));
        let help = "1 if there was an error opening or reading a file, 0 otherwise";
        readings.families = merged.into_families();
        readings.families.push(mtimes);
        readings
            .families
            .push(gauge("node_textfile_scrape_error", help, failed));
        readings
    }
}

/// Families by name, with the files they come from.
#[derive(Default)]
struct Merged {
    families: BTreeMap<String, (Family, Vec<String>)>,
    lines: usize,
}

impl Merged {
    /// Adds a file's families; those at odds with an earlier file's are left out and told.
    fn add(&mut self, file: &Path, families: Vec<Family>) -> Vec<Error> {
        let mut errors = Vec::new();
        for family in families {
            self.lines += family.metrics.len();
            if self.lines > LINES_MAX {
                errors.push(unsupported(file, format!("more than {LINES_MAX} lines in all files")));
                return errors;
            }
            let name = family.name.clone();
            match self.families.get_mut(&name) {
                None => {
                    self.families.insert(name, (family, vec![file.display().to_string()]));
                }
                Some((known, files)) if known.help == family.help && known.kind == family.kind => {
                    known.metrics.extend(family.metrics);
                    files.push(file.display().to_string());
                }
                Some((_, files)) => {
                    let reason = format!("help or type of {name} differ from those in {}", files.join(", "));
                    errors.push(unsupported(file, reason));
                }
            }
        }
        errors
    }

    fn into_families(self) -> Vec<Family> {
        let named = self.families.into_values().map(|(mut family, files)| {
            if family.help.is_empty() {
                family.help = format!("Metric read from {}", files.join(", "));
            }
            family
        });
        named.collect()
    }
}

/// The families of a file and the moment it was written, in seconds.
fn read(file: &Path) -> Result<(Vec<Family>, f64), Error> {
    let io = |source| Error::read(file, source);
    let metadata = fs::metadata(file).map_err(io)?;
    if metadata.len() > FILE_BYTES_MAX {
        return Err(unsupported(file, format!("longer than {FILE_BYTES_MAX} bytes")));
    }
    let bytes = fs::read(file).map_err(io)?;
    let written = metadata.modified().map_err(io)?;
    let mtime = written.duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64());
    Ok((parse(file, &bytes)?, mtime))
}

fn parse(file: &Path, bytes: &[u8]) -> Result<Vec<Family>, Error> {
    let refused = |error: &dyn std::error::Error| unsupported(file, error.to_string());
    let mut families: Vec<Family> = Vec::new();
    let mut page = Page::new(bytes, Format::Text);
    while let Some(entry) = page.next_entry().map_err(|e| refused(&e))? {
        match entry {
            Entry::Help { name, help } => named(&mut families, &name).help = help.into_owned(),
            Entry::Type { name, kind } => named(&mut families, &name).kind = kind,
            Entry::Sample(sample) if sample.time.is_some() => {
                return Err(unsupported(
                    file,
                    "contains timestamps, which a textfile may not".to_owned(),
                ));
            }
            Entry::Sample(sample) => {
                let pairs = sample.series.distinct_pairs().map_err(|e| refused(&e))?;
                let name = sample.series.name();
                let (at, suffix) = owner(&mut families, &name);
                let mut labels = Vec::with_capacity(pairs.len());
                for (label, value) in pairs.iter().filter(|(label, _)| label != METRIC_NAME) {
                    let label = intern(label).ok_or_else(|| {
                        unsupported(file, format!("more than {NAMES_MAX} distinct label names in all files"))
                    })?;
                    labels.push((label, value.clone().into_owned()));
                }
                let value = sample.value;
                families[at].metrics.push(Metric { suffix, labels, value });
            }
            Entry::Unit { .. } | Entry::Comment => {}
        }
    }
    families.retain(|family| !family.metrics.is_empty());
    Ok(families)
}

/// The family of this name, made if it is new.
fn named<'a>(families: &'a mut Vec<Family>, name: &str) -> &'a mut Family {
    let at = position(families, name);
    &mut families[at]
}

fn position(families: &mut Vec<Family>, name: &str) -> usize {
    // Lines of a family stand together, so the last one is nearly always it.
    let known = families.iter().rposition(|family| family.name == name);
    known.unwrap_or_else(|| {
        families.push(Family::new(name, Kind::Unknown, ""));
        families.len() - 1
    })
}

/// The family that a line belongs to, and what its name adds to the family's.
fn owner(families: &mut Vec<Family>, name: &str) -> (usize, &'static str) {
    for suffix in ["_bucket", "_sum", "_count"] {
        let stem = name.strip_suffix(suffix).unwrap_or("");
        let has_suffixes = |family: &Family| {
            family.name == stem && matches!(family.kind, Kind::Histogram | Kind::Summary | Kind::GaugeHistogram)
        };
        if let Some(at) = families.iter().rposition(has_suffixes) {
            return (at, suffix);
        }
    }
    (position(families, name), "")
}

/// Folders that the path names: itself, or those that its `*` stand for.
fn folders(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in path.components() {
        let pattern = part.as_os_str().to_string_lossy();
        let Some((before, after)) = pattern.split_once('*') else {
            found.iter_mut().for_each(|folder| folder.push(part));
            continue;
        };
        let fits =
            |name: &str| name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after);
        let below = found.iter().flat_map(|folder| entries(folder));
        found = below
            .filter(|(name, path)| fits(name) && path.is_dir())
            .map(|(_, path)| path)
            .collect();
    }
    found
}

/// A label name that lives as long as the program; `None` when there are too many.
fn intern(name: &str) -> Option<&'static str> {
    static NAMES: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let names = names.get_or_insert_default();
    if let Some(known) = names.get(name) {
        return Some(known);
    }
    if names.len() >= NAMES_MAX {
        return None;
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(name);
    Some(name)
}

fn unsupported(file: &Path, reason: String) -> Error {
    Error::File {
        path: file.to_owned(),
        state: State::Unsupported,
        reason,
    }
}
