//! Throws mutated queries at the parser, the printer and the engine, for as long as asked.
//!
//! `cargo run --release -p promql --example fuzz_promql [SECONDS] [SEED]`: prints each finding (a panic, an answer
//! that is not one, a printed form that does not parse back) and ends with 1 when there was one. Findings go into
//! `tests/fuzz`, where an ordinary test replays them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use promql::testscript::fuzz::{self, Target};

fn main() {
    let mut args = std::env::args().skip(1);
    let seconds = args.next().and_then(|a| a.parse().ok()).unwrap_or(10);
    let seed = args.next().and_then(|a| a.parse().ok()).unwrap_or(1);
    let mut random = fastrand::Rng::with_seed(seed);
    let target = Arc::new(Target::new());
    let mut pool: Vec<String> = fuzz::SEEDS.iter().map(|s| (*s).to_owned()).collect();
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut tried, mut parsed, mut found) = (0_u64, 0_u64, 0_u64);
    std::panic::set_hook(Box::new(|_| {}));
    while Instant::now() < end {
        let query = mutated(&pool, &mut random);
        tried += 1;
        let tried_here = Arc::clone(&target);
        let text = query.clone();
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || tried_here.try_query(&text))) {
            Ok(Ok(false)) => {}
            Ok(Ok(true)) => {
                parsed += 1;
                if pool.len() < 5000 && query.len() < 300 {
                    pool.push(query);
                }
            }
            Ok(Err(what)) => {
                found += 1;
                println!("{query:?}: {what}");
            }
            Err(_) => {
                found += 1;
                println!("{query:?}: panic");
            }
        }
    }
    println!("{tried} queries, {parsed} of them parse, {found} findings, seed {seed}");
    std::process::exit(i32::from(found > 0));
}

/// A seed, or two crossed, with a few changes.
fn mutated(pool: &[String], random: &mut fastrand::Rng) -> String {
    let pick = |random: &mut fastrand::Rng| pool[random.usize(..pool.len())].clone().into_bytes();
    let mut bytes = pick(random);
    for _ in 0..random.usize(1..4) {
        let at = random.usize(..=bytes.len());
        match random.u8(0..7) {
            0 => {
                let other = pick(random);
                let from = random.usize(..=other.len());
                let to = random.usize(from..=other.len());
                bytes.splice(at..at, other[from..to].iter().copied());
            }
            1 if at < bytes.len() => {
                let to = random.usize(at..bytes.len().min(at + 8) + 1);
                bytes.drain(at..to);
            }
            2 if at < bytes.len() => bytes[at] = random.u8(..),
            3 => {
                let word = fuzz::WORDS[random.usize(..fuzz::WORDS.len())];
                bytes.splice(at..at, word.bytes());
            }
            4 => {
                let inner = String::from_utf8_lossy(&bytes).into_owned();
                let around = fuzz::WRAPS[random.usize(..fuzz::WRAPS.len())];
                bytes = around.replace('$', &inner).into_bytes();
            }
            5 if bytes.len() > 1 => bytes.truncate(at),
            _ => {
                let digits = random.i64(..).to_string();
                bytes.splice(at..at, digits.bytes());
            }
        }
        bytes.truncate(4000);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
