//! The kernel's messages, from `/dev/kmsg` or from anything that speaks the same form.
//!
//! ```text
//! priority,sequence,microseconds,flag[,…];text
//!  KEY=value                                      continuation lines begin with a space
//! ```
//!
//! The device gives one record a read. A file or a pipe gives the same records as a stream of lines; it is followed as
//! it grows. Absent by design: writing to the device.
//!
//! Invariant: sequence numbers only rise; whatever is missing between two of them is told as [`Item::Lost`] first.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::{Clock, Millis, SystemClock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::{Error, Stop};

pub use record::Record;

mod record;

/// The longest record the kernel gives (`CONSOLE_EXT_LOG_MAX` is 8 KiB), with room.
const READ_BYTES: usize = 16 << 10;

/// A line of a stream that is longer than this is dropped and counted as malformed.
const LINE_BYTES_MAX: usize = 64 << 10;

/// A regular file cannot be waited for: it is looked at again after so long.
const FILE_PAUSE: Duration = Duration::from_millis(100);

/// Where to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the oldest record the kernel still has.
    Beginning,
    /// With the next one.
    End,
}

/// What moment the records' microseconds count from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boot {
    /// This machine's boot, by its own clocks.
    OfMachine,
    /// This moment: a recording, or a simulated machine.
    At(Millis),
}

/// What a reader gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A message.
    Record(Record),
    /// So many messages were overwritten before they could be read.
    Lost(u64),
}

/// Follows the kernel's messages.
#[derive(Debug)]
pub struct Kmsg {
    path: PathBuf,
    file: OwnedFd,
    kind: FileType,
    boot: Boot,
    buffer: Vec<u8>,
    /// Bytes of a stream that are not yet a whole line.
    partial: Vec<u8>,
    /// Whether the line in `partial` is already too long and its rest is to be thrown away.
    overlong: bool,
    /// Items read and not yet given.
    ready: VecDeque<Item>,
    last_sequence: Option<u64>,
    malformed: u64,
}

impl Kmsg {
    /// Opens the device, file or pipe at `path`.
    ///
    /// # Errors
    ///
    /// [`Error::Absent`], [`Error::Denied`], or [`Error::Read`] for anything else.
    pub fn open(path: &Path, start: Start, boot: Boot) -> Result<Self, Error> {
        let at = |errno: Errno| Error::at(path, errno);
        let flags = OFlags::CLOEXEC | OFlags::NONBLOCK;
        let kind = FileType::from_raw_mode(rustix::fs::stat(path).map_err(at)?.st_mode);
        // A pipe that is also open for writing does not end when its last writer leaves.
        let access = if kind == FileType::Fifo {
            OFlags::RDWR
        } else {
            OFlags::RDONLY
        };
        let file = rustix::fs::open(path, access | flags, Mode::empty()).map_err(at)?;
        if start == Start::End && kind != FileType::Fifo {
            rustix::fs::seek(&file, SeekFrom::End(0)).map_err(at)?;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            kind,
            boot,
            buffer: vec![0; READ_BYTES],
            partial: Vec::new(),
            overlong: false,
            ready: VecDeque::new(),
            last_sequence: None,
            malformed: 0,
        })
    }

    /// The next item; `None` when none came within `patience`, or `stop` was used.
    ///
    /// # Errors
    ///
    /// [`Error::Read`] when the device fails; a reader that failed is of no more use.
    pub fn next(&mut self, patience: Duration, stop: &Stop) -> Result<Option<Item>, Error> {
        let begun = Instant::now();
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(Some(item));
            }
            // A storm of messages must not keep the reader from leaving.
            if stop.is_stopped() {
                return Ok(None);
            }
            if self.read()? {
                continue;
            }
            let rest = patience.saturating_sub(begun.elapsed());
            if rest.is_zero() {
                return Ok(None);
            }
            self.wait(rest, stop)?;
        }
    }

    /// Records that were not of the form, and were left out.
    #[must_use]
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Reads once; false when there is nothing now.
    fn read(&mut self) -> Result<bool, Error> {
        match rustix::io::read(&self.file, &mut self.buffer[..]) {
            Ok(0) => Ok(false),
            Ok(n) => {
                let bytes = std::mem::take(&mut self.buffer);
                if self.kind == FileType::CharacterDevice {
                    self.take_record(&bytes[..n]);
                } else {
                    self.take_stream(&bytes[..n]);
                }
                self.buffer = bytes;
                Ok(true)
            }
            Err(Errno::AGAIN) => Ok(false),
            // EPIPE: the record we stood at was overwritten; the next read gives the oldest there is, and its sequence
            // number tells how many are missing. EINVAL: a record longer than any buffer the kernel promises.
            Err(Errno::INTR | Errno::PIPE) => Ok(true),
            Err(Errno::INVAL) => {
                self.malformed += 1;
                Ok(true)
            }
            Err(errno) => Err(Error::at(&self.path, errno)),
        }
    }

    /// Waits for more, or to be told to stop.
    fn wait(&self, patience: Duration, stop: &Stop) -> Result<(), Error> {
        let can_poll = self.kind != FileType::RegularFile;
        let patience = if can_poll { patience } else { patience.min(FILE_PAUSE) };
        let mut watched = vec![PollFd::new(stop, PollFlags::IN)];
        if can_poll {
            watched.push(PollFd::new(&self.file, PollFlags::IN));
        }
        let timeout = Timespec::try_from(patience).ok();
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(Error::Wait(errno.into())),
        }
    }

    /// Cuts a stream into records: a line and the lines after it that begin with a space.
    fn take_stream(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
        let mut pending = std::mem::take(&mut self.partial);
        let mut from = 0;
        while let Some(line) = line_end(&pending, from) {
            if std::mem::take(&mut self.overlong) {
                from = line;
                continue;
            }
            let mut to = line;
            while let Some(next) = line_end(&pending, to).filter(|_| pending[to] == b' ') {
                to = next;
            }
            self.take_record(&pending[from..to]);
            from = to;
        }
        pending.drain(..from);
        if pending.len() > LINE_BYTES_MAX {
            pending.clear();
            self.malformed += u64::from(!self.overlong);
            self.overlong = true;
        }
        self.partial = pending;
    }

    fn take_record(&mut self, bytes: &[u8]) {
        let Some(mut record) = Record::parse(bytes) else {
            // A continuation line that came after its record was given is no fault of the sender's.
            self.malformed += u64::from(bytes.first().is_some_and(|b| !matches!(b, b' ' | b'\n')));
            return;
        };
        let missing = self.last_sequence.map_or(0, |last| {
            let expected = last.wrapping_add(1);
            record.sequence.saturating_sub(expected)
        });
        if missing > 0 {
            self.ready.push_back(Item::Lost(missing));
        }
        self.last_sequence = Some(record.sequence);
        record.time = self.wall_time(record.micros);
        self.ready.push_back(Item::Record(record));
    }

    /// The moment of a record. The device counts by the clock that stands still in suspend, and so do we.
    fn wall_time(&self, micros: u64) -> Millis {
        let since_boot = Millis::try_from(micros / 1000).unwrap_or(Millis::MAX);
        let boot = match self.boot {
            Boot::At(boot) => boot,
            Boot::OfMachine => {
                let up = clock_gettime(ClockId::Monotonic);
                SystemClock.now() - (up.tv_sec * 1000 + up.tv_nsec / 1_000_000)
            }
        };
        boot.saturating_add(since_boot)
    }
}

/// One past the newline of the line that begins at `from`.
fn line_end(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.iter().position(|b| *b == b'\n').map(|at| from + at + 1)
}

#[cfg(test)]
mod tests;
