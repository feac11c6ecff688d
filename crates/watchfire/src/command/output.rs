//! What a command writes: its answer on standard output, remarks on standard error.
//!
//! A reader that closed the pipe has seen enough: that is no failure, and the command still ends with its own verdict.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, LineWriter, Write};
use std::os::fd::AsFd as _;

use anyhow::Context as _;

/// Standard output, for as long as one answer is written to it.
///
/// Into a file it writes large pieces; a pipe or a terminal gets each line as it comes.
pub struct Output {
    inner: Box<dyn Write>,
    failed: Option<ErrorKind>,
}

impl Output {
    fn open() -> io::Result<Self> {
        let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let is_file = file.metadata().is_ok_and(|m| m.is_file());
        let inner: Box<dyn Write> = if is_file {
            Box::new(BufWriter::with_capacity(1 << 16, file))
        } else {
            Box::new(LineWriter::with_capacity(1 << 14, file))
        };
        Ok(Self { inner, failed: None })
    }

    fn keep<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|error| self.failed = Some(error.kind()))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes);
        self.keep(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.inner.flush();
        self.keep(flushed)
    }
}

/// Writes an answer; it ends early, and well, where the reader closed the pipe.
///
/// # Errors
///
/// Standard output takes no more for another reason (a full disk), or `write` failed by itself.
pub fn write(write: impl FnOnce(&mut Output) -> io::Result<()>) -> anyhow::Result<()> {
    let mut out = Output::open().context("cannot write to standard output")?;
    let result = write(&mut out).and_then(|()| out.flush());
    match (result, out.failed) {
        (Ok(()), _) | (Err(_), Some(ErrorKind::BrokenPipe)) => Ok(()),
        (Err(error), Some(_)) => Err(error).context("cannot write to standard output"),
        (Err(error), None) => Err(error.into()),
    }
}

/// Writes one line of the answer.
///
/// # Errors
///
/// As [`write()`].
pub fn line(text: impl Display) -> anyhow::Result<()> {
    write(|out| writeln!(out, "{text}"))
}

/// Says something on standard error; where nobody reads that, there is nobody left to tell.
pub fn remark(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
