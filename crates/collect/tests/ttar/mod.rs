//! Unpacks text archives of file trees: blocks of `Directory:`, or `Path:` with `SymlinkTo:` or `Lines:`.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Unpacks `archive` below `into`.
pub fn unpack(archive: &Path, into: &Path) {
    let bytes = fs::read(archive).expect("an archive");
    let mut lines = bytes.split(|b| *b == b'\n');
    let mut path = None;
    while let Some(line) = lines.next() {
        let of = |name: &[u8]| {
            line.strip_prefix(name)
                .map(|rest| into.join(std::ffi::OsStr::from_bytes(rest)))
        };
        if let Some(folder) = of(b"Directory: ") {
            fs::create_dir_all(folder).expect("a folder");
        } else if let Some(file) = of(b"Path: ") {
            fs::create_dir_all(file.parent().expect("below the root")).expect("a folder");
            path = Some(file);
        } else if let (Some(target), Some(path)) = (line.strip_prefix(b"SymlinkTo: "), &path) {
            symlink(std::ffi::OsStr::from_bytes(target), path).expect("a link");
        } else if let (Some(count), Some(path)) = (line.strip_prefix(b"Lines: "), &path) {
            let count = std::str::from_utf8(count)
                .expect("a number")
                .trim()
                .parse()
                .expect("a number");
            fs::write(path, content(&mut lines, count)).expect("a file");
        }
    }
}

/// `count` lines; `EOF` at the end of the last says that it has no newline, `NULLBYTE` stands for one.
fn content<'a>(lines: &mut impl Iterator<Item = &'a [u8]>, count: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for line in lines.take(count) {
        out.extend_from_slice(line);
        out.push(b'\n');
    }
    if let Some(without) = out.strip_suffix(b"EOF\n") {
        out = without.to_vec();
    }
    let null = b"NULLBYTE";
    while let Some(at) = out.windows(null.len()).position(|w| w == null) {
        out.splice(at..at + null.len(), [0]);
    }
    out
}
