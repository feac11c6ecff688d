//! Nanoseconds a sample: a page met for the first time, and the same page again with other values.
//!
//! `cargo run --release -p scrape --example parse_speed [PAGE…]`; without arguments, a generated page and those
//! of the corpora that are there. The store behind it takes everything and keeps nothing.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use exposition::{Format, Reader};
use model::{Appended, Appender, Batch, Labels, Millis, SeriesId, StoreError, TargetId};
use scrape::{Ingest, Job};

/// Counts and forgets.
#[derive(Default)]
struct Nowhere(AtomicU64);

impl Appender for Nowhere {
    fn target(&self, _: &Labels) -> TargetId {
        TargetId(0)
    }

    fn series(&self, _: &Labels) -> Result<SeriesId, StoreError> {
        Ok(SeriesId(self.0.fetch_add(1, Ordering::Relaxed)))
    }

    fn append(&self, _: TargetId, _: Millis, batch: &Batch) -> Result<Appended, StoreError> {
        Ok(Appended {
            accepted: batch.samples.len() as u64,
            ..Appended::default()
        })
    }
}

fn generated() -> Vec<u8> {
    let mut page = String::new();
    for field in 0..625 {
        let _ = writeln!(
            page,
            "# HELP DCGM_FI_DEV_FIELD_{field} Something of the board (in units)."
        );
        let _ = writeln!(page, "# TYPE DCGM_FI_DEV_FIELD_{field} gauge");
        for gpu in 0..8 {
            let _ = writeln!(
                page,
                "DCGM_FI_DEV_FIELD_{field}{{gpu=\"{gpu}\",UUID=\"GPU-00000000-1111-2222-3333-44444444444{gpu}\",\
                 pci_bus_id=\"00000000:{gpu}A:00.0\",device=\"nvidia{gpu}\",modelName=\"NVIDIA H100 80GB HBM3\",\
                 Hostname=\"gpu-node-01\",DCGM_FI_DRIVER_VERSION=\"550.90.07\"}} {}.{gpu}",
                field * 37
            );
        }
    }
    page.into_bytes()
}

fn measure(name: &str, page: &[u8]) {
    let mut reader = Reader::new(page, Format::Text);
    let mut samples = 0_u32;
    while let Some(entry) = reader.next_entry().expect("a page that parses") {
        samples += u32::from(matches!(entry, exposition::Entry::Sample(_)));
    }
    let job = Arc::new(Job::new("bench"));
    let labels = Labels::from_pairs([("job", "bench"), ("instance", "host:9400")]);
    let new = || Ingest::new(Arc::new(Nowhere::default()), job.clone(), labels.clone());
    let rounds = (2_000_000 / samples.max(1)).max(5);
    let mut cold = Duration::MAX;
    for _ in 0..rounds.min(20) {
        let mut ingest = new();
        let began = Instant::now();
        ingest.ingest_page(1, page).expect("a page that parses");
        cold = cold.min(began.elapsed());
    }
    let mut ingest = new();
    let mut repeated = Duration::MAX;
    let mut all = Duration::ZERO;
    for time in 0..rounds {
        let began = Instant::now();
        ingest.ingest_page(i64::from(time), page).expect("a page that parses");
        if time > 0 {
            repeated = repeated.min(began.elapsed());
            all += began.elapsed();
        }
    }
    let mut parsed = Duration::MAX;
    for _ in 0..rounds {
        let began = Instant::now();
        let mut reader = Reader::new(page, Format::Text);
        while let Ok(Some(_)) = reader.next_entry() {}
        parsed = parsed.min(began.elapsed());
    }
    println!(
        "{name:40} {samples:6} samples {:8} bytes   repeated {:6.1} ns (mean {:6.1})   parse only {:6.1} ns   cold {:7.1} ns   {:.2} GB/s",
        page.len(),
        nanos(repeated, samples),
        nanos(all / (rounds - 1), samples),
        nanos(parsed, samples),
        nanos(cold, samples),
        page.len() as f64 / repeated.as_secs_f64() / 1e9,
    );
}

fn nanos(time: Duration, samples: u32) -> f64 {
    time.as_secs_f64() * 1e9 / f64::from(samples.max(1))
}

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    for path in &given {
        measure(path, &std::fs::read(path).expect("a readable page"));
    }
    if !given.is_empty() {
        return;
    }
    measure("generated", &generated());
    let corpora = std::env::var("WATCHFIRE_CORPORA")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora").to_owned());
    for page in [
        "dcgm/pages/default-h100x8.prom",
        "dcgm/pages/kubernetes-h100x8.prom",
        "node/fixtures/e2e-output.txt",
    ] {
        if let Ok(bytes) = std::fs::read(Path::new(&corpora).join(page)) {
            measure(page, &bytes);
        }
    }
}
