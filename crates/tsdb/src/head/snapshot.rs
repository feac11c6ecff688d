//! What a series held at one moment, to be decoded when needed, whatever happens to the head meanwhile.

use std::collections::HashMap;
use std::sync::Arc;

use model::{Column, Millis, TargetId};

use super::sealed::{JOIN, Sealed};
use super::shared::Shared;
use super::target::Targets;
use crate::codec::Scratch;
use crate::column::{self, clip, merge};

/// Pages of targets met during one selection, each copied once.
#[derive(Debug)]
pub struct PageCache<'a> {
    targets: &'a Targets,
    pages: HashMap<(TargetId, u32), Arc<[Millis]>>,
    /// Several pages in a row, by the first.
    joined: HashMap<(TargetId, u32), Arc<[Millis]>>,
}

impl<'a> PageCache<'a> {
    /// Nothing met yet.
    #[must_use]
    pub fn new(targets: &'a Targets) -> Self {
        Self {
            targets,
            pages: HashMap::new(),
            joined: HashMap::new(),
        }
    }

    /// The timestamps of a page, at least the first `slots` of them where they exist.
    pub(super) fn get(&mut self, target: TargetId, page: u32, slots: usize) -> Arc<[Millis]> {
        if let Some(times) = self.pages.get(&(target, page))
            && times.len() >= slots
        {
            return Arc::clone(times);
        }
        // New, or the page has grown since it was copied.
        let times = self.targets.get(target).map(|t| t.times(page)).unwrap_or_default();
        let times: Arc<[Millis]> = times.into();
        self.pages.insert((target, page), Arc::clone(&times));
        times
    }

    /// The timestamps of [`JOIN`] pages; they are whole and change no more.
    pub(super) fn get_joined(&mut self, target: TargetId, page: u32) -> Arc<[Millis]> {
        let targets = self.targets;
        let times = self.joined.entry((target, page)).or_insert_with(|| {
            let target = targets.get(target);
            let times = |page| target.as_ref().map(|t| t.times(page)).unwrap_or_default();
            (page..page + JOIN as u32).flat_map(times).collect()
        });
        Arc::clone(times)
    }
}

/// A run of samples with the timestamps it needs.
#[derive(Debug)]
pub(super) enum Run {
    Sealed(Sealed, Arc<[Millis]>),
    Tail(Shared, Arc<[Millis]>),
    Own(Column),
}

/// What a series held at one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub(super) runs: Vec<Run>,
    pub(super) late: Vec<Run>,
}

impl Run {
    /// Adds the samples in `mint..=maxt`, through `whole`, a column to use.
    fn read(&self, mint: Millis, maxt: Millis, scratch: &mut Scratch, whole: &mut Column, into: &mut Column) {
        whole.clear();
        match self {
            Self::Own(column) => return clip(column, mint, maxt, into),
            Self::Tail(tail, page) => tail.decode(page, scratch, whole),
            Self::Sealed(sealed, page) => {
                let decoded = sealed.decode(page, scratch, whole);
                // Where a damaged checkpoint lost the timestamps, which was told, the values are lost with them.
                if decoded.is_none() || whole.times.len() != whole.values.len() {
                    return;
                }
            }
        }
        clip(whole, mint, maxt, into);
    }
}

impl Snapshot {
    /// Whether it holds no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.late.is_empty()
    }

    /// The timestamps and the chunk, where all there is, is one run that has the form of a chunk on disk.
    #[must_use]
    pub fn chunk(&self) -> Option<(&[Millis], &[u8])> {
        match (self.runs.as_slice(), self.late.is_empty()) {
            ([Run::Sealed(sealed, page)], true) => Some((page, sealed.chunk()?)),
            _ => None,
        }
    }

    /// Adds the samples in `mint..=maxt` to `into`, in order of time; `into` must end before `mint`.
    pub fn read(&self, mint: Millis, maxt: Millis, scratch: &mut Scratch, into: &mut Column) {
        let mut whole = Column::default();
        if self.late.is_empty() {
            for run in &self.runs {
                run.read(mint, maxt, scratch, &mut whole, into);
            }
            return;
        }
        let mut merged = Column::default();
        for run in &self.runs {
            run.read(mint, maxt, scratch, &mut whole, &mut merged);
        }
        for run in &self.late {
            let mut part = Column::default();
            run.read(mint, maxt, scratch, &mut whole, &mut part);
            merge(&mut merged, &part);
        }
        column::extend(into, &merged, 0..merged.len());
    }
}
