//! Files that are damaged or gone: told, and nothing is invented.

use super::*;

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
