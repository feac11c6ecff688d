//! Integers as the smallest of: one constant, a list of steps, bit-packed blocks.
//!
//! ```text
//! 0 | first zigzag                                        constant
//! 1 | first zigzag | count varint | (gap varint, step zigzag)…   steps
//! 2 | first zigzag | divisor varint | block…               every 64 integers:
//!       mode and width u8 | base zigzag | bitmap (mode 3) | packed
//! ```
//!
//! Blocks hold `(x - first) / divisor`, where the divisor is common to all: memory counted in pages and clocks
//! counted in ticks lose their factor here. Each block is packed over its values (mode 0), their differences (1)
//! or the differences of those (2), with the smallest subtracted; or over the differences that are not zero, after
//! a bitmap that tells which (3): counters that rest more often than they move. The smallest way is taken.

use blocks::bytes::{Cursor, put_varint, put_zigzag, varint_len, zigzag};

/// Integers of a packed block.
pub const BLOCK: usize = 64;

const CONSTANT: u8 = 0;
const STEPS: u8 = 1;
const BLOCKS: u8 = 2;

/// The low bits of a block's first byte are its width in bits, the high ones its mode; width 63 stands for 63 and 64.
const WIDTH_MASK: u8 = 0x3f;

/// Adds the integers to `out`; differences wrap, so any values may come.
pub fn encode(ints: &[i64], out: &mut Vec<u8>) {
    let Some(&first) = ints.first() else {
        out.push(CONSTANT);
        put_zigzag(out, 0);
        return;
    };
    let steps = Steps::of(ints);
    if steps.count == 0 {
        out.push(CONSTANT);
        put_zigzag(out, first);
        return;
    }
    let start = out.len();
    out.push(BLOCKS);
    put_zigzag(out, first);
    // A step list of one entry takes at least two bytes, and no packing of 64 takes less than two.
    if steps.count * 2 > ints.len() {
        put_blocks(ints, out);
        return;
    }
    put_blocks(ints, out);
    let head = 1 + varint_len(zigzag(first));
    if head + steps.bytes < out.len() - start {
        out.truncate(start);
        out.push(STEPS);
        put_zigzag(out, first);
        put_steps(ints, steps.count, out);
    }
}

/// How a list of steps would look.
struct Steps {
    count: usize,
    bytes: usize,
}

impl Steps {
    fn of(ints: &[i64]) -> Self {
        let (mut count, mut bytes, mut gap) = (0, 0, 0);
        for pair in ints.windows(2) {
            if pair[0] == pair[1] {
                gap += 1;
                continue;
            }
            count += 1;
            bytes += varint_len(gap) + varint_len(zigzag(pair[1].wrapping_sub(pair[0])));
            gap = 0;
        }
        Self {
            count,
            bytes: bytes + varint_len(count as u64),
        }
    }
}

fn put_steps(ints: &[i64], count: usize, out: &mut Vec<u8>) {
    put_varint(out, count as u64);
    let mut gap = 0;
    for pair in ints.windows(2) {
        if pair[0] == pair[1] {
            gap += 1;
            continue;
        }
        put_varint(out, gap);
        put_zigzag(out, pair[1].wrapping_sub(pair[0]));
        gap = 0;
    }
}

fn put_blocks(ints: &[i64], out: &mut Vec<u8>) {
    let first = ints[0];
    let divisor = common_divisor(ints);
    put_varint(out, divisor);
    let reduced: Vec<i64> = if divisor > 1 {
        let by = i64::try_from(divisor).unwrap_or(i64::MAX);
        ints.iter().map(|&x| (x - first) / by).collect()
    } else {
        ints.iter().map(|&x| x.wrapping_sub(first)).collect()
    };
    // The one before the first is itself, with no difference.
    let (mut last, mut last_step) = (0_i64, 0_i64);
    for block in reduced.chunks(BLOCK) {
        put_block(block, last, last_step, out);
        let end = block[block.len() - 1];
        let before = if block.len() > 1 { block[block.len() - 2] } else { last };
        last_step = end.wrapping_sub(before);
        last = end;
    }
}

/// The greatest common divisor of all distances from the first; 1 when distances do not fit.
fn common_divisor(ints: &[i64]) -> u64 {
    let first = ints[0];
    let mut divisor = 0_u64;
    for &x in &ints[1..] {
        let Some(distance) = x.checked_sub(first) else { return 1 };
        divisor = gcd(divisor, distance.unsigned_abs());
        if divisor == 1 {
            return 1;
        }
    }
    if divisor > i64::MAX as u64 { 1 } else { divisor.max(1) }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    // Euclid, with the common cases out of the way: the same divisor holds for most values.
    if a == 0 {
        return b;
    }
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn put_block(block: &[i64], last: i64, last_step: i64, out: &mut Vec<u8>) {
    let n = block.len();
    let mut raw = [0_i64; BLOCK];
    let mut steps = [0_i64; BLOCK];
    let mut turns = [0_i64; BLOCK];
    let (mut before, mut step_before) = (last, last_step);
    for (i, &x) in block.iter().enumerate() {
        let step = x.wrapping_sub(before);
        raw[i] = x;
        steps[i] = step;
        turns[i] = step.wrapping_sub(step_before);
        (before, step_before) = (x, step);
    }
    let mut moves = [0_i64; BLOCK];
    let (mut bitmap, mut moved) = (0_u64, 0);
    for (i, &step) in steps[..n].iter().enumerate() {
        if step != 0 {
            bitmap |= 1 << i;
            moves[moved] = step;
            moved += 1;
        }
    }
    let ways = [&raw[..n], &steps[..n], &turns[..n], &moves[..moved]];
    let ranges = ways.map(Range::of);
    let cost = |mode: usize| {
        let head = if mode == SPARSE { n.div_ceil(8) } else { 0 };
        head + (ranges[mode].width * ways[mode].len()).div_ceil(8) + varint_len(zigzag(ranges[mode].min))
    };
    let mode = (0..ways.len()).min_by_key(|&m| cost(m)).expect("there are four");
    let width = ranges[mode].width.min(usize::from(WIDTH_MASK)) as u8;
    out.push((mode as u8) << 6 | width);
    put_zigzag(out, ranges[mode].min);
    if mode == SPARSE {
        out.extend_from_slice(&bitmap.to_le_bytes()[..n.div_ceil(8)]);
    }
    pack(ways[mode], ranges[mode].min, stored_width(width), out);
}

/// The mode of differences with a bitmap.
const SPARSE: usize = 3;

/// The smallest of some integers, and the bits that hold their distance from it.
struct Range {
    min: i64,
    width: usize,
}

impl Range {
    fn of(numbers: &[i64]) -> Self {
        if numbers.is_empty() {
            return Self { min: 0, width: 0 };
        }
        let (mut min, mut max) = (i64::MAX, i64::MIN);
        for &x in numbers {
            min = min.min(x);
            max = max.max(x);
        }
        let distance = max.wrapping_sub(min) as u64;
        Self {
            min,
            width: 64 - distance.leading_zeros() as usize,
        }
    }
}

const fn stored_width(width: u8) -> usize {
    if width == WIDTH_MASK { 64 } else { width as usize }
}

/// Packs distances from `min`, lowest bits first; a last byte that is not full is padded with zeros.
fn pack(numbers: &[i64], min: i64, width: usize, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    if width == 64 {
        for &x in numbers {
            out.extend_from_slice(&(x.wrapping_sub(min) as u64).to_le_bytes());
        }
        return;
    }
    let (mut word, mut used) = (0_u64, 0);
    for &x in numbers {
        let bits = x.wrapping_sub(min) as u64;
        word |= bits << used;
        used += width;
        if used >= 64 {
            out.extend_from_slice(&word.to_le_bytes());
            used -= 64;
            // What did not fit; when all did, the shift is by the whole width.
            word = if used == 0 { 0 } else { bits >> (width - used) };
        }
    }
    out.extend_from_slice(&word.to_le_bytes()[..used.div_ceil(8)]);
}

/// Adds `count` integers to `out`; `None` when the bytes do not give them.
pub fn decode(cursor: &mut Cursor<'_>, count: usize, out: &mut Vec<i64>) -> Option<()> {
    let kind = cursor.u8()?;
    let first = cursor.zigzag()?;
    match kind {
        CONSTANT => {
            out.resize(out.len() + count, first);
            Some(())
        }
        STEPS => read_steps(cursor, first, count, out),
        BLOCKS => read_blocks(cursor, first, count, out),
        _ => None,
    }
}

fn read_steps(cursor: &mut Cursor<'_>, first: i64, count: usize, out: &mut Vec<i64>) -> Option<()> {
    let end = out.len() + count;
    let mut value = first;
    out.push(first);
    for _ in 0..cursor.size()? {
        let gap = cursor.size().filter(|&g| g < count)?;
        if out.len() + gap >= end {
            return None;
        }
        out.resize(out.len() + gap, value);
        value = value.wrapping_add(cursor.zigzag()?);
        out.push(value);
    }
    // Also refuses the one integer too many of an empty list.
    if out.len() > end {
        return None;
    }
    out.resize(end, value);
    Some(())
}

fn read_blocks(cursor: &mut Cursor<'_>, first: i64, count: usize, out: &mut Vec<i64>) -> Option<()> {
    let divisor = cursor.varint()? as i64;
    let start = out.len();
    let (mut last, mut last_step) = (0_i64, 0_i64);
    let mut left = count;
    while left > 0 {
        let n = left.min(BLOCK);
        left -= n;
        let tag = cursor.u8()?;
        let base = cursor.zigzag()?;
        let width = stored_width(tag & WIDTH_MASK);
        let mut block = [0_i64; BLOCK];
        let block = &mut block[..n];
        if usize::from(tag >> 6) == SPARSE {
            read_sparse(cursor, width, base, block)?;
        } else {
            let packed = cursor.take((width * n).div_ceil(8))?;
            unpack(packed, width, base, block);
        }
        match tag >> 6 {
            0 => {}
            1 | 3 => {
                let mut sum = last;
                for x in block.iter_mut() {
                    sum = sum.wrapping_add(*x);
                    *x = sum;
                }
            }
            2 => {
                let (mut sum, mut step) = (last, last_step);
                for x in block.iter_mut() {
                    step = step.wrapping_add(*x);
                    sum = sum.wrapping_add(step);
                    *x = sum;
                }
            }
            _ => return None,
        }
        let before = if n > 1 { block[n - 2] } else { last };
        last = block[n - 1];
        last_step = last.wrapping_sub(before);
        out.extend_from_slice(block);
    }
    if divisor == 1 {
        out[start..].iter_mut().for_each(|x| *x = x.wrapping_add(first));
    } else {
        out[start..]
            .iter_mut()
            .for_each(|x| *x = x.wrapping_mul(divisor).wrapping_add(first));
    }
    Some(())
}

/// The differences of a block of which only some are written.
fn read_sparse(cursor: &mut Cursor<'_>, width: usize, base: i64, block: &mut [i64]) -> Option<()> {
    let mut bytes = [0_u8; 8];
    let written = cursor.take(block.len().div_ceil(8))?;
    bytes[..written.len()].copy_from_slice(written);
    let mut bitmap = u64::from_le_bytes(bytes);
    let count = bitmap.count_ones() as usize;
    let packed = cursor.take((width * count).div_ceil(8))?;
    let mut moves = [0_i64; BLOCK];
    unpack(packed, width, base, &mut moves[..count]);
    for &step in &moves[..count] {
        *block.get_mut(bitmap.trailing_zeros() as usize)? = step;
        bitmap &= bitmap - 1;
    }
    Some(())
}

fn unpack(packed: &[u8], width: usize, base: i64, into: &mut [i64]) {
    if width == 0 {
        into.fill(base);
        return;
    }
    // A copy with room behind it, so that every read of eight bytes is within bounds.
    let mut bytes = [0_u8; BLOCK * 8 + 8];
    bytes[..packed.len()].copy_from_slice(packed);
    if width <= 56 {
        let mask = (1_u64 << width) - 1;
        let mut bit = 0;
        for x in into {
            let at = bit >> 3;
            let word = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
            *x = base.wrapping_add((word >> (bit & 7) & mask) as i64);
            bit += width;
        }
        return;
    }
    let mask = if width == 64 { u64::MAX } else { (1_u64 << width) - 1 };
    let mut bit = 0;
    for x in into {
        let at = bit >> 3;
        let low = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let wide = u128::from(low) | u128::from(bytes[at + 8]) << 64;
        *x = base.wrapping_add((wide >> (bit & 7)) as u64 as i64 & mask as i64);
        bit += width;
    }
}
