//! Faults that are switched on while a scenario is played, for libraries in other processes to see.
//!
//! A file holds them (`WATCHFIRE_SIM_CONTROL` names it to the library); it is replaced as a whole, so that no reader
//! sees half of it. Times in it are milliseconds since 1970: readers need not agree on a scenario's start.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::Error;
use crate::offset::Offset;
use crate::scenario::{Fault, INJECTED, Scenario, Written};

/// The switches of a simulated server.
#[derive(Debug)]
pub struct Switches {
    path: PathBuf,
}

/// One switch that was turned.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// Its number.
    pub(crate) id: u64,
    /// From when on, in milliseconds since 1970.
    pub(crate) at_ms: i64,
    /// Until when; without it, for ever.
    #[serde(default)]
    pub(crate) until_ms: Option<i64>,
    /// The fault, as in a scenario, without times.
    pub(crate) fault: String,
}

/// More at once is a mistake.
const ENTRIES_MAX: usize = 1000;

impl Switches {
    /// The switches in this file; it need not be there yet.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// The file: what `WATCHFIRE_SIM_CONTROL` is to be.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Switches a fault on from a time (milliseconds since 1970) on; gives its number, for [`end`](Self::end).
    ///
    /// The fault is written as in a scenario, without `at` and `until`: `{ gpu: 3, xid: 79 }`. Whether there is such
    /// a GPU is seen by the library, which leaves out what it cannot play and says so.
    ///
    /// # Errors
    ///
    /// [`Error::Parse`] and [`Error::Invalid`] for what is no fault, [`Error::Read`] and [`Error::Write`] for the file.
    pub fn inject(&self, fault: &str, at_ms: i64) -> Result<u64, Error> {
        if fault.trim().contains('\n') {
            return Err(Error::invalid("a fault is written on one line, in braces"));
        }
        resolve(fault, 0, Offset(0), None, usize::MAX)?;
        let mut entries = self.entries()?;
        if entries.len() >= ENTRIES_MAX {
            return Err(Error::invalid("too many faults at once"));
        }
        let id = entries.iter().map(|entry| entry.id).max().unwrap_or(0) + 1;
        entries.push(Entry {
            id,
            at_ms,
            until_ms: None,
            fault: fault.trim().to_owned(),
        });
        self.write(&entries)?;
        Ok(id)
    }

    /// Ends a fault at a time; what it counted stays counted. One that is unknown or has ended is none's business.
    ///
    /// # Errors
    ///
    /// [`Error::Read`] and [`Error::Write`] for the file.
    pub fn end(&self, id: u64, at_ms: i64) -> Result<(), Error> {
        let mut entries = self.entries()?;
        for entry in entries.iter_mut().filter(|entry| entry.id == id) {
            entry.until_ms.get_or_insert(at_ms.max(entry.at_ms + 1));
        }
        self.write(&entries)
    }

    /// Forgets all faults, as if they had never been.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] for the file.
    pub fn forget(&self) -> Result<(), Error> {
        self.write(&[])
    }

    /// The scenario with the faults that are switched on now; `epoch_ms` is its start in milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// [`Error::Read`] for the file, [`Error::Parse`] for what is in it, [`Error::Invalid`] for a GPU that is not there.
    pub fn apply(&self, scenario: &Scenario, epoch_ms: i64) -> Result<std::sync::Arc<Scenario>, Error> {
        let faults: Vec<Fault> = self
            .entries()?
            .iter()
            .map(|entry| entry.resolve(epoch_ms, scenario.gpu_count()))
            .collect::<Result<_, _>>()?;
        Ok(scenario.with_faults(&faults))
    }

    fn entries(&self) -> Result<Vec<Entry>, Error> {
        read(&self.path)
    }

    fn write(&self, entries: &[Entry]) -> Result<(), Error> {
        let mut text = String::from("# Written by sim::Switches.\n");
        for entry in entries {
            let fault = entry.fault.replace('\'', "''");
            let _ = write!(text, "- {{ id: {}, at_ms: {}", entry.id, entry.at_ms);
            if let Some(until) = entry.until_ms {
                let _ = write!(text, ", until_ms: {until}");
            }
            let _ = writeln!(text, ", fault: '{fault}' }}");
        }
        let failed = |source| Error::Write {
            path: self.path.clone(),
            source,
        };
        let mut beside = self.path.clone().into_os_string();
        beside.push(".new");
        std::fs::write(&beside, text).map_err(failed)?;
        std::fs::rename(&beside, &self.path).map_err(failed)
    }
}

impl Entry {
    /// The fault in a scenario that began at a time.
    pub(crate) fn resolve(&self, epoch_ms: i64, gpu_count: usize) -> Result<Fault, Error> {
        let at = Offset(self.at_ms.saturating_sub(epoch_ms));
        let until = self.until_ms.map(|until| Offset(until.saturating_sub(epoch_ms)));
        resolve(&self.fault, self.id, at, until, gpu_count)
    }
}

/// Reads the file; one that is not there has no faults.
pub(crate) fn read(path: &Path) -> Result<Vec<Entry>, Error> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            return Err(Error::Read {
                path: path.to_owned(),
                source,
            });
        }
    };
    if text.lines().all(|line| line.trim().is_empty() || line.starts_with('#')) {
        return Ok(Vec::new());
    }
    serde_saphyr::from_str(&text).map_err(|err| Error::Parse {
        message: err.to_string(),
    })
}

/// A fault that is written without times, at a time.
pub(crate) fn resolve(
    fault: &str,
    id: u64,
    at: Offset,
    until: Option<Offset>,
    gpu_count: usize,
) -> Result<Fault, Error> {
    let mut written: Written = serde_saphyr::from_str(fault).map_err(|err| Error::Parse {
        message: err.to_string(),
    })?;
    written.at = Some(at);
    written.until = until;
    written.resolve(INJECTED.saturating_add(id), gpu_count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switches() -> (tempfile::TempDir, Switches) {
        let folder = tempfile::tempdir().unwrap();
        let switches = Switches::at(&folder.path().join("control.yml"));
        (folder, switches)
    }

    #[test]
    fn a_fault_is_switched_on_and_ends() {
        let (_folder, switches) = switches();
        let demo = Scenario::parse(Scenario::DEFAULT).unwrap();
        let id = switches.inject("{ gpu: 3, ecc: { corrected: 7 } }", 1_000_000).unwrap();
        let lost = switches.inject("{ gpu: 2, lost: true }", 1_000_000).unwrap();
        assert_ne!(id, lost);
        let played = switches.apply(&demo, 995_000).unwrap();
        assert_eq!(played.state(3, 4_999).ecc_corrected, 0);
        assert_eq!(played.state(3, 5_000).ecc_corrected, 7);
        assert!(played.is_lost(2, 5_000));
        switches.end(lost, 1_002_000).unwrap();
        let played = switches.apply(&played, 995_000).unwrap();
        assert!(played.is_lost(2, 6_999) && !played.is_lost(2, 7_000));
        switches.forget().unwrap();
        let played = switches.apply(&played, 995_000).unwrap();
        assert_eq!(played.faults().len(), demo.faults().len());
    }

    #[test]
    fn a_switched_fault_leaves_counters_before_it_as_they_were() {
        let (_folder, switches) = switches();
        let demo = Scenario::parse(Scenario::DEFAULT).unwrap();
        let before = demo.state(5, 100_000).energy_mj;
        let later = demo.state(5, 400_000).energy_mj;
        switches.inject("{ gpu: 5, hang: { power: 110 } }", 200_000).unwrap();
        let played = switches.apply(&demo, 0).unwrap();
        assert_eq!(played.state(5, 100_000).energy_mj, before);
        assert!(played.state(5, 400_000).energy_mj < later);
        let fresh = Scenario::parse(Scenario::DEFAULT).unwrap();
        let fresh = switches.apply(&fresh, 0).unwrap();
        assert_eq!(
            played.state(5, 400_000),
            fresh.state(5, 400_000),
            "sums that were kept change nothing"
        );
    }

    #[test]
    fn what_is_no_fault_is_refused_and_nothing_is_written() {
        let (_folder, switches) = switches();
        for text in [
            "",
            "{ gpu: 1 }",
            "{ xid: 79 }",
            "{ gpu: 1, xid: 79, lost: true }",
            "{ gpu: 1, fly: true }",
            "[",
            "gpu: 2\nlost: true",
        ] {
            assert!(switches.inject(text, 0).is_err(), "{text}");
        }
        assert!(!switches.path().exists());
    }

    #[test]
    fn a_text_with_quotes_comes_back_whole() {
        let (_folder, switches) = switches();
        let demo = Scenario::parse(Scenario::DEFAULT).unwrap();
        let fault = "{ gpu: 0, xid: { code: 13, seen_by: kernel, text: \"it's a 'test': #1\" } }";
        switches.inject(fault, 70_000).unwrap();
        let played = switches.apply(&demo, 0).unwrap();
        let lines = played.kernel_messages(70_000, 70_001);
        assert!(
            lines.iter().any(|line| line.text.ends_with("it's a 'test': #1")),
            "{lines:?}"
        );
    }
}
