//! The store against a plain map doing the same, over cuts, compactions, reopening and crashes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use blocks::vfs::Vfs as _;
use blocks::vfs::mem::MemFs;
use model::{
    Appended, Appender as _, Batch, Column, Exemplar, ExemplarQueryable as _, Histogram, Labels, Matcher, Millis,
    Queryable as _, SeriesId, StoreError,
};

use super::*;
use crate::column::Value;

mod arrivals;
mod crash;
mod damage;
mod deletion;
mod disk;
mod history;

const HOUR: Millis = 3600 * 1000;
const START: Millis = 1_700_000_000_000 / crate::times::SPAN * crate::times::SPAN;

/// What a store should hold: bits by series and time.
type Model = BTreeMap<Labels, BTreeMap<Millis, u64>>;

fn options(fs: &MemFs) -> Options {
    Options {
        vfs: Arc::new(fs.clone()),
        wal_sync: Duration::from_secs(3600),
        wal_segment_bytes: 20_000,
        keep_time: None,
        keep_bytes: None,
        ..Options::new("data")
    }
}

fn open(options: Options) -> Db {
    let db = Db::open(options).expect("the store opens");
    db.wait_ready().expect("the log is replayed");
    db
}

fn series(i: usize) -> Labels {
    let (name, gpu, job) = (format!("m{}", i % 5), format!("{i}"), format!("j{}", i % 3));
    Labels::from_pairs([
        ("__name__", name.as_str()),
        ("gpu", &gpu),
        ("instance", "x"),
        ("job", &job),
    ])
}

fn target(i: usize) -> Labels {
    Labels::from_pairs([("job", format!("j{i}").as_str())])
}

fn contents(db: &Db) -> Model {
    read_range(db, Millis::MIN, Millis::MAX)
}

fn read_range(db: &Db, mint: Millis, maxt: Millis) -> Model {
    let mut model = Model::new();
    let selection = db.select(&[], mint, maxt).expect("select");
    assert!(selection.series.is_sorted_by(|a, b| a.labels() < b.labels()));
    for stored in selection.series {
        let mut column = Column::default();
        column.push(Millis::MIN, 5.0);
        stored.read(mint, maxt, &mut column).expect("read");
        assert!(column.times.is_sorted_by(|a, b| a < b), "times ascend");
        assert!(column.histograms.is_empty() || column.histograms.len() == column.len());
        let samples: BTreeMap<Millis, u64> = (1..column.len())
            .map(|i| (column.times[i], bits(&Value::at(&column, i))))
            .collect();
        if !samples.is_empty() {
            model.insert(stored.labels().clone(), samples);
        }
    }
    model
}

/// A number that stands for a sample.
fn bits(value: &Value) -> u64 {
    match value {
        Value::Float(value) => value.to_bits(),
        Value::Histogram(histogram) => {
            let mut bytes = Vec::new();
            crate::codec::histograms::put(histogram, &mut bytes);
            xxhash_rust::xxh3::xxh3_64(&bytes)
        }
    }
}

fn histogram(seed: u64) -> Arc<Histogram> {
    let buckets = (seed % 4 + 1) as usize;
    Arc::new(Histogram {
        schema: 3,
        zero_threshold: 0.001,
        count: seed as f64,
        sum: if seed.is_multiple_of(13) {
            model::stale_nan()
        } else {
            seed as f64 / 8.0
        },
        positive_spans: vec![model::BucketSpan {
            offset: 0,
            length: buckets as u32,
        }],
        positive_buckets: vec![seed as f64; buckets],
        ..Histogram::default()
    })
}

#[track_caller]
fn assert_same(got: &Model, want: &Model) {
    for (labels, samples) in want {
        let have = got.get(labels).unwrap_or_else(|| panic!("{labels} is missing"));
        if have != samples {
            let lost: Vec<_> = samples.iter().filter(|(t, v)| have.get(t) != Some(v)).take(3).collect();
            let new: Vec<_> = have.iter().filter(|(t, v)| samples.get(t) != Some(v)).take(3).collect();
            panic!(
                "{labels}: {} of {}, lost {lost:?}, invented {new:?}",
                have.len(),
                samples.len()
            );
        }
    }
    assert_eq!(got.len(), want.len(), "no series is invented");
}

/// One writer with its model: what was accepted is noted there.
struct Driver {
    db: Db,
    model: Model,
    now: Millis,
    ids: BTreeMap<Labels, SeriesId>,
}

impl Driver {
    fn new(db: Db, now: Millis) -> Self {
        Self {
            db,
            model: Model::new(),
            now,
            ids: BTreeMap::new(),
        }
    }

    fn id(&mut self, labels: &Labels) -> SeriesId {
        if let Some(id) = self.ids.get(labels) {
            return *id;
        }
        let id = self.db.series(labels).expect("room for a series");
        self.ids.insert(labels.clone(), id);
        id
    }

    /// Appends one sample a series, and notes what must now be there.
    fn append(&mut self, target_number: usize, time: Millis, samples: &[(Labels, f64)], timed: bool) -> Appended {
        let target = self.db.target(&target(target_number));
        let mut done = Appended::default();
        let mut left = samples.to_vec();
        for _ in 0..2 {
            let mut batch = Batch::default();
            for (labels, value) in &left {
                let id = self.id(labels);
                if timed {
                    batch.timed.push((id, time, *value));
                } else {
                    batch.samples.push((id, *value));
                }
            }
            let part = self.db.append(target, time, &batch).expect("append");
            done.accepted += part.accepted;
            done.duplicates += part.duplicates;
            done.too_old += part.too_old;
            done.repeated += part.repeated;
            self.ids.retain(|_, id| !part.unknown.contains(id));
            left.retain(|(labels, _)| !self.ids.contains_key(labels));
        }
        assert!(left.is_empty(), "a series just resolved is known");
        let refused = done.duplicates + done.too_old + done.repeated;
        assert_eq!(done.accepted + refused, samples.len() as u64);
        for (labels, value) in samples {
            let slot = self.model.entry(labels.clone()).or_default();
            if refused == 0 {
                slot.insert(time, value.to_bits());
            } else if refused != samples.len() as u64 {
                // Mixed verdicts are found out one by one; callers avoid them.
                panic!("mixed verdicts: {done:?}");
            }
            if self.model[labels].is_empty() {
                self.model.remove(labels);
            }
        }
        done
    }

    /// Appends one histogram, and notes whether it must now be there.
    fn append_histogram(&mut self, labels: &Labels, time: Millis, histogram: &Arc<Histogram>, own: bool) -> Appended {
        let target = self.db.target(&target(0));
        for _ in 0..2 {
            let id = self.id(labels);
            let batch = Batch {
                histograms: vec![(id, own.then_some(time), Arc::clone(histogram))],
                ..Batch::default()
            };
            let done = self.db.append(target, time, &batch).expect("append");
            if done.unknown.is_empty() {
                if done.accepted > 0 {
                    let stands_for = bits(&Value::Histogram(Arc::clone(histogram)));
                    self.model.entry(labels.clone()).or_default().insert(time, stands_for);
                }
                return done;
            }
            self.ids.retain(|_, id| !done.unknown.contains(id));
        }
        panic!("a series just resolved is known");
    }

    /// Deletes, from the model too.
    fn delete(&mut self, matchers: &[Matcher], mint: Millis, maxt: Millis) {
        self.db.delete(matchers, mint, maxt).expect("delete");
        for (labels, samples) in &mut self.model {
            if matchers.iter().all(|m| m.matches(labels.get(&m.name).unwrap_or(""))) {
                samples.retain(|t, _| !(mint..=maxt).contains(t));
            }
        }
        self.model.retain(|_, samples| !samples.is_empty());
    }
}

#[test]
fn samples_come_back_from_the_head() {
    let fs = MemFs::new();
    let mut driver = Driver::new(open(options(&fs)), START);
    for i in 0..500 {
        let samples: Vec<_> = (0..10)
            .map(|s| (series(s), if s < 5 { 1.0 } else { (i * s) as f64 / 10.0 }))
            .collect();
        assert_eq!(
            driver.append(0, START + i as i64 * 15_000, &samples, false).accepted,
            10
        );
    }
    assert_same(&contents(&driver.db), &driver.model);
    let found = driver
        .db
        .select(&[Matcher::equal("__name__", "m1")], START, START + HOUR)
        .unwrap();
    assert_eq!(found.series.len(), 2);
    assert_eq!(
        driver.db.label_names(&[], 0, Millis::MAX).unwrap(),
        ["__name__", "gpu", "instance", "job"]
    );
    assert_eq!(
        driver.db.label_values("job", &[], 0, Millis::MAX).unwrap(),
        ["j0", "j1", "j2"]
    );
    let matchers = [Matcher::equal("gpu", "4")];
    assert_eq!(
        driver.db.label_values("job", &matchers, 0, Millis::MAX).unwrap(),
        ["j1"]
    );
}

/// Random life of a store; `check_every` operations the whole contents are compared.
fn live(seed: u64, operations: usize) {
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let fs = MemFs::new();
    let mut driver = Driver::new(open(options(&fs)), START + rng.i64(0..2 * HOUR));
    // Without holes whole pages are joined.
    let holes = rng.bool();
    let step = [1_000, 15_000, 60_000][rng.usize(0..3)];
    for _ in 0..operations {
        match rng.u8(0..100) {
            0..70 => {
                driver.now += step + if rng.u8(0..10) == 0 { rng.i64(0..5) } else { 0 };
                let (now, number) = (driver.now, rng.usize(0..3));
                let present: Vec<_> = (0..12)
                    .filter(|s| s % 3 == number && (!holes || rng.u8(0..20) > 0))
                    .collect();
                let samples: Vec<_> = present.iter().map(|&s| (series(s), value(&mut rng, s))).collect();
                driver.append(number, now, &samples, false);
            }
            70..76 => {
                // A series of its own, or one that targets write too.
                let (labels, time) = (
                    series(rng.usize(0..16)),
                    driver.now - rng.i64(0..90) * 60_000 + rng.i64(0..3),
                );
                let value = value(&mut rng, 20);
                driver.append(0, time, &[(labels, value)], true);
            }
            76 | 77 | 79 => {
                let time = driver.now - rng.i64(0..15) * 60_000;
                let sample = [(series(rng.usize(0..12)), 7.0)];
                driver.append(rng.usize(0..3), time, &sample, false);
            }
            78 => {
                let back = if rng.bool() { 0 } else { rng.i64(0..80) * 60_000 };
                let (labels, time) = (series(rng.usize(15..19)), driver.now - back);
                let own = rng.bool();
                driver.append_histogram(&labels, time, &histogram(rng.u64(0..50)), own);
            }
            80..84 => {
                // A second batch at the same time, as report series are.
                let now = driver.now;
                driver.append(1, now, &[(series(12), 1.0)], false);
            }
            84..88 => driver.now += rng.i64(0..3) * HOUR / 2,
            88..94 => driver.db.maintain(driver.now).expect("maintain"),
            94 => {
                let mint = driver.now - rng.i64(0..12 * HOUR);
                let maxt = mint + rng.i64(0..3 * HOUR);
                let name = format!("m{}", rng.u8(0..5));
                driver.delete(&[Matcher::equal("__name__", &name)], mint, maxt);
                if rng.bool() {
                    driver.db.clean_tombstones().expect("clean");
                }
            }
            95..97 => {
                if rng.bool() {
                    driver.db.close().expect("close");
                }
                // Not closed is as killed: the process' writes are with the kernel.
                let copy = fs.at(fs.op_count());
                drop(std::mem::replace(&mut driver.db, open(options(&copy))));
                let back = open(options(&fs));
                assert_same(&contents(&driver.db), &driver.model);
                driver.db = back;
                driver.ids.clear();
            }
            _ => {
                let mint = driver.now - rng.i64(0..6 * HOUR);
                let maxt = mint + rng.i64(0..3 * HOUR);
                let mut want = driver.model.clone();
                want.values_mut()
                    .for_each(|s| s.retain(|t, _| (mint..=maxt).contains(t)));
                want.retain(|_, s| !s.is_empty());
                assert_same(&read_range(&driver.db, mint, maxt), &want);
            }
        }
    }
    assert_same(&contents(&driver.db), &driver.model);
    driver.db.maintain(driver.now + 100 * HOUR).expect("maintain");
    assert_same(&contents(&driver.db), &driver.model);
    println!("{:?}", driver.db.stats());
}

fn value(rng: &mut fastrand::Rng, kind: usize) -> f64 {
    match (kind % 6, rng.u8(0..30)) {
        (_, 0) => model::stale_nan(),
        (_, 1) => [f64::NAN, f64::INFINITY, -0.0][rng.usize(0..3)],
        (0 | 1, _) => 5.0,
        (2, _) => f64::from(rng.u8(..)),
        (3, _) => f64::from(rng.u16(..)) / 1000.0,
        (4, _) => rng.f64(),
        _ => f64::from(rng.u32(..)) * 1024.0,
    }
}

#[test]
fn a_random_life_agrees_with_a_map() {
    for _ in 0..rounds(20) {
        live(fastrand::u64(..), 700);
    }
}

#[test]
fn a_long_life_is_compacted_and_agrees_with_a_map() {
    for _ in 0..rounds(1) {
        live(fastrand::u64(..), 8000);
    }
}

/// How often to try anew; `WATCHFIRE_ROUNDS` multiplies.
fn rounds(usual: usize) -> usize {
    let more = std::env::var("WATCHFIRE_ROUNDS").ok().and_then(|n| n.parse().ok());
    usual * more.unwrap_or(1)
}

#[test]
fn lives_that_once_failed() {
    // Late samples of several spans in one run, after a checkpoint and a restart.
    live(13764722813638781900, 700);
    live(884824911566659795, 8000);
}

#[track_caller]
fn assert_between(got: &Model, least: &Model, most: &Model, ops: usize) {
    for (labels, samples) in least {
        for (time, bits) in samples {
            let have = got.get(labels).and_then(|s| s.get(time));
            assert_eq!(have, Some(bits), "after {ops} changes {labels} lost {time}");
        }
    }
    for (labels, samples) in got {
        for (time, bits) in samples {
            let want = most.get(labels).and_then(|s| s.get(time));
            assert_eq!(want, Some(bits), "after {ops} changes {labels} has an invented {time}");
        }
    }
}

/// Hours of minutes of two series, mostly in blocks.
fn some_hours(fs: &MemFs) -> Driver {
    let mut driver = Driver::new(open(options(fs)), START);
    for round in 0..15 * 60_i64 {
        driver.now = START + round * 60_000;
        let samples = [(series(0), round as f64), (series(1), 1.0)];
        driver.append(0, driver.now, &samples, false);
        if round % 60 == 0 {
            let now = driver.now;
            driver.db.maintain(now).unwrap();
        }
    }
    assert!(driver.db.stats().blocks > 1);
    driver
}

#[test]
fn a_folder_in_use_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("metrics");
    let db = open(Options::new(&path));
    let error = Db::open(Options::new(&path)).err().expect("in use");
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    db.close().unwrap();
    assert!(matches!(db.series(&series(0)), Err(StoreError::Closed(_))));
    open(Options::new(&path));
}

#[test]
fn the_real_file_system_does_as_the_one_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let opts = || Options {
        keep_time: None,
        ..Options::new(dir.path().join("metrics"))
    };
    let mut driver = Driver::new(open(opts()), START);
    for round in 0..10 * 60_i64 {
        driver.now = START + round * 60_000;
        let samples: Vec<_> = (0..6).map(|s| (series(s), round as f64)).collect();
        driver.append(0, driver.now, &samples, false);
        driver.db.maintain(driver.now).unwrap();
    }
    assert!(driver.db.stats().compactions > 0);
    assert_same(&contents(&driver.db), &driver.model);
    drop(std::mem::replace(&mut driver.db, open(options(&MemFs::new()))));
    assert_same(&contents(&open(opts())), &driver.model);
}

#[test]
fn readers_and_a_writer_and_maintenance_get_along() {
    let fs = MemFs::new();
    let db = Arc::new(open(options(&fs)));
    let done = Arc::new(AtomicBool::new(false));
    let reader = {
        let (db, done) = (Arc::clone(&db), Arc::clone(&done));
        std::thread::spawn(move || {
            let mut most = 0;
            while !done.load(Ordering::Relaxed) {
                for samples in contents(&db).values() {
                    let times: Vec<Millis> = samples.keys().copied().collect();
                    let whole = (0..).map(|i| START + i * 15_000).take(times.len());
                    assert!(times.iter().copied().eq(whole), "no hole while blocks are cut");
                    most = most.max(times.len());
                }
            }
            most
        })
    };
    let (target, ids) = (db.target(&target(0)), (0..9).map(|i| db.series(&series(i)).unwrap()));
    let ids: Vec<_> = ids.collect();
    for round in 0..6000_i64 {
        let time = START + round * 15_000;
        let batch = Batch {
            samples: ids.iter().map(|&id| (id, round as f64)).collect(),
            timed: Vec::new(),
            ..Default::default()
        };
        assert_eq!(db.append(target, time, &batch).unwrap().accepted, 9);
        if round % 100 == 0 {
            db.maintain(time).unwrap();
        }
    }
    done.store(true, Ordering::Relaxed);
    assert!(reader.join().expect("no reader fails") > 0);
    assert_eq!(contents(&db)[&series(0)].len(), 6000);
}

#[test]
fn a_time_without_samples_has_no_series_and_no_labels() {
    let fs = MemFs::new();
    let mut driver = Driver::new(open(options(&fs)), START);
    for round in 0..10 {
        driver.append(0, START + round * 15_000, &[(series(0), 1.0)], false);
        driver.append(1, START + round * 15_000, &[(series(1), 1.0)], true);
    }
    // A series that begins later lies in the head as well.
    driver.append(0, START + 600_000, &[(series(2), 1.0)], false);
    let found = |db: &Db, mint: Millis, maxt: Millis| {
        (
            db.select(&[], mint, maxt).unwrap().series.len(),
            db.label_names(&[], mint, maxt).unwrap().len(),
            db.label_values("gpu", &[], mint, maxt).unwrap().len(),
        )
    };
    for _ in 0..2 {
        let db = &driver.db;
        assert_eq!(found(db, START, START + 600_000), (3, 4, 3));
        assert_eq!(found(db, START - HOUR, START - 1), (0, 0, 0), "before");
        assert_eq!(found(db, START + 600_001, START + HOUR), (0, 0, 0), "after");
        assert_eq!(found(db, Millis::MIN, 0), (0, 0, 0));
        assert_eq!(found(db, START, START + 60_000).0, 2, "one series begins later");
        driver.db.close().unwrap();
        driver.db = open(options(&fs));
    }
}
