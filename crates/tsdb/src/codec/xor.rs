//! Floats as the XOR of neighbours, bit by bit: the known way (Gorilla), for values with no pattern to use.
//!
//! ```text
//! first u64, then per value, highest bits first:
//! 0                                   the same again
//! 10 bits                             within the last window of changed bits
//! 11 leading (5) length-1 (6) bits    a new window
//! ```

/// Adds the values.
pub fn encode(values: &[f64], out: &mut Vec<u8>) {
    let Some(first) = values.first() else { return };
    out.extend_from_slice(&first.to_bits().to_le_bytes());
    let mut bits = BitWriter { out, word: 0, used: 0 };
    let (mut last, mut leading, mut trailing) = (first.to_bits(), 64, 0);
    for value in &values[1..] {
        let value = value.to_bits();
        let changed = value ^ last;
        last = value;
        if changed == 0 {
            bits.put(0, 1);
            continue;
        }
        let lead = changed.leading_zeros().min(31);
        let trail = changed.trailing_zeros();
        // The old window serves while it is not much wider than what is needed.
        if leading <= lead && trailing <= trail && (lead - leading) + (trail - trailing) < 11 {
            bits.put(0b10, 2);
            bits.put(changed >> trailing, 64 - leading - trailing);
            continue;
        }
        (leading, trailing) = (lead, trail);
        let len = 64 - leading - trailing;
        bits.put(0b11, 2);
        bits.put(u64::from(leading), 5);
        bits.put(u64::from(len - 1), 6);
        bits.put(changed >> trailing, len);
    }
    bits.finish();
}

/// Adds `count` values; `None` when the bytes do not give them.
pub fn decode(bytes: &[u8], count: usize, out: &mut Vec<f64>) -> Option<()> {
    if count == 0 {
        return Some(());
    }
    let (first, rest) = bytes.split_first_chunk::<8>()?;
    let mut last = u64::from_le_bytes(*first);
    out.push(f64::from_bits(last));
    let mut bits = BitReader { bytes: rest, at: 0 };
    let (mut leading, mut trailing) = (0, 0);
    for _ in 1..count {
        if bits.take(1)? == 1 {
            if bits.take(1)? == 1 {
                leading = bits.take(5)? as u32;
                let len = bits.take(6)? as u32 + 1;
                trailing = 64_u32.checked_sub(leading + len)?;
            }
            last ^= bits.take(64 - leading - trailing)? << trailing;
        }
        out.push(f64::from_bits(last));
    }
    Some(())
}

struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    word: u64,
    used: u32,
}

impl BitWriter<'_> {
    /// Adds the low `n` bits (1 to 64) of `bits`, which has no others.
    fn put(&mut self, bits: u64, n: u32) {
        let room = 64 - self.used;
        if n <= room {
            self.word |= bits << (room - n);
            self.used += n;
        } else {
            self.word |= bits >> (n - room);
            self.used = 64;
        }
        if self.used == 64 {
            self.out.extend_from_slice(&self.word.to_be_bytes());
            let left = n.saturating_sub(room);
            self.word = if left == 0 { 0 } else { bits << (64 - left) };
            self.used = left;
        }
    }

    fn finish(self) {
        let bytes = self.word.to_be_bytes();
        self.out.extend_from_slice(&bytes[..self.used.div_ceil(8) as usize]);
    }
}

struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl BitReader<'_> {
    /// The next `n` bits (1 to 64).
    #[inline]
    fn take(&mut self, n: u32) -> Option<u64> {
        let (byte, shift) = (self.at / 8, self.at % 8);
        self.at += n as usize;
        if self.at > self.bytes.len() * 8 {
            return None;
        }
        let mut word = [0_u8; 16];
        match self.bytes.get(byte..byte + 9) {
            Some(nine) => word[..9].copy_from_slice(nine),
            None => {
                let rest = &self.bytes[byte..];
                word[..rest.len()].copy_from_slice(rest);
            }
        }
        let wide = u128::from_be_bytes(word) << shift;
        Some((wide >> (128 - n)) as u64)
    }
}
