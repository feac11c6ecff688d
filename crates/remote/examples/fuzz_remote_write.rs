//! Feeds the receivers with bodies that are nearly right, on a stable toolchain: `cargo run --release -p remote
//! --example fuzz_remote_write -- [SECONDS] [SEED] [BODY…]`.
//!
//! A panic ends the run with the body written to `fuzz/`, where the tests replay it from then on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use exposition::wire::{put_bytes, put_double, put_doubles, put_raw_varint, put_varint, put_zigzag};
use model::{Appended, Appender, Batch, Labels, Millis, SeriesId, StoreError, TargetId};
use remote::otlp::Encoding;
use remote::read::ReadRequest;
use remote::write::Version;
use remote::{Limits, otlp, write};

struct Nowhere;

impl Appender for Nowhere {
    fn target(&self, _: &Labels) -> TargetId {
        TargetId(0)
    }

    fn series(&self, labels: &Labels) -> Result<SeriesId, StoreError> {
        Ok(SeriesId(labels.hash64()))
    }

    fn append(&self, _: TargetId, _: Millis, _: &Batch) -> Result<Appended, StoreError> {
        Ok(Appended::default())
    }
}

fn message(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

/// A body of version 1, or of version 2, with a sample, a histogram and an example.
fn seed(is_v2: bool) -> Vec<u8> {
    let pair = |n: &str, v: &str| {
        message(|out| {
            put_bytes(out, 1, n.as_bytes());
            put_bytes(out, 2, v.as_bytes());
        })
    };
    let sample = message(|out| {
        put_double(out, 1, 1.5);
        put_varint(out, 2, 9);
    });
    let histogram = message(|out| {
        put_varint(out, 1, 6);
        put_zigzag(out, 4, 2);
        put_bytes(out, 11, &message(|out| put_varint(out, 2, 2)));
        put_bytes(out, 12, &[4, 4]);
        put_doubles(out, 16, &[1.0, 2.0]);
    });
    let series = message(|out| {
        if is_v2 {
            put_bytes(out, 1, &[1, 2, 3, 4]);
        } else {
            put_bytes(out, 1, &pair("__name__", "up"));
            put_bytes(out, 1, &pair("job", "a"));
        }
        put_bytes(out, 2, &sample);
        put_bytes(out, if is_v2 { 3 } else { 4 }, &histogram);
        put_bytes(out, if is_v2 { 4 } else { 3 }, &sample);
    });
    message(|out| {
        for symbol in ["", "__name__", "up", "job", "a"].iter().filter(|_| is_v2) {
            put_bytes(out, 4, symbol.as_bytes());
        }
        put_bytes(out, if is_v2 { 5 } else { 1 }, &series);
    })
}

fn mutated(random: &mut fastrand::Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut body = seeds[random.usize(..seeds.len())].clone();
    for _ in 0..random.usize(1..6) {
        let at = random.usize(..=body.len());
        match random.u8(0..5) {
            0 if at < body.len() => body[at] = random.u8(..),
            1 => body.truncate(at),
            2 => {
                let mut number = Vec::new();
                put_raw_varint(&mut number, random.u64(..) >> random.u32(..64));
                body.splice(at..at, number).for_each(drop);
            }
            3 => {
                let other = &seeds[random.usize(..seeds.len())];
                let from = random.usize(..=other.len());
                body.splice(at..at, other[from..].iter().copied().take(200))
                    .for_each(drop);
            }
            _ if at < body.len() => body[at] ^= 1 << random.u8(..8),
            _ => {}
        }
    }
    body.truncate(20_000);
    body
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let seconds = args.first().and_then(|a| a.parse().ok()).unwrap_or(10);
    let seed_of = args
        .get(1)
        .and_then(|a| a.parse().ok())
        .unwrap_or_else(|| fastrand::u64(..));
    println!("seed {seed_of}");
    let mut seeds = vec![seed(false), seed(true)];
    seeds.extend(
        args.iter()
            .skip(2)
            .map(|path| std::fs::read(path).expect("a readable body")),
    );
    let receiver = write::Receiver::new(Arc::new(Nowhere), Arc::default(), Limits::default());
    let otlp = otlp::Receiver::new(Arc::new(Nowhere), Arc::default(), Limits::default());
    let mut random = fastrand::Rng::with_seed(seed_of);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut rounds = 0_u64;
    while Instant::now() < end {
        for _ in 0..500 {
            let body = mutated(&mut random, &seeds);
            let take = || {
                let _ = receiver.receive_plain(&body, Version::V1, 1_000_000);
                let _ = receiver.receive_plain(&body, Version::V2, 1_000_000);
                let _ = receiver.receive(&body, Version::V1, 1_000_000);
                let _ = ReadRequest::read_plain(&body);
                let _ = otlp.receive(&body, Encoding::Protobuf, false, 1_000_000);
            };
            if catch_unwind(AssertUnwindSafe(take)).is_err() {
                let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fuzz/{seed_of:016x}-{rounds}.body"));
                std::fs::write(&path, &body).expect("the finding is kept");
                panic!("a body makes a receiver panic: {}", path.display());
            }
            rounds += 1;
        }
    }
    println!("{rounds} bodies in {seconds} s, no panic");
}
