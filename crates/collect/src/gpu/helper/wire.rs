//! Frames: a length, then that many bytes. Both ends are the same binary, so the bytes carry no names and no versions.
//!
//! Invariant: whatever arrives, reading ends in a value or in [`Malformed`], with memory bounded by [`FRAME_MAX`].

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest body of a frame. A GPU with four thousand processes takes some 500 KiB.
pub const FRAME_MAX: usize = 4 << 20;

/// The bytes before a body: its length.
pub const HEAD: usize = 4;

/// A frame that does not hold what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a frame of the GPU helper is malformed")]
pub struct Malformed;

/// A frame in the making.
pub struct Writer(Vec<u8>);

impl Writer {
    /// A frame of this kind.
    pub fn new(kind: u8) -> Self {
        let mut bytes = vec![0; HEAD];
        bytes.push(kind);
        Self(bytes)
    }

    pub fn u8(&mut self, n: u8) {
        self.0.push(n);
    }

    pub fn u16(&mut self, n: u16) {
        self.0.extend(n.to_le_bytes());
    }

    pub fn u32(&mut self, n: u32) {
        self.0.extend(n.to_le_bytes());
    }

    pub fn u64(&mut self, n: u64) {
        self.0.extend(n.to_le_bytes());
    }

    pub fn i64(&mut self, n: i64) {
        self.0.extend(n.to_le_bytes());
    }

    pub fn f64(&mut self, n: f64) {
        self.u64(n.to_bits());
    }

    /// How many of something follow; more than fit are a broken promise of the caller's bounds.
    pub fn count(&mut self, n: usize) {
        self.u32(u32::try_from(n).unwrap_or(u32::MAX));
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// What is seldom said and has names and lists of its own.
    pub fn json(&mut self, value: &impl Serialize) {
        self.bytes(&serde_json::to_vec(value).unwrap_or_default());
    }

    /// The whole frame; `None` for one that is longer than anyone may send.
    pub fn finish(mut self) -> Option<Vec<u8>> {
        let length = self.0.len() - HEAD;
        let head = u32::try_from(length).ok().filter(|_| length <= FRAME_MAX)?;
        self.0[..HEAD].copy_from_slice(&head.to_le_bytes());
        Some(self.0)
    }
}

/// A body being read.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub const fn new(body: &'a [u8]) -> Self {
        Self(body)
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed)
    }

    pub fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn i64(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_le_bytes)
    }

    pub fn f64(&mut self) -> Result<f64, Malformed> {
        self.u64().map(f64::from_bits)
    }

    /// How many of something follow, of which each takes `size` bytes at least: never more than the frame can hold.
    pub fn count(&mut self, size: usize) -> Result<usize, Malformed> {
        let n = usize::try_from(self.u32()?).map_err(|_| Malformed)?;
        (n <= self.0.len() / size.max(1)).then_some(n).ok_or(Malformed)
    }

    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let n = self.count(1)?;
        self.take(n)
    }

    pub fn text(&mut self) -> Result<String, Malformed> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    pub fn json<T: DeserializeOwned>(&mut self) -> Result<T, Malformed> {
        serde_json::from_slice(self.bytes()?).map_err(|_| Malformed)
    }

    /// Nothing may follow.
    pub fn end(self) -> Result<(), Malformed> {
        self.0.is_empty().then_some(()).ok_or(Malformed)
    }
}

/// Bytes that arrive in any pieces, and the whole frames in them.
#[derive(Default)]
pub struct Inbox(Vec<u8>);

impl Inbox {
    /// Takes a piece.
    pub fn put(&mut self, piece: &[u8]) {
        self.0.extend_from_slice(piece);
    }

    /// Hands over every whole frame, kind and body together, and keeps the rest.
    ///
    /// # Errors
    ///
    /// A length that no frame has: nothing that follows can be trusted.
    pub fn frames(&mut self, mut each: impl FnMut(&[u8]) -> Result<(), Malformed>) -> Result<(), Malformed> {
        let mut at = 0;
        while let Some(head) = self.0.get(at..at + HEAD) {
            let length = u32::from_le_bytes(head.try_into().map_err(|_| Malformed)?);
            let length = usize::try_from(length).map_err(|_| Malformed)?;
            if length == 0 || length > FRAME_MAX {
                return Err(Malformed);
            }
            let Some(frame) = self.0.get(at + HEAD..at + HEAD + length) else {
                break;
            };
            each(frame)?;
            at += HEAD + length;
        }
        self.0.drain(..at);
        if self.0.is_empty() && self.0.capacity() > 64 << 10 {
            self.0 = Vec::new();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_arrive_whole_in_whatever_pieces() {
        let mut all = Vec::new();
        for text in ["", "a", "longer than that"] {
            let mut frame = Writer::new(7);
            frame.text(text);
            all.extend(frame.finish().expect("short"));
        }
        for piece in 1..all.len() {
            let mut inbox = Inbox::default();
            let mut got = Vec::new();
            for bytes in all.chunks(piece) {
                inbox.put(bytes);
                let each = |frame: &[u8]| {
                    let mut reader = Reader::new(frame);
                    assert_eq!(reader.u8(), Ok(7));
                    got.push(reader.text()?);
                    reader.end()
                };
                inbox.frames(each).expect("well formed");
            }
            assert_eq!(got, ["", "a", "longer than that"]);
        }
    }

    #[test]
    fn no_length_makes_memory_for_what_is_not_there() {
        let mut inbox = Inbox::default();
        inbox.put(&u32::MAX.to_le_bytes());
        assert_eq!(inbox.frames(|_| Ok(())), Err(Malformed));
        let mut body = Vec::from(1_000_000_u32.to_le_bytes());
        body.extend([0; 16]);
        assert_eq!(Reader::new(&body).count(16), Err(Malformed));
        assert_eq!(Reader::new(&body).bytes(), Err(Malformed));
    }
}
