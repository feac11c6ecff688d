//! Measures the store on data as an eight-GPU server gives it: `cargo run --release -p tsdb --example measure`.
//!
//! `measure codec` prints bytes and nanoseconds a sample by kind of series; `measure store [SERVERS] [HOURS]`
//! fills a store in a temporary folder and prints what it took; `measure series [COUNT]` prints memory a series.

use std::time::Instant;

use model::{Appender as _, Batch, Column, Labels, Matcher, Millis, Queryable as _, SeriesId};
use tsdb::codec::{Scratch, decode, encode};
use tsdb::{Db, Options};

#[path = "mix/mod.rs"]
mod mix;

use mix::{KINDS, Kind, SERIES, START, STEP, labels, pick, rss_bytes};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, usual: u64| args.get(i).and_then(|a| a.parse().ok()).unwrap_or(usual);
    match args.first().map_or("", String::as_str) {
        "codec" => codec(),
        "store" => store(number(1, 2), number(2, 24))?,
        "series" => series(number(1, 200_000))?,
        _ => {
            codec();
            store(2, 24)?;
            series(200_000)?;
        }
    }
    Ok(())
}

fn codec() {
    println!("{:<16}{:>10}{:>10}{:>10}", "480 samples", "bytes", "enc ns", "dec ns");
    let mut mix = [0.0; 3];
    for kind in &KINDS {
        let mut rng = fastrand::Rng::with_seed(7);
        let mut last = 0.0;
        let values: Vec<f64> = (0..480 * 96)
            .map(|i| {
                last = (kind.next)(&mut rng, last, i);
                last
            })
            .collect();
        let chunks: Vec<Vec<u8>> = values.chunks(480).map(encoded).collect();
        let bytes = chunks.iter().map(Vec::len).sum::<usize>() as f64 / values.len() as f64;
        let best = |f: &mut dyn FnMut()| {
            let times = (0..5).map(|_| {
                let from = Instant::now();
                f();
                from.elapsed().as_nanos()
            });
            times.min().expect("five") as f64 / values.len() as f64
        };
        let enc = best(&mut || values.chunks(480).for_each(|c| drop(std::hint::black_box(encoded(c)))));
        let (mut scratch, mut out) = (Scratch::default(), Vec::new());
        let dec = best(&mut || {
            for chunk in &chunks {
                out.clear();
                decode(chunk, &mut scratch, &mut out).expect("encoded above");
                std::hint::black_box(&out);
            }
        });
        println!("{:<16}{bytes:>10.3}{enc:>10.1}{dec:>10.1}", kind.name);
        for (sum, one) in mix.iter_mut().zip([bytes, enc, dec]) {
            *sum += one * f64::from(kind.share) / 100.0;
        }
    }
    println!("{:<16}{:>10.3}{:>10.1}{:>10.1}", "MIX", mix[0], mix[1], mix[2]);
}

fn encoded(values: &[f64]) -> Vec<u8> {
    let mut out = Vec::new();
    encode(values, &mut out);
    out
}

fn store(servers: u64, hours: u64) -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let db = Db::open(Options::new(dir.path()))?;
    db.wait_ready()?;
    let mut rng = fastrand::Rng::with_seed(3);
    let kind_of: Vec<&Kind> = (0..SERIES).map(|_| pick(&mut rng)).collect();
    let target = |s: u64| db.target(&Labels::from_pairs([("instance", format!("{s}").as_str())]));
    let targets: Vec<_> = (0..servers).map(target).collect();
    let mut batches = Vec::new();
    for server in 0..servers {
        let ids = (0..SERIES).map(|i| Ok((db.series(&labels(server, i))?, 0.0)));
        let samples = ids.collect::<Result<Vec<(SeriesId, f64)>, model::StoreError>>()?;
        batches.push(Batch {
            samples,
            timed: Vec::new(),
            ..Default::default()
        });
    }
    let rounds = (hours * 3600 * 1000) as i64 / STEP;
    let mut append = 0;
    let whole = Instant::now();
    let mut made = 0;
    for round in 0..rounds {
        for (server, batch) in batches.iter_mut().enumerate() {
            let from = Instant::now();
            for ((_, value), kind) in batch.samples.iter_mut().zip(&kind_of) {
                *value = (kind.next)(&mut rng, *value, round);
            }
            made += from.elapsed().as_nanos();
            let jitter = rng.i64(0..3);
            let from = Instant::now();
            db.append(
                targets[server],
                START + round * STEP + server as i64 * 100 + jitter,
                batch,
            )?;
            append += from.elapsed().as_nanos();
        }
        if round % 40 == 0 {
            db.maintain(START + round * STEP)?;
        }
    }
    let samples = rounds as u64 * servers * SERIES;
    let stats = db.stats();
    println!(
        "\n{samples} samples of {servers} servers in {:.2} s ({:.2} s of it making them up): append {:.1} ns a sample",
        whole.elapsed().as_secs_f64(),
        made as f64 / 1e9,
        append as f64 / samples as f64
    );
    println!(
        "log written {:.3} B a sample; {} cuts, {} compactions",
        stats.wal_bytes_written as f64 / samples as f64,
        stats.cuts,
        stats.compactions
    );
    // All but the head into blocks.
    db.maintain(START + rounds * STEP)?;
    let stats = db.stats();
    println!(
        "{} blocks: {:.3} B a sample all in ({} samples)",
        stats.blocks,
        stats.blocks_bytes as f64 / stats.blocks_samples as f64,
        stats.blocks_samples
    );
    for (what, bytes) in sizes(dir.path())? {
        println!(
            "  {what:<12}{:.4} B a sample",
            bytes as f64 / stats.blocks_samples as f64
        );
    }
    for (what, matchers, reads) in [
        ("all, whole range", vec![], true),
        ("one metric, 8 GPUs", vec![Matcher::equal("__name__", "metric_7")], true),
        ("all, labels only", vec![], false),
    ] {
        let from = Instant::now();
        let selection = db.select(&matchers, Millis::MIN, Millis::MAX)?;
        let selected = from.elapsed();
        let (mut column, mut count) = (Column::default(), 0);
        for series in selection.series.iter().filter(|_| reads) {
            column.clear();
            series.read(Millis::MIN, Millis::MAX, &mut column)?;
            count += column.len();
        }
        println!(
            "select {what}: {} series in {:.2} ms, {count} samples read in {:.2} ms ({:.2} ns a sample)",
            selection.series.len(),
            selected.as_secs_f64() * 1e3,
            (from.elapsed() - selected).as_secs_f64() * 1e3,
            (from.elapsed() - selected).as_nanos() as f64 / (count as f64).max(1.0)
        );
    }
    db.close()?;
    drop(db);
    let from = Instant::now();
    let db = Db::open(Options::new(dir.path()))?;
    let opened = from.elapsed();
    db.wait_ready()?;
    println!(
        "opened in {:.1} ms, ready after {:.1} ms",
        opened.as_secs_f64() * 1e3,
        from.elapsed().as_secs_f64() * 1e3
    );
    Ok(())
}

/// Bytes of the blocks by kind of file.
fn sizes(dir: &std::path::Path) -> std::io::Result<Vec<(&'static str, u64)>> {
    let mut sizes = vec![("index", 0), ("times", 0), ("chunks", 0)];
    for block in std::fs::read_dir(dir.join("blocks"))? {
        let block = block?.path();
        sizes[0].1 += block.join("index").metadata()?.len();
        sizes[1].1 += block.join("times").metadata()?.len();
        for file in std::fs::read_dir(block.join("chunks"))? {
            sizes[2].1 += file?.metadata()?.len();
        }
    }
    Ok(sizes)
}

fn series(count: u64) -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let db = Db::open(Options::new(dir.path()))?;
    db.wait_ready()?;
    let before = rss_bytes()?;
    let mut rng = fastrand::Rng::with_seed(3);
    let servers = count.div_ceil(SERIES);
    let from = Instant::now();
    let mut all = Vec::new();
    for server in 0..servers {
        let target = db.target(&Labels::from_pairs([("instance", format!("{server}").as_str())]));
        let mut batch = Batch::default();
        let mut kinds = Vec::new();
        for i in 0..SERIES {
            batch.samples.push((db.series(&labels(server, i))?, 0.0));
            kinds.push(pick(&mut rng));
        }
        all.push((target, batch, kinds));
    }
    let made = servers * SERIES;
    println!("\n{made} series made in {:.2} s", from.elapsed().as_secs_f64());
    let ours = all
        .iter()
        .map(|(_, b, k)| b.samples.capacity() * 16 + k.capacity() * 8)
        .sum::<usize>() as u64;
    let mut append = 0;
    let rounds = 3 * 3600 * 1000 / STEP;
    for round in 0..rounds {
        for (target, batch, kinds) in &mut all {
            for ((_, value), kind) in batch.samples.iter_mut().zip(kinds.iter()) {
                *value = (kind.next)(&mut rng, *value, round);
            }
            let from = Instant::now();
            db.append(*target, START + round * STEP, batch)?;
            append += from.elapsed().as_nanos();
        }
        if round % 40 == 0 || round == rounds - 1 {
            db.maintain(START + round * STEP)?;
        }
        if [60, 240, 480, rounds - 2, rounds - 1].contains(&round) {
            let used = rss_bytes()?.saturating_sub(before + ours);
            println!(
                "after {round:>4} scrapes: {:>6} B a series, {} blocks",
                used / made,
                db.stats().blocks
            );
        }
    }
    println!(
        "append {:.1} ns a sample",
        append as f64 / (made * rounds as u64) as f64
    );
    db.close()?;
    drop(db);
    let from = Instant::now();
    let db = Db::open(Options::new(dir.path()))?;
    db.wait_ready()?;
    println!("ready after {:.2} s", from.elapsed().as_secs_f64());
    Ok(())
}
