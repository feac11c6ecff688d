//! What the fuzzer began with and what it found once: `tests/fuzz/*.txt`, a query a line.

use std::path::Path;

use promql::testscript::fuzz::{SEEDS, Target};

#[test]
fn seeds_and_findings_are_answered() {
    let target = Target::new();
    let mut answered = 0;
    for seed in SEEDS {
        assert_eq!(target.try_query(seed), Ok(true), "{seed}");
        answered += usize::from(target.ask(seed).is_ok());
    }
    assert!(answered > SEEDS.len() / 2, "{answered}");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz");
    for entry in std::fs::read_dir(folder).expect("the findings are beside the manifest") {
        let text = std::fs::read_to_string(entry.expect("a file").path()).expect("a text");
        for query in text.lines().filter(|l| !l.starts_with('#')) {
            if let Err(what) = target.try_query(query) {
                panic!("{query:?}: {what}");
            }
        }
    }
}
