//! A checkpoint: the whole state as records, in the place of the segments that led to it.
//!
//! `checkpoint.00000040/` stands for segments up to 40. It is written as `checkpoint.00000040.tmp/`, synced
//! and renamed; only then do the segments go. Several may exist after a crash: the latest counts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Frames, segment_path, segments};
use crate::Error;
use crate::vfs::{Vfs, VfsFile};

const PREFIX: &str = "checkpoint.";
const TMP: &str = ".tmp";
/// Frames gathered before a write.
const WRITE_BYTES: usize = 1 << 20;

/// Takes the records of a checkpoint.
pub struct Writer {
    file: Arc<dyn VfsFile>,
    path: PathBuf,
    frames: Frames,
}

impl Writer {
    /// Adds a record.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the disk refuses.
    pub fn push(&mut self, kind: u8, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), Error> {
        self.frames.push(kind, fill);
        if self.frames.as_bytes().len() >= WRITE_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        let done = self.file.write(self.frames.as_bytes());
        self.frames.clear();
        done.map_err(Error::io("write checkpoint", &self.path))
    }
}

pub(super) fn write(
    vfs: &Arc<dyn Vfs>,
    dir: &Path,
    upto: u64,
    fill: impl FnOnce(&mut Writer) -> Result<(), Error>,
) -> Result<(), Error> {
    let path = folder(dir, upto);
    let tmp = dir.join(format!("{PREFIX}{upto:08}{TMP}"));
    if vfs.exists(&tmp) {
        vfs.remove_dir_all(&tmp).map_err(Error::io("remove", &tmp))?;
    }
    vfs.create_dir_all(&tmp).map_err(Error::io("create", &tmp))?;
    let inner = segment_path(&tmp, 0);
    let file = vfs.create(&inner).map_err(Error::io("create", &inner))?;
    let mut writer = Writer {
        file,
        path: inner,
        frames: Frames::new(),
    };
    let filled = fill(&mut writer)
        .and_then(|()| writer.flush())
        .and_then(|()| writer.file.sync().map_err(Error::io("sync checkpoint", &writer.path)));
    if let Err(e) = filled {
        drop(vfs.remove_dir_all(&tmp));
        return Err(e);
    }
    vfs.sync_dir(&tmp).map_err(Error::io("sync folder", &tmp))?;
    vfs.rename(&tmp, &path).map_err(Error::io("rename", &tmp))?;
    vfs.sync_dir(dir).map_err(Error::io("sync folder", dir))?;
    remove_replaced(&**vfs, dir, upto)
}

fn folder(dir: &Path, upto: u64) -> PathBuf {
    dir.join(format!("{PREFIX}{upto:08}"))
}

fn numbers(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<u64>, Error> {
    let entries = vfs.list(dir).map_err(Error::io("list", dir))?;
    let number = |name: &str| name.strip_prefix(PREFIX)?.parse().ok();
    Ok(entries.iter().filter_map(|e| number(&e.name)).collect())
}

/// The number of the checkpoint that counts.
pub(super) fn latest(vfs: &dyn Vfs, dir: &Path) -> Result<Option<u64>, Error> {
    Ok(numbers(vfs, dir)?.into_iter().max())
}

/// The files of a checkpoint, in order.
pub(super) fn files(vfs: &dyn Vfs, dir: &Path, number: u64) -> Result<Vec<PathBuf>, Error> {
    let path = folder(dir, number);
    let inner = segments(vfs, &path)?;
    Ok(inner.into_iter().map(|n| segment_path(&path, n)).collect())
}

pub(super) fn remove_unfinished(vfs: &dyn Vfs, dir: &Path) -> Result<(), Error> {
    for entry in vfs.list(dir).map_err(Error::io("list", dir))? {
        if entry.name.starts_with(PREFIX) && entry.name.ends_with(TMP) {
            let path = dir.join(&entry.name);
            vfs.remove_dir_all(&path).map_err(Error::io("remove", &path))?;
        }
    }
    Ok(())
}

/// Removes the segments and checkpoints that checkpoint `upto` stands for.
pub(super) fn remove_replaced(vfs: &dyn Vfs, dir: &Path, upto: u64) -> Result<(), Error> {
    for number in segments(vfs, dir)?.into_iter().filter(|&n| n <= upto) {
        let path = segment_path(dir, number);
        vfs.remove_file(&path).map_err(Error::io("remove", &path))?;
    }
    for number in numbers(vfs, dir)?.into_iter().filter(|&n| n < upto) {
        let path = folder(dir, number);
        vfs.remove_dir_all(&path).map_err(Error::io("remove", &path))?;
    }
    vfs.sync_dir(dir).map_err(Error::io("sync folder", dir))
}
