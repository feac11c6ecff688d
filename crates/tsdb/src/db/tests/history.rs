//! Prometheus blocks out and in, and samples in bulk.

use super::*;

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
