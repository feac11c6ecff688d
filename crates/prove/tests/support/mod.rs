//! Evidence and rules from the corpora, for every test here.
#![allow(dead_code, reason = "each test uses a part")]

use std::path::{Path, PathBuf};

use prove::{Evidence, Facts, Finding, RuleText};

/// The folder of corpora, or `None` with a message where there is none.
pub fn corpora() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora");
    let folder = std::env::var_os("WATCHFIRE_CORPORA").map_or(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: no corpora at {}", folder.display());
    None
}

/// A text file.
pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The findings on some rules.
pub fn judge(rules: &[RuleText], evidence: &Evidence) -> Vec<Finding> {
    prove::prove(rules, evidence, &Facts::shipped().unwrap())
}
