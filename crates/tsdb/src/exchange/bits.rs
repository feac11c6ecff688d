//! Bits, highest first, and the variable-length integers that Prometheus makes of them.

/// Reads bits; `None` everywhere means that they ended.
#[derive(Debug, Clone)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> BitReader<'a> {
    /// At the first bit.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next bit.
    pub fn bit(&mut self) -> Option<bool> {
        let byte = *self.bytes.get(self.at / 8)?;
        let bit = byte >> (7 - self.at % 8) & 1 == 1;
        self.at += 1;
        Some(bit)
    }

    /// The next `count` bits (at most 64) as a number.
    pub fn bits(&mut self, count: u32) -> Option<u64> {
        let end = self.at.checked_add(count as usize)?;
        if end > self.bytes.len().checked_mul(8)? {
            return None;
        }
        let mut value = 0_u64;
        let mut left = count;
        while left > 0 {
            let free = 8 - (self.at % 8) as u32;
            let take = free.min(left);
            let byte = u64::from(self.bytes[self.at / 8]);
            let part = byte >> (free - take) & ((1 << take) - 1);
            value = if take == 64 { part } else { value << take | part };
            self.at += take as usize;
            left -= take;
        }
        Some(value)
    }

    /// The bits of a double.
    pub fn float(&mut self) -> Option<f64> {
        self.bits(64).map(f64::from_bits)
    }

    /// A signed number of `count` bits as Prometheus keeps it: the largest positive one is a power of two.
    pub fn signed(&mut self, count: u32) -> Option<i64> {
        let bits = self.bits(count)?;
        if count < 64 && bits > 1 << (count - 1) {
            return Some(bits as i64 - (1_i64 << count));
        }
        Some(bits as i64)
    }

    /// Seven bits a byte, low ones first.
    pub fn uvarint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.bits(8)?;
            value |= (byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// The same, signed, with the sign in the lowest bit.
    pub fn varint(&mut self) -> Option<i64> {
        self.uvarint().map(blocks::bytes::unzigzag)
    }

    /// The width that a prefix of ones stands for; `None` inside for zero.
    fn width(&mut self) -> Option<Option<u32>> {
        let mut ones = 0_usize;
        while ones < 8 && self.bit()? {
            ones += 1;
        }
        Some(ones.checked_sub(1).map(|place| WIDTHS[place]))
    }

    /// A signed integer of the width that a prefix tells.
    pub fn varbit(&mut self) -> Option<i64> {
        match self.width()? {
            None => Some(0),
            Some(width) => self.signed(width),
        }
    }

    /// An unsigned one.
    pub fn varbit_unsigned(&mut self) -> Option<u64> {
        match self.width()? {
            None => Some(0),
            Some(width) => self.bits(width),
        }
    }
}

/// The widths that one to eight leading ones stand for.
const WIDTHS: [u32; 8] = [3, 6, 9, 12, 18, 25, 56, 64];

/// Writes bits.
#[derive(Debug, Clone, Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    /// Bits of the last byte that are not used.
    free: u32,
}

impl BitWriter {
    /// The bytes; the last one is padded with zeros.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Adds a bit.
    pub fn bit(&mut self, bit: bool) {
        self.bits(u64::from(bit), 1);
    }

    /// Adds the low `count` bits of a number.
    pub fn bits(&mut self, value: u64, count: u32) {
        let mut left = count;
        while left > 0 {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = 8;
            }
            let take = self.free.min(left);
            let part = (value >> (left - take)) as u8 & (0xff_u16 >> (8 - take)) as u8;
            if let Some(last) = self.bytes.last_mut() {
                *last |= part << (self.free - take);
            }
            self.free -= take;
            left -= take;
        }
    }

    /// Adds a double.
    pub fn float(&mut self, value: f64) {
        self.bits(value.to_bits(), 64);
    }

    /// The inverse of [`BitReader::uvarint`].
    pub fn uvarint(&mut self, value: u64) {
        let mut bytes = Vec::new();
        blocks::bytes::put_varint(&mut bytes, value);
        bytes.iter().for_each(|&b| self.bits(u64::from(b), 8));
    }

    /// The inverse of [`BitReader::varint`].
    pub fn varint(&mut self, value: i64) {
        self.uvarint(blocks::bytes::zigzag(value));
    }

    fn prefixed(&mut self, value: u64, fits: impl Fn(u32) -> bool) {
        if value == 0 {
            self.bit(false);
            return;
        }
        let place = WIDTHS.iter().position(|&w| fits(w)).unwrap_or(WIDTHS.len() - 1);
        let ones = place as u32 + 1;
        self.bits((1 << ones) - 1, ones);
        if ones < 8 {
            self.bit(false);
        }
        self.bits(value, WIDTHS[place]);
    }

    /// The inverse of [`BitReader::varbit`].
    pub fn varbit(&mut self, value: i64) {
        self.prefixed(value as u64, |w| fits_signed(value, w));
    }

    /// The inverse of [`BitReader::varbit_unsigned`].
    pub fn varbit_unsigned(&mut self, value: u64) {
        self.prefixed(value, |w| w == 64 || value < 1 << w);
    }
}

/// Whether [`BitReader::signed`] gives `value` back from `count` bits.
#[must_use]
pub fn fits_signed(value: i64, count: u32) -> bool {
    count >= 64 || (-((1_i64 << (count - 1)) - 1)..=1 << (count - 1)).contains(&value)
}

/// Doubles, each written against the one before: the window of the bits that changed, and those bits.
#[derive(Debug, Clone, Copy)]
pub struct Floats {
    last: u64,
    /// Leading and trailing zeros of the last window; none before the first.
    window: Option<(u32, u32)>,
}

impl Floats {
    /// After a first value.
    #[must_use]
    pub const fn after(first: f64) -> Self {
        Self {
            last: first.to_bits(),
            window: None,
        }
    }

    /// The last value.
    #[must_use]
    pub const fn last(&self) -> f64 {
        f64::from_bits(self.last)
    }

    /// Reads the next.
    pub fn read(&mut self, bits: &mut BitReader<'_>) -> Option<f64> {
        if bits.bit()? {
            if bits.bit()? {
                let leading = bits.bits(5)? as u32;
                let length = match bits.bits(6)? as u32 {
                    0 => 64,
                    length => length,
                };
                self.window = Some((leading, 64_u32.checked_sub(leading + length)?));
            }
            let (leading, trailing) = self.window?;
            self.last ^= bits.bits(64 - leading - trailing)? << trailing;
        }
        Some(self.last())
    }

    /// Writes the next.
    pub fn write(&mut self, value: f64, bits: &mut BitWriter) {
        let changed = self.last ^ value.to_bits();
        self.last = value.to_bits();
        if changed == 0 {
            bits.bit(false);
            return;
        }
        bits.bit(true);
        let (leading, trailing) = (changed.leading_zeros().min(31), changed.trailing_zeros());
        if let Some((lead, trail)) = self.window
            && leading >= lead
            && trailing >= trail
        {
            bits.bit(false);
            bits.bits(changed >> trail, 64 - lead - trail);
            return;
        }
        self.window = Some((leading, trailing));
        bits.bit(true);
        bits.bits(u64::from(leading), 5);
        // 64 does not fit in six bits, and 0 does not occur.
        bits.bits(u64::from(64 - leading - trailing) & 63, 6);
        bits.bits(changed >> trailing, 64 - leading - trailing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_width_come_back() {
        let mut numbers = vec![0, 1, -1, i64::MAX, i64::MIN];
        for shift in 0..63 {
            for near in -1..=1 {
                numbers.extend([(1_i64 << shift) + near, -(1_i64 << shift) + near]);
            }
        }
        let mut out = BitWriter::default();
        for &n in &numbers {
            out.varbit(n);
            out.varbit_unsigned(n as u64);
            out.varint(n);
            out.bit(true);
        }
        let bytes = out.into_bytes();
        let mut bits = BitReader::new(&bytes);
        for &n in &numbers {
            assert_eq!(bits.varbit(), Some(n));
            assert_eq!(bits.varbit_unsigned(), Some(n as u64));
            assert_eq!(bits.varint(), Some(n));
            assert_eq!(bits.bit(), Some(true));
        }
        assert_eq!(bits.bits(9), None);
    }
}
