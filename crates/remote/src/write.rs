//! Remote write: what Prometheus, Alloy, vmagent and their kin push, versions 1.0 and 2.0.
//!
//! A request is walked series by series. The bytes of a series' labels are hashed as they stand; a hash seen before
//! leads to the series' id, and only the samples are decoded. So a known series costs a hash and no allocation. A new
//! one is taken apart, judged and named to the store.
//!
//! Requests of any size are appended in portions, so that memory does not grow with what a sender packs together.
//!
//! What is refused is refused alone: the rest of the request is stored, and the answer says what was not, in the
//! classes that senders act upon (see [`Error::is_temporary`]).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use model::{Appended, Appender, Batch, Labels, Millis, SeriesId, StoreError, TargetId};

use crate::body::{Limits, Scratch};
use crate::error::Error;
use crate::memory::Sayings;

mod dialect;
pub(crate) mod histogram;
mod known;
mod v1;
mod v2;

use dialect::{Dialect, Place};
use known::{Entry, Known};

/// Samples later than this after the present are refused, in milliseconds: the field's bound.
const AHEAD_MAX: Millis = 10 * 60 * 1000;

/// Series looked at between two looks for new ones, and samples appended at once.
const WINDOW: usize = 4_096;
const PORTION: usize = 65_536;

/// Unpacking buffers kept for the next requests.
const SCRATCH_MAX: usize = 4;

/// The version of a request, as its content type tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `prometheus.WriteRequest`
    V1,
    /// `io.prometheus.write.v2.Request`
    V2,
}

impl Version {
    /// The version that a content type names; `None` for one that is not remote write's.
    #[must_use]
    pub fn from_content_type(header: &str) -> Option<Self> {
        let mut fields = header.split(';').map(str::trim);
        let media = fields.next().unwrap_or("");
        if !media.eq_ignore_ascii_case("application/x-protobuf") {
            return None;
        }
        match fields.find_map(|f| f.strip_prefix("proto=")) {
            None | Some("prometheus.WriteRequest") => Some(Self::V1),
            Some("io.prometheus.write.v2.Request") => Some(Self::V2),
            Some(_) => None,
        }
    }
}

/// What of a request is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Samples.
    pub samples: u64,
    /// Native histograms.
    pub histograms: u64,
    /// Examples.
    pub exemplars: u64,
}

/// Takes requests. Shared by all connections.
pub struct Receiver {
    appender: Arc<dyn Appender>,
    target: TargetId,
    limits: Limits,
    known: Known,
    sayings: Arc<Sayings>,
    scratch: Mutex<Vec<Scratch>>,
}

impl Receiver {
    /// A receiver that writes to `appender`; what is said of metrics goes to `sayings`.
    #[must_use]
    pub fn new(appender: Arc<dyn Appender>, sayings: Arc<Sayings>, limits: Limits) -> Self {
        let target = appender.target(&Labels::from_pairs([("job", "remote_write")]));
        Self {
            appender,
            target,
            limits,
            known: Known::default(),
            sayings,
            scratch: Mutex::default(),
        }
    }

    /// The bounds it was made with.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Stores a snappy body that came at `now`; tells what is stored also where something was refused. Blocking.
    pub fn receive(&self, body: &[u8], version: Version, now: Millis) -> (Written, Result<(), Error>) {
        let scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut scratch = scratch.unwrap_or_default();
        let answer = match scratch.unpack(body, &self.limits) {
            Ok(plain) => self.receive_plain(plain, version, now),
            Err(error) => (Written::default(), Err(error)),
        };
        scratch.shrink();
        let mut free = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < SCRATCH_MAX {
            free.push(scratch);
        }
        answer
    }

    /// As [`Receiver::receive`], of a body that is unpacked already.
    pub fn receive_plain(&self, plain: &[u8], version: Version, now: Millis) -> (Written, Result<(), Error>) {
        match version {
            Version::V1 => self.walk(&v1::Request::new(plain, &self.sayings), now),
            Version::V2 => match v2::Request::new(plain, &self.sayings) {
                Ok(request) => self.walk(&request, now),
                Err(error) => (Written::default(), Err(error)),
            },
        }
    }

    fn walk<'a, D: Dialect<'a>>(&self, request: &D, now: Millis) -> (Written, Result<(), Error>) {
        let mut walk = Walk {
            receiver: self,
            request,
            latest: now.saturating_add(AHEAD_MAX),
            now,
            only: None,
            batch: Batch::default(),
            used: Vec::new(),
            misses: Vec::new(),
            news: Vec::new(),
            forgotten: HashSet::new(),
            written: Written::default(),
            problems: Problems::default(),
        };
        let mut result = walk.run();
        if result.is_ok() && !walk.forgotten.is_empty() {
            // The store has forgotten some series since they were named to it: those once more, under new ids.
            walk.only = Some(std::mem::take(&mut walk.forgotten));
            result = walk.run();
        }
        let result = result.and_then(|()| walk.problems.finish());
        (walk.written, result)
    }
}

/// What was refused: the first reason with its count, and how many more.
#[derive(Default)]
struct Problems {
    first: Option<String>,
    count: u64,
}

impl Problems {
    fn add(&mut self, count: u64, reason: impl FnOnce() -> String) {
        self.count += count;
        self.first.get_or_insert_with(reason);
    }

    fn finish(&mut self) -> Result<(), Error> {
        match (self.first.take(), self.count) {
            (None, _) => Ok(()),
            (Some(first), 1) => Err(Error::Partial(first)),
            (Some(first), count) => Err(Error::Partial(format!("{first} ({count} refused in all)"))),
        }
    }
}

struct Walk<'a, 'w, D> {
    receiver: &'w Receiver,
    request: &'w D,
    now: Millis,
    latest: Millis,
    /// In a second walk, the series that it is about.
    only: Option<HashSet<u128>>,
    batch: Batch,
    /// Series of the batch and their hashes.
    used: Vec<(SeriesId, u128)>,
    misses: Vec<Miss<'a>>,
    /// Entries to remember.
    news: Vec<Entry>,
    /// Hashes of series whose id the store does not know any more.
    forgotten: HashSet<u128>,
    written: Written,
    problems: Problems,
}

/// A series not known by its hash.
struct Miss<'a> {
    message: &'a [u8],
    place: Place,
}

impl<'a, D: Dialect<'a>> Walk<'a, '_, D> {
    fn run(&mut self) -> Result<(), Error> {
        let mut messages = self.request.series();
        let mut done = false;
        while !done {
            done = self.window(&mut messages)?;
            self.resolve()?;
            if done || self.batch.timed.len() + self.batch.histograms.len() >= PORTION {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Walks some series under one look at the known ones; whether it was the last.
    fn window(&mut self, messages: &mut D::Series) -> Result<bool, Error> {
        let receiver = self.receiver;
        let known = receiver.known.read();
        let mut ids = D::ids();
        for _ in 0..WINDOW {
            let Some(message) = self.request.next(messages)? else {
                return Ok(true);
            };
            let place = self.request.place(message, &mut ids)?;
            if self.only.as_ref().is_some_and(|only| !only.contains(&place.hash)) {
                continue;
            }
            match known.find(place.hash) {
                Some((mut entry, is_old)) if place.is_whole => {
                    let created = entry.created;
                    self.take(message, &place, &mut entry)?;
                    if is_old || entry.created != created {
                        self.news.push(entry);
                    }
                }
                _ => self.misses.push(Miss { message, place }),
            }
            if self.batch.timed.len() >= PORTION {
                break;
            }
        }
        Ok(false)
    }

    /// Names the new series to the store.
    fn resolve(&mut self) -> Result<(), Error> {
        for miss in std::mem::take(&mut self.misses) {
            let labels = match self.request.labels(miss.message, &self.receiver.limits) {
                Ok(labels) => labels,
                Err(reason) => {
                    self.problems.add(1, || reason);
                    continue;
                }
            };
            let id = match self.receiver.appender.series(&labels) {
                Ok(id) => id,
                Err(StoreError::Limit(reason)) => {
                    self.problems.add(1, || format!("{labels}: limit: {reason}"));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let mut entry = Entry {
                hash: miss.place.hash,
                id,
                created: 0,
            };
            self.take(miss.message, &miss.place, &mut entry)?;
            self.request.metadata(miss.message, &labels)?;
            if miss.place.is_whole {
                self.news.push(entry);
            }
        }
        if !self.news.is_empty() {
            self.receiver.known.add(&mut self.news);
        }
        Ok(())
    }

    /// Decodes what a series has.
    fn take(&mut self, message: &'a [u8], place: &Place, entry: &mut Entry) -> Result<(), Error> {
        let (before, histograms) = (self.batch.timed.len(), self.batch.histograms.len());
        let latest = self.latest;
        let mut ahead = 0_u64;
        let found = self.request.values(message, place, entry.id, &mut self.batch)?;
        if self.batch.timed[before..].iter().any(|(_, t, _)| *t > latest) {
            let all = self.batch.timed.split_off(before);
            let count = all.len();
            self.batch
                .timed
                .extend(all.into_iter().filter(|(_, t, _)| *t <= latest));
            ahead = (count - (self.batch.timed.len() - before)) as u64;
        }
        for reason in found.refused {
            self.problems.add(1, || reason);
        }
        if self.batch.histograms[histograms..]
            .iter()
            .any(|(_, t, _)| t.is_some_and(|t| t > latest))
        {
            let all = self.batch.histograms.split_off(histograms);
            let count = all.len();
            let kept = all.into_iter().filter(|(_, t, _)| t.is_none_or(|t| t <= latest));
            self.batch.histograms.extend(kept);
            ahead += (count - (self.batch.histograms.len() - histograms)) as u64;
        }
        if ahead > 0 {
            self.problems.add(ahead, || {
                format!(
                    "out of bounds: a timestamp lies more than 10 minutes after the present, {}",
                    self.now
                )
            });
        }
        if found.created > 0 && found.created != entry.created {
            entry.created = found.created;
            self.batch.created.push((entry.id, found.created));
        }
        self.used.push((entry.id, entry.hash));
        Ok(())
    }

    /// Appends what has gathered.
    fn flush(&mut self) -> Result<(), Error> {
        let counts = (
            self.batch.timed.len(),
            self.batch.histograms.len(),
            self.batch.exemplars.len(),
        );
        if counts != (0, 0, 0) {
            let receiver = self.receiver;
            let done = receiver.appender.append(receiver.target, self.now, &self.batch)?;
            self.count(counts, &done);
        }
        self.batch.timed.clear();
        self.batch.histograms.clear();
        self.batch.exemplars.clear();
        self.batch.created.clear();
        self.used.clear();
        Ok(())
    }

    fn count(&mut self, (samples, histograms, exemplars): (usize, usize, usize), done: &Appended) {
        let unknown: HashSet<SeriesId> = done.unknown.iter().copied().collect();
        if !unknown.is_empty() {
            let lost: Vec<(SeriesId, u128)> = self
                .used
                .iter()
                .filter(|(id, _)| unknown.contains(id))
                .copied()
                .collect();
            self.receiver.known.remove(&lost);
            self.forgotten.extend(lost.iter().map(|(_, hash)| *hash));
        }
        // What the store had already, with this value, was written before: a sender that repeats itself is not told off.
        let mut refused = done.too_old + done.duplicates + done.unknown.len() as u64;
        if done.duplicates > 0 {
            let count = done.duplicates;
            self.problems.add(count, || {
                format!("duplicate sample for timestamp: {count} samples have another value than the one stored")
            });
        }
        if done.too_old > 0 {
            let count = done.too_old;
            self.problems.add(count, || {
                format!("out of order: {count} samples lie before the window that late samples may fall into")
            });
        }
        let mut less = |count: usize| {
            let count = count as u64;
            let taken = refused.min(count);
            refused -= taken;
            count - taken
        };
        self.written.samples += less(samples);
        self.written.histograms += less(histograms);
        self.written.exemplars += exemplars as u64;
    }
}

#[cfg(test)]
mod tests;
