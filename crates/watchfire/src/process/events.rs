//! Events on their way: from a counter that changed to the store and the rules, or to the hubs that listen to an agent.
//!
//! One thread waits for the bell, so that whoever counts never waits. What rings while it works is taken together.
//! Invariant: after the last ring every change has been handed on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use collect::kernel::{Bell, Change, Heard, Kernel};
use collect::page::Page;
use model::{Clock as _, Labels, METRIC_NAME, Millis, SystemClock};
use web::EventLog;

use super::sources::LOCAL_JOBS;

/// A storm is handed on this often at most.
const PAUSE: Duration = Duration::from_millis(50);

/// The most series of remote events that wait for the rules.
const WAITING_MAX: usize = 4_096;

/// Hands events on until dropped.
pub struct Desk {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    news: Condvar,
    stopping: AtomicBool,
}

#[derive(Default)]
struct State {
    rung: bool,
    /// When the first of the events since the last turn happened.
    since: Option<Millis>,
    machines: Vec<Heeded>,
    /// Series that remote events changed, already stored.
    changed: Vec<Labels>,
}

/// A machine whose counters are listened to.
struct Heeded {
    kernel: Arc<Kernel>,
    heard: Heard,
    /// The labels of its targets, by page.
    targets: Vec<(Page, Labels)>,
}

/// Where events go.
enum Way {
    Hub {
        targets: scrape::Manager,
        rules: Arc<rules::Manager>,
    },
    Agent(Arc<EventLog>),
}

impl Desk {
    /// Hands the events of this process' machines to the store and the rules.
    ///
    /// # Errors
    ///
    /// The system refuses a thread.
    pub fn of_hub(targets: scrape::Manager, rules: Arc<rules::Manager>) -> anyhow::Result<Self> {
        Self::start(Way::Hub { targets, rules })
    }

    /// Hands the events of this machine to whoever listens at `/events`.
    ///
    /// # Errors
    ///
    /// The system refuses a thread.
    pub fn of_agent(kernel: &Arc<Kernel>, log: Arc<EventLog>) -> anyhow::Result<Self> {
        let desk = Self::start(Way::Agent(log))?;
        desk.listen(kernel, |_| Labels::empty());
        Ok(desk)
    }

    fn start(way: Way) -> anyhow::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            news: Condvar::new(),
            stopping: AtomicBool::new(false),
        });
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("events".into())
            .spawn(move || own.work(&way))
            .context("cannot start the thread of events")?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Listens to a machine's counters; `target` gives the labels of its target by job.
    pub fn listen(&self, kernel: &Arc<Kernel>, target: impl Fn(&str) -> Labels) {
        let mut heard = Heard::default();
        // What was counted before stands on the first page.
        let _ = kernel.changes(&mut heard, false);
        let targets = LOCAL_JOBS.iter().map(|(job, page, _)| (*page, target(job))).collect();
        lock(&self.shared.state).machines.push(Heeded {
            kernel: Arc::clone(kernel),
            heard,
            targets,
        });
        kernel.on_count(self.bell());
    }

    fn bell(&self) -> Bell {
        let shared = Arc::clone(&self.shared);
        Arc::new(move |time| {
            let mut state = lock(&shared.state);
            state.rung = true;
            state.since.get_or_insert(time);
            shared.news.notify_one();
        })
    }

    /// Takes in what the events of remote agents changed.
    pub fn on_events(&self) -> scrape::events::OnEvents {
        let shared = Arc::clone(&self.shared);
        Arc::new(move |changed, _| {
            let mut state = lock(&shared.state);
            if state.changed.len() < WAITING_MAX {
                state.changed.extend(changed);
            }
            state.rung = true;
            shared.news.notify_one();
        })
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.news.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic in it was reported when it happened.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn work(&self, way: &Way) {
        let mut again: Option<Millis> = None;
        while let Some((changes, since, mut changed)) = self.wait(again.take(), way) {
            match way {
                Way::Agent(log) => tell(log, &changes, since),
                Way::Hub { targets, rules } => {
                    changed.extend(store(targets, &changes));
                    again = rules.on_events(&changed, SystemClock.now());
                }
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits for news, or until `again`; nothing at the end.
    #[expect(clippy::type_complexity, reason = "taken apart where it is called")]
    fn wait(&self, again: Option<Millis>, way: &Way) -> Option<(Vec<(Labels, Change)>, Millis, Vec<Labels>)> {
        let mut state = lock(&self.state);
        loop {
            if self.stopping.load(Ordering::Acquire) {
                return None;
            }
            let now = SystemClock.now();
            if state.rung || again.is_some_and(|at| at <= now) {
                break;
            }
            let left = again.map_or(Duration::from_secs(3600), |at| {
                Duration::from_millis((at - now).unsigned_abs())
            });
            state = self
                .news
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        state.rung = false;
        let since = state.since.take().unwrap_or_else(|| SystemClock.now());
        let changed = std::mem::take(&mut state.changed);
        let mut machines = std::mem::take(&mut state.machines);
        drop(state);
        let stored = match way {
            Way::Hub { .. } => true,
            Way::Agent(log) => log.listeners() > 0,
        };
        let mut changes = Vec::new();
        for machine in &mut machines {
            for change in machine.kernel.changes(&mut machine.heard, stored) {
                let target = machine.targets.iter().find(|(page, _)| *page == change.page);
                if let Some((_, labels)) = target {
                    changes.push((labels.clone(), change));
                }
            }
        }
        // Machines that came meanwhile stay.
        let mut state = lock(&self.state);
        machines.append(&mut state.machines);
        state.machines = machines;
        Some((changes, since, changed))
    }
}

/// Stores the changes under their targets, and gives the series in the store.
fn store(targets: &scrape::Manager, changes: &[(Labels, Change)]) -> Vec<Labels> {
    let mut out = Vec::new();
    let mut rest = changes;
    while let Some((target, _)) = rest.first() {
        let same = rest.iter().take_while(|(other, _)| other == target).count();
        let page = lines(rest[..same].iter().map(|(_, change)| change));
        match targets.store_events(target, page.as_bytes(), SystemClock.now()) {
            Ok(changed) => out.extend(changed),
            Err(error) => tracing::warn!(%target, %error, "an event cannot be stored before the next scrape"),
        }
        rest = &rest[same..];
    }
    out
}

fn tell(log: &EventLog, changes: &[(Labels, Change)], since: Millis) {
    if !changes.is_empty() {
        log.push(lines(changes.iter().map(|(_, change)| change)), since);
    }
}

/// The lines of a page; a new series has its zero first.
fn lines<'a>(changes: impl Iterator<Item = &'a Change>) -> String {
    let mut page = String::new();
    for change in changes {
        if change.is_new {
            line(&change.labels, 0.0, &mut page);
        }
        line(&change.labels, change.to, &mut page);
    }
    page
}

fn line(series: &Labels, value: f64, page: &mut String) {
    page.push_str(series.name());
    page.push('{');
    for (name, text) in series.iter().filter(|(name, _)| *name != METRIC_NAME) {
        page.push_str(name);
        page.push_str("=\"");
        exposition::escape_label(text, page);
        page.push_str("\",");
    }
    page.push_str("} ");
    exposition::write_float(value, page);
    page.push('\n');
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
