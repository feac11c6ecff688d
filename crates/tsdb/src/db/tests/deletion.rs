//! Deletion, clean-up and snapshots.

use super::*;

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
