use std::path::Path;
use std::sync::Arc;

use model::{Labels, MatchOp, Matcher};

use super::*;
use crate::mmap::Mapped;
use crate::vfs::Vfs as _;
use crate::vfs::mem::MemFs;

fn index_of(series: &[Labels]) -> Index {
    let fs = MemFs::new();
    let mut writer = IndexWriter::new();
    for (i, labels) in series.iter().enumerate() {
        writer.push(labels, format!("payload {i}").as_bytes()).unwrap();
    }
    let path = Path::new("index");
    writer.write(&fs, path).unwrap();
    Index::open(fs.map(path).unwrap(), path).unwrap()
}

fn random_series(rng: &mut fastrand::Rng, n: usize) -> Vec<Labels> {
    let mut series: Vec<Labels> = (0..n)
        .map(|i| {
            let (metric, gpu, id) = (
                format!("m{}", rng.u8(0..5)),
                format!("{}", rng.u8(0..9)),
                format!("id{i}"),
            );
            let gpu = if rng.bool() { gpu.as_str() } else { "" };
            let id = if rng.u8(0..4) == 0 { id.as_str() } else { "" };
            Labels::from_pairs([("__name__", metric.as_str()), ("gpu", gpu), ("id", id), ("job", "é")])
        })
        .collect();
    series.sort();
    series.dedup();
    series
}

#[test]
fn rows_have_their_labels_and_payload() {
    let series = random_series(&mut fastrand::Rng::with_seed(1), 500);
    let index = index_of(&series);
    assert_eq!(index.len() as usize, series.len());
    for (row, want) in (0..).zip(&series) {
        let (labels, payload) = index.series(row).unwrap();
        assert_eq!(labels, *want);
        assert_eq!(payload, format!("payload {row}").as_bytes());
        assert_eq!(index.payload(row), Some(payload));
        assert_eq!(index.label(row, "gpu"), want.get("gpu"));
    }
    assert!(index.series(index.len()).is_none());
    let mut names = Vec::new();
    index.label_names(&mut |n| names.push(n.to_owned()));
    assert_eq!(names, ["__name__", "gpu", "id", "job"]);
}

#[test]
fn selection_agrees_with_asking_every_series() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let series = random_series(&mut rng, 300);
    let index = index_of(&series);
    let values = [
        "m1",
        "3",
        "",
        "m.*",
        ".*",
        ".+",
        "id1.*",
        "m1|m2",
        "3|",
        "[0-4]",
        "x",
        "é",
        "(?i)M1",
        "m[12]|m3x*",
    ];
    let names = ["__name__", "gpu", "id", "job", "nothing"];
    for _ in 0..2000 {
        let matchers: Vec<Matcher> = (0..rng.usize(0..4))
            .map(|_| {
                let op = [MatchOp::Equal, MatchOp::NotEqual, MatchOp::Regex, MatchOp::NotRegex][rng.usize(0..4)];
                Matcher::new(op, *rng.choice(&names).unwrap(), *rng.choice(&values).unwrap()).unwrap()
            })
            .collect();
        let got: Vec<u32> = resolve(&index, &matchers).iter().collect();
        let want: Vec<u32> = (0..)
            .zip(&series)
            .filter(|(_, s)| matchers.iter().all(|m| m.matches_labels(s)))
            .map(|(row, _)| row)
            .collect();
        assert_eq!(got, want, "{matchers:?}");
    }
}

#[test]
fn an_empty_index_is_an_index() {
    let index = index_of(&[]);
    assert!(index.is_empty() && resolve(&index, &[Matcher::equal("a", "b")]).is_empty());
}

#[test]
fn damage_is_an_error_and_never_a_panic() {
    let fs = MemFs::new();
    let mut writer = IndexWriter::new();
    for labels in random_series(&mut fastrand::Rng::with_seed(2), 10) {
        writer.push(&labels, b"p").unwrap();
    }
    let path = Path::new("index");
    writer.write(&fs, path).unwrap();
    let good = fs.map(path).unwrap().to_vec();
    for cut in 0..good.len() {
        assert!(
            Index::open(Mapped::Owned(Arc::from(&good[..cut])), path).is_err(),
            "cut at {cut}"
        );
    }
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(Index::open(Mapped::Owned(Arc::from(bad)), path).is_err(), "bit {bit}");
    }
}
