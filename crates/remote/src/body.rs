//! Bodies: snappy blocks, unpacked within bounds.

use crate::error::Error;

/// Bounds on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a body as it comes.
    pub compressed: u64,
    /// Bytes of it unpacked.
    pub decompressed: u64,
    /// Labels of a series.
    pub labels: usize,
    /// Bytes of a label's name or value.
    pub label_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            compressed: 32 << 20,
            decompressed: 128 << 20,
            labels: exposition::LABELS_MAX,
            label_bytes: 64 << 10,
        }
    }
}

/// Memory that outlives a request.
#[derive(Debug, Default)]
pub struct Scratch {
    plain: Vec<u8>,
}

/// The most memory kept for the next request.
const KEPT_MAX: usize = 8 << 20;

impl Scratch {
    /// Unpacks a snappy block.
    ///
    /// # Errors
    ///
    /// [`Error::Size`] beyond a limit, [`Error::Broken`] when it is no snappy.
    pub(crate) fn unpack(&mut self, body: &[u8], limits: &Limits) -> Result<&[u8], Error> {
        if body.len() as u64 > limits.compressed {
            return Err(Error::Size {
                size: body.len() as u64,
                what: "compressed",
                most: limits.compressed,
            });
        }
        // Of an empty body the length cannot be told; it stands for an empty message.
        if body.is_empty() {
            return Ok(&[]);
        }
        let broken = |e: snap::Error| Error::Broken(format!("snappy: {e}"));
        let length = snap::raw::decompress_len(body).map_err(broken)?;
        if length as u64 > limits.decompressed {
            return Err(Error::Size {
                size: length as u64,
                what: "decompressed",
                most: limits.decompressed,
            });
        }
        // A block holds at most some sixty times its bytes: what claims more is broken, and gets no memory.
        if length as u64 > body.len() as u64 * 64 + 64 {
            return Err(Error::Broken(
                "snappy: a length that no block of this size can have".to_owned(),
            ));
        }
        if self.plain.len() < length {
            self.plain.resize(length, 0);
        }
        let written = snap::raw::Decoder::new()
            .decompress(body, &mut self.plain[..length])
            .map_err(broken)?;
        Ok(&self.plain[..written])
    }

    /// Gives memory back that only one large request needed.
    pub(crate) fn shrink(&mut self) {
        if self.plain.len() > KEPT_MAX {
            self.plain = Vec::new();
        }
    }
}

/// Packs an answer.
pub(crate) fn pack(plain: &[u8]) -> Result<Vec<u8>, Error> {
    let packed = snap::raw::Encoder::new().compress_vec(plain);
    packed.map_err(|e| Error::Broken(format!("snappy: {e}")))
}
