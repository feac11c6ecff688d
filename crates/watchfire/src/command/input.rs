//! Text from a file, or from standard input where the file is called `-`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::Context as _;

/// The bytes of a file, or of standard input.
///
/// # Errors
///
/// The file cannot be read.
pub fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    lines(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file, or standard input, to be read line by line. Its errors name it.
///
/// # Errors
///
/// The file cannot be opened.
pub fn lines(path: &Path) -> anyhow::Result<Lines> {
    let (name, inner): (String, Box<dyn BufRead>) = if path == Path::new("-") {
        ("standard input".to_owned(), Box::new(io::stdin().lock()))
    } else {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        (path.display().to_string(), Box::new(BufReader::new(file)))
    };
    Ok(Lines { name, inner })
}

/// What [`lines`] gives.
pub struct Lines {
    name: String,
    inner: Box<dyn BufRead>,
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).map_err(|error| named(&self.name, error))
    }
}

impl BufRead for Lines {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf().map_err(|error| named(&self.name, error))
    }

    fn consume(&mut self, count: usize) {
        self.inner.consume(count);
    }
}

/// The error with the name of what was read; an interruption stays one, for it is no failure.
fn named(name: &str, error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::Interrupted => error,
        kind => io::Error::new(kind, format!("cannot read {name}: {error}")),
    }
}

/// The text of an argument, or of standard input where the argument is `-`. Within: why that is no text, as a parser
/// of expressions would say it.
///
/// # Errors
///
/// Standard input cannot be read.
pub fn argument(text: &str) -> anyhow::Result<Result<String, String>> {
    if text != "-" {
        return Ok(Ok(text.to_owned()));
    }
    let bytes = bytes(Path::new("-"))?;
    Ok(match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(text.trim_end().to_owned()),
        Err(error) => {
            let before = &bytes[..error.valid_up_to()];
            let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
            let line = 1 + before.iter().filter(|b| **b == b'\n').count();
            let column = 1 + before.len() - line_start;
            Err(format!("{line}:{column}: parse error: invalid UTF-8"))
        }
    })
}
