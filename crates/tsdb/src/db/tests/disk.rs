//! A disk that fills up, and what is kept of what does not fit.

use super::*;

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
