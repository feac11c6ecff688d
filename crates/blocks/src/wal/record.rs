//! A record and its frame.
//!
//! ```text
//! len u32 | kind u8 | check u16 | crc32c u32 | payload (len bytes)
//! ```
//!
//! `check` is the low half of the crc32c of `len` and `kind`: it tells a header that was never written
//! whole from one whose length can be trusted. `crc32c` covers kind and payload.

use crate::bytes::Cursor;

/// Bytes before a payload.
pub const HEADER_BYTES: usize = 11;

/// A record read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// What it is; the store that wrote it knows.
    pub kind: u8,
    /// Its bytes.
    pub payload: &'a [u8],
}

/// Records framed one after the other, ready for one write. Reusable.
#[derive(Debug, Clone, Default)]
pub struct Frames {
    bytes: Vec<u8>,
}

impl Frames {
    /// No record yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets the records and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Whether there is no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The framed bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds a record whose payload `fill` appends to the vector it gets (touching nothing before its end).
    /// A payload above four gigabytes is left out: nothing here builds one.
    pub fn push(&mut self, kind: u8, fill: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; HEADER_BYTES]);
        fill(&mut self.bytes);
        let Ok(len) = u32::try_from(self.bytes.len() - start - HEADER_BYTES) else {
            self.bytes.truncate(start);
            return;
        };
        let header = header(len, kind, &self.bytes[start + HEADER_BYTES..]);
        self.bytes[start..start + HEADER_BYTES].copy_from_slice(&header);
    }

    /// Adds a record that is there already.
    pub fn push_bytes(&mut self, kind: u8, payload: &[u8]) {
        self.push(kind, |out| out.extend_from_slice(payload));
    }

    /// Adds the records of another.
    pub fn extend(&mut self, other: &Self) {
        self.bytes.extend_from_slice(&other.bytes);
    }
}

fn header(len: u32, kind: u8, payload: &[u8]) -> [u8; HEADER_BYTES] {
    let mut out = [0; HEADER_BYTES];
    out[..4].copy_from_slice(&len.to_le_bytes());
    out[4] = kind;
    let check = check(&out[..5]);
    out[5..7].copy_from_slice(&check.to_le_bytes());
    out[7..].copy_from_slice(&crc(kind, payload).to_le_bytes());
    out
}

fn check(len_and_kind: &[u8]) -> u16 {
    // The crc of all-zero bytes is not zero, so a hole in a file is no header.
    (crc32c::crc32c(len_and_kind) & 0xffff) as u16
}

fn crc(kind: u8, payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&[kind]), payload)
}

/// What is at a place in a segment.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// A whole record, and how many bytes it takes.
    Record(Record<'a>, usize),
    /// The end.
    End,
    /// A record that was not written to its end, as after a power cut.
    Torn,
    /// Bytes that nobody wrote; says what does not fit.
    Damaged(&'static str),
}

/// Reads the record at the start of `bytes`, the rest of a segment.
#[must_use]
pub fn next(bytes: &[u8]) -> Next<'_> {
    if bytes.is_empty() {
        return Next::End;
    }
    let Some(head) = bytes.get(..HEADER_BYTES) else {
        return Next::Torn;
    };
    if bytes.iter().all(|&b| b == 0) {
        // The file grew before its data reached the disk.
        return Next::Torn;
    }
    let mut cursor = Cursor::new(head);
    let (Some(len), Some(kind), Some(want), Some(sum)) = (cursor.u32(), cursor.u8(), cursor.u16(), cursor.u32()) else {
        return Next::Torn;
    };
    if check(&head[..5]) != want {
        return Next::Damaged("a record's header does not fit its check");
    }
    let end = HEADER_BYTES + len as usize;
    let Some(payload) = bytes.get(HEADER_BYTES..end) else {
        return Next::Torn;
    };
    if crc(kind, payload) == sum {
        return Next::Record(Record { kind, payload }, end);
    }
    if bytes.len() == end || bytes[end..].iter().all(|&b| b == 0) {
        return Next::Torn;
    }
    Next::Damaged("a record does not fit its checksum")
}
