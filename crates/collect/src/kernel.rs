//! What the kernel's messages mean: GPU errors, kills for want of memory, failing links and disks.
//!
//! [`Classifier`] knows the patterns of `data/kernel_events.yml`; [`Kernel`] counts what it recognises and remembers the
//! last events; [`XidCounts`] joins the kernel's XIDs with the driver's own. Lines are handed in by whoever reads them:
//! this crate opens no log.
//!
//! Invariant: a line gives at most one event, and an event seen by two sources is counted once.

mod catalog;
mod classifier;
mod counts;
mod event;
mod join;
mod oom;
mod pci;
mod sxid;
mod tidings;
mod xid;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{self, BufRead, Read as _, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{Family, Kind, Millis};

use crate::page::Page;
use crate::{Collector, Error, Readings, State, Worker};

pub use catalog::{Side, XidCatalog, XidEntry, XidSeverity, XidViews};
pub use classifier::{Classifier, PATTERNS};
pub use event::Event;
pub use pci::PciAddress;
pub use tidings::{Bell, Change, Heard};
pub use xid::{GpuIdentity, XidCounts, XidSource};

use counts::FirstSightZero;
use oom::OomJoin;
use sxid::SxidCounts;

/// Events kept for whoever asks for the latest.
const RECENT_MAX: usize = 256;

/// Different messages whose meaning is remembered; a storm has some dozens.
const SEEN_MAX: usize = 64;

/// Longer messages are not remembered.
const SEEN_BYTES_MAX: usize = 1_024;

/// The code of a GPU that has fallen off the bus.
const FALLEN_OFF: u32 = 79;

/// Processes counted by name; the kills of further ones count as `other`.
const OOM_SERIES_MAX: usize = 64;

/// Bytes of a line; a longer one is read as several, so that a source without line ends stays within bounds.
const LINE_MAX: u64 = 1 << 20;

/// Counting needs no source to answer: what was counted is there.
const DEADLINE: Duration = Duration::from_secs(1);

/// The kernel's events, counted and remembered. Shared by the reader of the messages and the collectors.
pub struct Kernel {
    classifier: Arc<Classifier>,
    xids: XidCounts,
    inner: Mutex<Inner>,
}

/// How counters are looked at.
#[derive(Clone, Copy)]
enum Look {
    /// For a page: a counter shows a zero at its first sight.
    Page,
    /// For a listener.
    Now {
        /// Whether the pages leave that zero out from now on.
        shown: bool,
    },
}

impl Look {
    fn at<K: Ord + Clone>(self, counts: &mut FirstSightZero<K>) -> Vec<(K, f64)> {
        match self {
            Self::Page => counts.collect(),
            Self::Now { shown } => counts.now(shown),
        }
    }
}

struct Inner {
    source: Result<(), (State, String)>,
    recent: VecDeque<Event>,
    classes: BTreeMap<&'static str, f64>,
    lost: u64,
    join: OomJoin,
    /// Kills by process and constraint.
    kills: FirstSightZero<(String, String)>,
    sxids: SxidCounts,
    /// Messages seen lately and what they mean: in a storm the same ones come again and again.
    seen: HashMap<String, Event>,
}

impl Kernel {
    /// Nothing counted yet, and no source attached.
    #[must_use]
    pub fn new(classifier: Arc<Classifier>, xids: XidCounts) -> Self {
        let classes = classifier.counted_classes().map(|class| (class, 0.0)).collect();
        Self {
            classifier,
            xids,
            inner: Mutex::new(Inner {
                source: Err((State::Disabled, "no reader of kernel messages was started".to_owned())),
                recent: VecDeque::new(),
                classes,
                lost: 0,
                join: OomJoin::default(),
                kills: FirstSightZero::default(),
                sxids: SxidCounts::default(),
                seen: HashMap::new(),
            }),
        }
    }

    /// Takes a message that the kernel gave at `time`, and says what it means, if anything.
    pub fn message(&self, text: &str, time: Millis) -> Option<Event> {
        let mut event = self.meaning(text)?;
        event.time = time;
        let mut inner = lock(&self.inner);
        inner.join.see(&mut event);
        if let Some(count) = inner.classes.get_mut(event.class) {
            *count += 1.0;
        }
        if event.class == "oom-kill" {
            inner.count_kill(&event);
        }
        inner.sxids.see(&event);
        let xid = match event.class {
            "gpu-fallen-off-bus" => Some((XidSource::KernelText, FALLEN_OFF)),
            _ => event.xid.map(|xid| (XidSource::Kernel, xid)),
        };
        if let (Some((source, xid)), Some(pci)) = (xid, &event.pci) {
            self.xids.count(source, pci, xid, time);
        }
        if inner.recent.len() == RECENT_MAX {
            inner.recent.pop_front();
        }
        inner.recent.push_back(event.clone());
        drop(inner);
        self.xids.ring(time);
        Some(event)
    }

    fn meaning(&self, text: &str) -> Option<Event> {
        if let Some(event) = lock(&self.inner).seen.get(text) {
            return Some(event.clone());
        }
        let event = self.classifier.classify(text)?;
        let seen = &mut lock(&self.inner).seen;
        if seen.len() >= SEEN_MAX {
            seen.clear();
        }
        if text.len() <= SEEN_BYTES_MAX {
            seen.insert(text.to_owned(), event.clone());
        }
        Some(event)
    }

    /// Takes note that `count` messages were overwritten before they could be read.
    pub fn lost(&self, count: u64) {
        let mut inner = lock(&self.inner);
        inner.lost = inner.lost.saturating_add(count);
    }

    /// Takes note that the messages are being read.
    pub fn attached(&self) {
        lock(&self.inner).source = Ok(());
    }

    /// Takes note that the messages cannot be read, and why.
    pub fn detached(&self, state: State, reason: impl Into<String>) {
        lock(&self.inner).source = Err((state, reason.into()));
    }

    /// The latest events, oldest first; at most 256.
    #[must_use]
    pub fn recent(&self) -> Vec<Event> {
        lock(&self.inner).recent.iter().cloned().collect()
    }

    /// The XID counters, for the GPU collector's own source.
    #[must_use]
    pub fn xids(&self) -> &XidCounts {
        &self.xids
    }

    fn families(&self, look: Look) -> Vec<Family> {
        let counter = |name: &str, help: &str| Family::new(name, Kind::Counter, help);
        let mut kills = counter(
            "watchfire_oom_kills_total",
            "Processes killed for want of memory, by name and by what ran out (none: the host, memcg: a memory cgroup).",
        );
        let mut events = counter(
            "watchfire_kernel_events_total",
            "Events recognised in the kernel's messages, by class.",
        );
        let mut lost = counter(
            "watchfire_kernel_messages_lost_total",
            "Kernel messages that were overwritten before they could be read.",
        );
        let mut inner = lock(&self.inner);
        for ((process, constraint), count) in look.at(&mut inner.kills) {
            kills.push(vec![("process", process), ("constraint", constraint)], count);
        }
        for (class, count) in &inner.classes {
            events.push(vec![("class", (*class).to_owned())], *count);
        }
        lost.push(Vec::new(), crate::source::to_f64(inner.lost));
        vec![kills, events, lost]
    }

    fn sxids(&self, look: Look) -> Family {
        lock(&self.inner).sxids.family(|counts| look.at(counts))
    }

    fn source_error(&self) -> Option<Error> {
        let source = lock(&self.inner).source.clone();
        source.err().map(|(state, reason)| Error::Source {
            what: "kernel messages",
            state,
            reason,
        })
    }
}

impl Inner {
    fn count_kill(&mut self, event: &Event) {
        let process = event.process.clone().unwrap_or_default();
        let constraint = event.constraint.clone().unwrap_or_default();
        let known = self.kills.contains(&(process.clone(), constraint.clone()));
        let process = if known || self.kills.len() < OOM_SERIES_MAX {
            process
        } else {
            "other".to_owned()
        };
        self.kills.add((process, constraint), 1.0);
    }
}

/// The collectors that put the kernel's events on the pages: `kernel` on the node page, `xid` on the GPU page.
#[must_use]
pub fn workers(kernel: &Arc<Kernel>) -> Vec<Worker> {
    let worker = |page, collector| Worker {
        page,
        deadline: DEADLINE,
        collectors: vec![collector],
    };
    vec![
        worker(Page::Node, Box::new(KernelCollector(Arc::clone(kernel)))),
        worker(Page::Gpu, Box::new(XidCollector(Arc::clone(kernel)))),
    ]
}

struct KernelCollector(Arc<Kernel>);

impl Collector for KernelCollector {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        match self.0.source_error() {
            // What was counted before stays counted; without a source from the start there is nothing to show.
            Some(error) if lock(&self.0.inner).recent.is_empty() => Readings::failed(error),
            Some(error) => Readings {
                families: self.0.families(Look::Page),
                ..Readings::failed(error)
            },
            None => Readings::of(self.0.families(Look::Page)),
        }
    }
}

struct XidCollector(Arc<Kernel>);

impl Collector for XidCollector {
    fn name(&self) -> &'static str {
        "xid"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        let xids = &self.0.xids;
        let mut readings = Readings::of(vec![xids.family(), self.0.sxids(Look::Page)]);
        // One source is enough to count; that it is the only one is worth a word.
        let error = self.0.source_error();
        if let Some(error) = error {
            if !xids.driver_attached() {
                readings.state = error.state();
                readings.families.retain(|_| xids.any_counted());
            }
            readings.errors.push(error);
        }
        readings
    }
}

/// Reads lines and writes one JSON object for each that means something:
/// `{"line","class","xid"?,"sxid"?,"pci"?,"pid"?,"process"?}`. Lines may be messages, dmesg output in any of its
/// forms, syslog, or records of the kernel's device.
///
/// # Errors
///
/// Only those of `input` and `output`.
pub fn classify_lines(classifier: &Classifier, mut input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        if input.by_ref().take(LINE_MAX).read_until(b'\n', &mut bytes)? == 0 {
            return output.flush();
        }
        while matches!(bytes.last(), Some(b'\n' | b'\r')) {
            bytes.pop();
        }
        let line = String::from_utf8_lossy(&bytes);
        if let Some(event) = classifier.classify(&line) {
            serde_json::to_writer(&mut output, &event.to_json(&line))?;
            output.write_all(b"\n")?;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
