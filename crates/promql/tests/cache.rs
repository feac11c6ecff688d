//! The result cache: gives what the engine gives, whatever happens to the store in between.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use model::store::Selection;
use model::{Deadline, Labels, Matcher, Millis, QueryEngine, Queryable, StoreError};
use promql::cache::CachedEngine;
use promql::testscript::MemStore;
use promql::{Engine, EngineOptions};

/// A store that tells what changed.
#[derive(Default)]
struct Watched {
    store: MemStore,
    settled: AtomicI64,
    revision: AtomicU64,
    changes: Mutex<Vec<(u64, Millis)>>,
}

impl Watched {
    fn add(&self, labels: &Labels, time: Millis, value: f64) {
        self.store.add(labels, time, value);
        if time < self.settled.load(Ordering::SeqCst) {
            let revision = self.revision.fetch_add(1, Ordering::SeqCst) + 1;
            self.changes.lock().expect("no panic").push((revision, time));
        }
    }
}

impl Queryable for Watched {
    fn select(&self, matchers: &[Matcher], mint: Millis, maxt: Millis) -> Result<Selection, StoreError> {
        self.store.select(matchers, mint, maxt)
    }

    fn label_names(&self, matchers: &[Matcher], mint: Millis, maxt: Millis) -> Result<Vec<String>, StoreError> {
        self.store.label_names(matchers, mint, maxt)
    }

    fn label_values(&self, name: &str, m: &[Matcher], mint: Millis, maxt: Millis) -> Result<Vec<String>, StoreError> {
        self.store.label_values(name, m, mint, maxt)
    }

    fn settled(&self) -> Millis {
        self.settled.load(Ordering::SeqCst)
    }

    fn revision(&self) -> u64 {
        self.revision.load(Ordering::SeqCst)
    }

    fn changed_since(&self, revision: u64) -> Option<Millis> {
        let changes = self.changes.lock().expect("no panic");
        changes
            .iter()
            .filter(|(at, _)| *at > revision)
            .map(|(_, time)| *time)
            .min()
    }
}

const STEP: Millis = 15_000;

fn labels(i: i64) -> Labels {
    Labels::from_pairs([("__name__", "x_total"), ("gpu", &i.to_string())])
}

#[test]
fn refreshed_answers_are_those_of_the_engine_while_samples_come_late() {
    let mut random = fastrand::Rng::with_seed(9);
    let watched = Arc::new(Watched::default());
    let storage: Arc<dyn Queryable> = Arc::clone(&watched) as _;
    let engine = Engine::new(Arc::clone(&storage), EngineOptions::default());
    let cached = CachedEngine::new(engine.clone(), storage, 1 << 20);
    let queries = [
        "sum(rate(x_total[2m]))",
        "x_total > 40",
        "x_total offset -1m",
        "max_over_time(x_total[5m:1m])",
        "x_total @ 600",
        "count(x_total) + time()",
        "sum by (gpu) (x_total @ end())",
        "-x_total",
    ];
    for round in 0_i64..60 {
        let now = 1_000_000 + round * STEP;
        watched.settled.store(now - 120_000, Ordering::SeqCst);
        for gpu in 0..3 {
            if random.u8(..) > 40 {
                watched.add(&labels(gpu), now, random.f64() * 100.0);
            }
        }
        if round % 5 == 0 {
            watched.add(&labels(random.i64(0..4)), now - random.i64(130_000..600_000), 7.0);
        }
        for query in queries {
            for step in [STEP, 60_000] {
                let end = now.div_euclid(step) * step;
                let start = end - 40 * step;
                let got = cached
                    .range(query, start, end, step, &Deadline::never())
                    .map(|o| o.value);
                let want = engine
                    .range(query, start, end, step, &Deadline::never())
                    .map(|o| o.value);
                assert_eq!(format!("{got:?}"), format!("{want:?}"), "{query} in round {round}");
            }
        }
    }
    let stats = cached.stats();
    assert!(stats.hits > 100 && stats.steps > 1000, "{stats:?}");
    assert!(stats.bytes <= 1 << 20, "{stats:?}");
}

#[test]
fn an_asker_may_refuse_what_is_known_and_a_small_cache_stays_small() {
    let watched = Arc::new(Watched::default());
    for i in 0..200 {
        watched.store.add(&labels(0), i * STEP, i as f64);
    }
    watched.settled.store(Millis::MAX, Ordering::SeqCst);
    let storage: Arc<dyn Queryable> = Arc::clone(&watched) as _;
    let engine = Engine::new(Arc::clone(&storage), EngineOptions::default());
    let cached = CachedEngine::new(engine, storage, 30_000);
    let ask = |query: &str, deadline: &Deadline| cached.range(query, 0, 100 * STEP, STEP, deadline).expect("an answer");
    let first = ask("x_total", &Deadline::never());
    let again = Deadline::never();
    assert_eq!(ask("x_total", &again).value, first.value);
    assert!(again.meter().from_cache() && again.meter().read() == 0);
    let anew = Deadline::never();
    anew.meter().avoid_cache();
    assert_eq!(ask("x_total", &anew).value, first.value);
    assert!(!anew.meter().from_cache() && anew.meter().read() > 0);
    for i in 0..100 {
        ask(&format!("x_total + {i}"), &Deadline::never());
    }
    let stats = cached.stats();
    assert!(stats.bytes <= 30_000 && stats.entries > 3, "{stats:?}");
}
