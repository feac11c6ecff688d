//! The small files of procfs and sysfs, read again and again.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::Error;

/// No file of the machine is longer; what lies beyond is not read.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Folder entries beyond this are not looked at.
const ENTRIES_MAX: usize = 65_536;

/// Reads files into one buffer that keeps its memory.
#[derive(Debug, Default)]
pub struct Reader {
    bytes: Vec<u8>,
    text: String,
}

impl Reader {
    /// The file as text; bytes that are not UTF-8 become the replacement character.
    pub fn text(&mut self, path: &Path) -> Result<&str, Error> {
        self.bytes.clear();
        File::open(path)
            .and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut self.bytes))
            .map_err(|source| Error::read(path, source))?;
        if std::str::from_utf8(&self.bytes).is_err() {
            self.text = String::from_utf8_lossy(&self.bytes).into_owned();
            return Ok(&self.text);
        }
        Ok(std::str::from_utf8(&self.bytes).expect("checked above"))
    }

    /// The one word or line of a sysfs attribute, trimmed; `None` when it cannot be read or is empty.
    pub fn word(&mut self, path: &Path) -> Option<&str> {
        let text = self.text(path).ok()?.trim();
        (!text.is_empty()).then_some(text)
    }

    /// The number of a sysfs attribute; `None` when it cannot be read or is not one.
    pub fn number(&mut self, path: &Path) -> Option<f64> {
        parse_number(self.word(path)?)
    }
}

/// A decimal number, or a hexadecimal one after `0x`.
pub fn parse_number(text: &str) -> Option<f64> {
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok().map(to_f64);
    }
    text.parse().ok().filter(|n: &f64| n.is_finite())
}

/// The nearest double: counters of the kernel have 64 bits, samples 53.
#[expect(clippy::cast_precision_loss, reason = "samples are doubles")]
pub const fn to_f64(n: u64) -> f64 {
    n as f64
}

/// The entries of a folder, sorted by name as people sort them (`cpu2` before `cpu10`); none when it is not there.
pub fn entries(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut out: Vec<(String, PathBuf)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .take(ENTRIES_MAX)
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .collect();
    out.sort_unstable_by(|a, b| natural(&a.0).cmp(&natural(&b.0)));
    out
}

/// Sorts `cpu2` before `cpu10`: the name's letters, then the number at its end.
fn natural(name: &str) -> (&str, u64, &str) {
    let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (letters, name[letters.len()..].parse().unwrap_or(0), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal_or_hexadecimal_and_finite() {
        assert_eq!(parse_number("42"), Some(42.0));
        assert_eq!(parse_number("0x1f"), Some(31.0));
        for text in ["", "x", "nan", "inf", "0xg"] {
            assert_eq!(parse_number(text), None, "{text}");
        }
    }

    #[test]
    fn names_sort_by_the_number_at_their_end() {
        let mut names = ["cpu10", "cpu2", "cpu", "atom1"];
        names.sort_by(|a, b| natural(a).cmp(&natural(b)));
        assert_eq!(names, ["atom1", "cpu", "cpu2", "cpu10"]);
    }
}
