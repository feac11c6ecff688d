//! A file system in memory for tests: it records every change, runs full when told, and can lose power.
//!
//! A file has the bytes it has and the bytes that were synced; a folder has its names and those that were
//! synced. [`MemFs::at`] rebuilds the state after any number of changes, [`MemFs::power_cut`] forgets what
//! was not synced. Both are strict where real disks are often kinder: an unsynced name is lost, an unsynced
//! write is lost as a whole.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Entry, Held, Space, Vfs, VfsFile};
use crate::mmap::Mapped;

/// One change to the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// A folder was made.
    CreateDir(PathBuf),
    /// An empty file was made.
    Create(PathBuf),
    /// Bytes were added to the end of file number `inode`.
    Write {
        /// The file.
        inode: usize,
        /// What was added.
        bytes: Vec<u8>,
    },
    /// A file was cut.
    SetLen {
        /// The file.
        inode: usize,
        /// Its new size in bytes.
        len: u64,
    },
    /// A file was synced.
    Sync {
        /// The file.
        inode: usize,
    },
    /// A name was changed.
    Rename(PathBuf, PathBuf),
    /// A file got a second name.
    Link(PathBuf, PathBuf),
    /// A file or folder was removed.
    Remove(PathBuf),
    /// A folder's names were synced.
    SyncDir(PathBuf),
}

#[derive(Debug, Clone)]
enum Node {
    File {
        bytes: Vec<u8>,
        synced: Vec<u8>,
    },
    Dir {
        names: BTreeMap<String, usize>,
        synced: BTreeMap<String, usize>,
    },
}

#[derive(Debug, Clone)]
struct Disk {
    nodes: Vec<Node>,
    ops: Vec<Op>,
    free: u64,
    locks: Vec<PathBuf>,
}

/// See the module. Clones share one disk.
#[derive(Debug, Clone)]
pub struct MemFs(Arc<Mutex<Disk>>);

const ROOT: usize = 0;
const TOTAL_BYTES: u64 = 1 << 40;

impl Default for MemFs {
    fn default() -> Self {
        Self::new()
    }
}

impl MemFs {
    /// An empty disk of one tebibyte.
    #[must_use]
    pub fn new() -> Self {
        Self::of(Disk {
            nodes: vec![empty_dir()],
            ops: Vec::new(),
            free: TOTAL_BYTES,
            locks: Vec::new(),
        })
    }

    fn of(disk: Disk) -> Self {
        Self(Arc::new(Mutex::new(disk)))
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many changes were made.
    #[must_use]
    pub fn op_count(&self) -> usize {
        self.disk().ops.len()
    }

    /// The changes made so far.
    #[must_use]
    pub fn ops(&self) -> Vec<Op> {
        self.disk().ops.clone()
    }

    /// Another disk as this one was after its first `ops` changes. Locks are not held there.
    #[must_use]
    pub fn at(&self, ops: usize) -> Self {
        let other = Self::new();
        {
            let from = self.disk();
            let mut to = other.disk();
            for op in from.ops.iter().take(ops) {
                to.apply(op.clone()).expect("what worked once works again");
            }
        }
        other
    }

    /// Another disk as this one would be after a power cut.
    #[must_use]
    pub fn power_cut(&self) -> Self {
        let mut disk = self.disk().clone();
        for node in &mut disk.nodes {
            match node {
                Node::File { bytes, synced } => bytes.clone_from(synced),
                Node::Dir { names, synced } => names.clone_from(synced),
            }
        }
        disk.locks.clear();
        // The recorded changes no longer lead here.
        disk.ops.clear();
        Self::of(disk)
    }

    /// Sets how many bytes may still be written before the disk is full.
    pub fn set_free(&self, bytes: u64) {
        self.disk().free = bytes;
    }

    /// Changes the bytes of a file behind the store's back.
    ///
    /// # Errors
    ///
    /// When there is no such file.
    pub fn edit(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut disk = self.disk();
        let inode = disk.find(path)?;
        match &mut disk.nodes[inode] {
            Node::File { bytes, synced } => {
                change(bytes);
                synced.clone_from(bytes);
                Ok(())
            }
            Node::Dir { .. } => Err(io::ErrorKind::IsADirectory.into()),
        }
    }
}

fn empty_dir() -> Node {
    Node::Dir {
        names: BTreeMap::new(),
        synced: BTreeMap::new(),
    }
}

fn names_of(path: &Path) -> Vec<String> {
    path.components()
        .filter_map(|c| match c {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        })
        .collect()
}

impl Disk {
    fn find(&self, path: &Path) -> io::Result<usize> {
        let mut at = ROOT;
        for name in names_of(path) {
            let Node::Dir { names, .. } = &self.nodes[at] else {
                return Err(io::ErrorKind::NotADirectory.into());
            };
            at = *names.get(&name).ok_or(io::ErrorKind::NotFound)?;
        }
        Ok(at)
    }

    fn parent(&mut self, path: &Path) -> io::Result<(&mut BTreeMap<String, usize>, String)> {
        let mut names = names_of(path);
        let last = names.pop().ok_or(io::ErrorKind::InvalidInput)?;
        let dir = self.find(&names.iter().collect::<PathBuf>())?;
        match &mut self.nodes[dir] {
            Node::Dir { names, .. } => Ok((names, last)),
            Node::File { .. } => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn link(&mut self, path: &Path, node: Node) -> io::Result<usize> {
        let inode = self.nodes.len();
        let (names, last) = self.parent(path)?;
        names.insert(last, inode);
        self.nodes.push(node);
        Ok(inode)
    }

    /// Makes the change and records it.
    fn apply(&mut self, op: Op) -> io::Result<usize> {
        let mut result = 0;
        match &op {
            Op::CreateDir(path) => result = self.link(path, empty_dir())?,
            Op::Create(path) => {
                let empty = Node::File {
                    bytes: Vec::new(),
                    synced: Vec::new(),
                };
                result = self.link(path, empty)?;
            }
            Op::Write { inode, bytes: more } => {
                if let Node::File { bytes, .. } = &mut self.nodes[*inode] {
                    bytes.extend_from_slice(more);
                }
            }
            Op::SetLen { inode, len } => {
                if let Node::File { bytes, .. } = &mut self.nodes[*inode] {
                    bytes.resize(usize::try_from(*len).unwrap_or(usize::MAX), 0);
                }
            }
            Op::Sync { inode } => {
                if let Node::File { bytes, synced } = &mut self.nodes[*inode] {
                    synced.clone_from(bytes);
                }
            }
            Op::Rename(from, to) => {
                let (names, last) = self.parent(from)?;
                let inode = names.remove(&last).ok_or(io::ErrorKind::NotFound)?;
                let (names, last) = self.parent(to)?;
                names.insert(last, inode);
            }
            Op::Link(from, to) => {
                let inode = self.find(from)?;
                let (names, last) = self.parent(to)?;
                if names.insert(last, inode).is_some() {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
            }
            Op::Remove(path) => {
                let (names, last) = self.parent(path)?;
                names.remove(&last).ok_or(io::ErrorKind::NotFound)?;
            }
            Op::SyncDir(path) => {
                let inode = self.find(path)?;
                if let Node::Dir { names, synced } = &mut self.nodes[inode] {
                    synced.clone_from(names);
                }
            }
        }
        self.ops.push(op);
        Ok(result)
    }
}

struct MemFile {
    fs: MemFs,
    inode: usize,
}

impl VfsFile for MemFile {
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.fs.disk();
        let fits = bytes.len().min(usize::try_from(disk.free).unwrap_or(usize::MAX));
        disk.free -= fits as u64;
        disk.apply(Op::Write {
            inode: self.inode,
            bytes: bytes[..fits].to_vec(),
        })?;
        if fits < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.fs.disk().apply(Op::Sync { inode: self.inode }).map(drop)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let inode = self.inode;
        self.fs.disk().apply(Op::SetLen { inode, len }).map(drop)
    }
}

struct MemLock(MemFs, PathBuf);

impl Drop for MemLock {
    fn drop(&mut self) {
        let mut disk = self.0.disk();
        disk.locks.retain(|p| *p != self.1);
    }
}

impl Vfs for MemFs {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        let mut at = PathBuf::new();
        for name in names_of(path) {
            at.push(name);
            match disk.find(&at) {
                Ok(inode) if matches!(disk.nodes[inode], Node::Dir { .. }) => {}
                Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
                Err(_) => drop(disk.apply(Op::CreateDir(at.clone()))?),
            }
        }
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        let inode = self.disk().apply(Op::Create(path.to_path_buf()))?;
        let fs = self.clone();
        Ok(Arc::new(MemFile { fs, inode }))
    }

    fn open_end(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        let inode = self.disk().find(path)?;
        let fs = self.clone();
        Ok(Arc::new(MemFile { fs, inode }))
    }

    fn map(&self, path: &Path) -> io::Result<Mapped> {
        let disk = self.disk();
        match &disk.nodes[disk.find(path)?] {
            Node::File { bytes, .. } => Ok(Mapped::Owned(Arc::from(bytes.as_slice()))),
            Node::Dir { .. } => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let disk = self.disk();
        let Node::Dir { names, .. } = &disk.nodes[disk.find(dir)?] else {
            return Err(io::ErrorKind::NotADirectory.into());
        };
        let entry = |(name, &inode): (&String, &usize)| match &disk.nodes[inode] {
            Node::File { bytes, .. } => Entry {
                name: name.clone(),
                folder: false,
                size: bytes.len() as u64,
            },
            Node::Dir { .. } => Entry {
                name: name.clone(),
                folder: true,
                size: 0,
            },
        };
        Ok(names.iter().map(entry).collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let op = Op::Rename(from.to_path_buf(), to.to_path_buf());
        self.disk().apply(op).map(drop)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let op = Op::Link(from.to_path_buf(), to.to_path_buf());
        self.disk().apply(op).map(drop)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.disk().apply(Op::Remove(path.to_path_buf())).map(drop)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.disk().apply(Op::Remove(path.to_path_buf())).map(drop)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk().apply(Op::SyncDir(dir.to_path_buf())).map(drop)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Held>>> {
        if !self.exists(path) {
            self.create(path)?;
        }
        let mut disk = self.disk();
        if disk.locks.iter().any(|p| p == path) {
            return Ok(None);
        }
        disk.locks.push(path.to_path_buf());
        drop(disk);
        Ok(Some(Box::new(MemLock(self.clone(), path.to_path_buf()))))
    }

    fn space(&self, _path: &Path) -> io::Result<Space> {
        let free = self.disk().free;
        Ok(Space {
            free,
            total: TOTAL_BYTES,
        })
    }

    fn exists(&self, path: &Path) -> bool {
        self.disk().find(path).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_cut_keeps_synced_bytes_under_synced_names() {
        let fs = MemFs::new();
        fs.create_dir_all(Path::new("d")).unwrap();
        fs.sync_dir(Path::new("")).unwrap();
        let file = fs.create(Path::new("d/a")).unwrap();
        file.write(b"one").unwrap();
        file.sync().unwrap();
        assert!(!fs.power_cut().exists(Path::new("d/a")), "the name was not synced");
        fs.sync_dir(Path::new("d")).unwrap();
        file.write(b"two").unwrap();
        assert_eq!(&*fs.power_cut().map(Path::new("d/a")).unwrap(), b"one");
        assert_eq!(&*fs.map(Path::new("d/a")).unwrap(), b"onetwo");
    }

    #[test]
    fn any_earlier_state_can_be_had() {
        let fs = MemFs::new();
        let file = fs.create(Path::new("a")).unwrap();
        file.write(b"1").unwrap();
        fs.rename(Path::new("a"), Path::new("b")).unwrap();
        let now = fs.op_count();
        assert!(fs.at(now).exists(Path::new("b")));
        assert!(fs.at(now - 1).exists(Path::new("a")));
        assert!(!fs.at(0).exists(Path::new("a")));
    }

    #[test]
    fn a_full_disk_takes_what_fits() {
        let fs = MemFs::new();
        fs.set_free(2);
        let file = fs.create(Path::new("a")).unwrap();
        let error = file.write(b"123").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(&*fs.map(Path::new("a")).unwrap(), b"12");
    }
}
