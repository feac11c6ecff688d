//! What an operator takes out of a store, and the copy of it: deletions, their clean-up, snapshots.
//!
//! In the head samples go at once, and the log says so; in a block they are hidden by its list of deletions until
//! it is rewritten. A crash on the way leaves some of the parts done: the deletion was not confirmed, and asking
//! again does the rest.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use blocks::block as folder;
use blocks::bytes::{put_varint, put_zigzag};
use blocks::folder::Folder;
use blocks::index::resolve;
use blocks::vfs::{Vfs, sync_parent};
use blocks::wal::Frames;
use blocks::{Error as BlocksError, chain};
use model::{Matcher, Millis, SeriesId, StoreAdmin, StoreError};

use super::{Db, FORMAT, Inner};
use crate::Error;
use crate::block::Block;
use crate::compact;
use crate::head::{SHARDS, make_id};
use crate::stats::Counters;
use crate::sync::{lock, write};
use crate::wal_record::kind;

/// Series named in one record of the log.
const IDS_PER_RECORD: usize = 100_000;

/// What a deletion met.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Series of the head that lost samples.
    pub head_series: u64,
    /// Samples that went from the head.
    pub head_samples: u64,
    /// Series of blocks that lost samples, counted once a block.
    pub block_series: u64,
}

impl Db {
    /// Takes the samples with `mint <= time <= maxt` out of the series that pass all `matchers`. When it returns, no
    /// query finds them, now or after a crash; blocks give their room back at their next compaction or by
    /// [`Db::clean_tombstones`].
    ///
    /// # Errors
    ///
    /// When the store is not ready, closed, or its disk refuses; a part may then be done, and asking again is safe.
    pub fn delete(&self, matchers: &[Matcher], mint: Millis, maxt: Millis) -> Result<Deleted, StoreError> {
        self.inner.check_open()?;
        let done = self.inner.delete(matchers, mint, maxt).map_err(Error::from)?;
        tracing::info!(
            "deleted {} samples of {} series in the head and parts of {} series in blocks",
            done.head_samples,
            done.head_series,
            done.block_series
        );
        Ok(done)
    }

    /// Rewrites blocks of which something was deleted; gives their number.
    ///
    /// # Errors
    ///
    /// When a block cannot be read or the disk refuses; blocks before it are done.
    pub fn clean_tombstones(&self) -> Result<u64, StoreError> {
        self.inner.check_open()?;
        Ok(self.inner.clean_tombstones().map_err(Error::from)?)
    }

    /// Puts a copy of the store as it is now into `into`, which must not exist: a folder that a store can be opened
    /// in. Blocks are linked where the file system can, so it costs little until they are compacted here.
    /// `head` says whether samples that are in no block yet come along.
    ///
    /// # Errors
    ///
    /// When the store is not ready or closed, the folder exists, or the disk refuses; nothing is left behind then.
    pub fn snapshot(&self, into: &Path, head: bool) -> Result<(), StoreError> {
        self.inner.check_open()?;
        Ok(self.inner.snapshot(into, head).map_err(Error::from)?)
    }
}

impl StoreAdmin for Db {
    fn delete_series(&self, selectors: &[Vec<Matcher>], mint: Millis, maxt: Millis) -> Result<(), StoreError> {
        selectors
            .iter()
            .try_for_each(|matchers| self.delete(matchers, mint, maxt).map(drop))
    }

    fn clean_tombstones(&self) -> Result<u64, StoreError> {
        Self::clean_tombstones(self)
    }

    fn snapshot(&self, name: &str, head: bool) -> Result<(), StoreError> {
        Self::snapshot(self, &self.inner.options.dir.join("snapshots").join(name), head)
    }
}

impl Inner {
    fn delete(&self, matchers: &[Matcher], mint: Millis, maxt: Millis) -> Result<Deleted, BlocksError> {
        // Nothing is cut or compacted meanwhile, and nothing comes in.
        let _memory = lock(&self.maintaining);
        let mut done = Deleted::default();
        {
            let _alone = write(&self.appending);
            self.delete_from_head(matchers, mint, maxt, &mut done)?;
        }
        for block in self.blocks().iter().filter(|b| b.overlaps(mint, maxt)) {
            let mut deletes = (*block.deletes()).clone();
            let before = done.block_series;
            for row in &resolve(&block.index, matchers) {
                let refs = block.chunk_refs(row);
                let within = refs.iter().filter_map(|r| block.columns.meta(r.column));
                let span = within.fold((Millis::MAX, Millis::MIN), |s, m| (s.0.min(m.mint), s.1.max(m.maxt)));
                let (from, to) = (mint.max(span.0), maxt.min(span.1));
                if from <= to {
                    deletes.add(row, from, to);
                    done.block_series += 1;
                }
            }
            if done.block_series > before {
                block.set_deletes(&*self.options.vfs, &self.blocks_dir(), deletes)?;
            }
        }
        if done != Deleted::default() {
            self.changes.note(mint);
        }
        Ok(done)
    }

    fn delete_from_head(
        &self,
        matchers: &[Matcher],
        mint: Millis,
        maxt: Millis,
        done: &mut Deleted,
    ) -> Result<(), BlocksError> {
        let mut ids: Vec<SeriesId> = Vec::new();
        for number in 0..SHARDS {
            let shard = self.head.shard(number);
            for slot in &resolve(&*shard, matchers) {
                let Some(series) = shard.get(slot) else { continue };
                if series.last >= mint && series.first(&self.head.targets).is_some_and(|first| first <= maxt) {
                    ids.push(make_id(number, series.generation, slot));
                }
            }
        }
        if ids.is_empty() {
            return Ok(());
        }
        if let Some(wal) = self.wal.get() {
            let mut frames = std::mem::take(&mut *lock(&self.pending));
            put_deletes(&ids, mint, maxt, &mut frames);
            wal.lock().append(&frames)?;
            wal.sync()?;
        }
        (done.head_series, done.head_samples) = self.head.delete(&ids, mint, maxt);
        Ok(())
    }

    fn clean_tombstones(&self) -> Result<u64, BlocksError> {
        let _memory = lock(&self.maintaining);
        let mut cleaned = 0;
        let dirty: Vec<Arc<Block>> = self
            .blocks()
            .iter()
            .filter(|b| !b.deletes().is_empty())
            .cloned()
            .collect();
        for block in dirty {
            self.replace(&[Arc::clone(&block)], block.meta.level)?;
            cleaned += 1;
        }
        Ok(cleaned)
    }

    /// Puts the block that `parents` become in their place.
    pub(super) fn replace(&self, parents: &[Arc<Block>], level: u32) -> Result<(), BlocksError> {
        let dir = self.blocks_dir();
        let meta = compact::compact(&self.options.vfs, &dir, parents, level)?;
        let is_parent = |b: &Arc<Block>| parents.iter().any(|p| p.meta.ulid == b.meta.ulid);
        let mut left: Vec<Arc<Block>> = self.blocks().iter().filter(|b| !is_parent(b)).cloned().collect();
        if let Some(meta) = meta {
            left.push(Arc::new(Block::open(&*self.options.vfs, &dir, meta, &self.counters)?));
        }
        self.set_blocks(left);
        Counters::add(&self.counters.compactions, 1);
        for parent in parents {
            folder::delete(&*self.options.vfs, &dir, &parent.meta.ulid)?;
        }
        Ok(())
    }

    fn snapshot(&self, into: &Path, head: bool) -> Result<(), BlocksError> {
        let _memory = lock(&self.maintaining);
        let vfs = &self.options.vfs;
        if vfs.exists(into) {
            return Err(BlocksError::io("make a snapshot in", into)(
                std::io::ErrorKind::AlreadyExists.into(),
            ));
        }
        if let Some(parent) = into.parent().filter(|p| !p.as_os_str().is_empty() && !vfs.exists(p)) {
            vfs.create_dir_all(parent).map_err(BlocksError::io("create", parent))?;
            sync_parent(&**vfs, parent)?;
        }
        let mut name = into.as_os_str().to_owned();
        name.push(".tmp");
        let tmp = PathBuf::from(name);
        if vfs.exists(&tmp) {
            vfs.remove_dir_all(&tmp).map_err(BlocksError::io("remove", &tmp))?;
        }
        let done = self.fill_snapshot(&tmp, head).and_then(|()| {
            vfs.rename(&tmp, into).map_err(BlocksError::io("rename", &tmp))?;
            sync_parent(&**vfs, into)
        });
        if done.is_err()
            && let Err(e) = vfs.remove_dir_all(&tmp)
        {
            tracing::warn!("cannot remove the unfinished snapshot {}: {e}", tmp.display());
        }
        done
    }

    fn fill_snapshot(&self, tmp: &Path, head: bool) -> Result<(), BlocksError> {
        let vfs = &self.options.vfs;
        drop(Folder::open(vfs, tmp, FORMAT)?);
        let lock_file = tmp.join("LOCK");
        if vfs.exists(&lock_file) {
            vfs.remove_file(&lock_file)
                .map_err(BlocksError::io("remove", &lock_file))?;
        }
        let to = tmp.join("blocks");
        vfs.create_dir_all(&to).map_err(BlocksError::io("create", &to))?;
        for block in self.blocks().iter() {
            let ulid = &block.meta.ulid;
            link_tree(&**vfs, &self.blocks_dir().join(ulid), &to.join(ulid))?;
        }
        vfs.sync_dir(&to).map_err(BlocksError::io("sync folder", &to))?;
        if head {
            // As a checkpoint is: each series as it is when its turn comes.
            let fill = |writer: &mut blocks::wal::checkpoint::Writer| self.head.write_checkpoint(writer);
            blocks::wal::write_lone_checkpoint(vfs, &tmp.join("wal"), fill)?;
        }
        vfs.sync_dir(tmp).map_err(BlocksError::io("sync folder", tmp))
    }
}

fn put_deletes(ids: &[SeriesId], mint: Millis, maxt: Millis, frames: &mut Frames) {
    for part in ids.chunks(IDS_PER_RECORD) {
        frames.push(kind::DELETES, |out| {
            put_zigzag(out, mint);
            put_zigzag(out, maxt);
            put_varint(out, part.len() as u64);
            let mut last = 0;
            for id in part {
                put_zigzag(out, id.0.wrapping_sub(last) as i64);
                last = id.0;
            }
        });
    }
}

/// Links every file of a folder into another, copies where links do not go.
fn link_tree(vfs: &dyn Vfs, from: &Path, to: &Path) -> Result<(), BlocksError> {
    vfs.create_dir_all(to).map_err(BlocksError::io("create", to))?;
    for entry in vfs.list(from).map_err(BlocksError::io("list", from))? {
        let (source, goal) = (from.join(&entry.name), to.join(&entry.name));
        if entry.folder {
            link_tree(vfs, &source, &goal)?;
        } else if let Err(e) = vfs.hard_link(&source, &goal) {
            tracing::debug!("{} is copied, not linked: {e}", source.display());
            copy(vfs, &source, &goal)?;
        }
    }
    vfs.sync_dir(to).map_err(BlocksError::io("sync folder", to))
}

fn copy(vfs: &dyn Vfs, from: &Path, to: &Path) -> Result<(), BlocksError> {
    let bytes = vfs.map(from).map_err(BlocksError::io("read", from))?;
    let file = vfs.create(to).map_err(BlocksError::io("create", to))?;
    file.write(&bytes)
        .and_then(|()| file.sync())
        .map_err(BlocksError::io("write", to))
}

/// A list of deletions that cannot be read is set aside: the block is whole, and what was deleted of it is back.
pub(crate) fn set_aside(vfs: &dyn Vfs, dir: &Path, error: &BlocksError) {
    let path = dir.join(crate::block::deletes::FILE);
    let aside = dir.join("deletes.damaged");
    tracing::error!(
        "{}; set aside as {}: samples deleted before are back",
        chain(error),
        aside.display()
    );
    if let Err(e) = vfs.rename(&path, &aside).and_then(|()| vfs.sync_dir(dir)) {
        tracing::error!("cannot set {} aside: {e}", path.display());
    }
}
