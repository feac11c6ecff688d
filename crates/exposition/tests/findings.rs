//! What the fuzzer once found, read again: `examples/fuzz_exposition.rs` writes it to `fuzz/`.

use exposition::{Format, Histograms, Reader, check_page, read_protobuf};

#[test]
fn no_finding_makes_a_reader_panic() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the folder of findings") {
        let page = std::fs::read(entry.expect("an entry").path()).expect("a page");
        for format in [Format::Text, Format::OpenMetrics] {
            let mut reader = Reader::new(&page, format);
            while let Ok(Some(_)) = reader.next_entry() {}
            let _ = check_page(&page, format == Format::OpenMetrics);
        }
        let _ = read_protobuf(&page, Histograms::default(), &mut |_| Ok(()));
        count += 1;
    }
    assert!(count > 0, "at least the seed is there");
}
