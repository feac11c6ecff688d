//! The store against a plain map doing the same, over cuts, compactions, reopening and crashes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use blocks::vfs::mem::MemFs;
use model::{Appended, Appender as _, Batch, Column, Labels, Matcher, Millis, Queryable as _, SeriesId, StoreError};

use super::*;

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
        let samples = column.iter().skip(1).map(|s| (s.time, s.value.to_bits()));
        let samples: BTreeMap<Millis, u64> = samples.collect();
        if !samples.is_empty() {
            model.insert(stored.labels().clone(), samples);
        }
    }
    model
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
            self.ids.retain(|_, id| !part.unknown.contains(id));
            left.retain(|(labels, _)| !self.ids.contains_key(labels));
        }
        assert!(left.is_empty(), "a series just resolved is known");
        let refused = done.duplicates + done.too_old;
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
    let step = [1_000, 15_000, 60_000][rng.usize(0..3)];
    for _ in 0..operations {
        match rng.u8(0..100) {
            0..70 => {
                driver.now += step + if rng.u8(0..10) == 0 { rng.i64(0..5) } else { 0 };
                let (now, number) = (driver.now, rng.usize(0..3));
                let present: Vec<_> = (0..12).filter(|s| s % 3 == number && rng.u8(0..20) > 0).collect();
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
            76..80 => {
                let time = driver.now - rng.i64(0..15) * 60_000;
                let sample = [(series(rng.usize(0..12)), 7.0)];
                driver.append(rng.usize(0..3), time, &sample, false);
            }
            80..84 => {
                // A second batch at the same time, as report series are.
                let now = driver.now;
                driver.append(1, now, &[(series(12), 1.0)], false);
            }
            84..88 => driver.now += rng.i64(0..3) * HOUR / 2,
            88..95 => driver.db.maintain(driver.now).expect("maintain"),
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
}
