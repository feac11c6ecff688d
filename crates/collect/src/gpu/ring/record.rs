//! One record, and the head of the file.

use model::Millis;

use crate::gpu::sample::Sample;

/// Bytes of a record: a whole part of every sector and page, so that no record lies across two.
pub const RECORD: usize = 64;

/// Bytes before the first record: a page.
pub const HEAD: usize = 4096;

/// What the file begins with.
const MAGIC: [u8; 8] = *b"WFRING\x00\x01";

/// A GPU's own name as its 128 bits; zeros where it has none.
pub type Uuid = [u8; 16];

/// A sample with its place in the order of writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Counts up from 1 over the life of the file.
    pub sequence: u64,
    /// Whose sample it is.
    pub uuid: Uuid,
    /// The sample.
    pub sample: Sample,
}

impl Record {
    /// As it lies in the file.
    pub fn bytes(&self) -> [u8; RECORD] {
        let sample = &self.sample;
        let mut out = [0; RECORD];
        out[4] = 1;
        out[5] = sample.known();
        out[6..8].copy_from_slice(&sample.gpu.to_le_bytes());
        out[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        out[16..24].copy_from_slice(&sample.time.to_le_bytes());
        out[24..40].copy_from_slice(&self.uuid);
        out[40..48].copy_from_slice(&sample.reasons.unwrap_or(0).to_le_bytes());
        out[48..52].copy_from_slice(&sample.power_mw.unwrap_or(0).to_le_bytes());
        out[52..54].copy_from_slice(&sample.temperature.unwrap_or(0).to_le_bytes());
        out[54] = sample.utilization.unwrap_or(0);
        out[55] = sample.memory_utilization.unwrap_or(0);
        out[56..58].copy_from_slice(&sample.sm_clock.unwrap_or(0).to_le_bytes());
        out[58..60].copy_from_slice(&sample.memory_clock.unwrap_or(0).to_le_bytes());
        let sum = crc32c::crc32c(&out[4..]);
        out[..4].copy_from_slice(&sum.to_le_bytes());
        out
    }

    /// Reads it; `None` for a slot never written, a torn or a damaged record.
    pub fn read(bytes: &[u8; RECORD]) -> Option<Self> {
        let sum = u32::from_le_bytes(part(bytes, 0));
        if bytes[4] != 1 || crc32c::crc32c(&bytes[4..]) != sum {
            return None;
        }
        let sample = Sample {
            gpu: u16::from_le_bytes(part(bytes, 6)),
            time: Millis::from_le_bytes(part(bytes, 16)),
            power_mw: Some(u32::from_le_bytes(part(bytes, 48))),
            temperature: Some(i16::from_le_bytes(part(bytes, 52))),
            utilization: Some(bytes[54]),
            memory_utilization: Some(bytes[55]),
            sm_clock: Some(u16::from_le_bytes(part(bytes, 56))),
            memory_clock: Some(u16::from_le_bytes(part(bytes, 58))),
            reasons: Some(u64::from_le_bytes(part(bytes, 40))),
        };
        Some(Self {
            sequence: u64::from_le_bytes(part(bytes, 8)),
            uuid: part(bytes, 24),
            sample: sample.keep(bytes[5]),
        })
    }
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

/// The head of a file with this many records.
pub fn head(slots: u64) -> [u8; HEAD] {
    let mut out = [0; HEAD];
    out[..8].copy_from_slice(&MAGIC);
    out[8..12].copy_from_slice(&64_u32.to_le_bytes());
    out[16..24].copy_from_slice(&slots.to_le_bytes());
    let sum = crc32c::crc32c(&out[..24]);
    out[24..28].copy_from_slice(&sum.to_le_bytes());
    out
}

/// How many records a file with this head has; `None` for another kind of file.
pub fn slots(head: &[u8]) -> Option<u64> {
    let head = head.get(..28)?;
    let is_ours = head[..8] == MAGIC && u32::from_le_bytes(part(head, 8)) == 64;
    let is_whole = crc32c::crc32c(&head[..24]) == u32::from_le_bytes(part(head, 24));
    (is_ours && is_whole).then(|| u64::from_le_bytes(part(head, 16)))
}

/// The bits of `GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`; zeros for a name of another form.
pub fn uuid_bits(name: &str) -> Uuid {
    let digits: Vec<u8> = name
        .strip_prefix("GPU-")
        .unwrap_or("")
        .bytes()
        .filter(|b| *b != b'-')
        .collect();
    let mut out = [0; 16];
    if digits.len() != 32 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return out;
    }
    for (byte, pair) in out.iter_mut().zip(digits.chunks(2)) {
        let pair = std::str::from_utf8(pair).unwrap_or("0");
        *byte = u8::from_str_radix(pair, 16).unwrap_or(0);
    }
    out
}

/// The name of these bits; empty for none.
pub fn uuid_name(bits: &Uuid) -> String {
    if bits == &[0; 16] {
        return String::new();
    }
    let hex: String = bits.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "GPU-{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            sequence: 77,
            uuid: uuid_bits("GPU-00112233-4455-6677-8899-aabbccddeeff"),
            sample: Sample {
                gpu: 3,
                time: 1_796_000_000_001,
                power_mw: Some(650_250),
                temperature: None,
                utilization: Some(99),
                memory_utilization: Some(40),
                sm_clock: Some(1_755),
                memory_clock: None,
                reasons: Some(4),
            },
        }
    }

    #[test]
    fn a_record_comes_back_and_one_with_any_bit_turned_does_not() {
        let bytes = record().bytes();
        assert_eq!(Record::read(&bytes), Some(record()));
        for bit in 0..RECORD * 8 {
            let mut bent = bytes;
            bent[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Record::read(&bent), None, "bit {bit}");
        }
        assert_eq!(Record::read(&[0; RECORD]), None);
    }

    #[test]
    fn a_record_torn_between_two_writes_is_none() {
        let (old, mut new) = (record().bytes(), record());
        new.sequence += 100;
        new.sample.time += 100_000;
        let new = new.bytes();
        for cut in 1..RECORD {
            let mut torn = old;
            torn[..cut].copy_from_slice(&new[..cut]);
            let read = Record::read(&torn);
            assert!(torn == old || torn == new || read.is_none(), "torn at {cut}: {read:?}");
        }
    }

    #[test]
    fn a_name_keeps_its_bits_and_another_form_has_none() {
        let name = "GPU-00112233-4455-6677-8899-aabbccddeeff";
        assert_eq!(uuid_name(&uuid_bits(name)), name);
        assert_eq!(uuid_name(&uuid_bits("MIG-1")), "");
        assert_eq!(slots(&head(14_400)), Some(14_400));
        assert_eq!(slots(b"PK"), None);
    }
}
