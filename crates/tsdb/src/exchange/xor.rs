//! Chunks of floats: timestamps as differences of differences, values as XOR.

use model::{Column, Millis};

use super::bits::{BitReader, BitWriter, Floats, fits_signed};

/// Samples that one chunk may have; Prometheus cuts at 120 and reads up to what two bytes hold.
pub const SAMPLES: usize = 120;

/// Adds the samples of a chunk's bytes (behind its encoding) to `into`; `None` when they make no sense.
pub fn read(bytes: &[u8], into: &mut Column) -> Option<()> {
    let count = u16::from_be_bytes(bytes.get(..2)?.try_into().ok()?);
    let mut bits = BitReader::new(&bytes[2..]);
    let (mut time, mut delta): (Millis, i64) = (0, 0);
    let mut values = Floats::after(0.0);
    for i in 0..count {
        match i {
            0 => {
                time = bits.varint()?;
                values = Floats::after(bits.float()?);
            }
            1 => {
                delta = bits.uvarint()? as i64;
                time = time.checked_add(delta)?;
                values.read(&mut bits)?;
            }
            _ => {
                delta = delta.checked_add(turn(&mut bits)?)?;
                time = time.checked_add(delta)?;
                values.read(&mut bits)?;
            }
        }
        into.push(time, values.last());
    }
    Some(())
}

/// Widths of a difference of differences after one, two and three ones.
const WIDTHS: [u32; 3] = [14, 17, 20];

fn turn(bits: &mut BitReader<'_>) -> Option<i64> {
    if !bits.bit()? {
        return Some(0);
    }
    for width in WIDTHS {
        if !bits.bit()? {
            return bits.signed(width);
        }
    }
    bits.bits(64).map(|b| b as i64)
}

fn put_turn(turn: i64, bits: &mut BitWriter) {
    if turn == 0 {
        bits.bit(false);
        return;
    }
    bits.bit(true);
    for width in WIDTHS {
        if fits_signed(turn, width) {
            bits.bit(false);
            bits.bits(turn as u64, width);
            return;
        }
        bits.bit(true);
    }
    bits.bits(turn as u64, 64);
}

/// The bytes (behind its encoding) of a chunk of these samples.
#[must_use]
pub fn write(times: &[Millis], values: &[f64]) -> Vec<u8> {
    let mut bits = BitWriter::default();
    bits.bits(times.len() as u64, 16);
    let mut last_delta = 0;
    let mut floats = Floats::after(values.first().copied().unwrap_or(0.0));
    for (i, &value) in values.iter().enumerate() {
        match i {
            0 => {
                bits.varint(times[0]);
                bits.float(value);
                continue;
            }
            1 => {
                last_delta = times[1].wrapping_sub(times[0]);
                bits.uvarint(last_delta as u64);
            }
            _ => {
                let delta = times[i].wrapping_sub(times[i - 1]);
                put_turn(delta.wrapping_sub(last_delta), &mut bits);
                last_delta = delta;
            }
        }
        floats.write(value, &mut bits);
    }
    bits.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_come_back_to_the_bit_and_cut_ones_are_refused() {
        let mut rng = fastrand::Rng::with_seed(5);
        for n in 0..200 {
            let mut time = rng.i64(-5..1_700_000_000_000);
            let mut column = Column::default();
            for _ in 0..n % 121 {
                time += [15_000, 15_001, 1, 900_000, 1 << 40][rng.usize(0..5)];
                let odd = [0.0, -0.0, model::stale_nan(), f64::INFINITY, rng.f64()];
                column.push(time, odd[rng.usize(0..5)]);
            }
            let bytes = write(&column.times, &column.values);
            let mut back = Column::default();
            read(&bytes, &mut back).expect("what was written");
            assert_eq!(back.times, column.times);
            let bits = |c: &Column| c.values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&back), bits(&column));
            if column.len() > 1 {
                assert!(read(&bytes[..bytes.len() - 1], &mut Column::default()).is_none());
            }
        }
    }
}
