//! A healthy, busy server raises no alert: a day of injected time through the real collectors, store and rules.

use std::path::Path;
use std::sync::{Arc, Mutex};

use blocks::vfs::mem::MemFs;
use model::{Appender, Millis, Queryable};
use promql::{Engine, EngineOptions};
use rules::{Alert, AlertSink, AlertState, LoadedRule};
use scrape::{Ingest, Job};

use super::super::{shipped, store};
use super::{Demo, LOCAL_JOBS};

/// The server of the demonstration on a good day.
const HEALTHY: &str = include_str!("../../../../../data/sim/healthy-h100x8.yml");

/// Fires at all times, by design.
const WATCHDOG: &str = "Watchdog";

const MINUTE: Millis = 60_000;
const DAY: Millis = 24 * 60 * MINUTE;

/// Families that the collectors read from the machine the test runs on, because they are asked of its kernel and not of a file.
const OF_THIS_MACHINE: [&str; 2] = ["node_timex_", "node_filesystem_"];

/// Keeps what fires.
#[derive(Default)]
struct Fired(Mutex<Vec<String>>);

impl AlertSink for Fired {
    fn send(&self, rule: &LoadedRule, alerts: &[Alert], _: Millis) {
        let firing = alerts
            .iter()
            .filter(|a| a.state == AlertState::Firing && rule.name != WATCHDOG);
        let told = firing.map(|a| format!("{} of {} at {:?}", a.value, a.labels, a.fired_at));
        self.0.lock().expect("the list").extend(told);
    }
}

/// The alerts of `span` of the healthy server, scraped every `step`; rules are evaluated every minute.
fn alerts_of(span: Millis, step: Millis) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let demo = Demo::playing(folder.path(), HEALTHY).expect("the simulated server");
    let db = tsdb::Db::open(tsdb::Options {
        vfs: Arc::new(MemFs::new()),
        ..tsdb::Options::new("/healthy")
    });
    let db = Arc::new(db.expect("a store in memory"));
    store::wait_replayed(&db).expect("nothing to replay");
    let appender = Arc::clone(&db) as Arc<dyn Appender>;
    let fired = Arc::new(Fired::default());
    let manager = rules::Manager::new(
        Arc::new(Engine::new(
            Arc::clone(&db) as Arc<dyn Queryable>,
            EngineOptions::default(),
        )),
        Arc::clone(&appender),
        Arc::clone(&fired) as _,
        rules::Options::default(),
    );
    let begin = demo.epoch - span;
    let groups = shipped::groups(Path::new("/nonexistent")).expect("the shipped rules");
    manager.apply(&groups, rules::Options::default(), begin);
    let mut jobs =
        LOCAL_JOBS.map(|(name, ..)| Ingest::new(Arc::clone(&appender), Arc::new(Job::new(name)), demo.labels(name)));
    let mut tree = demo.tree().in_place();
    let mut samples = 0;
    let mut time = begin;
    while time < demo.epoch {
        demo.clock.at.store(time, std::sync::atomic::Ordering::Release);
        demo.controls.set_time_ms(Some(time));
        tree.write(time - demo.epoch).expect("the simulated proc tree");
        for (job, (_, page, _)) in jobs.iter_mut().zip(LOCAL_JOBS) {
            let page = demo.sources.page(page);
            let simulated = |line: &&str| !OF_THIS_MACHINE.iter().any(|name| line.contains(name));
            let page: String = page.lines().filter(simulated).flat_map(|line| [line, "\n"]).collect();
            samples += job.ingest_page(time, page.as_bytes()).expect("the store takes it").kept;
        }
        if (time - begin) % MINUTE < step {
            manager.run_all(time);
        }
        if (time - begin) % (2 * 60 * MINUTE) < step {
            store::maintain(&db, time);
        }
        time += step;
    }
    let per_step = samples / u64::try_from(span / step).expect("above zero");
    assert!(per_step > 1_000, "{per_step} samples a scrape only");
    let status = manager.status();
    let failing = status
        .iter()
        .flat_map(|g| &g.rules)
        .find(|rule| rule.last_error.is_some());
    assert!(failing.is_none(), "{failing:?}");
    let mut fired = std::mem::take(&mut *fired.0.lock().expect("the list"));
    fired.truncate(20);
    fired
}

#[test]
fn a_healthy_busy_server_raises_no_alert_for_a_day() {
    assert_eq!(alerts_of(DAY, 15_000), Vec::<String>::new());
}

#[test]
#[ignore = "minutes: `make bench` runs it"]
fn a_healthy_busy_server_raises_no_alert_for_thirty_days() {
    assert_eq!(alerts_of(30 * DAY, MINUTE), Vec::<String>::new());
}
