//! Feeds the store's readers with damaged bytes: `fuzz chunk|wal|block [SECONDS] [SEED]`.
//!
//! Begins with what the store itself writes, changes it at random, and keeps what the target accepts in new ways out of
//! sight of the reader: there is no coverage here, only many tries. A panic prints where the input was put; copy it to
//! `crates/tsdb/testdata/fuzz/TARGET-WHAT` and the tests replay it for ever.

use std::time::{Duration, Instant};

mod fuzz_targets;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let name = args.first().map_or("", String::as_str);
    let target = fuzz_targets::target(name).ok_or("usage: fuzz chunk|wal|block [SECONDS] [SEED]")?;
    let seconds = args.get(1).and_then(|a| a.parse().ok()).unwrap_or(60);
    let seed = args
        .get(2)
        .and_then(|a| a.parse().ok())
        .unwrap_or_else(|| fastrand::u64(..));
    println!("{name}, seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let seeds = fuzz_targets::seeds(name);
    let found = std::env::temp_dir().join(format!("fuzz-{name}-{seed}"));
    let (begun, mut tries) = (Instant::now(), 0_u64);
    while begun.elapsed() < Duration::from_secs(seconds) {
        let mut input = seeds[rng.usize(0..seeds.len())].clone();
        for _ in 0..rng.usize(1..6) {
            mutate(&mut input, &seeds, &mut rng);
        }
        tries += 1;
        if std::panic::catch_unwind(|| target(&input)).is_err() {
            std::fs::write(&found, &input)?;
            return Err(format!("try {tries} panics; the input is in {}", found.display()).into());
        }
    }
    println!("{tries} tries, none panics");
    Ok(())
}

fn mutate(input: &mut Vec<u8>, seeds: &[Vec<u8>], rng: &mut fastrand::Rng) {
    if input.is_empty() {
        input.push(rng.u8(..));
    }
    let at = rng.usize(0..input.len());
    match rng.u8(0..8) {
        0 => input[at] ^= 1 << rng.u8(0..8),
        1 => input[at] = rng.u8(..),
        2 => input[at] = [0, 1, 0x7f, 0x80, 0xff][rng.usize(0..5)],
        3 => input.truncate(at),
        4 => {
            let end = (at + rng.usize(1..20)).min(input.len());
            drop(input.drain(at..end));
        }
        5 => {
            let more: Vec<u8> = (0..rng.usize(1..12))
                .map(|_| if rng.bool() { 0xff } else { rng.u8(..) })
                .collect();
            drop(input.splice(at..at, more));
        }
        6 => {
            let other = &seeds[rng.usize(0..seeds.len())];
            let from = rng.usize(0..other.len());
            let part = other[from..(from + rng.usize(1..60)).min(other.len())].to_vec();
            let end = (at + part.len()).min(input.len());
            drop(input.splice(at..end, part));
        }
        _ => {
            let part = input[at..(at + rng.usize(1..40)).min(input.len())].to_vec();
            drop(input.splice(at..at, part));
        }
    }
}
