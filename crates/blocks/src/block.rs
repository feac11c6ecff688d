//! A block: a folder named by a ULID that holds an index and data for a span of time, and never changes.
//!
//! ```text
//! blocks/01J…/meta.json   span, level, sources, counts, size and checksum of every file
//!             index       labels (see `index`)
//!             …           the store's own data files
//! ```
//!
//! A block is written as `.tmp-ULID`, every file synced, then the folder, then renamed, then the folder of
//! blocks synced: it is there whole or not at all. It goes by a rename to `.del-ULID`, so a crash never leaves
//! half of one that looks whole. [`open_all`] clears up after either.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::Millis;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::vfs::Vfs;
use crate::{Error, chain};

const META: &str = "meta.json";
const TMP: &str = ".tmp-";
const DEL: &str = ".del-";
/// The format of `meta.json` and of what it describes.
const FORMAT: u32 = 2;

/// What `meta.json` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Format number.
    pub format: u32,
    /// The folder's name.
    pub ulid: String,
    /// Which store wrote it: `metrics` or `logs`.
    pub store: String,
    /// Earliest sample, in milliseconds.
    pub mint: Millis,
    /// Latest sample, in milliseconds.
    pub maxt: Millis,
    /// 1 when cut from the head, one more than its parents otherwise.
    pub level: u32,
    /// Blocks that this one was made from, all the way down; they are gone once this one is valid.
    pub sources: Vec<String>,
    /// Counts that the store wants to know without reading data, such as `samples`.
    pub counts: BTreeMap<String, u64>,
    /// Size and checksum of every other file, by path within the folder. On disk `meta.json` itself is among them:
    /// the checksum of the description as compact JSON without that entry.
    pub files: BTreeMap<String, FileMeta>,
}

/// One file of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMeta {
    /// Size in bytes.
    pub bytes: u64,
    /// crc32c of all of it.
    pub crc32c: u32,
}

impl Meta {
    /// Size on disk in bytes, this description not counted.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.files.values().map(|f| f.bytes).sum()
    }

    /// A count by name, 0 when it was not written.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }
}

/// A block being written. Dropping it unfinished leaves a `.tmp-` folder that the next start removes.
pub struct Draft {
    vfs: Arc<dyn Vfs>,
    blocks: PathBuf,
    ulid: String,
}

impl Draft {
    /// Makes the folder of a new block below `blocks`. `time` goes into its name, so that names sort by time.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the folder cannot be made.
    pub fn new(vfs: Arc<dyn Vfs>, blocks: &Path, time: Millis) -> Result<Self, Error> {
        let draft = Self {
            vfs,
            blocks: blocks.to_path_buf(),
            ulid: fresh_ulid(time),
        };
        let dir = draft.dir();
        draft.vfs.create_dir_all(&dir).map_err(Error::io("create", &dir))?;
        Ok(draft)
    }

    /// Where to put the files.
    #[must_use]
    pub fn dir(&self) -> PathBuf {
        self.blocks.join(format!("{TMP}{}", self.ulid))
    }

    /// Makes the block valid: its files (already synced) are measured, described, and the folder renamed.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the disk refuses; the block is then not there.
    pub fn publish(self, mut meta: Meta) -> Result<Meta, Error> {
        let (vfs, dir) = (&*self.vfs, self.dir());
        meta.format = FORMAT;
        meta.ulid.clone_from(&self.ulid);
        measure(vfs, &dir, "", &mut meta.files)?;
        let path = dir.join(META);
        let own = FileMeta {
            bytes: 0,
            crc32c: checksum(&meta),
        };
        meta.files.insert(META.to_owned(), own);
        let text = serde_json::to_vec_pretty(&meta).expect("plain fields become JSON");
        meta.files.remove(META);
        let file = vfs.create(&path).map_err(Error::io("create", &path))?;
        file.write(&text)
            .and_then(|()| file.sync())
            .map_err(Error::io("write", &path))?;
        vfs.sync_dir(&dir).map_err(Error::io("sync folder", &dir))?;
        let done = self.blocks.join(&self.ulid);
        vfs.rename(&dir, &done).map_err(Error::io("rename", &dir))?;
        vfs.sync_dir(&self.blocks)
            .map_err(Error::io("sync folder", &self.blocks))?;
        Ok(meta)
    }

    /// Removes what was written.
    pub fn discard(self) {
        let dir = self.dir();
        if let Err(e) = self.vfs.remove_dir_all(&dir) {
            tracing::warn!("cannot remove {}: {e}", dir.display());
        }
    }
}

fn measure(vfs: &dyn Vfs, dir: &Path, prefix: &str, into: &mut BTreeMap<String, FileMeta>) -> Result<(), Error> {
    for entry in vfs.list(dir).map_err(Error::io("list", dir))? {
        let path = dir.join(&entry.name);
        let name = format!("{prefix}{}", entry.name);
        if entry.folder {
            measure(vfs, &path, &format!("{name}/"), into)?;
            vfs.sync_dir(&path).map_err(Error::io("sync folder", &path))?;
        } else {
            let bytes = vfs.map(&path).map_err(Error::io("read", &path))?;
            let meta = FileMeta {
                bytes: bytes.len() as u64,
                crc32c: crc32c::crc32c(&bytes),
            };
            into.insert(name, meta);
        }
    }
    Ok(())
}

/// A name for a block that begins at `time`.
#[must_use]
pub fn fresh_ulid(time: Millis) -> String {
    // The standard library seeds each of these anew; a name needs no better chance than that.
    let random = || u128::from(RandomState::new().build_hasher().finish());
    Ulid::from_parts(u64::try_from(time).unwrap_or(0), random() << 64 | random()).to_string()
}

/// What [`open_all`] found.
#[derive(Debug, Default)]
pub struct Found {
    /// Valid blocks, by earliest sample.
    pub metas: Vec<Meta>,
    /// Folders that are no valid block, with the reason; they were left alone.
    pub broken: Vec<(PathBuf, String)>,
}

/// Lists the blocks below `blocks` (made if absent) after removing unfinished and deleted ones, and those
/// that another block was made from.
///
/// # Errors
///
/// [`Error::Io`] when the folder cannot be read or cleared up.
pub fn open_all(vfs: &Arc<dyn Vfs>, blocks: &Path) -> Result<Found, Error> {
    vfs.create_dir_all(blocks).map_err(Error::io("create", blocks))?;
    crate::vfs::sync_parent(&**vfs, blocks)?;
    let mut found = Found::default();
    for entry in vfs.list(blocks).map_err(Error::io("list", blocks))? {
        let path = blocks.join(&entry.name);
        if entry.name.starts_with(TMP) || entry.name.starts_with(DEL) {
            vfs.remove_dir_all(&path).map_err(Error::io("remove", &path))?;
        } else if entry.folder && entry.name.parse::<Ulid>().is_ok() {
            match read_meta(&**vfs, &path) {
                Ok(meta) => found.metas.push(meta),
                Err(e) => found.broken.push((path, chain(&e))),
            }
        }
    }
    let replaced: Vec<String> = found.metas.iter().flat_map(|m| m.sources.iter().cloned()).collect();
    for ulid in &replaced {
        if found.metas.iter().any(|m| m.ulid == *ulid) {
            delete(&**vfs, blocks, ulid)?;
        }
    }
    found.metas.retain(|m| !replaced.contains(&m.ulid));
    found.metas.sort_by(|a, b| (a.mint, &a.ulid).cmp(&(b.mint, &b.ulid)));
    Ok(found)
}

/// Reads and checks `meta.json` of the block at `path`; sizes are compared, data is not read.
fn read_meta(vfs: &dyn Vfs, path: &Path) -> Result<Meta, Error> {
    let file = path.join(META);
    let bytes = vfs.map(&file).map_err(Error::io("read", &file))?;
    let mut meta: Meta = serde_json::from_slice(&bytes).map_err(|e| Error::damaged(&file, 0, e.to_string()))?;
    if meta.format > FORMAT {
        return Err(Error::Newer {
            path: path.to_path_buf(),
            found: u64::from(meta.format),
            known: u64::from(FORMAT),
        });
    }
    if path.file_name().and_then(|n| n.to_str()) != Some(meta.ulid.as_str()) {
        return Err(Error::damaged(&file, 0, format!("describes block {}", meta.ulid)));
    }
    // Format 1 had no checksum of its own.
    if meta.format > 1 {
        let own = meta.files.remove(META);
        if own.is_none_or(|own| own.crc32c != checksum(&meta)) {
            return Err(Error::damaged(&file, 0, "it does not fit its checksum"));
        }
    }
    let mut sizes = BTreeMap::new();
    list_sizes(vfs, path, "", &mut sizes)?;
    for (name, want) in &meta.files {
        let size = sizes.get(name);
        if size != Some(&want.bytes) {
            let got = size.map_or("absent".to_owned(), |s| format!("{s} bytes"));
            return Err(Error::damaged(
                &path.join(name),
                0,
                format!("{got}, {} expected", want.bytes),
            ));
        }
    }
    Ok(meta)
}

/// Of a description without its own entry among the files.
fn checksum(meta: &Meta) -> u32 {
    crc32c::crc32c(&serde_json::to_vec(meta).expect("plain fields become JSON"))
}

fn list_sizes(vfs: &dyn Vfs, dir: &Path, prefix: &str, into: &mut BTreeMap<String, u64>) -> Result<(), Error> {
    for entry in vfs.list(dir).map_err(Error::io("list", dir))? {
        let name = format!("{prefix}{}", entry.name);
        if entry.folder {
            list_sizes(vfs, &dir.join(&entry.name), &format!("{name}/"), into)?;
        } else {
            into.insert(name, entry.size);
        }
    }
    Ok(())
}

/// Removes a block. Readers that hold its files mapped keep them until they let go.
///
/// # Errors
///
/// [`Error::Io`] when the disk refuses.
pub fn delete(vfs: &dyn Vfs, blocks: &Path, ulid: &str) -> Result<(), Error> {
    let (path, gone) = (blocks.join(ulid), blocks.join(format!("{DEL}{ulid}")));
    vfs.rename(&path, &gone).map_err(Error::io("rename", &path))?;
    vfs.sync_dir(blocks).map_err(Error::io("sync folder", blocks))?;
    vfs.remove_dir_all(&gone).map_err(Error::io("remove", &gone))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::mem::MemFs;

    const BLOCKS: &str = "blocks";

    fn write(vfs: &Arc<dyn Vfs>, data: &str, sources: &[String]) -> String {
        let draft = Draft::new(Arc::clone(vfs), Path::new(BLOCKS), 1).unwrap();
        let file = vfs.create(&draft.dir().join("data")).unwrap();
        file.write(data.as_bytes()).unwrap();
        file.sync().unwrap();
        let meta = Meta {
            format: 0,
            ulid: String::new(),
            store: "metrics".into(),
            mint: 0,
            maxt: 1,
            level: 1,
            sources: sources.to_vec(),
            counts: BTreeMap::new(),
            files: BTreeMap::new(),
        };
        draft.publish(meta).unwrap().ulid
    }

    fn data_of(fs: &MemFs) -> Vec<String> {
        let vfs: Arc<dyn Vfs> = Arc::new(fs.clone());
        let found = open_all(&vfs, Path::new(BLOCKS)).unwrap();
        assert!(found.broken.is_empty(), "{found:?}");
        let read = |m: &Meta| {
            let path = Path::new(BLOCKS).join(&m.ulid).join("data");
            String::from_utf8(vfs.map(&path).unwrap().to_vec()).unwrap()
        };
        found.metas.iter().map(read).collect()
    }

    #[test]
    fn a_crash_at_any_change_leaves_the_old_or_the_new_block() {
        let fs = MemFs::new();
        let vfs: Arc<dyn Vfs> = Arc::new(fs.clone());
        open_all(&vfs, Path::new(BLOCKS)).unwrap();
        let old = write(&vfs, "old", &[]);
        let (start, sources) = (fs.op_count(), [old.clone()]);
        write(&vfs, "new", &sources);
        delete(&*vfs, Path::new(BLOCKS), &old).unwrap();
        for ops in start..=fs.op_count() {
            for disk in [fs.at(ops), fs.at(ops).power_cut()] {
                let data = data_of(&disk);
                assert!(data == ["old"] || data == ["new"], "after {ops} changes: {data:?}");
            }
        }
        assert_eq!(data_of(&fs), ["new"]);
    }

    #[test]
    fn a_truncated_file_is_told_and_left() {
        let fs = MemFs::new();
        let vfs: Arc<dyn Vfs> = Arc::new(fs.clone());
        open_all(&vfs, Path::new(BLOCKS)).unwrap();
        let ulid = write(&vfs, "four", &[]);
        let path = Path::new(BLOCKS).join(&ulid).join("data");
        fs.edit(&path, |bytes| bytes.truncate(3)).unwrap();
        let found = open_all(&vfs, Path::new(BLOCKS)).unwrap();
        assert!(found.metas.is_empty());
        assert!(found.broken[0].1.ends_with("3 bytes, 4 expected"), "{:?}", found.broken);
        assert!(fs.exists(&path));
    }
}
