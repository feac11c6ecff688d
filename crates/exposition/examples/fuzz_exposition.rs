//! Feeds the readers with pages that are nearly right, on a stable toolchain: `cargo run --release -p exposition
//! --example fuzz_exposition -- [SECONDS] [SEED] [PAGE…]`.
//!
//! A panic ends the run with the page written to `fuzz/`, where the tests replay it from then on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use exposition::{Entry, Format, Histograms, Reader, check_page, read_protobuf};

const SEEDS: [&[u8]; 4] = [
    b"# HELP a A.\n# TYPE a counter\na{b=\"c\",d=\"e\\n\"} 1.5e3 1700000000000\na 2\n{\"x.y\",z=\"1\"} +Inf\n",
    b"# TYPE a counter\n# UNIT a_s s\na_total{x=\"1\"} 2 1.5 # {trace_id=\"x\"} 0.5 9.25\na_created 1\n# EOF\n",
    b"# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_count 2\nh_sum 3\n# EOF\n",
    b"\x21\x0a\x01h\x18\x04\x22\x1a\x3a\x18\x08\x06\x11\0\0\0\0\0\0\x12\x40\x28\x06\x62\x04\x08\x02\x10\x02\x6a\x02\x04\x04",
];

const PIECES: &[u8] = b"{}\",=#\\ \n\t\0:_1.eE+-NI\xff\x80\x0a\x22";

fn mutated(random: &mut fastrand::Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut page = seeds[random.usize(..seeds.len())].clone();
    for _ in 0..random.usize(1..8) {
        let at = random.usize(..=page.len());
        match random.u8(0..6) {
            0 if at < page.len() => page[at] = random.u8(..),
            1 => page.insert(at, PIECES[random.usize(..PIECES.len())]),
            2 => page.truncate(at),
            3 if at < page.len() => drop(page.remove(at)),
            4 => {
                let other = &seeds[random.usize(..seeds.len())];
                let from = random.usize(..=other.len());
                page.splice(at..at, other[from..].iter().copied().take(200))
                    .for_each(drop);
            }
            _ => {
                let run = random.usize(1..64);
                let byte = PIECES[random.usize(..PIECES.len())];
                page.splice(at..at, std::iter::repeat_n(byte, run)).for_each(drop);
            }
        }
    }
    page.truncate(20_000);
    page
}

fn read(page: &[u8]) {
    for format in [Format::Text, Format::OpenMetrics] {
        let mut reader = Reader::new(page, format);
        while let Ok(Some(entry)) = reader.next_entry() {
            if let Entry::Sample(sample) = entry {
                let _ = sample.series.labels();
                let _ = sample.exemplar.map(|e| e.labels());
            }
        }
        let _ = check_page(page, format == Format::OpenMetrics);
    }
    let forms = Histograms {
        native: true,
        always_classic: true,
    };
    let _ = read_protobuf(page, forms, &mut |_| Ok(()));
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let seconds = args.first().and_then(|a| a.parse().ok()).unwrap_or(10);
    let seed = args
        .get(1)
        .and_then(|a| a.parse().ok())
        .unwrap_or_else(|| fastrand::u64(..));
    println!("seed {seed}");
    let mut seeds: Vec<Vec<u8>> = SEEDS.iter().map(|s| s.to_vec()).collect();
    seeds.extend(
        args.iter()
            .skip(2)
            .map(|path| std::fs::read(path).expect("a readable page")),
    );
    let mut random = fastrand::Rng::with_seed(seed);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut rounds = 0_u64;
    while Instant::now() < end {
        for _ in 0..500 {
            let page = mutated(&mut random, &seeds);
            if catch_unwind(AssertUnwindSafe(|| read(&page))).is_err() {
                let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fuzz/{seed:016x}-{rounds}.page"));
                std::fs::write(&path, &page).expect("the finding is kept");
                panic!("a page makes a reader panic: {}", path.display());
            }
            rounds += 1;
        }
    }
    println!("{rounds} pages in {seconds} s, no panic");
}
