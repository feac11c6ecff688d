//! Prometheus' XOR chunk of floats, written bit for bit as it reads it.
//!
//! ```text
//! count u16 big-endian
//! first time (zigzag varint), first value (64 bits)
//! second: time delta (varint), value against the one before
//! others: delta of deltas in one of five widths, value against the one before
//! ```
//!
//! A value equal to the one before is a 0 bit. Otherwise its XOR with it is written without leading and trailing
//! zeros, whose counts are those of the last such value (bits 10) or stand before it (bits 11, five and six bits).

use model::Millis;

use super::bits::Bits;

/// Samples of a chunk: the field's own number.
pub const SAMPLES_PER_CHUNK: usize = 120;

/// No run of zeros known yet.
const NONE: u8 = 0xff;

/// Writes samples, at most 65,535, times ascending.
pub(super) fn encode(times: &[Millis], values: &[f64]) -> Vec<u8> {
    let count = u16::try_from(times.len()).unwrap_or(u16::MAX);
    let mut bits = Bits::after(count.to_be_bytes().to_vec());
    let (mut time, mut delta, mut value) = (0_i64, 0_i64, 0_u64);
    let (mut leading, mut trailing) = (NONE, 0_u8);
    for (i, (&t, v)) in times.iter().zip(values).enumerate().take(usize::from(count)) {
        let v = v.to_bits();
        match i {
            0 => {
                bits.put_varint(((t << 1) ^ (t >> 63)).cast_unsigned());
                bits.put(v, 64);
            }
            _ => {
                let new_delta = t.wrapping_sub(time);
                if i == 1 {
                    bits.put_varint(new_delta.cast_unsigned());
                } else {
                    put_delta(&mut bits, new_delta.wrapping_sub(delta));
                }
                delta = new_delta;
                put_xor(&mut bits, v ^ value, &mut leading, &mut trailing);
            }
        }
        time = t;
        value = v;
    }
    bits.into_bytes()
}

fn put_delta(bits: &mut Bits, dod: i64) {
    let fits = |n: u32| -((1_i64 << (n - 1)) - 1) <= dod && dod <= 1_i64 << (n - 1);
    let raw = dod.cast_unsigned();
    if dod == 0 {
        bits.put_bit(false);
    } else if fits(14) {
        bits.put(0b10, 2);
        bits.put(raw, 14);
    } else if fits(17) {
        bits.put(0b110, 3);
        bits.put(raw, 17);
    } else if fits(20) {
        bits.put(0b1110, 4);
        bits.put(raw, 20);
    } else {
        bits.put(0b1111, 4);
        bits.put(raw, 64);
    }
}

fn put_xor(bits: &mut Bits, xor: u64, leading: &mut u8, trailing: &mut u8) {
    if xor == 0 {
        bits.put_bit(false);
        return;
    }
    bits.put_bit(true);
    #[expect(clippy::cast_possible_truncation, reason = "at most 64")]
    let (new_leading, new_trailing) = ((xor.leading_zeros() as u8).min(31), xor.trailing_zeros() as u8);
    if *leading != NONE && new_leading >= *leading && new_trailing >= *trailing {
        bits.put_bit(false);
        bits.put(xor >> *trailing, 64 - *leading - *trailing);
        return;
    }
    (*leading, *trailing) = (new_leading, new_trailing);
    bits.put_bit(true);
    bits.put(u64::from(new_leading), 5);
    let significant = 64 - new_leading - new_trailing;
    // 64 does not fit six bits and stands as 0, which no other value needs.
    bits.put(u64::from(significant) & 0x3f, 6);
    bits.put(xor >> new_trailing, significant);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a chunk: an independent reading of the same description.
    fn decode(bytes: &[u8]) -> Vec<(Millis, u64)> {
        let count = usize::from(u16::from_be_bytes([bytes[0], bytes[1]]));
        let mut at = 16;
        let mut bit = || {
            let b = bytes[at / 8] >> (7 - at % 8) & 1;
            at += 1;
            u64::from(b)
        };
        let mut number = |n: u8| (0..n).fold(0_u64, |v, _| v << 1 | bit());
        let mut out: Vec<(Millis, u64)> = Vec::new();
        let (mut delta, mut leading, mut trailing) = (0_i64, 0_u8, 0_u8);
        for i in 0..count {
            let varint = |number: &mut dyn FnMut(u8) -> u64| {
                let (mut value, mut shift) = (0, 0);
                loop {
                    let byte = number(8);
                    value |= (byte & 0x7f) << shift;
                    shift += 7;
                    if byte < 0x80 {
                        return value;
                    }
                }
            };
            if i == 0 {
                let raw = varint(&mut number);
                out.push(((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed(), number(64)));
                continue;
            }
            let (last, value) = out[i - 1];
            if i == 1 {
                delta = varint(&mut number).cast_signed();
            } else {
                let width = if number(1) == 0 {
                    0
                } else if number(1) == 0 {
                    14
                } else if number(1) == 0 {
                    17
                } else if number(1) == 0 {
                    20
                } else {
                    64
                };
                let mut dod = if width == 0 { 0 } else { number(width).cast_signed() };
                if width > 0 && width < 64 && dod > 1 << (width - 1) {
                    dod -= 1 << width;
                }
                delta = delta.wrapping_add(dod);
            }
            let time = last.wrapping_add(delta);
            if number(1) == 0 {
                out.push((time, value));
                continue;
            }
            if number(1) == 1 {
                leading = u8::try_from(number(5)).expect("five bits");
                let mut significant = u8::try_from(number(6)).expect("six bits");
                if significant == 0 {
                    significant = 64;
                }
                trailing = 64 - leading - significant;
            }
            out.push((time, value ^ (number(64 - leading - trailing) << trailing)));
        }
        out
    }

    #[test]
    fn what_is_written_is_read() {
        let mut random = fastrand::Rng::with_seed(3);
        for round in 0..200 {
            let mut time = random.i64(-1000..2_000_000_000_000);
            let mut samples = Vec::new();
            for _ in 0..random.usize(1..130) {
                let jump = [15_000, 15_000, 15_000, 15_001, 20_000, 90_000, 1 << 18, 1 << 40];
                time += *random.choice(&jump).expect("some");
                let value = match round % 4 {
                    0 => f64::from(random.u8(..)),
                    1 => f64::from_bits(random.u64(..)),
                    2 => 1.0,
                    _ => random.f64() * 1e9,
                };
                samples.push((time, value.to_bits()));
            }
            let times: Vec<Millis> = samples.iter().map(|(t, _)| *t).collect();
            let values: Vec<f64> = samples.iter().map(|(_, v)| f64::from_bits(*v)).collect();
            assert_eq!(decode(&encode(&times, &values)), samples, "round {round}");
        }
    }

    #[test]
    fn a_chunk_looks_as_prometheus_writes_it() {
        // Count 2; 1 ms zigzagged is 2, the value 1.0; a delta of one millisecond; the same value.
        let want = [0, 2, 2, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 1, 0];
        assert_eq!(encode(&[1, 2], &[1.0, 1.0]), want);
    }
}
