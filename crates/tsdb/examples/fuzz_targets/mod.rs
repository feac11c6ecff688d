//! What the fuzzer feeds, and what it begins with. The tests run the seeds and every finding through the same.

#![allow(dead_code, reason = "each user uses its part")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use blocks::mmap::Mapped;
use blocks::vfs::Vfs as _;
use blocks::vfs::mem::MemFs;
use blocks::wal::Frames;
use blocks::wal::record::{Next, next};
use model::{Appender as _, Batch, BucketSpan, Column, Exemplar, Histogram, Labels, Matcher, Millis, Queryable as _};
use tsdb::codec::{COUNT_MAX, Scratch, decode_column, encode_column};
use tsdb::{Db, Options};

/// A target by its name.
pub fn target(name: &str) -> Option<fn(&[u8])> {
    match name {
        "chunk" => Some(chunk),
        "wal" => Some(wal),
        "block" => Some(block),
        _ => None,
    }
}

/// All targets.
pub const TARGETS: [&str; 3] = ["chunk", "wal", "block"];

/// Whatever decodes, encodes to what decodes to the same.
fn chunk(bytes: &[u8]) {
    let mut scratch = Scratch::default();
    let mut column = Column::default();
    if decode_column(bytes, &mut scratch, &mut column).is_some() {
        assert!(column.values.len() <= COUNT_MAX);
        assert!(column.histograms.is_empty() || column.histograms.len() == column.values.len());
        column.times = (0..column.values.len() as Millis).collect();
        let mut again = Vec::new();
        encode_column(&column, &mut again);
        let mut back = Column::default();
        decode_column(&again, &mut scratch, &mut back).expect("what was encoded");
        let bits = |c: &Column| c.values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&back), bits(&column));
    } else {
        assert!(column.values.is_empty() && column.histograms.is_empty());
    }
    let mut times = Vec::new();
    let mut cursor = blocks::bytes::Cursor::new(bytes);
    if tsdb::times::decode(&mut cursor, &mut times).is_some() {
        assert!(times.is_sorted_by(|a, b| a < b));
    }
    let _ = tsdb::exchange::xor::read(bytes, &mut Column::default());
    for whole in [false, true] {
        let _ = tsdb::exchange::distribution::read(bytes, whole, &mut Column::default());
    }
}

/// A log of these bytes is replayed, asked, written to and opened again. In front of a zero byte they are a file as it
/// is; else they are taken apart into records, which get right checksums, so that the damage lies behind them.
fn wal(bytes: &[u8]) {
    let (&first, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let segment = if first == 0 { rest.to_vec() } else { reframed(rest) };
    let fs = MemFs::new();
    let dir = Path::new("data/wal");
    fs.create_dir_all(dir).expect("a folder in memory");
    let file = fs.create(&dir.join("00000000.seg")).expect("a file in memory");
    file.write(&segment).expect("room in memory");
    for _ in 0..2 {
        let db = open(&fs);
        read_all(&db);
        let target = db.target(&Labels::from_pairs([("job", "a")]));
        let id = db
            .series(&Labels::from_pairs([("__name__", "new"), ("job", "a")]))
            .expect("room");
        let batch = Batch {
            samples: vec![(id, 1.0)],
            ..Batch::default()
        };
        let time = db.stats().head_maxt.unwrap_or(0).saturating_add(1);
        db.append(target, time, &batch).expect("a log that takes");
        let _ = db.maintain(1_700_020_000_000);
        read_all(&db);
        db.close().expect("close");
    }
}

fn open(fs: &MemFs) -> Db {
    let db = Db::open(Options {
        vfs: Arc::new(fs.clone()),
        wal_sync: Duration::from_secs(3600),
        keep_time: None,
        keep_bytes: None,
        ..Options::new("data")
    });
    let db = db.expect("it opens");
    db.wait_ready().expect("damage is no reason to stop");
    db
}

fn read_all(db: &Db) {
    for series in db.select(&[], Millis::MIN, Millis::MAX).expect("select").series {
        let mut column = Column::default();
        let _ = series.read(Millis::MIN, Millis::MAX, &mut column);
        // Records that lie although their checksum is right may put runs out of order; that is all they may.
        assert!(column.times.len() == column.values.len());
    }
}

/// Records of `kind u8 | length u16 | payload` with right checksums.
fn reframed(mut bytes: &[u8]) -> Vec<u8> {
    let mut frames = Frames::new();
    while let Some((head, rest)) = bytes.split_at_checked(3) {
        let length = usize::from(u16::from_le_bytes([head[1], head[2]])).min(rest.len());
        // Known, and left out: a series record that names a far slot under a right checksum makes the head that large.
        let names_series = matches!(head[0], 1 | 15);
        let id = blocks::bytes::Cursor::new(&rest[..length]).varint().unwrap_or(0);
        if !names_series || id as u32 <= 1 << 16 {
            frames.push_bytes(head[0], &rest[..length]);
        }
        bytes = &rest[length..];
    }
    frames.as_bytes().to_vec()
}

/// Files of a block, and of Prometheus', are opened.
fn block(bytes: &[u8]) {
    let mapped = || Mapped::Owned(Arc::from(bytes));
    let path = Path::new("fuzzed");
    if let Ok(index) = blocks::index::Index::open(mapped(), path) {
        for row in 0..index.len().min(1000) {
            let _ = index.series(row);
        }
        let _ = blocks::index::resolve(&index, &[Matcher::equal("job", "a")]);
    }
    if let Ok(columns) = tsdb::block::columns::Columns::open(mapped(), path) {
        for column in 0..columns.len().min(1000) {
            let _ = columns.times(column);
        }
    }
    if let Ok(index) = tsdb::exchange::index::Index::open(mapped(), path) {
        for &id in index.series.iter().take(1000) {
            let _ = index.read(id);
        }
    }
    let _ = tsdb::exchange::index::read_tombstones(bytes, path);
}

/// What each target begins with.
pub fn seeds(name: &str) -> Vec<Vec<u8>> {
    let fs = lived();
    let files = |ext: &str| {
        let mut found = Vec::new();
        walk(&fs, Path::new("data"), &mut found);
        let wanted = |p: &&std::path::PathBuf| p.to_string_lossy().ends_with(ext);
        found
            .iter()
            .filter(wanted)
            .map(|p| fs.map(p).expect("listed").to_vec())
            .collect::<Vec<_>>()
    };
    match name {
        "wal" => {
            let mut seeds = Vec::new();
            for file in files(".seg") {
                let mut whole = vec![0];
                whole.extend_from_slice(&file);
                let mut apart = vec![1];
                let mut rest: &[u8] = &file;
                while let Next::Record(record, len) = next(rest) {
                    rest = &rest[len..];
                    apart.push(record.kind);
                    apart.extend_from_slice(&(record.payload.len() as u16).to_le_bytes());
                    apart.extend_from_slice(record.payload);
                }
                seeds.extend([apart, whole]);
            }
            seeds
        }
        "block" => {
            let mut seeds = files("index");
            seeds.extend(files("times"));
            seeds
        }
        _ => chunks(),
    }
}

fn walk(fs: &MemFs, dir: &Path, into: &mut Vec<std::path::PathBuf>) {
    for entry in fs.list(dir).expect("a folder") {
        let path = dir.join(&entry.name);
        if entry.folder {
            walk(fs, &path, into);
        } else {
            into.push(path);
        }
    }
}

fn distribution(i: u32) -> Arc<Histogram> {
    Arc::new(Histogram {
        schema: 1,
        zero_threshold: 1e-9,
        count: f64::from(i * 7),
        sum: f64::from(i) / 3.0,
        positive_spans: vec![BucketSpan { offset: 0, length: 3 }],
        positive_buckets: vec![f64::from(i), f64::from(i * 2), 1.0],
        ..Histogram::default()
    })
}

fn chunks() -> Vec<Vec<u8>> {
    let mut columns: Vec<Column> = vec![Column::default(); 6];
    for i in 0..150_i64 {
        columns[0].push(i, 5.0);
        columns[1].push(
            i,
            if i % 40 == 0 {
                model::stale_nan()
            } else {
                (i * i) as f64 / 100.0
            },
        );
        columns[2].push(i, (i as f64).sqrt());
        columns[3].push(i, (i / 30) as f64);
        columns[4].push_histogram(i, distribution(i as u32));
        columns[5].push_histogram(i * 2, distribution(i as u32));
        columns[5].push(i * 2 + 1, 0.5);
    }
    let mut seeds = Vec::new();
    for column in &columns {
        let mut bytes = Vec::new();
        encode_column(column, &mut bytes);
        seeds.push(bytes);
        seeds.push(tsdb::exchange::xor::write(&column.times, &column.values));
        let mut bytes = Vec::new();
        tsdb::times::encode(&column.times, &mut bytes);
        seeds.push(bytes);
    }
    let list: Vec<Arc<Histogram>> = (1..40).map(distribution).collect();
    let refs: Vec<&Histogram> = list.iter().map(|h| &**h).collect();
    let times: Vec<Millis> = (0..39).collect();
    seeds.extend(tsdb::exchange::distribution::write(&times, &refs, false));
    seeds
}

/// A store in which everything has happened.
fn lived() -> MemFs {
    const START: Millis = 1_699_999_200_000;
    let fs = MemFs::new();
    let db = open(&fs);
    let labels = |i: u32| Labels::from_pairs([("__name__", "m"), ("gpu", format!("{i}").as_str()), ("job", "a")]);
    let target = db.target(&Labels::from_pairs([("job", "a")]));
    let ids: Vec<_> = (0..4).map(|i| db.series(&labels(i)).expect("room")).collect();
    for round in 0..60_i64 {
        let time = START + round * 240_000;
        let exemplar = Exemplar {
            labels: Labels::from_pairs([("trace_id", "t")]),
            value: 1.0,
            time,
        };
        let batch = Batch {
            samples: vec![(ids[0], round as f64), (ids[1], 1.0)],
            timed: vec![(ids[2], time - 60_000, round as f64 / 8.0)],
            histograms: vec![(ids[3], None, distribution(round as u32))],
            created: vec![(ids[0], START - 1000)],
            exemplars: vec![(ids[0], exemplar)],
        };
        db.append(target, time, &batch).expect("append");
        if round == 30 {
            db.delete(&[Matcher::equal("gpu", "1")], START + 7_000_000, START + 8_000_000)
                .expect("delete");
        }
        if round % 20 == 0 {
            db.maintain(time).expect("maintain");
        }
    }
    let copy = Path::new("data/copy");
    db.snapshot(copy, true).expect("a snapshot, for its checkpoint");
    db.close().expect("close");
    fs
}
