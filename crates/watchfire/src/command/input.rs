//! Text from a file, or from standard input where the file is called `-`.

use std::io::Read;
use std::path::Path;

use anyhow::Context as _;

/// The bytes of a file, or of standard input.
///
/// # Errors
///
/// The file cannot be read.
pub fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .context("cannot read standard input")?;
        return Ok(bytes);
    }
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The text of an argument, or of standard input where the argument is `-`.
///
/// # Errors
///
/// Standard input cannot be read or is not text.
pub fn argument(text: &str) -> anyhow::Result<String> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    let bytes = bytes(Path::new("-"))?;
    let text = String::from_utf8(bytes).context("standard input is not UTF-8 text")?;
    Ok(text.trim_end().to_owned())
}
