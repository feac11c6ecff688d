//! Protobuf's wire format, read in place and written by hand: no schema, and nothing allocated by reading.
//!
//! A message is a run of fields, each a number with a value of one of four shapes. [`Wire`] walks them and
//! leaves the meaning to the caller, who skips the numbers it does not know. Groups, long deprecated, are
//! refused. [`put_bytes`] and its fellows write.
//!
//! Invariant: no input makes a reader panic, or go on for ever: each step moves at least one byte.

/// A message is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {what}")]
pub struct WireError {
    /// Where, counted from the message's first byte.
    pub at: usize,
    /// What is wrong.
    pub what: &'static str,
}

/// The value of a field, in the shape it has on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Field<'a> {
    /// Integers, flags and enumerations.
    Varint(u64),
    /// Doubles and fixed integers.
    Fixed64(u64),
    /// Floats and fixed integers.
    Fixed32(u32),
    /// Texts, bytes, messages and packed lists.
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    /// The bytes of a text, message or list; empty for any other shape.
    #[must_use]
    #[inline]
    pub const fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            _ => &[],
        }
    }

    /// A text; `None` when it is not UTF-8.
    #[must_use]
    #[inline]
    pub fn text(self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()).ok()
    }

    /// An unsigned integer; 0 for any other shape.
    #[must_use]
    #[inline]
    pub const fn unsigned(self) -> u64 {
        match self {
            Self::Varint(value) | Self::Fixed64(value) => value,
            Self::Fixed32(value) => value as u64,
            Self::Bytes(_) => 0,
        }
    }

    /// An `int32` or `int64`.
    #[must_use]
    #[inline]
    pub const fn signed(self) -> i64 {
        self.unsigned().cast_signed()
    }

    /// A `sint32` or `sint64`.
    #[must_use]
    #[inline]
    pub const fn zigzag(self) -> i64 {
        unzigzag(self.unsigned())
    }

    /// A double; 0 for a shape that is none.
    #[must_use]
    #[inline]
    pub const fn double(self) -> f64 {
        match self {
            Self::Fixed64(bits) => f64::from_bits(bits),
            _ => 0.0,
        }
    }
}

/// Takes `sint64`'s folding of signs back.
#[must_use]
#[inline]
pub const fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// Walks the fields of a message.
#[derive(Debug, Clone)]
pub struct Wire<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Wire<'a> {
    /// Reads `bytes`, a message without a length before it.
    #[must_use]
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How far the reading has come, in bytes.
    #[must_use]
    #[inline]
    pub const fn at(&self) -> usize {
        self.at
    }

    /// Whether everything is read.
    #[must_use]
    #[inline]
    pub const fn is_done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    const fn error(&self, what: &'static str) -> WireError {
        WireError { at: self.at, what }
    }

    /// The next field with its number, or `None` at the end.
    ///
    /// # Errors
    ///
    /// [`WireError`] when the message is cut short or holds what protobuf does not.
    #[inline]
    pub fn field(&mut self) -> Result<Option<(u32, Field<'a>)>, WireError> {
        if self.is_done() {
            return Ok(None);
        }
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).map_err(|_| self.error("a field number beyond 32 bits"))?;
        if number == 0 {
            return Err(self.error("a field of number 0"));
        }
        let field = match key & 7 {
            0 => Field::Varint(self.varint()?),
            1 => Field::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => Field::Bytes(self.delimited()?),
            5 => Field::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(self.error("a field of a shape that is not used any more")),
        };
        Ok(Some((number, field)))
    }

    /// A length and that many bytes: a message inside a stream of them.
    ///
    /// # Errors
    ///
    /// [`WireError`] when there are fewer.
    #[inline]
    pub fn delimited(&mut self) -> Result<&'a [u8], WireError> {
        let length = self.varint()?;
        let length = usize::try_from(length).map_err(|_| self.error("a length beyond memory"))?;
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| self.error("a length beyond the message's end"))?;
        let bytes = &self.bytes[self.at..end];
        self.at = end;
        Ok(bytes)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let bytes = self.bytes[self.at..].first_chunk::<N>();
        let bytes = *bytes.ok_or_else(|| self.error("the message ends within a number"))?;
        self.at += N;
        Ok(bytes)
    }

    /// An integer of one to ten bytes.
    ///
    /// # Errors
    ///
    /// [`WireError`] when the bytes end before it does, or it has more than 64 bits.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, WireError> {
        if let Some(&byte) = self.bytes.get(self.at)
            && byte < 0x80
        {
            self.at += 1;
            return Ok(u64::from(byte));
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = *self
                .bytes
                .get(self.at)
                .ok_or_else(|| self.error("the message ends within a number"))?;
            self.at += 1;
            let low = u64::from(byte & 0x7f);
            if shift == 63 && low > 1 {
                break;
            }
            value |= low << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.error("a number of more than 64 bits"))
    }
}

/// A repeated integer: a packed list, or one of several fields.
///
/// # Errors
///
/// [`WireError`] from `read`'s own or when the list is cut short.
pub fn repeated_varint(field: Field<'_>, mut take: impl FnMut(u64)) -> Result<(), WireError> {
    match field {
        Field::Bytes(bytes) => {
            let mut list = Wire::new(bytes);
            while !list.is_done() {
                take(list.varint()?);
            }
        }
        single => take(single.unsigned()),
    }
    Ok(())
}

/// A repeated double: a packed list, or one of several fields.
///
/// # Errors
///
/// [`WireError`] when the list is no whole number of doubles.
pub fn repeated_double(field: Field<'_>, mut take: impl FnMut(f64)) -> Result<(), WireError> {
    match field {
        Field::Bytes(bytes) => {
            let (doubles, rest) = bytes.as_chunks::<8>();
            if !rest.is_empty() {
                return Err(WireError {
                    at: bytes.len(),
                    what: "the message ends within a number",
                });
            }
            for double in doubles {
                take(f64::from_le_bytes(*double));
            }
        }
        single => take(single.double()),
    }
    Ok(())
}

/// Writes an integer in one to ten bytes.
pub fn put_raw_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes an integer field; a zero, which is the default, is left out.
pub fn put_varint(out: &mut Vec<u8>, number: u32, value: u64) {
    if value != 0 {
        put_raw_varint(out, u64::from(number) << 3);
        put_raw_varint(out, value);
    }
}

/// Writes a `sint64` field; a zero is left out.
pub fn put_zigzag(out: &mut Vec<u8>, number: u32, value: i64) {
    put_varint(out, number, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

/// Writes a double field; a zero of positive sign is left out.
pub fn put_double(out: &mut Vec<u8>, number: u32, value: f64) {
    if value.to_bits() != 0 {
        put_raw_varint(out, u64::from(number) << 3 | 1);
        out.extend_from_slice(&value.to_le_bytes());
    }
}

/// Writes a field of bytes: a text, a message or a packed list.
pub fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_raw_varint(out, u64::from(number) << 3 | 2);
    put_raw_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Writes a packed list of doubles; an empty one is left out.
pub fn put_doubles(out: &mut Vec<u8>, number: u32, values: &[f64]) {
    if values.is_empty() {
        return;
    }
    put_raw_varint(out, u64::from(number) << 3 | 2);
    put_raw_varint(out, values.len() as u64 * 8);
    for value in values {
        out.extend_from_slice(&value.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<(u32, Field<'_>)>, WireError> {
        let mut wire = Wire::new(bytes);
        let mut fields = Vec::new();
        while let Some(field) = wire.field()? {
            fields.push(field);
        }
        Ok(fields)
    }

    #[test]
    fn what_is_written_is_read() {
        let mut out = Vec::new();
        put_varint(&mut out, 1, 300);
        put_varint(&mut out, 2, 0);
        put_zigzag(&mut out, 3, -7);
        put_double(&mut out, 4, 1.5);
        put_bytes(&mut out, 5, b"text");
        put_varint(&mut out, 16, u64::MAX);
        let fields = read(&out).expect("a message");
        let numbers: Vec<u32> = fields.iter().map(|(n, _)| *n).collect();
        assert_eq!(numbers, [1, 3, 4, 5, 16]);
        assert_eq!(fields[0].1.unsigned(), 300);
        assert_eq!(fields[1].1.zigzag(), -7);
        assert_eq!(fields[2].1.double(), 1.5);
        assert_eq!(fields[3].1.text(), Some("text"));
        assert_eq!(fields[4].1.signed(), -1);
    }

    #[test]
    fn lists_are_packed_or_one_by_one() {
        let mut out = Vec::new();
        put_doubles(&mut out, 1, &[1.0, 2.5]);
        put_double(&mut out, 1, 3.0);
        let mut got = Vec::new();
        for (_, field) in read(&out).expect("a message") {
            repeated_double(field, |v| got.push(v)).expect("whole");
        }
        assert_eq!(got, [1.0, 2.5, 3.0]);
        let mut got = Vec::new();
        repeated_varint(Field::Bytes(&[1, 0x80, 2]), |v| got.push(v)).expect("whole");
        repeated_varint(Field::Varint(9), |v| got.push(v)).expect("one");
        assert_eq!(got, [1, 256, 9]);
    }

    #[test]
    fn a_broken_message_names_its_place() {
        for (bytes, what) in [
            (&b"\x08"[..], "byte 1: the message ends within a number"),
            (b"\x09\x00", "byte 1: the message ends within a number"),
            (b"\x0a\x05ab", "byte 2: a length beyond the message's end"),
            (b"\x0b", "byte 1: a field of a shape that is not used any more"),
            (b"\x00\x00", "byte 1: a field of number 0"),
            (
                b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
                "byte 11: a number of more than 64 bits",
            ),
        ] {
            assert_eq!(read(bytes).expect_err("broken").to_string(), what, "{bytes:?}");
        }
    }
}
