//! The kernel log as a file: records as `/dev/kmsg` gives them, appended as time passes.
//!
//! A record is `priority,sequence,microseconds,-;text` and a newline; the microseconds count from
//! the host's boot. Sequence numbers go up by one from a number that depends on the scenario
//! alone, so a writer that is started again does not repeat them.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;
use crate::kernel::KernelMessage;
use crate::scenario::Scenario;

/// The host's own boot messages came before.
const FIRST_SEQUENCE: u64 = 4_000;
/// `O_NONBLOCK` of Linux, from `asm-generic/fcntl.h`.
const NONBLOCKING: i32 = 0o4000;
/// No scenario's history is longer.
const BEGINNING_MS: i64 = -400 * 86_400_000;

/// Appends records to a file or a FIFO.
#[derive(Debug)]
pub struct Writer {
    scenario: Arc<Scenario>,
    path: PathBuf,
    file: File,
    cursor_ms: i64,
    sequence: u64,
}

impl Writer {
    /// Opens (or creates) the file; the first [`write_until`](Self::write_until) begins at `from_ms`.
    ///
    /// A FIFO is opened so that neither opening nor writing waits for a reader.
    ///
    /// # Errors
    ///
    /// [`Error::Write`].
    pub fn open(scenario: Arc<Scenario>, path: &Path, from_ms: i64) -> Result<Self, Error> {
        let is_fifo = path.metadata().is_ok_and(|metadata| metadata.file_type().is_fifo());
        let file = if is_fifo {
            OpenOptions::new()
                .read(true)
                .write(true)
                .custom_flags(NONBLOCKING)
                .open(path)
        } else {
            OpenOptions::new().append(true).create(true).open(path)
        };
        let file = file.map_err(|source| Error::Write {
            path: path.to_owned(),
            source,
        })?;
        let before = scenario.kernel_messages(BEGINNING_MS, from_ms).len();
        let sequence = FIRST_SEQUENCE + u64::try_from(before).unwrap_or(0);
        Ok(Self {
            scenario,
            path: path.to_owned(),
            file,
            cursor_ms: from_ms,
            sequence,
        })
    }

    /// Appends the records up to a time (excluded), each in one write; returns how many.
    ///
    /// A record that a full FIFO has no room for is lost, as in the kernel's own ring: the reader
    /// sees a gap in the sequence.
    ///
    /// # Errors
    ///
    /// [`Error::Write`]; what was written stays written and is not repeated.
    pub fn write_until(&mut self, to_ms: i64) -> Result<usize, Error> {
        if to_ms <= self.cursor_ms {
            return Ok(0);
        }
        let lines = self.scenario.kernel_messages(self.cursor_ms, to_ms);
        self.cursor_ms = to_ms;
        let mut written = 0;
        for line in &lines {
            let record = record(&self.scenario, line, self.sequence);
            self.sequence += 1;
            match self.file.write_all(record.as_bytes()) {
                Ok(()) => written += 1,
                Err(err) if err.kind() == ErrorKind::WouldBlock => {}
                Err(source) => {
                    return Err(Error::Write {
                        path: self.path.clone(),
                        source,
                    });
                }
            }
        }
        Ok(written)
    }
}

/// One record with its newline.
#[must_use]
pub fn record(scenario: &Scenario, line: &KernelMessage, sequence: u64) -> String {
    let booted = scenario.host().booted.ms();
    // Lines of one millisecond follow each other by a few microseconds.
    let micros = (line.time_ms - booted).max(0) * 1000 + i64::try_from(sequence % 100).unwrap_or(0) * 7;
    format!("{},{sequence},{micros},-;{}\n", line.priority, line.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("sim-kmsg-{}-{name}", std::process::id()))
    }

    #[test]
    fn records_come_as_time_passes_and_once() {
        let path = temporary("once");
        let demo = Scenario::parse(Scenario::DEFAULT).unwrap();
        let mut writer = Writer::open(Arc::clone(&demo), &path, 0).unwrap();
        assert_eq!(writer.write_until(5_000).unwrap(), 0);
        let first = writer.write_until(26_000).unwrap();
        assert!(first > 4);
        assert_eq!(writer.write_until(26_000).unwrap(), 0);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text.lines().count(), first);
        for (index, line) in text.lines().enumerate() {
            let (head, _) = line.split_once(";").unwrap();
            let fields: Vec<&str> = head.split(',').collect();
            assert_eq!(fields.len(), 4);
            let sequence: usize = fields[1].parse().unwrap();
            let start: usize = text.split(',').nth(1).unwrap().parse().unwrap();
            assert_eq!(sequence, start + index);
        }
        assert!(text.contains(";Out of memory: Killed process 4242 (python3)"));
    }

    #[test]
    fn a_writer_started_again_goes_on_counting() {
        let demo = Scenario::parse(Scenario::DEFAULT).unwrap();
        let path = temporary("again");
        let mut one = Writer::open(Arc::clone(&demo), &path, -1_000).unwrap();
        one.write_until(30_000).unwrap();
        let two = Writer::open(demo, &path, 30_000).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(one.sequence, two.sequence);
    }

    #[test]
    fn a_full_fifo_loses_records_and_does_not_block() {
        let path = temporary("fifo");
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let demo = Scenario::parse(Scenario::DEFAULT).unwrap();
        let mut writer = Writer::open(demo, &path, 0).unwrap();
        let started = std::time::Instant::now();
        // The riser complains for as long as there is one; nobody reads.
        let mut written = 0;
        for _ in 0..40 {
            writer.cursor_ms = 0;
            written += writer.write_until(44_000).unwrap();
        }
        std::fs::remove_file(&path).unwrap();
        let numbered = usize::try_from(writer.sequence - FIRST_SEQUENCE).unwrap();
        assert!(written > 100 && written < numbered, "{written} of {numbered}");
        assert!(started.elapsed().as_secs() < 5);
    }
}
