//! Evidence and rules from the corpora, for every test here.

use std::path::{Path, PathBuf};

use prove::{Evidence, Facts, Finding, Origin, RuleText};

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

/// Evidence from pages.
pub fn pages(paths: &[PathBuf]) -> Evidence {
    let mut evidence = Evidence::new(Origin::Pages);
    for path in paths {
        let page = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        evidence.add_page(&path.display().to_string(), &page).unwrap();
    }
    evidence
}

/// The findings on some rules.
pub fn judge(rules: &[RuleText], evidence: &Evidence) -> Vec<Finding> {
    prove::prove(rules, evidence, &Facts::shipped().unwrap())
}
