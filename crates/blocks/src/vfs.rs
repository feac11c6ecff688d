//! The file layer: all that a store asks of a file system, so that a test can stand in for the disk.
//!
//! [`RealFs`] is the machine's; [`mem::MemFs`] keeps files in memory, records every change, can run full,
//! and can be cut off at any change with what was not synced forgotten.
//!
//! Invariant: a store reaches its files through here only. What is written but not synced may be lost; a
//! name is durable once its folder is synced.

pub mod mem;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use crate::Error;
use crate::mmap::Mapped;

/// A file being written. Writes go to its end.
pub trait VfsFile: Send + Sync {
    /// Appends all of `bytes`; after an error some of them may have been written.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn write(&self, bytes: &[u8]) -> io::Result<()>;

    /// Returns when the contents are on disk.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn sync(&self) -> io::Result<()>;

    /// Cuts the file to `len` bytes.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn set_len(&self, len: u64) -> io::Result<()>;
}

/// A name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name without its folder.
    pub name: String,
    /// Whether it is a folder.
    pub folder: bool,
    /// Size in bytes; 0 for a folder.
    pub size: u64,
}

/// Room on the disk that holds a folder, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// What this process may still write.
    pub free: u64,
    /// The disk's size.
    pub total: u64,
}

/// Whatever keeps a lock: dropping it lets go.
pub trait Held: Send + Sync {}

impl<T: Send + Sync> Held for T {}

/// A file system.
pub trait Vfs: Send + Sync {
    /// Makes a folder and those above it.
    ///
    /// # Errors
    ///
    /// What the system says, here and below.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Makes an empty file for writing, replacing one that was there.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>>;

    /// Opens a file for writing at its end.
    fn open_end(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>>;

    /// The bytes of a file.
    fn map(&self, path: &Path) -> io::Result<Mapped>;

    /// What a folder holds, sorted by name; names that are not text are left out.
    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>>;

    /// Gives a file or folder another name, replacing a file of that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name; its bytes must not change from then on.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes a folder and all in it.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Returns when the names in a folder are on disk.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Locks a file (made if absent) against other processes; `None` when one of them holds it.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Held>>>;

    /// Room on the disk that holds `path`.
    fn space(&self, path: &Path) -> io::Result<Space>;

    /// Whether a file or folder of this name exists.
    fn exists(&self, path: &Path) -> bool;
}

/// Syncs the folder that holds `path`, so that its name is durable.
///
/// # Errors
///
/// [`Error::Io`] when the system refuses.
pub fn sync_parent(vfs: &dyn Vfs, path: &Path) -> Result<(), Error> {
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    vfs.sync_dir(parent).map_err(Error::io("sync folder", parent))
}

/// The machine's file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFs;

impl VfsFile for File {
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = self;
        file.write_all(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        Self::set_len(self, len)
    }
}

impl Vfs for RealFs {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir_all(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        match std::fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let file = OpenOptions::new().append(true).create_new(true).open(path)?;
        Ok(Arc::new(file))
    }

    fn open_end(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        Ok(Arc::new(OpenOptions::new().append(true).open(path)?))
    }

    fn map(&self, path: &Path) -> io::Result<Mapped> {
        Mapped::of_file(&File::open(path)?)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            let meta = match entry.metadata() {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            let folder = meta.is_dir();
            if let Ok(name) = entry.file_name().into_string() {
                let size = if folder { 0 } else { meta.len() };
                entries.push(Entry { name, folder, size });
            }
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_dir_all(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Held>>> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(e)) => Err(e),
        }
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        let stat = rustix::fs::statvfs(path)?;
        Ok(Space {
            free: stat.f_bavail.saturating_mul(stat.f_frsize),
            total: stat.f_blocks.saturating_mul(stat.f_frsize),
        })
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }
}
