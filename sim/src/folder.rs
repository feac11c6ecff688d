//! A folder of small files that are brought up to date, each in one step.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// The folder, and what was last written to each file.
#[derive(Debug)]
pub(crate) struct Folder {
    root: PathBuf,
    written: HashMap<String, String>,
}

impl Folder {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            written: HashMap::new(),
        }
    }

    /// Replaces a file, unless it holds this text already: most of the simulated trees never
    /// changes, and writing it every second would be work for nothing.
    pub(crate) fn put(&mut self, name: &str, text: String) -> Result<(), Error> {
        if self.written.get(name) == Some(&text) {
            return Ok(());
        }
        let path = self.root.join(name);
        replace(&path, &text).map_err(|source| Error::Write { path, source })?;
        self.written.insert(name.to_owned(), text);
        Ok(())
    }

    /// Makes a link, unless it is there; `target` is relative to the link's folder.
    pub(crate) fn link(&mut self, name: &str, target: &str) -> Result<(), Error> {
        let path = self.root.join(name);
        if path.is_symlink() {
            return Ok(());
        }
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::os::unix::fs::symlink(target, &path))
            .map_err(|source| Error::Write { path, source })
    }

    /// Removes a folder below, with all in it.
    pub(crate) fn remove(&mut self, name: &str) -> Result<(), Error> {
        let path = self.root.join(name);
        let below = format!("{name}/");
        self.written.retain(|file, _| !file.starts_with(&below));
        std::fs::remove_dir_all(&path).map_err(|source| Error::Write { path, source })
    }
}

/// Writes a file beside its place and moves it there: a reader never sees half of it.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, path)
}
