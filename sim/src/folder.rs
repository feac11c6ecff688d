//! A folder of small files that are brought up to date, each in one step.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// The folder, and what was last written to each file.
#[derive(Debug)]
pub(crate) struct Folder {
    root: PathBuf,
    written: HashMap<String, String>,
    /// Files that are written into in place, kept open; `None` replaces each file in one step.
    open: Option<HashMap<String, File>>,
}

impl Folder {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            written: HashMap::new(),
            open: None,
        }
    }

    /// From now on writes into the files where they are: quick, and only for readers that read in between.
    pub(crate) fn write_in_place(&mut self) {
        self.open = Some(HashMap::new());
    }

    /// Replaces a file, unless it holds this text already: most of the simulated trees never
    /// changes, and writing it every second would be work for nothing.
    pub(crate) fn put(&mut self, name: &str, text: String) -> Result<(), Error> {
        if self.written.get(name) == Some(&text) {
            return Ok(());
        }
        let path = self.root.join(name);
        let before = self.written.get(name).map(String::len);
        let done = match &mut self.open {
            None => replace(&path, &text),
            Some(open) => overwrite(open, name, &path, &text, before),
        };
        done.map_err(|source| Error::Write { path, source })?;
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
        if let Some(open) = &mut self.open {
            open.retain(|file, _| !file.starts_with(&below));
        }
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

/// Writes over a file that stays open; `before` is its length, where this folder wrote it.
fn overwrite(
    open: &mut HashMap<String, File>,
    name: &str,
    path: &Path,
    text: &str,
    before: Option<usize>,
) -> std::io::Result<()> {
    if !open.contains_key(name) {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        open.insert(name.to_owned(), file);
    }
    let file = &open[name];
    file.write_all_at(text.as_bytes(), 0)?;
    if before != Some(text.len()) {
        file.set_len(text.len() as u64)?;
    }
    Ok(())
}
