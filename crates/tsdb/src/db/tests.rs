//! The store against a plain map doing the same, over cuts, compactions, reopening and crashes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use blocks::vfs::Vfs;
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
        for attempt in 0..2 {
            let mut batch = Batch::default();
            for (labels, value) in samples {
                let id = self.id(labels);
                if timed {
                    batch.timed.push((id, time, *value));
                } else {
                    batch.samples.push((id, *value));
                }
            }
            done = self.db.append(target, time, &batch).expect("append");
            if done.unknown.is_empty() {
                break;
            }
            assert_eq!(attempt, 0, "a series just resolved is known");
            self.ids.retain(|_, id| !done.unknown.contains(id));
        }
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
