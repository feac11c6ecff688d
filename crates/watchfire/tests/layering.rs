//! The river flows one way: a crate imports rows below its own, and the few edges named here within a row.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Rows from the top; a crate may import crates of later rows only.
const ROWS: &[&[&str]] = &[
    &["watchfire"],
    &["web", "tui"],
    &["scrape", "rules", "prove", "alerts", "remote"],
    &["tsdb", "logdb", "blocks", "aliases"],
    &["collect", "nvml", "tail", "sim"],
    &["promql", "logql", "template", "exposition", "config"],
    &["model"],
];

/// Edges within a row.
const NEIGHBOURS: &[(&str, &str)] = &[
    ("collect", "nvml"),
    ("tsdb", "blocks"),
    ("logdb", "blocks"),
    ("logql", "promql"),
];

/// Crates that stand beside the river: only the binary may know them.
const ASIDE: &[&str] = &["sim"];

/// Who may use what from outside; everybody else may not.
const HOMES: &[(&str, &[&str])] = &[
    (
        "serde",
        &[
            "config",
            "web",
            "remote",
            "alerts",
            "collect",
            "tail",
            "blocks",
            "watchfire",
            "sim",
        ],
    ),
    (
        "serde_json",
        &[
            "config",
            "web",
            "remote",
            "alerts",
            "collect",
            "tail",
            "blocks",
            "watchfire",
        ],
    ),
    ("quick-xml", &["collect"]),
    ("serde-saphyr", &["config", "collect", "sim"]),
    ("tokio", &["watchfire", "web", "scrape", "alerts", "remote", "tail"]),
    ("reqwest", &["watchfire", "scrape", "alerts", "remote"]),
    ("anyhow", &["watchfire"]),
    ("libloading", &["nvml", "sim"]),
    ("memmap2", &["blocks"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every crate of the workspace with the names under its `[dependencies]`.
fn manifests() -> BTreeMap<String, Vec<String>> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(root().join("crates"))
        .expect("the folder of crates")
        .map(|e| e.expect("an entry").path())
        .collect();
    folders.push(root().join("sim"));
    folders
        .into_iter()
        .filter(|f| f.join("Cargo.toml").is_file())
        .map(|folder| manifest(&folder))
        .collect()
}

fn manifest(folder: &Path) -> (String, Vec<String>) {
    let text = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
    let name = folder
        .canonicalize()
        .expect("a folder")
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let mut section = "";
    let mut names = Vec::new();
    for line in text.lines() {
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']');
        } else if section == "dependencies"
            && let Some((key, _)) = line.split_once('=')
        {
            names.push(key.trim().trim_end_matches(".workspace").to_owned());
        }
    }
    (name, names)
}

fn row(name: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&name))
}

#[test]
fn every_crate_imports_downwards() {
    let manifests = manifests();
    assert!(manifests.len() > 10, "the workspace was not found: {manifests:?}");
    for (name, dependencies) in &manifests {
        let own = row(name).unwrap_or_else(|| panic!("{name} has no row: give it one here and in ARCHITECTURE.md"));
        for dependency in dependencies.iter().filter(|d| manifests.contains_key(*d)) {
            let theirs = row(dependency).expect("a crate of the workspace has a row");
            let neighbours = NEIGHBOURS.contains(&(name.as_str(), dependency.as_str()));
            assert!(
                theirs > own || neighbours,
                "{name} imports {dependency}, which does not lie below it"
            );
            let aside = ASIDE.contains(&dependency.as_str()) && name != "watchfire";
            assert!(!aside, "{name} imports {dependency}, which only the binary may know");
        }
    }
}

#[test]
fn outside_crates_stay_in_their_homes() {
    for (name, dependencies) in manifests() {
        for (outside, homes) in HOMES {
            let used = dependencies.iter().any(|d| d == outside);
            assert!(
                !used || homes.contains(&name.as_str()),
                "{name} uses {outside}, whose homes are {homes:?}"
            );
        }
    }
}

#[test]
fn unsafe_code_has_few_homes() {
    const HOMES: &[&str] = &["crates/nvml/", "sim/", "crates/blocks/src/mmap.rs"];
    let mut found = Vec::new();
    for folder in ["crates", "sim"] {
        walk(&root().join(folder), &mut found);
    }
    for (path, text) in found {
        let relative = path
            .strip_prefix(root())
            .expect("below the root")
            .to_string_lossy()
            .into_owned();
        let here = relative.replace('\\', "/");
        let uses = text.lines().any(|l| {
            let code = l.split("//").next().unwrap_or("");
            code.contains("unsafe {")
                || code.contains("unsafe fn")
                || code.contains("unsafe impl")
                || code.contains("unsafe extern")
        });
        assert!(
            !uses || HOMES.iter().any(|h| here.starts_with(h)),
            "{here} uses unsafe code; its homes are {HOMES:?}"
        );
    }
}

fn walk(folder: &Path, into: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && path.file_name().is_some_and(|n| n != "target") {
            walk(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("layering.rs") {
            let text = std::fs::read_to_string(&path).expect("a source file");
            into.push((path, text));
        }
    }
}
