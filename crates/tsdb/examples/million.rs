//! A million active series: memory at the fullest moment of the head's cycle, and how soon a restart answers.
//!
//! `million fill DIR [SERIES] [--abandon]` scrapes them every 15 s for three hours of their time and prints the memory
//! (a series' memory is largest just before two hours of samples become a block); `--abandon` ends as a kill does,
//! without closing. `million open DIR` opens the store and prints when it served blocks, and when the head too.
//! `benches/million.sh` runs both.

use std::time::Instant;

use model::{Appender as _, Batch, Column, Labels, Matcher, Millis, Queryable as _};
use tsdb::{Db, Options};

#[path = "mix/mod.rs"]
mod mix;

use mix::{Kind, SERIES, START, STEP, labels, pick, rss_bytes};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let dir = args.get(1).ok_or("usage: million fill|open DIR [SERIES] [--abandon]")?;
    match args[0].as_str() {
        "fill" => fill(
            dir,
            args.get(2).and_then(|n| n.parse().ok()).unwrap_or(1_000_000),
            args.iter().any(|a| a == "--abandon"),
        ),
        "open" => open(dir),
        other => Err(format!("no such thing: {other}").into()),
    }
}

fn fill(dir: &str, count: u64, abandon: bool) -> Result<(), Box<dyn std::error::Error>> {
    let db = Db::open(Options::new(dir))?;
    db.wait_ready()?;
    let mut rng = fastrand::Rng::with_seed(3);
    let mut all = Vec::new();
    for server in 0..count.div_ceil(SERIES) {
        let target = db.target(&Labels::from_pairs([
            ("instance", format!("gpu-node-{server:04}").as_str()),
            ("job", "dcgm"),
        ]));
        let mut batch = Batch::default();
        let mut kinds: Vec<&Kind> = Vec::new();
        for i in 0..SERIES.min(count - server * SERIES) {
            batch.samples.push((db.series(&labels(server, i))?, 0.0));
            kinds.push(pick(&mut rng));
        }
        all.push((target, batch, kinds));
    }
    // What the writer holds is not the store's.
    let ours: usize = all
        .iter()
        .map(|(_, b, k)| b.samples.capacity() * 16 + k.capacity() * 8)
        .sum();
    let rounds = 3 * 3600 * 1000 / STEP - 1;
    let (begun, mut append, mut peak) = (Instant::now(), 0, 0);
    for round in 0..rounds {
        for (target, batch, kinds) in &mut all {
            for ((_, value), kind) in batch.samples.iter_mut().zip(kinds.iter()) {
                *value = (kind.next)(&mut rng, *value, round);
            }
            let from = Instant::now();
            db.append(*target, START + round * STEP, batch)?;
            append += from.elapsed().as_nanos();
        }
        if round % 40 == 39 {
            db.maintain(START + round * STEP)?;
        }
        peak = peak.max(rss_bytes()?);
    }
    let samples = count * rounds as u64;
    println!(
        "{count} series, {samples} samples in {:.0} s: append {:.1} ns a sample; log {:.2} B a sample",
        begun.elapsed().as_secs_f64(),
        append as f64 / samples as f64,
        db.stats().wal_bytes_written as f64 / samples as f64
    );
    println!(
        "RSS {:.3} GB at its peak, {:.3} GB of it the writer's own ({:.0} B a series without)",
        peak as f64 / 1e9,
        ours as f64 / 1e9,
        (peak - ours as u64) as f64 / count as f64
    );
    if abandon {
        println!("abandoned with {:.0} MB of log", db.stats().wal_bytes as f64 / 1e6);
        // No destructor runs: what the kernel has is all there is.
        std::process::exit(0);
    }
    let from = Instant::now();
    db.close()?;
    println!("closed in {:.2} s", from.elapsed().as_secs_f64());
    Ok(())
}

fn open(dir: &str) -> Result<(), Box<dyn std::error::Error>> {
    let from = Instant::now();
    let db = Db::open(Options::new(dir))?;
    println!("blocks served after {:.3} s", from.elapsed().as_secs_f64());
    db.wait_ready()?;
    println!("all served after {:.3} s", from.elapsed().as_secs_f64());
    let matchers = [Matcher::equal("__name__", "metric_7"), Matcher::equal("gpu", "3")];
    let mut column = Column::default();
    let found = db.select(&matchers, Millis::MIN, Millis::MAX)?;
    for series in &found.series {
        series.read(Millis::MIN, Millis::MAX, &mut column)?;
        column.clear();
    }
    println!(
        "first answer ({} series read) after {:.3} s; {} series in the head, RSS {:.3} GB",
        found.series.len(),
        from.elapsed().as_secs_f64(),
        db.stats().head_series,
        rss_bytes()? as f64 / 1e9
    );
    // Nothing was written, so nothing need be closed.
    std::process::exit(0);
}
