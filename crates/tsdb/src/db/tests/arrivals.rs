//! What becomes of a batch: limits, duplicates, latecomers, created zeros, exemplars.

use super::*;

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
