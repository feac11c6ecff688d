use model::{STALE_NAN_BITS, stale_nan};

use super::*;

/// Encodes, decodes, compares bits; gives the size in bytes.
#[track_caller]
fn check(values: &[f64]) -> usize {
    let mut chunk = vec![0xaa];
    encode(values, &mut chunk);
    let chunk = &chunk[1..];
    let mut back = vec![7.0];
    decode(chunk, &mut Scratch::default(), &mut back).unwrap_or_else(|| panic!("no chunk: {values:?}"));
    let bits = |v: &[f64]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&back[1..]), bits(values), "{values:?}");
    assert_eq!(count(chunk), Some(values.len()));
    chunk.len()
}

fn series(n: usize, f: impl FnMut(usize) -> f64) -> Vec<f64> {
    (0..n).map(f).collect()
}

#[test]
fn a_constant_takes_a_few_bytes() {
    assert!(check(&[0.0; 480]) <= 6);
    assert!(check(&[81_559.0; 480]) <= 8);
    assert!(check(&[43.218; 480]) <= 8);
    assert!(check(&[0.1 + 0.2; 480]) <= 80);
}

#[test]
fn short_decimals_are_packed_and_counters_lose_their_slope() {
    assert!(check(&series(480, |i| (i % 8) as f64 / 1000.0)) < 480);
    assert!(check(&series(480, |i| 1e9 + 15_000.0 * i as f64)) < 40);
    assert!(check(&series(480, |i| 4096.0 * ((i * i) % 16) as f64)) < 300);
    assert!(check(&series(480, |i| if i < 200 { 5.0 } else { 6.0 })) < 12);
}

#[test]
fn what_is_no_number_survives_to_the_bit() {
    let odd = [
        stale_nan(),
        f64::NAN,
        f64::from_bits(0x7ff8_0000_0000_0001),
        f64::from_bits(0xfff8_dead_beef_0001),
        f64::INFINITY,
        f64::NEG_INFINITY,
        -0.0,
        f64::MIN_POSITIVE / 4.0,
        f64::MAX,
        9_007_199_254_740_993.0,
        -9_007_199_254_740_992.0,
        0.1 + 0.2,
    ];
    for &one in &odd {
        check(&[one]);
        check(&[one; 120]);
        for at in [0, 1, 63, 64, 118, 119] {
            let mut values = series(120, |i| 40.0 + (i % 3) as f64);
            values[at] = one;
            // A large whole number is an integer like others and widens the block it is in.
            assert!(
                check(&values) < if one.abs() > 1e15 { 600 } else { 200 },
                "{one} must not cost the rest"
            );
        }
    }
    check(&odd);
    assert_eq!(stale_nan().to_bits(), STALE_NAN_BITS);
}

#[test]
fn every_length_works() {
    for n in 0..=300 {
        check(&series(n, |i| (i as f64).sqrt().round()));
        check(&series(n, |i| (i as f64).sqrt()));
        check(&series(n, |i| i as f64));
    }
    check(&series(COUNT_MAX, |i| (i % 7) as f64));
}

#[test]
fn random_values_of_every_kind_come_back() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..3000 {
        let n = rng.usize(0..520);
        let (kind, scale, width) = (rng.u8(0..8), 10_f64.powi(rng.i32(0..12)), rng.u32(0..64));
        let mut at = rng.f64() * scale;
        let mut values = series(n, |_| {
            let noise = (rng.u64(..) >> width) as i64;
            match kind {
                0 => f64::from_bits(rng.u64(..)),
                1 => noise as f64,
                2 => noise as f64 / scale,
                3 => {
                    at += rng.f64();
                    at
                }
                4 => {
                    at += f64::from(rng.i32(-9..10));
                    at
                }
                5 => (at * 1000.0).round() / 1000.0 + f64::from(rng.u8(0..4)),
                6 => f64::from(rng.u8(0..2)) * scale,
                _ => -(noise as f64) * 1024.0,
            }
        });
        for _ in 0..rng.usize(0..4) {
            if n > 0 {
                values[rng.usize(0..n)] = [stale_nan(), f64::NAN, f64::INFINITY, -0.0][rng.usize(0..4)];
            }
        }
        check(&values);
    }
}

#[test]
fn integers_at_the_ends_of_their_range_wrap_and_come_back() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..2000 {
        let shift = rng.u32(0..64);
        let ints: Vec<i64> = (0..rng.usize(1..200))
            .map(|_| {
                if rng.u8(0..9) == 0 {
                    [i64::MIN, i64::MAX, 0][rng.usize(0..3)]
                } else {
                    rng.i64(..) >> shift
                }
            })
            .collect();
        let mut bytes = Vec::new();
        ints::encode(&ints, &mut bytes);
        let mut back = Vec::new();
        ints::decode(&mut Cursor::new(&bytes), ints.len(), &mut back).expect("what was written");
        assert_eq!(back, ints);
    }
}

#[test]
fn any_bytes_are_values_or_nothing() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut scratch = Scratch::default();
    for round in 0..20_000 {
        let mut chunk = Vec::new();
        if round % 2 == 0 {
            encode(&series(rng.usize(0..200), |i| ((i * i) % 97) as f64 / 10.0), &mut chunk);
            for _ in 0..rng.usize(1..4) {
                let at = rng.usize(0..chunk.len());
                chunk[at] = rng.u8(..);
            }
            chunk.truncate(rng.usize(0..=chunk.len()));
        } else {
            chunk.resize(rng.usize(0..60), 0);
            rng.fill(&mut chunk);
            if let Some(kind) = chunk.first_mut() {
                *kind %= 5;
            }
        }
        let mut out = vec![1.0];
        match decode(&chunk, &mut scratch, &mut out) {
            Some(()) => assert_eq!(out.len(), 1 + count(&chunk).expect("decoded")),
            None => assert_eq!(out, [1.0]),
        }
    }
}
