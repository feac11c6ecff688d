//! Where the corpora are.

use std::path::{Path, PathBuf};

/// A folder of the corpora; `None`, with a message, where there are none.
pub fn folder(topic: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora");
    let root = std::env::var_os("WATCHFIRE_CORPORA").map_or_else(beside, PathBuf::from);
    let folder = root.join(topic);
    if folder.exists() {
        return Some(folder);
    }
    println!("skipped: no corpus {}", folder.display());
    None
}
