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

/// A short life with everything in it; gives the disk, and after each step the number of changes and the model.
fn eventful(wal_sync: Duration) -> (MemFs, Vec<(usize, Model)>) {
    let fs = MemFs::new();
    let opts = Options {
        wal_sync,
        wal_segment_bytes: 300,
        ..options(&fs)
    };
    let mut driver = Driver::new(open(opts), START);
    let mut steps = vec![(fs.op_count(), Model::new())];
    for round in 0..40_i64 {
        let now = START + round * 20 * 60_000;
        let samples: Vec<_> = (0..4).map(|s| (series(s), round as f64 * 1.5)).collect();
        driver.append(0, now, &samples, false);
        steps.push((fs.op_count(), driver.model.clone()));
        if round % 5 == 4 {
            driver.append(0, now - 30 * 60_000, &[(series(7), 1.0)], true);
            steps.push((fs.op_count(), driver.model.clone()));
        }
        driver.db.maintain(now).expect("maintain");
    }
    assert!(
        driver.db.stats().compactions > 0 && driver.db.stats().cuts > 4,
        "{:?}",
        driver.db.stats()
    );
    driver.db.close().expect("close");
    steps.push((fs.op_count(), driver.model.clone()));
    (fs, steps)
}

/// The least and the most that a store may hold whose disk stopped after `ops` changes.
fn bounds(steps: &[(usize, Model)], ops: usize) -> (&Model, &Model) {
    let at = steps.partition_point(|(done, _)| *done <= ops);
    let least = &steps[at.saturating_sub(1)].1;
    (least, steps.get(at).map_or(least, |(_, model)| model))
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

#[test]
fn a_process_killed_after_any_change_loses_nothing_acknowledged() {
    let (fs, steps) = eventful(Duration::from_secs(3600));
    for ops in 0..=fs.op_count() {
        let db = open(options(&fs.at(ops)));
        let (least, most) = bounds(&steps, ops);
        assert_between(&contents(&db), least, most, ops);
        assert_eq!(db.stats().wal_corruptions, 0, "a torn tail is normal");
    }
}

#[test]
fn a_power_cut_after_any_change_loses_nothing_that_was_synced() {
    let (fs, steps) = eventful(Duration::ZERO);
    for ops in 0..=fs.op_count() {
        let db = open(options(&fs.at(ops).power_cut()));
        let (least, most) = bounds(&steps, ops);
        assert_between(&contents(&db), least, most, ops);
        assert_eq!((db.stats().wal_corruptions, db.stats().blocks_broken), (0, 0));
    }
}

#[test]
fn without_sync_a_power_cut_costs_the_end_and_invents_nothing() {
    let (fs, steps) = eventful(Duration::from_secs(3600));
    let nothing = Model::new();
    for ops in 0..=fs.op_count() {
        let db = open(options(&fs.at(ops).power_cut()));
        assert_between(&contents(&db), &nothing, bounds(&steps, ops).1, ops);
        assert_eq!(db.stats().blocks_broken, 0);
    }
}

#[test]
fn a_log_damaged_anywhere_yields_no_invention_and_is_counted() {
    let fs = MemFs::new();
    let opts = Options {
        wal_segment_bytes: 250,
        ..options(&fs)
    };
    let mut driver = Driver::new(open(opts), START);
    for round in 0..30_i64 {
        let samples: Vec<_> = (0..4).map(|s| (series(s), round as f64 / (s + 1) as f64)).collect();
        driver.append(0, START + round * 15_000, &samples, false);
    }
    driver.db.close().unwrap();
    let (nothing, mut damaged) = (Model::new(), 0);
    let dir = std::path::Path::new("data/wal");
    for entry in fs.list(dir).unwrap() {
        for byte in (0..entry.size as usize).step_by(3) {
            let copy = fs.at(fs.op_count());
            copy.edit(&dir.join(&entry.name), |bytes| bytes[byte] ^= 0x10).unwrap();
            let db = open(options(&copy));
            assert_between(&contents(&db), &nothing, &driver.model, byte);
            damaged += db.stats().wal_corruptions;
            let cut = fs.at(fs.op_count());
            cut.edit(&dir.join(&entry.name), |bytes| bytes.truncate(byte)).unwrap();
            assert_between(&contents(&open(options(&cut))), &nothing, &driver.model, byte);
            drop(db);
            let again = open(options(&copy));
            assert_eq!(again.stats().wal_corruptions, 0, "set aside once");
        }
    }
    assert!(damaged > 100);
}

#[test]
fn a_damaged_chunk_is_told_and_the_rest_is_read() {
    let fs = MemFs::new();
    let mut driver = Driver::new(open(options(&fs)), START);
    for round in 0..2000_i64 {
        driver.append(0, START + round * 15_000, &[(series(0), round as f64)], false);
    }
    driver.db.maintain(driver.now + 2000 * 15_000).unwrap();
    let ulid = driver.db.inner.blocks()[0].meta.ulid.clone();
    driver.db.close().unwrap();
    drop(driver.db);
    let path = std::path::Path::new("data/blocks").join(ulid).join("chunks/000001");
    fs.edit(&path, |bytes| bytes[12] ^= 1).unwrap();
    let db = open(options(&fs));
    let selection = db.select(&[], Millis::MIN, Millis::MAX).unwrap();
    let mut column = Column::default();
    let error = selection.series[0]
        .read(Millis::MIN, Millis::MAX, &mut column)
        .unwrap_err();
    assert!(
        matches!(&error, StoreError::Damaged(text) if text.contains("checksum")),
        "{error}"
    );
    assert_eq!(column.len(), 2000 - 480);
    assert_eq!(db.stats().chunk_corruptions, 1);
}

#[test]
fn on_a_full_disk_samples_stay_in_memory_and_the_store_recovers_alone() {
    let fs = MemFs::new();
    let mut driver = Driver::new(open(options(&fs)), START);
    let mut round = 0;
    let mut go = |driver: &mut Driver, n: i64| {
        for _ in 0..n {
            driver.now = START + round * 60_000;
            driver.append(0, driver.now, &[(series(0), round as f64), (series(1), 1.0)], false);
            round += 1;
        }
        let now = driver.now;
        driver.db.maintain(now)
    };
    go(&mut driver, 100).unwrap();
    fs.set_free(0);
    go(&mut driver, 200).unwrap();
    assert_same(&contents(&driver.db), &driver.model);
    let stats = driver.db.stats();
    assert!(
        stats.wal_failures > 0 && stats.disk_refusals > 0 && stats.cuts == 0,
        "{stats:?}"
    );
    fs.set_free(1 << 40);
    go(&mut driver, 200).unwrap();
    assert_same(&contents(&driver.db), &driver.model);
    assert!(driver.db.stats().cuts > 0 && driver.db.stats().wal_lost == 0);
    driver.db.close().unwrap();
    assert_same(&contents(&open(options(&fs.at(fs.op_count())))), &driver.model);
}

#[test]
fn on_a_disk_full_for_long_the_head_forgets_its_oldest_hours() {
    let fs = MemFs::new();
    let mut driver = Driver::new(open(options(&fs)), START);
    fs.set_free(100_000_000);
    for round in 0..24 * 60_i64 {
        driver.now = START + round * 60_000;
        driver.append(0, driver.now, &[(series(0), round as f64)], false);
        driver.db.maintain(driver.now).unwrap();
    }
    let stats = driver.db.stats();
    assert!(stats.spans_lost >= 4 && stats.cuts == 0, "{stats:?}");
    let kept = contents(&driver.db)[&series(0)].len();
    assert!((12 * 60..=15 * 60).contains(&kept), "{kept} minutes kept");
}

#[test]
fn the_oldest_block_makes_room_for_the_newest_hours() {
    let fs = MemFs::new();
    let mut driver = Driver::new(open(options(&fs)), START);
    for round in 0..12 * 60_i64 {
        if round == 10 * 60 {
            fs.set_free(100_000_000);
        }
        driver.append(0, START + round * 60_000, &[(series(0), round as f64)], false);
        driver.db.maintain(START + round * 60_000).unwrap();
    }
    let stats = driver.db.stats();
    assert!(stats.blocks_dropped == 1 && stats.disk_refusals > 0, "{stats:?}");
}

#[test]
fn retention_drops_blocks_by_age_and_by_size() {
    let fs = MemFs::new();
    let opts = Options {
        keep_time: Some(10 * HOUR),
        ..options(&fs)
    };
    let mut driver = Driver::new(open(opts), START);
    for round in 0..30 * 60_i64 {
        driver.now = START + round * 60_000;
        driver.append(0, driver.now, &[(series(0), (round % 977) as f64 / 7.0)], false);
        driver.db.maintain(driver.now).unwrap();
    }
    let oldest = *contents(&driver.db)[&series(0)].keys().next().unwrap();
    assert!(oldest >= driver.now - 16 * HOUR && oldest <= driver.now - 10 * HOUR);
    let now = driver.now;
    drop(driver);
    let opts = Options {
        keep_bytes: Some(1),
        ..options(&fs)
    };
    let db = open(opts);
    db.maintain(now).unwrap();
    assert_eq!(db.stats().blocks, 0);
}

#[test]
fn a_limit_names_its_culprit_and_known_series_stay() {
    let fs = MemFs::new();
    let opts = Options {
        series_max: 10,
        ..options(&fs)
    };
    let db = open(opts);
    let ids: Vec<_> = (0..10).map(|i| db.series(&series(i)).unwrap()).collect();
    let error = db.series(&series(11)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "limit: the store holds 10 series, the most it may; label \"gpu\" has most values: 10"
    );
    assert_eq!(db.series(&series(3)).unwrap(), ids[3]);
    assert_eq!(db.stats().series_refused, 1);
}

#[test]
fn duplicates_and_latecomers_are_counted() {
    let fs = MemFs::new();
    let db = open(options(&fs));
    let (target, id) = (db.target(&target(0)), db.series(&series(0)).unwrap());
    let scrape = |time, value| {
        let samples = vec![(id, value)];
        let batch = Batch {
            samples,
            timed: Vec::new(),
            ..Default::default()
        };
        db.append(target, time, &batch).unwrap()
    };
    assert_eq!(scrape(START + HOUR, 1.0).accepted, 1);
    assert_eq!(scrape(START + HOUR, 2.0).duplicates, 1);
    let late = scrape(START + HOUR - 60_000, 3.0);
    assert_eq!((late.accepted, late.out_of_order), (1, 1));
    assert_eq!(scrape(START + HOUR - 60_000, 4.0).duplicates, 1);
    assert_eq!(scrape(START, 5.0).too_old, 1);
    let timed = |time, value| {
        let batch = Batch {
            samples: Vec::new(),
            timed: vec![(id, time, value)],
            ..Default::default()
        };
        db.append(target, time, &batch).unwrap()
    };
    assert_eq!(timed(START, 5.0).out_of_order, 1);
    assert_eq!(timed(START - 1, 5.0).too_old, 1);
    let stats = db.stats();
    assert_eq!(
        (
            stats.samples_appended,
            stats.samples_duplicate,
            stats.samples_too_old,
            stats.samples_out_of_order
        ),
        (3, 2, 2, 2)
    );
    let values: Vec<u64> = contents(&db)[&series(0)].values().copied().collect();
    assert_eq!(values, [5.0, 3.0, 1.0].map(f64::to_bits));
}

#[test]
fn a_sample_sent_twice_is_no_refusal() {
    let db = open(options(&MemFs::new()));
    let (target, id) = (db.target(&target(0)), db.series(&series(0)).unwrap());
    let send = |time: Millis, batch: Batch| {
        let done = db.append(target, time, &batch).unwrap();
        (done.accepted, done.repeated, done.duplicates, done.too_old)
    };
    let scraped = |value| Batch {
        samples: vec![(id, value)],
        ..Batch::default()
    };
    let timed = |time, value| Batch {
        timed: vec![(id, time, value)],
        ..Batch::default()
    };
    let distribution = |h: &Arc<Histogram>| Batch {
        histograms: vec![(id, None, Arc::clone(h))],
        ..Batch::default()
    };
    assert_eq!(send(START, scraped(1.0)), (1, 0, 0, 0));
    assert_eq!(send(START, scraped(1.0)), (0, 1, 0, 0));
    assert_eq!(send(START, timed(START, 1.0)), (0, 1, 0, 0));
    assert_eq!(send(START, scraped(2.0)), (0, 0, 1, 0));
    assert_eq!(send(START, distribution(&histogram(1))), (0, 0, 1, 0));
    assert_eq!(send(START + HOUR, distribution(&histogram(1))), (1, 0, 0, 0));
    assert_eq!(send(START + HOUR, distribution(&histogram(1))), (0, 1, 0, 0));
    assert_eq!(send(START + HOUR, distribution(&histogram(2))), (0, 0, 1, 0));
    assert_eq!(send(START, scraped(1.0)), (0, 1, 0, 0), "even before the window");
    assert_eq!(send(START - 2 * HOUR, timed(START - 2 * HOUR, 1.0)), (0, 0, 0, 1));
    let stats = db.stats();
    assert_eq!((stats.samples_repeated, stats.samples_duplicate), (4, 3));
}

/// A counter said to have begun at `created`, scraped at START + 60 s; what is then stored, relative to START.
#[track_caller]
fn check_created(before: &[Millis], created: Millis, distribution: bool, want: &[(Millis, f64)]) {
    let fs = MemFs::new();
    let db = open(options(&fs));
    let (target, id) = (db.target(&target(0)), db.series(&series(0)).unwrap());
    for &time in before {
        let batch = Batch {
            samples: vec![(id, 7.0)],
            ..Batch::default()
        };
        db.append(target, START + time, &batch).unwrap();
    }
    let mut batch = Batch {
        created: vec![(id, START + created)],
        ..Batch::default()
    };
    if distribution {
        batch.histograms.push((id, None, histogram(8)));
    } else {
        batch.samples.push((id, 1.0));
    }
    db.append(target, START + 60_000, &batch).unwrap();
    // The next scrape says the same.
    batch.created.clone_from(&vec![(id, START + created)]);
    db.append(target, START + 75_000, &batch).unwrap();
    let stored = |db: &Db| {
        let mut column = Column::default();
        let found = db.select(&[], Millis::MIN, Millis::MAX).unwrap();
        found.series[0].read(Millis::MIN, Millis::MAX, &mut column).unwrap();
        column.iter().map(|s| (s.time - START, s.value)).collect::<Vec<_>>()
    };
    assert_eq!(stored(&db), want);
    let again = open(options(&fs.at(fs.op_count())));
    assert_eq!(stored(&again), want, "after a restart");
}

#[test]
fn a_counter_that_began_gets_a_zero() {
    check_created(&[], 10_000, false, &[(10_000, 0.0), (60_000, 1.0), (75_000, 1.0)]);
    check_created(&[], 10_000, true, &[(10_000, 0.0), (60_000, 1.0), (75_000, 1.0)]);
    check_created(
        &[0],
        10_000,
        false,
        &[(0, 7.0), (10_000, 0.0), (60_000, 1.0), (75_000, 1.0)],
    );
}

#[test]
fn a_beginning_that_says_nothing_new_adds_nothing() {
    check_created(&[10_000], 10_000, false, &[(10_000, 7.0), (60_000, 1.0), (75_000, 1.0)]);
    check_created(&[20_000], 10_000, false, &[(20_000, 7.0), (60_000, 1.0), (75_000, 1.0)]);
    check_created(&[], 60_000, false, &[(60_000, 1.0), (75_000, 1.0)]);
    check_created(&[], 90_000, true, &[(60_000, 1.0), (75_000, 1.0)]);
    check_created(&[], -2 * HOUR, false, &[(60_000, 1.0), (75_000, 1.0)]);
}

#[test]
fn exemplars_are_found_by_series_and_time_and_survive_a_restart() {
    let fs = MemFs::new();
    let mut driver = Driver::new(open(options(&fs)), START);
    let exemplar = |time: Millis, trace: &str| Exemplar {
        labels: Labels::from_pairs([("trace_id", trace)]),
        value: 0.25,
        time,
    };
    for round in 0..4_i64 {
        let time = START + round * 2 * HOUR;
        let batch = Batch {
            samples: (0..2).map(|s| (driver.id(&series(s)), round as f64)).collect(),
            exemplars: vec![
                (driver.id(&series(0)), exemplar(time, &format!("t{round}"))),
                (driver.id(&series(1)), exemplar(time + 1, "same")),
                (SeriesId(77 << 56), exemplar(time, "nobody")),
            ],
            ..Batch::default()
        };
        let target = driver.db.target(&target(0));
        driver.db.append(target, time, &batch).unwrap();
        // A cut leaves exemplars to the checkpoint.
        driver.db.maintain(time).unwrap();
    }
    let found = |db: &Db, name: &str, mint: Millis, maxt: Millis| {
        let found = db
            .exemplars(&[vec![Matcher::equal("__name__", name)]], mint, maxt)
            .unwrap();
        found
            .iter()
            .map(|s| (s.labels.clone(), s.exemplars.len()))
            .collect::<Vec<_>>()
    };
    driver.db.close().unwrap();
    for db in [driver.db, open(options(&fs.at(fs.op_count())))] {
        assert_eq!(found(&db, "m0", START, Millis::MAX), [(series(0), 4)]);
        assert_eq!(found(&db, "m1", START + 1, START + 4 * HOUR), [(series(1), 2)]);
        assert_eq!(found(&db, "m2", Millis::MIN, Millis::MAX), []);
        assert_eq!(db.stats().exemplars, 8);
    }
}

#[test]
fn late_samples_are_told_to_those_who_keep_answers() {
    let mut driver = Driver::new(open(options(&MemFs::new())), START);
    for round in 0..100 {
        driver.append(0, START + round * 15_000, &[(series(0), 1.0)], false);
    }
    let before = driver.db.revision();
    assert_eq!(driver.db.settled(), START + 99 * 15_000 - 60_000);
    assert_eq!(driver.db.changed_since(before), None);
    driver.append(0, START + 98 * 15_000 + 1, &[(series(0), 1.0)], true);
    assert_eq!(driver.db.changed_since(before), None, "that is the present");
    driver.append(0, START + 50_001, &[(series(0), 1.0)], true);
    driver.append(0, START + 500_001, &[(series(0), 1.0)], true);
    assert_eq!(driver.db.changed_since(before), Some(START + 50_001));
    assert_eq!(driver.db.changed_since(before + 1), Some(START + 500_001));
    assert_eq!(driver.db.changed_since(driver.db.revision()), None);
    // In order for its series, and yet behind what was asked about.
    driver.append(0, START + 100_000, &[(series(3), 1.0)], false);
    assert_eq!(driver.db.changed_since(before + 2), Some(START + 100_000));
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
fn what_is_deleted_stays_so_over_restarts_compaction_and_clean_up() {
    let fs = MemFs::new();
    let mut driver = some_hours(&fs);
    let before = driver.db.revision();
    driver.delete(&[Matcher::equal("gpu", "0")], START + HOUR, START + 3 * HOUR);
    driver.delete(&[Matcher::equal("gpu", "1")], START + 7 * HOUR, Millis::MAX);
    driver.delete(&[Matcher::equal("gpu", "nobody")], Millis::MIN, Millis::MAX);
    assert_eq!(driver.db.changed_since(before), Some(START + HOUR));
    assert_same(&contents(&driver.db), &driver.model);
    let copy = open(options(&fs.at(fs.op_count())));
    assert_same(&contents(&copy), &driver.model);
    assert!(copy.clean_tombstones().unwrap() > 0);
    assert_eq!(copy.clean_tombstones().unwrap(), 0);
    assert_same(&contents(&copy), &driver.model);
    let now = driver.now + 9 * HOUR;
    driver.append(0, now, &[(series(0), 1.0)], false);
    driver.db.maintain(now).unwrap();
    assert_same(&contents(&driver.db), &driver.model);
    assert!(
        driver
            .db
            .select(&[Matcher::equal("gpu", "1")], START + 7 * HOUR, Millis::MAX)
            .unwrap()
            .series
            .is_empty()
    );
    // Nothing is left of a block.
    driver.delete(&[], Millis::MIN, Millis::MAX);
    driver.db.clean_tombstones().unwrap();
    assert_eq!(driver.db.stats().blocks, 0);
    assert_same(&contents(&open(options(&fs.at(fs.op_count())))), &driver.model);
    // Series go on after it.
    driver.append(0, now + 60_000, &[(series(0), 1.0)], false);
    assert_same(&contents(&driver.db), &driver.model);
}

#[test]
fn a_crash_during_a_deletion_leaves_samples_whole_or_gone_and_one_after_it_changes_nothing() {
    let fs = MemFs::new();
    let opts = |fs: &MemFs| Options {
        wal_sync: Duration::ZERO,
        ..options(fs)
    };
    let mut driver = some_hours(&fs);
    driver.db.close().unwrap();
    driver.db = open(opts(&fs));
    let (start, before) = (fs.op_count(), driver.model.clone());
    driver.delete(&[Matcher::equal("gpu", "1")], START + HOUR, Millis::MAX);
    let done = fs.op_count();
    driver.db.clean_tombstones().unwrap();
    for ops in start..=fs.op_count() {
        for disk in [fs.at(ops), fs.at(ops).power_cut()] {
            let db = open(options(&disk));
            let least = &driver.model;
            let most = if ops >= done { least } else { &before };
            assert_between(&contents(&db), least, most, ops);
            assert_eq!((db.stats().blocks_broken, db.stats().deletions_damaged), (0, 0));
        }
    }
}

#[test]
fn a_damaged_list_of_deletions_is_set_aside_and_told() {
    let fs = MemFs::new();
    let mut driver = some_hours(&fs);
    let before = contents(&driver.db);
    let ulid = driver.db.inner.blocks()[0].meta.ulid.clone();
    driver.delete(&[], START, START + HOUR);
    driver.db.close().unwrap();
    let dir = std::path::Path::new("data/blocks").join(ulid);
    fs.edit(&dir.join("deletes"), |bytes| bytes[9] ^= 1).unwrap();
    let db = open(options(&fs));
    assert_eq!(db.stats().deletions_damaged, 1);
    assert_same(&contents(&db), &before);
    assert!(fs.exists(&dir.join("deletes.damaged")));
}

#[test]
fn a_snapshot_is_a_store_of_its_own() {
    let fs = MemFs::new();
    let mut driver = some_hours(&fs);
    let path = std::path::Path::new("data/snapshots/one");
    driver.db.snapshot(path, true).unwrap();
    driver
        .db
        .snapshot(std::path::Path::new("data/snapshots/blocks"), false)
        .unwrap();
    assert!(driver.db.snapshot(path, true).is_err(), "it is there already");
    let model = driver.model.clone();
    // What comes later does not reach it.
    driver.delete(&[], Millis::MIN, Millis::MAX);
    driver.db.clean_tombstones().unwrap();
    let at = |dir: &str| Options {
        dir: dir.into(),
        ..options(&fs.power_cut())
    };
    let copy = open(at("data/snapshots/one"));
    assert_same(&contents(&copy), &model);
    assert_eq!(copy.stats().wal_corruptions, 0);
    let blocks_alone = contents(&open(at("data/snapshots/blocks")));
    assert!(!blocks_alone.is_empty());
    assert_between(&blocks_alone, &Model::new(), &model, 0);
}

#[test]
fn a_snapshot_on_a_full_disk_leaves_nothing_behind() {
    let fs = MemFs::new();
    let driver = some_hours(&fs);
    fs.set_free(10);
    let path = std::path::Path::new("data/one");
    assert!(driver.db.snapshot(path, true).is_err());
    assert!(!fs.exists(path) && !fs.exists(std::path::Path::new("data/one.tmp")));
}

#[test]
fn a_forgotten_series_is_unknown() {
    let fs = MemFs::new();
    let mut driver = Driver::new(open(options(&fs)), START);
    driver.append(0, START, &[(series(0), 1.0)], false);
    let old = driver.ids[&series(0)];
    driver.append(0, START + 9 * HOUR, &[(series(1), 1.0)], false);
    driver.db.maintain(START + 9 * HOUR).unwrap();
    let batch = Batch {
        samples: vec![(old, 2.0)],
        timed: Vec::new(),
        ..Default::default()
    };
    let target = driver.db.target(&target(0));
    let done = driver.db.append(target, START + 9 * HOUR, &batch).unwrap();
    assert_eq!(done.unknown, [old]);
    assert_ne!(
        driver.db.series(&series(0)).unwrap(),
        old,
        "a slot's next tenant has another id"
    );
    assert_same(&contents(&driver.db), &driver.model);
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

#[test]
fn a_checkpoint_put_off_for_want_of_room_is_counted() {
    let fs = MemFs::new();
    let mut driver = Driver::new(open(options(&fs)), START);
    fs.set_free(100_000_000);
    for round in 0..2000 {
        driver.append(0, START + round * 1000, &[(series(0), round as f64)], false);
    }
    driver.db.maintain(START + 2_000_000).unwrap();
    assert_eq!(driver.db.stats().disk_refusals, 1);
}

#[test]
fn a_missing_segment_of_the_log_is_counted() {
    let fs = MemFs::new();
    let opts = Options {
        wal_segment_bytes: 250,
        ..options(&fs)
    };
    let mut driver = Driver::new(open(opts), START);
    for round in 0..30_i64 {
        driver.append(0, START + round * 15_000, &[(series(0), round as f64)], false);
    }
    driver.db.close().unwrap();
    fs.remove_file(std::path::Path::new("data/wal/00000001.seg")).unwrap();
    assert_eq!(open(options(&fs)).stats().wal_corruptions, 1);
}

#[test]
fn history_goes_to_prometheus_blocks_and_comes_back() {
    let fs = MemFs::new();
    let mut driver = some_hours(&fs);
    for i in 0..300_u64 {
        let time = driver.now + i as i64 * 15_000;
        driver.append_histogram(&series(15), time, &histogram(i + 1), false);
    }
    let vfs: Arc<dyn blocks::vfs::Vfs> = Arc::new(fs.clone());
    let export = Export {
        matchers: &[],
        mint: Millis::MIN,
        maxt: Millis::MAX,
        span: 2 * HOUR,
    };
    let out = std::path::Path::new("out");
    vfs.create_dir_all(out).unwrap();
    let done = driver.db.export_prometheus(out, &export, &mut |_, _| {}).unwrap();
    let samples: usize = driver.model.values().map(BTreeMap::len).sum();
    assert_eq!((done.samples, done.warnings.len()), (samples as u64, 0));
    let blocks = crate::exchange::folder::find(&*vfs, out).unwrap();
    assert_eq!(blocks.len() as u64, done.blocks);

    let other = MemFs::new();
    let mut back = Driver::new(
        open(Options {
            vfs: Arc::new(fs.clone()),
            dir: "other".into(),
            ..options(&other)
        }),
        START,
    );
    // Some of it is there already, with other values: what was first stays, whatever is first.
    for block in &blocks {
        back.db.import_prometheus(block, &mut |_, _| {}).unwrap();
    }
    let sums = |model: &Model| -> Vec<(Labels, usize)> { model.iter().map(|(l, s)| (l.clone(), s.len())).collect() };
    assert_eq!(sums(&contents(&back.db)), sums(&driver.model));
    let floats = |model: &Model| {
        let mut model = model.clone();
        model.remove(&series(15));
        model
    };
    assert_same(&floats(&contents(&back.db)), &floats(&driver.model));
    // Twice is once, and compaction merges it.
    back.db.import_prometheus(&blocks[0], &mut |_, _| {}).unwrap();
    back.now = driver.now;
    back.append(0, driver.now + 9 * HOUR, &[(series(9), 1.0)], false);
    back.db.maintain(driver.now + 9 * HOUR).unwrap();
    let mut got = contents(&back.db);
    got.remove(&series(9));
    assert_same(&floats(&got), &floats(&driver.model));
    let metas: Vec<_> = back
        .db
        .inner
        .blocks()
        .iter()
        .map(|b| (b.meta.mint, b.meta.maxt))
        .collect();
    assert!(
        metas.windows(2).all(|w| w[0].1 < w[1].0),
        "no block overlaps another: {metas:?}"
    );
}

#[test]
fn samples_in_bulk_may_come_in_any_order_and_of_any_age() {
    let fs = MemFs::new();
    let mut driver = some_hours(&fs);
    let mut rng = fastrand::Rng::with_seed(4);
    let mut bulk: BTreeMap<Labels, Column> = BTreeMap::new();
    for i in 0..2000_i64 {
        let time = START - 200 * HOUR + i * 600_000;
        let labels = series((i % 3) as usize);
        bulk.entry(labels.clone()).or_default().push(time, i as f64);
        driver
            .model
            .entry(labels)
            .or_default()
            .entry(time)
            .or_insert((i as f64).to_bits());
    }
    for column in bulk.values_mut() {
        let mut order: Vec<usize> = (0..column.len()).collect();
        rng.shuffle(&mut order);
        let times = order.iter().map(|&i| column.times[i]).collect();
        let values = order.iter().map(|&i| column.values[i]).collect();
        *column = Column::of(times, values);
    }
    let before = driver.db.revision();
    let done = driver.db.import_samples(bulk).unwrap();
    assert_eq!(done.samples, 2000);
    assert_eq!(driver.db.changed_since(before), Some(START - 200 * HOUR));
    assert_eq!(contents(&driver.db).len(), driver.model.len());
    driver.db.maintain(driver.now).unwrap();
    let compacted = contents(&driver.db);
    assert_same(&compacted, &contents(&open(options(&fs.at(fs.op_count())))));
    let count = |m: &Model| m.values().map(BTreeMap::len).sum::<usize>();
    assert_eq!(count(&compacted), count(&driver.model));
}

/// All that can be read, and whether something was said of what cannot.
fn readable(db: &Db) -> (Model, bool) {
    let (mut model, mut told) = (Model::new(), false);
    let selection = db.select(&[], Millis::MIN, Millis::MAX).expect("select");
    told |= !selection.warnings.is_empty();
    for stored in selection.series {
        let mut column = Column::default();
        told |= stored.read(Millis::MIN, Millis::MAX, &mut column).is_err();
        assert!(column.times.is_sorted_by(|a, b| a < b) && column.times.len() == column.values.len());
        let samples = (0..column.len()).map(|i| (column.times[i], bits(&Value::at(&column, i))));
        let samples: BTreeMap<_, _> = samples.collect();
        if !samples.is_empty() {
            model.insert(stored.labels().clone(), samples);
        }
    }
    let stats = db.stats();
    told |= stats.wal_corruptions + stats.blocks_broken + stats.deletions_damaged + stats.chunk_corruptions > 0;
    (model, told)
}

fn files_below(fs: &MemFs, dir: &std::path::Path, into: &mut Vec<(PathBuf, usize)>) {
    for entry in fs.list(dir).unwrap() {
        let path = dir.join(&entry.name);
        if entry.folder {
            files_below(fs, &path, into);
        } else {
            into.push((path, entry.size as usize));
        }
    }
}

#[test]
fn any_file_damaged_anywhere_is_told_and_nothing_is_invented() {
    let fs = MemFs::new();
    let mut driver = some_hours(&fs);
    for i in 0..40_u64 {
        let time = driver.now + i as i64 * 15_000;
        driver.append_histogram(&series(15), time, &histogram(i + 1), false);
    }
    let undeleted = driver.model.clone();
    driver.delete(&[Matcher::equal("gpu", "1")], START + HOUR, START + 2 * HOUR);
    driver.db.close().unwrap();
    let mut files = Vec::new();
    files_below(&fs, std::path::Path::new("data"), &mut files);
    let (mut kinds, mut told_of) = (BTreeMap::<String, usize>::new(), 0);
    for (path, size) in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name == "LOCK" {
            continue;
        }
        let step = (size / 60).max(1);
        for at in (0..size).step_by(step) {
            for cut in [false, true] {
                let copy = fs.at(fs.op_count());
                copy.edit(&path, |bytes| if cut { bytes.truncate(at) } else { bytes[at] ^= 0x04 })
                    .unwrap();
                // A format number that makes no sense, or is a newer one, is an error of its own.
                let Ok(db) = Db::open(options(&copy)) else {
                    assert_eq!(name, "VERSION");
                    continue;
                };
                db.wait_ready().expect("damage is no reason to stop");
                let (got, told) = readable(&db);
                let what = format!("{} byte {at}, cut {cut}", path.display());
                for (labels, samples) in &got {
                    for (time, bits) in samples {
                        let want = undeleted.get(labels).and_then(|s| s.get(time));
                        assert_eq!(want, Some(bits), "{what}: {labels} has an invented {time}");
                    }
                }
                // A log cut at its end, or whose last record does not fit, cannot be told from one that was being written.
                let silent = name.ends_with(".seg") && (cut || size - at < 500);
                assert!(got == driver.model || told || silent, "{what}: lost without a word");
                *kinds.entry(name.clone()).or_default() += 1;
                told_of += usize::from(told);
            }
        }
    }
    for kind in ["index", "times", "000001", "meta.json", "deletes", "VERSION"] {
        assert!(
            kinds.contains_key(kind) || kind == "VERSION",
            "{kind} was damaged too: {kinds:?}"
        );
    }
    assert!(told_of > 300, "{told_of} of {kinds:?}");
}
