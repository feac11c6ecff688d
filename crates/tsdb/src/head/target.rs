//! Owners of timestamps: all series of a target share its pages.
//!
//! A page is up to 120 timestamps within one two-hour span, so a page belongs to one block as a whole.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, RwLock};

use model::{Labels, Millis, TargetId};

use crate::sync::{lock, read, write};
use crate::times::span_start;
use crate::wal_record::Layouts;

/// Timestamps of a page.
pub const PAGE: usize = 120;

/// A scraped target, a rule group, a sender: whoever appends batches.
#[derive(Debug)]
pub struct Target {
    /// What it is called.
    pub labels: Labels,
    /// How its last records in the log looked. Held during an append, so batches of a target come one by one.
    pub log: Mutex<Layouts>,
    pages: RwLock<Pages>,
}

#[derive(Debug, Default)]
struct Pages {
    /// Number of the first page kept.
    first: u32,
    list: VecDeque<Vec<Millis>>,
}

/// A place in a target's timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The page's number.
    pub page: u32,
    /// The slot in it, below [`PAGE`].
    pub slot: u8,
}

impl Target {
    fn new(labels: Labels) -> Self {
        Self {
            labels,
            log: Mutex::default(),
            pages: RwLock::default(),
        }
    }

    /// The place of `time`, a new one if it is the latest; `None` when it lies before and was not known.
    pub fn place(&self, time: Millis) -> Option<Place> {
        let mut pages = write(&self.pages);
        let latest = pages.list.back().and_then(|p| p.last().copied());
        if latest.is_some_and(|l| time <= l) {
            return pages.find(time);
        }
        let fits = |p: &Vec<Millis>| p.len() < PAGE && p.first().is_some_and(|&f| span_start(f) == span_start(time));
        if !pages.list.back().is_some_and(fits) {
            pages.list.push_back(Vec::with_capacity(8));
        }
        let page = pages.list.back_mut().expect("pushed if it was absent");
        page.push(time);
        let slot = (page.len() - 1) as u8;
        let page = pages.first + (pages.list.len() - 1) as u32;
        Some(Place { page, slot })
    }

    /// The timestamps of a page so far; empty when it has gone.
    #[must_use]
    pub fn times(&self, page: u32) -> Vec<Millis> {
        let pages = read(&self.pages);
        let at = page.checked_sub(pages.first).map(|at| at as usize);
        at.and_then(|at| pages.list.get(at)).cloned().unwrap_or_default()
    }

    /// The timestamp at a place; `None` when it has gone.
    #[must_use]
    pub fn time_at(&self, place: Place) -> Option<Millis> {
        let pages = read(&self.pages);
        let at = place.page.checked_sub(pages.first)? as usize;
        pages.list.get(at)?.get(usize::from(place.slot)).copied()
    }

    /// All pages with their numbers.
    #[must_use]
    pub fn pages(&self) -> Vec<(u32, Vec<Millis>)> {
        let pages = read(&self.pages);
        (pages.first..).zip(pages.list.iter().cloned()).collect()
    }

    /// Puts back what [`Target::pages`] gave, into a target that has none.
    pub fn restore(&self, first: u32, list: Vec<Vec<Millis>>) {
        let mut pages = write(&self.pages);
        if pages.list.is_empty() {
            pages.first = first;
            pages.list = list.into();
        }
    }

    fn trim(&self, boundary: Millis) {
        let mut pages = write(&self.pages);
        while pages
            .list
            .front()
            .and_then(|p| p.first())
            .is_some_and(|&t| t < boundary)
        {
            pages.list.pop_front();
            pages.first += 1;
        }
        if pages.list.is_empty() {
            // Silent for hours: the log's memory of it goes as well.
            drop(pages);
            lock(&self.log).forget();
        }
    }
}

impl Pages {
    fn find(&self, time: Millis) -> Option<Place> {
        let after = self.list.partition_point(|p| p.first().is_some_and(|&f| f <= time));
        let at = after.checked_sub(1)?;
        let slot = self.list[at].binary_search(&time).ok()?;
        Some(Place {
            page: self.first + at as u32,
            slot: slot as u8,
        })
    }
}

/// All targets; they are few and stay.
#[derive(Debug, Default)]
pub struct Targets(RwLock<Registry>);

#[derive(Debug, Default)]
struct Registry {
    list: Vec<Arc<Target>>,
    by_labels: HashMap<Labels, TargetId>,
}

impl Targets {
    /// The target of these labels, made if it is new.
    pub fn id(&self, labels: &Labels) -> TargetId {
        if let Some(&id) = read(&self.0).by_labels.get(labels) {
            return id;
        }
        let mut registry = write(&self.0);
        if let Some(&id) = registry.by_labels.get(labels) {
            return id;
        }
        let id = TargetId(u32::try_from(registry.list.len()).unwrap_or(u32::MAX));
        registry.list.push(Arc::new(Target::new(labels.clone())));
        registry.by_labels.insert(labels.clone(), id);
        id
    }

    /// A target by its id; `None` for an id that was never given.
    #[must_use]
    pub fn get(&self, id: TargetId) -> Option<Arc<Target>> {
        read(&self.0).list.get(id.0 as usize).cloned()
    }

    /// All targets with their ids.
    #[must_use]
    pub fn all(&self) -> Vec<(TargetId, Arc<Target>)> {
        let registry = read(&self.0);
        (0..).map(TargetId).zip(registry.list.iter().cloned()).collect()
    }

    /// Forgets pages before `boundary`.
    pub fn trim(&self, boundary: Millis) {
        for (_, target) in self.all() {
            target.trim(boundary);
        }
    }
}
