//! A run of bits, most significant first.

/// Bits being written.
#[derive(Debug, Default)]
pub(super) struct Bits {
    bytes: Vec<u8>,
    /// Bits of the last byte that are not used yet.
    free: u8,
}

impl Bits {
    /// Writes on behind whole bytes.
    pub const fn after(bytes: Vec<u8>) -> Self {
        Self { bytes, free: 0 }
    }

    pub fn put_bit(&mut self, bit: bool) {
        self.put(u64::from(bit), 1);
    }

    /// Writes the lowest `count` bits of `value`.
    pub fn put(&mut self, value: u64, count: u8) {
        let mut left = count;
        while left > 0 {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = 8;
            }
            let taken = left.min(self.free);
            let bits = (value >> (left - taken)) & ((1_u64 << taken) - 1);
            if let Some(last) = self.bytes.last_mut() {
                #[expect(clippy::cast_possible_truncation, reason = "at most eight bits")]
                let bits = bits as u8;
                *last |= bits << (self.free - taken);
            }
            self.free -= taken;
            left -= taken;
        }
    }

    /// Writes an integer as protobuf does, in whole bytes of the run.
    pub fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.put(value & 0x7f | 0x80, 8);
            value >>= 7;
        }
        self.put(value, 8);
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
