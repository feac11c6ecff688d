//! Reads a log from its checkpoint to its end, and mends what a crash or a bad disk left.
//!
//! A torn record at the end of the last segment is cut off: nobody was told that it is safe. Any other bad
//! place ends its segment: the good part before it stays as the segment, the whole original is set aside as
//! `NAME.damaged`, and reading goes on with the next segment. A segment that was emptied although later ones
//! follow is such a place ([`Wal`](super::Wal) leaves none empty behind it); numbers that are missing are told.
//!
//! What cannot be noticed: a segment cut exactly between two records, and the loss of all there was.

use std::path::{Path, PathBuf};

use super::record::{Next, Record, next};
use super::{checkpoint, segment_path, segments};
use crate::mmap::Mapped;
use crate::vfs::Vfs;
use crate::{Error, chain};

/// What a replay found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Records given to the visitor.
    pub records: u64,
    /// Segments read, the checkpoint's files not counted.
    pub segments: u64,
    /// Bytes cut off the end of the last segment.
    pub torn_bytes: u64,
    /// Files set aside because they were damaged.
    pub damaged: Vec<PathBuf>,
    /// First and last number of each run of segments that should be there and is not.
    pub missing: Vec<(u64, u64)>,
}

/// Gives every record to `visit`: first those of the checkpoint, then those of the segments after it.
///
/// # Errors
///
/// [`Error::Io`] when a file cannot be read or mended. Damage is no error; it is reported in [`Replayed`].
pub fn replay(vfs: &dyn Vfs, dir: &Path, visit: &mut dyn FnMut(Record<'_>)) -> Result<Replayed, Error> {
    let mut done = Replayed::default();
    if !vfs.exists(dir) {
        return Ok(done);
    }
    finish_mending(vfs, dir)?;
    checkpoint::remove_unfinished(vfs, dir)?;
    let from = checkpoint::latest(vfs, dir)?;
    if let Some(number) = from {
        for path in checkpoint::files(vfs, dir, number)? {
            read_file(vfs, &path, false, visit, &mut done)?;
        }
        checkpoint::remove_replaced(vfs, dir, number)?;
    }
    let numbers = segments(vfs, dir)?;
    done.missing = missing(from, &numbers);
    for (first, last) in &done.missing {
        tracing::error!(
            "WAL in {}: segments {first} to {last} are missing: the samples of their time are lost",
            dir.display()
        );
    }
    for (i, &number) in numbers.iter().enumerate() {
        if from.is_some_and(|upto| number <= upto) {
            continue;
        }
        let path = segment_path(dir, number);
        done.segments += 1;
        read_file(vfs, &path, i + 1 == numbers.len(), visit, &mut done)?;
    }
    Ok(done)
}

/// A log whose files were checked and mended, held for reading by as many as like.
pub struct Log {
    files: Vec<Mapped>,
    /// What was found.
    pub done: Replayed,
}

/// Reads a log once to check and mend it, as [`replay`] does, and keeps its files mapped. Let go of it before the log
/// is opened for writing.
///
/// # Errors
///
/// As [`replay`].
pub fn check(vfs: &dyn Vfs, dir: &Path) -> Result<Log, Error> {
    let done = replay(vfs, dir, &mut |_| {})?;
    let mut files = Vec::new();
    if vfs.exists(dir) {
        let from = checkpoint::latest(vfs, dir)?;
        let mut paths = match from {
            Some(number) => checkpoint::files(vfs, dir, number)?,
            None => Vec::new(),
        };
        let after = segments(vfs, dir)?
            .into_iter()
            .filter(|&n| from.is_none_or(|upto| n > upto));
        paths.extend(after.map(|n| segment_path(dir, n)));
        for path in paths {
            files.push(vfs.map(&path).map_err(Error::io("read WAL segment", &path))?);
        }
    }
    Ok(Log { files, done })
}

impl Log {
    /// Gives every record, those of the checkpoint first.
    pub fn visit(&self, visit: &mut dyn FnMut(Record<'_>)) {
        for file in &self.files {
            let mut rest: &[u8] = file;
            while let Next::Record(record, len) = next(rest) {
                visit(record);
                rest = &rest[len..];
            }
        }
    }
}

/// The gaps in the numbers of the segments after the checkpoint `from`, which leaves one open behind it.
fn missing(from: Option<u64>, numbers: &[u64]) -> Vec<(u64, u64)> {
    let mut gaps = Vec::new();
    let mut expected = from.map_or(0, |upto| upto.saturating_add(1));
    if from.is_some() && numbers.is_empty() {
        gaps.push((expected, expected));
    }
    for &number in numbers {
        if number > expected {
            gaps.push((expected, number - 1));
        }
        expected = expected.max(number.saturating_add(1));
    }
    gaps
}

fn read_file(
    vfs: &dyn Vfs,
    path: &Path,
    last: bool,
    visit: &mut dyn FnMut(Record<'_>),
    done: &mut Replayed,
) -> Result<(), Error> {
    let bytes = vfs.map(path).map_err(Error::io("read WAL segment", path))?;
    let mut at = 0;
    let bad = loop {
        if bytes.is_empty() && !last && !vfs.exists(&with_suffix(path, DAMAGED)) {
            break Some("it is empty although later ones follow: the samples of its time are lost");
        }
        match next(&bytes[at..]) {
            Next::End => return Ok(()),
            Next::Record(record, len) => {
                visit(record);
                done.records += 1;
                at += len;
            }
            Next::Torn if last => break None,
            Next::Torn => break Some("a record ends early"),
            Next::Damaged(what) => break Some(what),
        }
    };
    let size = bytes.len();
    let good = bytes[..at].to_vec();
    drop(bytes);
    match bad {
        None => {
            let torn = (size - at) as u64;
            tracing::info!(
                "WAL segment {}: cut {torn} bytes of a torn record off its end",
                path.display()
            );
            done.torn_bytes += torn;
            cut(vfs, path, at as u64)
        }
        Some(what) => {
            let aside = set_aside(vfs, path, &good)?;
            let error = Error::damaged(path, at as u64, what);
            tracing::error!("{}; set aside as {}", chain(&error), aside.display());
            done.damaged.push(aside);
            Ok(())
        }
    }
}

fn cut(vfs: &dyn Vfs, path: &Path, len: u64) -> Result<(), Error> {
    let file = vfs.open_end(path).map_err(Error::io("open WAL segment", path))?;
    file.set_len(len)
        .and_then(|()| file.sync())
        .map_err(Error::io("cut WAL segment", path))
}

/// Renames `path` to `NAME.damaged` and puts its good part in its place.
fn set_aside(vfs: &dyn Vfs, path: &Path, good: &[u8]) -> Result<PathBuf, Error> {
    let mended = with_suffix(path, MENDED);
    let file = vfs.create(&mended).map_err(Error::io("create", &mended))?;
    file.write(good)
        .and_then(|()| file.sync())
        .map_err(Error::io("write", &mended))?;
    let dir = path.parent().unwrap_or(Path::new(""));
    vfs.sync_dir(dir).map_err(Error::io("sync folder", dir))?;
    let mut aside = with_suffix(path, DAMAGED);
    let mut n = 1;
    while vfs.exists(&aside) {
        n += 1;
        aside = with_suffix(path, &format!("{DAMAGED}.{n}"));
    }
    vfs.rename(path, &aside).map_err(Error::io("set aside", path))?;
    vfs.rename(&mended, path).map_err(Error::io("rename", &mended))?;
    vfs.sync_dir(dir).map_err(Error::io("sync folder", dir))?;
    Ok(aside)
}

const MENDED: &str = ".mended";
const DAMAGED: &str = ".damaged";

/// A crash may have come between the two renames of [`set_aside`], or before the first.
fn finish_mending(vfs: &dyn Vfs, dir: &Path) -> Result<(), Error> {
    for entry in vfs.list(dir).map_err(Error::io("list", dir))? {
        let Some(name) = entry.name.strip_suffix(MENDED) else {
            continue;
        };
        let (mended, path) = (dir.join(&entry.name), dir.join(name));
        if vfs.exists(&path) {
            vfs.remove_file(&mended).map_err(Error::io("remove", &mended))?;
        } else {
            vfs.rename(&mended, &path).map_err(Error::io("rename", &mended))?;
        }
        vfs.sync_dir(dir).map_err(Error::io("sync folder", dir))?;
    }
    Ok(())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
