//! One message of the kernel.

use model::Millis;

/// One message of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// 0 emergency … 7 debug.
    pub level: u8,
    /// 0 is the kernel itself; other numbers are programs that wrote to the device.
    pub facility: u32,
    /// Rises by one from record to record.
    pub sequence: u64,
    /// Microseconds since boot.
    pub micros: u64,
    /// Whether the kernel printed this as a piece of a line.
    pub is_fragment: bool,
    /// The message, with the device's escapes undone; bytes that are not UTF-8 become the replacement character.
    pub text: String,
    /// `SUBSYSTEM=pci`, `DEVICE=+pci:0000:3b:00.0` and the like.
    pub fields: Vec<(String, String)>,
    /// The moment, by the wall clock.
    pub time: Millis,
}

impl Record {
    /// Reads `6,339,5140900,-,caller=T1;text` and the continuation lines after it; `None` for another form.
    /// The time is not known here.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let at = bytes.iter().position(|b| *b == b';')?;
        let head = std::str::from_utf8(&bytes[..at]).ok()?;
        let mut parts = head.split(',');
        let priority: u32 = parts.next()?.parse().ok()?;
        let sequence = parts.next()?.parse().ok()?;
        let micros = parts.next()?.parse().ok()?;
        let flag = parts.next()?;
        let mut lines = bytes[at + 1..].split(|b| *b == b'\n');
        let text = unescape(lines.next()?);
        let fields = lines
            .filter_map(|line| {
                let line = unescape(line.strip_prefix(b" ")?);
                let (name, value) = line.split_once('=')?;
                Some((name.to_owned(), value.to_owned()))
            })
            .collect();
        Some(Self {
            level: u8::try_from(priority & 7).ok()?,
            facility: priority >> 3,
            sequence,
            micros,
            is_fragment: flag != "-",
            text,
            fields,
            time: 0,
        })
    }
}

/// Undoes `\xNN`.
fn unescape(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, after)) = rest.split_first() {
        let byte = after.get(..3).filter(|_| first == b'\\').and_then(hex_byte);
        if let Some(byte) = byte {
            out.push(byte);
            rest = &after[3..];
        } else {
            out.push(first);
            rest = after;
        }
    }
    String::from_utf8(out).unwrap_or_else(|err| String::from_utf8_lossy(err.as_bytes()).into_owned())
}

fn hex_byte(text: &[u8]) -> Option<u8> {
    let digits = text.strip_prefix(b"x")?;
    let digits = std::str::from_utf8(digits).ok()?;
    u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
}
