//! A store's folder: the lock against a second process and the number of its format.

use std::path::Path;
use std::sync::Arc;

use crate::Error;
use crate::vfs::{Held, Vfs, sync_parent};

const VERSION: &str = "VERSION";

/// A folder that this process holds; dropping it lets go.
pub struct Folder {
    _lock: Box<dyn Held>,
}

impl Folder {
    /// Makes the folder if it is absent, locks it and checks that its format is at most `known`.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`], [`Error::Newer`], or [`Error::Io`] where the folder cannot be written.
    pub fn open(vfs: &Arc<dyn Vfs>, path: &Path, known: u64) -> Result<Self, Error> {
        vfs.create_dir_all(path)
            .map_err(Error::io("create data folder", path))?;
        let lock = vfs
            .lock(&path.join("LOCK"))
            .map_err(Error::io("lock data folder", path))?
            .ok_or_else(|| Error::Locked {
                path: path.to_path_buf(),
            })?;
        check_version(vfs, path, known)?;
        sync_parent(&**vfs, path)?;
        Ok(Self { _lock: lock })
    }
}

fn check_version(vfs: &Arc<dyn Vfs>, dir: &Path, known: u64) -> Result<(), Error> {
    let path = dir.join(VERSION);
    if !vfs.exists(&path) {
        return write_version(vfs, dir, known);
    }
    let bytes = vfs.map(&path).map_err(Error::io("read", &path))?;
    let found = std::str::from_utf8(&bytes).ok().and_then(|t| t.trim().parse().ok());
    match found {
        Some(found) if found > known => Err(Error::Newer {
            path: dir.to_path_buf(),
            found,
            known,
        }),
        // From here on an older program would misread what is written.
        Some(found) if found < known => write_version(vfs, dir, known),
        Some(_) => Ok(()),
        None => Err(Error::damaged(&path, 0, "not a format number")),
    }
}

/// Written whole beside and renamed, so that a crash leaves none or a good one.
fn write_version(vfs: &Arc<dyn Vfs>, dir: &Path, number: u64) -> Result<(), Error> {
    let (tmp, path) = (dir.join("VERSION.tmp"), dir.join(VERSION));
    let file = vfs.create(&tmp).map_err(Error::io("create", &tmp))?;
    file.write(format!("{number}\n").as_bytes())
        .and_then(|()| file.sync())
        .map_err(Error::io("write", &tmp))?;
    vfs.rename(&tmp, &path).map_err(Error::io("rename", &tmp))?;
    vfs.sync_dir(dir).map_err(Error::io("sync folder", dir))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::RealFs;
    use crate::vfs::mem::MemFs;

    #[test]
    fn a_second_opener_is_told_the_folder() {
        for vfs in [Arc::new(MemFs::new()) as Arc<dyn Vfs>, Arc::new(RealFs)] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("data");
            let held = Folder::open(&vfs, &path, 1).unwrap();
            let error = Folder::open(&vfs, &path, 1).err().expect("held");
            assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
            drop(held);
            Folder::open(&vfs, &path, 1).unwrap();
        }
    }

    #[test]
    fn an_older_format_is_taken_on() {
        let vfs: Arc<dyn Vfs> = Arc::new(MemFs::new());
        let path = Path::new("data");
        drop(Folder::open(&vfs, path, 6).unwrap());
        drop(Folder::open(&vfs, path, 7).unwrap());
        assert!(Folder::open(&vfs, path, 6).is_err());
    }

    #[test]
    fn a_newer_format_is_refused() {
        let vfs: Arc<dyn Vfs> = Arc::new(MemFs::new());
        let path = Path::new("data");
        drop(Folder::open(&vfs, path, 7).unwrap());
        let error = Folder::open(&vfs, path, 6).err().expect("newer");
        assert_eq!(
            error.to_string(),
            "folder data has format 7, this program knows formats up to 6: use the newer program"
        );
    }
}
