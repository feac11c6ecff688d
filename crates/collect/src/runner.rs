//! Threads and deadlines for collectors.
//!
//! A [`Worker`] is a thread with collectors that may share each other's fate; a [`Runner`] asks all its workers at
//! once and waits for each as long as its deadline allows. A collector that is late is *hung*: its families are not
//! on the page (they go stale, never repeat), the others are, and it is asked again once it has come back. A thread
//! stuck in the kernel cannot be killed, so none is ever started in its place: their number is fixed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use model::{Clock, Family, Kind, Millis};

use crate::desk::{Desk, Order};
use crate::page::Page;
use crate::source::to_f64;
use crate::{Collector, Error, Readings, State};

/// A thread to be, with its collectors in the order they are asked.
pub struct Worker {
    /// The page its families stand on.
    pub page: Page,
    /// How long one round may take.
    pub deadline: Duration,
    /// Its collectors.
    pub collectors: Vec<Box<dyn Collector>>,
}

/// How it stands with one collector, for `doctor` and the status page.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectorStatus {
    /// Its name.
    pub name: &'static str,
    /// The page its families stand on.
    pub page: Page,
    /// The state its last round found.
    pub state: State,
    /// What its last round could not read, each with its causes.
    pub errors: Vec<String>,
    /// How long its last round took; the deadline when it hung.
    pub duration: Duration,
    /// When it last gave readings.
    pub last_success: Option<Millis>,
}

/// Asks collectors, each in time.
pub struct Runner {
    clock: Arc<dyn Clock>,
    /// On every line: `simulated="true"` and the like.
    labels: Vec<(&'static str, String)>,
    inner: Mutex<Inner>,
}

struct Inner {
    workers: Vec<Handle>,
    statuses: HashMap<&'static str, CollectorStatus>,
}

struct Handle {
    page: Page,
    deadline: Duration,
    names: Vec<&'static str>,
    desk: Arc<Desk<Answer>>,
}

/// A collector's readings, and how long they took.
type Answer = (Readings, Duration);

impl Runner {
    /// Starts the workers' threads; they wait until they are asked.
    ///
    /// # Errors
    ///
    /// The system refuses a thread.
    pub fn start(workers: Vec<Worker>, clock: Arc<dyn Clock>) -> std::io::Result<Self> {
        let workers = workers.into_iter().map(Handle::start).collect::<Result<_, _>>()?;
        Ok(Self {
            clock,
            labels: Vec::new(),
            inner: Mutex::new(Inner {
                workers,
                statuses: HashMap::new(),
            }),
        })
    }

    /// Puts labels on every line, as `simulated="true"` on those of a simulated machine.
    #[must_use]
    pub fn with_labels(mut self, labels: Vec<(&'static str, String)>) -> Self {
        self.labels = labels;
        self
    }

    /// Asks every collector of `page` now and returns the families, the collectors' own state last. Those of the node
    /// page are sorted by name as node_exporter's are, those of the GPU page stand as in its table.
    ///
    /// Takes at most the longest deadline. Two callers at once are served one after the other.
    #[must_use]
    pub fn collect(&self, page: Page) -> Vec<Family> {
        let mut inner = lock(&self.inner);
        let now = self.clock.now();
        let begun = Instant::now();
        let wanted = |worker: &&Handle| page.shows(worker.page);
        let asked: Vec<bool> = inner.workers.iter().filter(wanted).map(|w| w.desk.ask(now)).collect();
        let mut families = Vec::new();
        let mut answered = Vec::new();
        for (worker, asked) in inner.workers.iter().filter(wanted).zip(asked) {
            let answers = if asked {
                worker.desk.wait(begun, worker.deadline)
            } else {
                Vec::new()
            };
            let mut answers = answers.into_iter();
            for name in &worker.names {
                let (readings, took) = answers.next().unwrap_or_else(|| (hung(name, worker), worker.deadline));
                families.extend(readings.families);
                let success = (readings.state == State::Present).then_some(now);
                answered.push(CollectorStatus {
                    name,
                    page: worker.page,
                    state: readings.state,
                    errors: readings.errors.iter().map(Error::chain).collect(),
                    duration: took,
                    last_success: success,
                });
            }
        }
        for status in answered {
            inner.remember(status);
        }
        families.sort_by(|a: &Family, b: &Family| sort_key(a).cmp(&sort_key(b)));
        families.dedup_by(|later, first| merge(first, later));
        families.extend(inner.own_families(page));
        families.retain(|family| !family.metrics.is_empty());
        for metric in families.iter_mut().flat_map(|family| &mut family.metrics) {
            metric.labels.extend(self.labels.iter().cloned());
        }
        families
    }

    /// How it stands with each collector asked so far, sorted by name.
    #[must_use]
    pub fn statuses(&self) -> Vec<CollectorStatus> {
        lock(&self.inner).sorted(Page::All).into_iter().cloned().collect()
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        for worker in &lock(&self.inner).workers {
            worker.desk.stop();
        }
    }
}

impl Handle {
    fn start(worker: Worker) -> std::io::Result<Self> {
        let desk = Arc::new(Desk::default());
        let names: Vec<&'static str> = worker.collectors.iter().map(|c| c.name()).collect();
        let thread_name = names.first().map_or("collect", |name| name).to_owned();
        let (mut collectors, of_thread) = (worker.collectors, Arc::clone(&desk));
        thread::Builder::new()
            .name(thread_name)
            .spawn(move || work(&mut collectors, &of_thread))?;
        Ok(Self {
            page: worker.page,
            deadline: worker.deadline,
            names,
            desk,
        })
    }
}

/// The life of a worker's thread.
fn work(collectors: &mut [Box<dyn Collector>], desk: &Desk<Answer>) {
    loop {
        match desk.next(None) {
            Order::Stop => return,
            Order::Tick => {}
            Order::Ask(now) => {
                for collector in &mut *collectors {
                    let begun = Instant::now();
                    let readings = collector.collect(now);
                    desk.answer((readings, begun.elapsed()));
                }
                desk.done();
            }
        }
    }
}

impl Inner {
    /// Keeps the status, and says in the log what changed since the last one.
    fn remember(&mut self, mut status: CollectorStatus) {
        let before = self.statuses.get(status.name);
        if before.is_none_or(|b| b.errors != status.errors || b.state != status.state) {
            let (collector, state) = (status.name, status.state.as_str());
            match status.errors.as_slice() {
                [] if before.is_some() => tracing::info!(collector, state, "collector works again"),
                [] => tracing::debug!(collector, state, "collector works"),
                // What a machine does not have is no trouble.
                [first, ..] if matches!(status.state, State::Absent | State::Disabled) => {
                    tracing::info!(collector, state, "{first}");
                }
                [first, rest @ ..] => tracing::warn!(collector, state, more = rest.len(), "{first}"),
            }
        }
        status.last_success = status.last_success.or_else(|| before.and_then(|b| b.last_success));
        self.statuses.insert(status.name, status);
    }

    fn sorted(&self, page: Page) -> Vec<&CollectorStatus> {
        let mut statuses: Vec<_> = self.statuses.values().filter(|s| page.shows(s.page)).collect();
        statuses.sort_by_key(|status| status.name);
        statuses
    }

    /// What the runner itself tells of the collectors of `page`.
    fn own_families(&self, page: Page) -> Vec<Family> {
        let mut up = Family::new(
            "watchfire_collector_up",
            Kind::Gauge,
            "Whether the collector's source answers.",
        );
        let mut state = Family::new(
            "watchfire_collector_state",
            Kind::Gauge,
            "How it stands with the collector's source; the state that holds has the value 1, the others no line.",
        );
        let mut duration = Family::new(
            "watchfire_collector_duration_seconds",
            Kind::Gauge,
            "How long the collector's last round took.",
        );
        let mut success = Family::new(
            "watchfire_collector_last_success_timestamp_seconds",
            Kind::Gauge,
            "When the collector last gave readings.",
        );
        let mut node_success = Family::new(
            "node_scrape_collector_success",
            Kind::Gauge,
            "node_exporter: Whether a collector succeeded.",
        );
        let mut node_duration = Family::new(
            "node_scrape_collector_duration_seconds",
            Kind::Gauge,
            "node_exporter: Duration of a collector scrape.",
        );
        for status in self.sorted(page) {
            let labels = || vec![("collector", status.name.to_owned())];
            let works = f64::from(u8::from(status.state == State::Present));
            up.push(labels(), works);
            let mut state_labels = labels();
            state_labels.push(("state", status.state.as_str().to_owned()));
            state.push(state_labels, 1.0);
            duration.push(labels(), status.duration.as_secs_f64());
            success.push_some(labels, status.last_success.map(seconds));
            if status.page == Page::Node {
                node_success.push(labels(), works);
                node_duration.push(labels(), status.duration.as_secs_f64());
            }
        }
        vec![up, state, duration, success, node_success, node_duration]
    }
}

/// Puts the lines of `later` into `first` when both are one family: a textfile may add to ours.
fn merge(first: &mut Family, later: &mut Family) -> bool {
    let is_same = first.name == later.name;
    if is_same {
        first.metrics.append(&mut later.metrics);
    }
    is_same
}

/// Families of DCGM come first and stay in their order, ours about GPUs follow; the others are sorted.
fn sort_key(family: &Family) -> (u8, &str) {
    if family.name.starts_with("DCGM_") {
        (0, "")
    } else if family.name.starts_with("watchfire_gpu") {
        (1, &family.name)
    } else {
        (2, &family.name)
    }
}

/// A moment as seconds since the epoch.
pub(crate) fn seconds(at: Millis) -> f64 {
    to_f64(at.unsigned_abs()) / 1000.0 * if at < 0 { -1.0 } else { 1.0 }
}

fn hung(name: &str, worker: &Handle) -> Readings {
    Readings::failed(Error::Hung {
        what: format!("collector {name}"),
        deadline: worker.deadline,
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    struct Frozen;

    impl Clock for Frozen {
        fn now(&self) -> Millis {
            1_500
        }
    }

    /// Gives one line, after as many messages as `gate` is to deliver.
    struct Gated {
        name: &'static str,
        gate: Option<mpsc::Receiver<()>>,
    }

    impl Collector for Gated {
        fn name(&self) -> &'static str {
            self.name
        }

        fn collect(&mut self, now: Millis) -> Readings {
            if let Some(gate) = &self.gate {
                let _ = gate.recv();
            }
            let mut family = Family::new(format!("x_{}", self.name), Kind::Gauge, "");
            family.push(vec![], seconds(now));
            Readings::of(vec![family])
        }
    }

    fn worker(name: &'static str, gate: Option<mpsc::Receiver<()>>, deadline_ms: u64) -> Worker {
        Worker {
            page: Page::Node,
            deadline: Duration::from_millis(deadline_ms),
            collectors: vec![Box::new(Gated { name, gate })],
        }
    }

    fn value(families: &[Family], name: &str, collector: &str) -> Option<f64> {
        let family = families.iter().find(|f| f.name == name)?;
        let of = |m: &&model::Metric| collector.is_empty() || m.labels.iter().any(|(_, v)| v == collector);
        family.metrics.iter().find(of).map(|m| m.value)
    }

    #[test]
    fn a_hung_collector_leaves_the_others_on_the_page_and_comes_back() {
        let (open, gate) = mpsc::channel();
        let workers = vec![worker("slow", Some(gate), 30), worker("quick", None, 10_000)];
        let runner = Runner::start(workers, Arc::new(Frozen)).expect("two threads");

        let page = runner.collect(Page::Node);
        assert_eq!(value(&page, "x_quick", ""), Some(1.5));
        assert_eq!(value(&page, "x_slow", ""), None);
        assert_eq!(value(&page, "watchfire_collector_up", "slow"), Some(0.0));
        assert_eq!(value(&page, "watchfire_collector_state", "hung"), Some(1.0));
        assert_eq!(value(&page, "node_scrape_collector_success", "quick"), Some(1.0));
        assert_eq!(
            value(&page, "watchfire_collector_last_success_timestamp_seconds", "slow"),
            None
        );

        // From now on the gate stands open: the late round ends and its readings are dropped, the next ones count.
        drop(open);
        let back = (0..100_000).any(|_| {
            thread::yield_now();
            let page = runner.collect(Page::All);
            value(&page, "x_slow", "") == Some(1.5)
        });
        assert!(back, "the collector is asked again once its thread is free");
    }

    #[test]
    fn a_page_shows_its_own_collectors_only() {
        let mut gpu = worker("gpu", None, 10_000);
        gpu.page = Page::Gpu;
        let runner = Runner::start(vec![gpu, worker("cpu", None, 10_000)], Arc::new(Frozen)).expect("two threads");
        let page = runner.collect(Page::Gpu);
        assert_eq!(value(&page, "x_gpu", ""), Some(1.5));
        assert_eq!(value(&page, "x_cpu", ""), None);
        assert!(value(&page, "node_scrape_collector_success", "").is_none());
        assert_eq!(runner.statuses().len(), 1);
        assert_eq!(
            runner
                .collect(Page::All)
                .iter()
                .filter(|f| f.name.starts_with("x_"))
                .count(),
            2
        );
    }
}
