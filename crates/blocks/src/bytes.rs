//! Variable-length integers and a cursor that never reads past the end.

/// Writes seven bits a byte, low ones first, the high bit saying "more follows".
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes a signed integer so that small ones of either sign are short.
pub fn put_zigzag(out: &mut Vec<u8>, value: i64) {
    put_varint(out, zigzag(value));
}

/// Writes a length and the bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// 0, -1, 1, -2, … as 0, 1, 2, 3, …
#[must_use]
pub const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[must_use]
pub const fn unzigzag(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

/// How many bytes [`put_varint`] takes.
#[must_use]
pub const fn varint_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Reads from the front of some bytes; `None` everywhere means that they ended or are malformed.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// A cursor at the first byte.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been read.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether all has been read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `n` bytes.
    #[inline]
    pub fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.rest.split_at_checked(n)?;
        self.rest = tail;
        Some(head)
    }

    /// The next byte.
    #[inline]
    pub fn u8(&mut self) -> Option<u8> {
        let (&first, tail) = self.rest.split_first()?;
        self.rest = tail;
        Some(first)
    }

    /// Two bytes, little-endian.
    pub fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.take(2)?.try_into().ok()?))
    }

    /// Four bytes, little-endian.
    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    /// Eight bytes, little-endian.
    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// What [`put_varint`] wrote.
    #[inline]
    pub fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for (i, &byte) in self.rest.iter().enumerate().take(10) {
            let bits = u64::from(byte & 0x7f);
            if i == 9 && bits > 1 {
                return None;
            }
            value |= bits << (7 * i);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[i + 1..];
                return Some(value);
            }
        }
        None
    }

    /// What [`put_zigzag`] wrote.
    #[inline]
    pub fn zigzag(&mut self) -> Option<i64> {
        self.varint().map(unzigzag)
    }

    /// A varint as a count or size on this machine.
    pub fn size(&mut self) -> Option<usize> {
        usize::try_from(self.varint()?).ok()
    }

    /// What [`put_bytes`] wrote.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let n = self.size()?;
        self.take(n)
    }

    /// What [`put_bytes`] wrote, as text.
    pub fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: i64) {
        let mut out = Vec::new();
        put_zigzag(&mut out, value);
        assert_eq!(out.len(), varint_len(zigzag(value)));
        let mut cursor = Cursor::new(&out);
        assert_eq!(cursor.zigzag(), Some(value));
        assert!(cursor.is_empty());
        for cut in 0..out.len() {
            assert_eq!(Cursor::new(&out[..cut]).zigzag(), None);
        }
    }

    #[test]
    fn integers_come_back() {
        for shift in 0..63 {
            for near in -1..=1 {
                check((1_i64 << shift) + near);
                check(-(1_i64 << shift) + near);
            }
        }
        check(i64::MAX);
        check(i64::MIN);
    }

    #[test]
    fn an_endless_integer_is_refused() {
        assert_eq!(Cursor::new(&[0xff; 20]).varint(), None);
        assert_eq!(Cursor::new(&[0x80, 0x80, 0x80]).varint(), None);
    }
}
