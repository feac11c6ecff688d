//! What a crash leaves: every prefix of what was written to disk is opened again.

use super::*;

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
