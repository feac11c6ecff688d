//! What the fuzzer begins with and what it once found, replayed.

#[path = "../examples/fuzz_targets/mod.rs"]
mod fuzz_targets;

#[test]
fn seeds_and_findings_do_not_panic() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/fuzz");
    for name in fuzz_targets::TARGETS {
        let target = fuzz_targets::target(name).expect("it is listed");
        let seeds = fuzz_targets::seeds(name);
        assert!(seeds.len() > 1, "{name} begins with something");
        for seed in &seeds {
            target(seed);
            for cut in (0..seed.len()).step_by(seed.len() / 40 + 1) {
                target(&seed[..cut]);
            }
        }
        for entry in std::fs::read_dir(&dir).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            let file = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
            if file.starts_with(&format!("{name}-")) {
                println!("{file}");
                target(&std::fs::read(&path).expect("a file"));
            }
        }
    }
}
