//! The corpora: pages of real exporters, and the case tables of the field's parsers.
//!
//! Skipped where the folder of the corpora is absent. Each test prints what passed, and names what it leaves out.

use std::fs;
use std::path::{Path, PathBuf};

use exposition::{Entry, Error, Format, Histograms, Item, Reader, check_page, read_protobuf};
use model::Labels;

fn corpora() -> Option<PathBuf> {
    let folder = std::env::var_os("WATCHFIRE_CORPORA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora"),
        PathBuf::from,
    );
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: no corpora at {}", folder.display());
    None
}

/// Counts cases; fails at the end with every failure named.
#[derive(Default)]
struct Tally {
    what: &'static str,
    passed: usize,
    failed: Vec<String>,
    skipped: Vec<String>,
}

impl Tally {
    fn new(what: &'static str) -> Self {
        Self {
            what,
            ..Self::default()
        }
    }

    fn case(&mut self, name: impl Into<String>, result: Result<(), String>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(why) => self.failed.push(format!("{}: {why}", name.into())),
        }
    }

    fn finish(self) {
        let total = self.passed + self.failed.len();
        println!(
            "{}: {} of {total} passed, {} skipped",
            self.what,
            self.passed,
            self.skipped.len()
        );
        for skipped in &self.skipped {
            println!("  skipped {skipped}");
        }
        assert!(
            self.failed.is_empty(),
            "{} failed:\n{}",
            self.failed.len(),
            self.failed.join("\n")
        );
        assert!(total > 0, "no case found");
    }
}

/// The number of samples on a page, each with its labels made.
fn samples(page: &[u8], format: Format) -> Result<usize, Error> {
    let mut reader = Reader::new(page, format);
    let mut count = 0;
    while let Some(entry) = reader.next_entry()? {
        if let Entry::Sample(sample) = entry {
            sample.series.labels().map_err(|cause| reader.error(cause))?;
            if let Some(exemplar) = sample.exemplar {
                assert!(!exemplar.labels().is_empty() || exemplar.pairs().next().is_none());
            }
            count += 1;
        }
    }
    Ok(count)
}

/// The lines of a page that can only be samples.
fn sample_lines(page: &[u8]) -> usize {
    let lines = page.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|l| !l.is_empty() && !l.starts_with(b"#")).count()
}

fn all_samples(page: &[u8], format: Format) -> Result<(), String> {
    let got = samples(page, format).map_err(|e| format!("{e}\n{}", e.excerpt))?;
    let want = sample_lines(page);
    if got == want {
        Ok(())
    } else {
        Err(format!("{got} samples of {want} lines"))
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for path in entries.map(|e| e.expect("an entry").path()) {
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn name(path: &Path) -> String {
    path.file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn exporter_pages(corpora: &Path) -> Vec<PathBuf> {
    let folders = [
        "dcgm/pages",
        "inference-metrics",
        "nvidia-smi/exporter-pages",
        "containers/pages",
        "smart/pages",
    ];
    let mut pages: Vec<PathBuf> = folders.iter().flat_map(|f| files(&corpora.join(f))).collect();
    pages.retain(|p| p.extension().is_some_and(|e| e == "prom"));
    pages.push(corpora.join("node/fixtures/e2e-output.txt"));
    pages
}

#[test]
fn every_page_of_an_exporter_is_read_without_a_dropped_sample() {
    let Some(corpora) = corpora() else { return };
    let mut tally = Tally::new("exporter pages");
    let mut total = 0;
    for path in exporter_pages(&corpora) {
        let page = fs::read(&path).expect("a page");
        total += sample_lines(&page);
        tally.case(path.display().to_string(), all_samples(&page, Format::Text));
    }
    println!("{total} samples");
    tally.finish();
}

/// Pages on which a metric has a second HELP line: scrapers take them, `promtool check metrics` does not.
const REFUSED_BY_THE_FIELD: [&str; 2] = ["all-smi/container.prom", "tgi/3.x.prom"];

#[test]
fn the_checker_reads_every_page_of_an_exporter() {
    let Some(corpora) = corpora() else { return };
    let mut tally = Tally::new("exporter pages, strictly");
    for path in exporter_pages(&corpora) {
        let page = fs::read(&path).expect("a page");
        if REFUSED_BY_THE_FIELD.iter().any(|p| path.ends_with(p)) {
            let refused = check_page(&page, false).map_or(Ok(()), |_| Err("accepted".to_owned()));
            tally.case(path.display().to_string(), refused);
            continue;
        }
        let result = check_page(&page, false).map_err(|e| format!("{e}\n{}", e.excerpt));
        let same = result.and_then(|found| match (found.samples, sample_lines(&page)) {
            (got, want) if got == want => Ok(()),
            (got, want) => Err(format!("{got} samples of {want} lines")),
        });
        tally.case(path.display().to_string(), same);
    }
    tally.finish();
}

#[test]
fn good_pages_are_read() {
    let Some(corpora) = corpora() else { return };
    let mut tally = Tally::new("prometheus/exposition");
    for path in files(&corpora.join("prometheus/exposition")) {
        let file = name(&path);
        if file.contains("protobuf") {
            continue;
        }
        if path.parent().is_some_and(|p| p.ends_with("expfmt-corpus")) {
            continue;
        }
        let mut page = plain(&path);
        let format = if file.contains("openmetrics") || file.contains(".om.") {
            if !page.trim_ascii_end().ends_with(b"# EOF") {
                page.extend_from_slice(b"# EOF\n");
            }
            Format::OpenMetrics
        } else {
            Format::Text
        };
        tally.case(file, all_samples(&page, format));
    }
    tally.finish();
}

/// The bytes of a page, decompressed where it is compressed.
fn plain(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).expect("a page");
    if path.extension().is_none_or(|e| e != "gz") {
        return bytes;
    }
    let mut page = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(&bytes[..]);
    std::io::Read::read_to_end(&mut decoder, &mut page).expect("gzip");
    page
}

/// Samples of a protobuf page, as text: `series value`, sorted.
fn protobuf_samples(page: &[u8]) -> Result<Vec<(Labels, u64)>, Error> {
    let mut got = Vec::new();
    read_protobuf(page, Histograms::default(), &mut |item| {
        if let Item::Sample(sample, _) = item {
            got.push((sample.series.labels()?, sample.value.to_bits()));
        }
        Ok(())
    })?;
    got.sort();
    Ok(got)
}

#[test]
fn the_protobuf_page_says_what_the_text_page_says() {
    let Some(corpora) = corpora() else { return };
    let mut tally = Tally::new("prometheus/exposition, protobuf");
    let folder = corpora.join("prometheus/exposition");
    for (file, text) in [
        ("expfmt-protobuf", "expfmt-text"),
        ("expfmt-protobuf.gz", "expfmt-text.gz"),
    ] {
        let text = plain(&folder.join(text));
        let mut want = Vec::new();
        let mut reader = Reader::new(&text, Format::Text);
        while let Some(entry) = reader.next_entry().expect("a page that parses") {
            let Entry::Sample(sample) = entry else { continue };
            let labels = sample.series.labels().expect("labels");
            let labels = match labels.get("quantile").and_then(|q| q.parse::<f64>().ok()) {
                Some(quantile) => {
                    let mut written = String::new();
                    exposition::put_openmetrics_float(quantile, &mut written);
                    labels.with("quantile", &written)
                }
                None => labels,
            };
            want.push((labels, sample.value.to_bits()));
        }
        want.sort();
        let result = protobuf_samples(&plain(&folder.join(file))).map_err(|e| e.to_string());
        let same = result.and_then(|got| {
            let odd = got.iter().zip(&want).find(|(g, w)| g != w);
            match odd {
                None if got.len() == want.len() => Ok(()),
                odd => Err(format!("{} of {} samples, {odd:?}", got.len(), want.len())),
            }
        });
        tally.case(file, same);
    }
    tally.finish();
}

#[test]
fn the_checker_of_text_agrees_with_the_field() {
    let Some(corpora) = corpora() else { return };
    let mut tally = Tally::new("prometheus/exposition/expfmt-corpus");
    for path in files(&corpora.join("prometheus/exposition/expfmt-corpus")) {
        let page = fs::read(&path).expect("a page");
        let result = match (check_page(&page, false), name(&path).contains("error")) {
            (Ok(_), true) => Err("accepted".to_owned()),
            (Err(e), false) => Err(e.to_string()),
            _ => Ok(()),
        };
        tally.case(name(&path), result);
    }
    tally.finish();
}

#[test]
fn the_checker_of_openmetrics_agrees_with_the_field() {
    let Some(corpora) = corpora() else { return };
    let folder = corpora.join("prometheus/openmetrics-parsers");
    let table = fs::read_to_string(folder.join("expected.tsv")).expect("the table");
    let mut tally = Tally::new("prometheus/openmetrics-parsers");
    for line in table.lines().skip(1) {
        let mut fields = line.split('\t');
        let (Some(file), Some(expected)) = (fields.next(), fields.next()) else {
            continue;
        };
        let page = fs::read(folder.join(file)).expect("a page");
        let result = match (check_page(&page, true), expected) {
            (Ok(_), "reject") => Err("accepted".to_owned()),
            (Err(e), "parse") => Err(format!("{e}\n{}", e.excerpt)),
            (Ok(_), _) => samples(&page, Format::OpenMetrics)
                .map(|_| ())
                .map_err(|e| format!("scraper: {e}")),
            (Err(_), _) => Ok(()),
        };
        tally.case(file, result);
    }
    tally.finish();
}

/// The page of a table's row: bytes that are no text stand as lone surrogates `\udcXX`, or all as hexadecimal.
fn input(row: &serde_json::Value) -> Vec<u8> {
    if let Some(hex) = row["input"]["hex"].as_str() {
        let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
        return digits
            .chunks(2)
            .map(|d| u8::try_from(d[0] * 16 + d[1]).expect("a byte"))
            .collect();
    }
    let mut out = Vec::new();
    for c in row["input"].as_str().expect("an input").chars() {
        match u32::from(c) {
            code @ 0xe080..=0xe0ff => out.push(u8::try_from(code & 0xff).expect("masked")),
            _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out
}

fn table(file: &str, format: Format) {
    let Some(corpora) = corpora() else { return };
    let text = fs::read_to_string(corpora.join("prometheus/tables").join(file)).expect("the table");
    let mut tally = Tally::new("prometheus/tables");
    for line in text.lines() {
        let row: serde_json::Value = serde_json::from_str(&line.replace("\\udc", "\\ue0")).expect("a row");
        let page = input(&row);
        let error = row["error"].as_str().expect("an error");
        let fine = error.is_empty() || error == "EOF";
        let result = match (samples(&page, format), fine) {
            (Ok(_), false) => Err(format!("accepted, wanted {error}")),
            (Err(e), true) => Err(e.to_string()),
            (Err(e), false) => same_cause(&e, error),
            (Ok(_), true) => Ok(()),
        };
        tally.case(format!("{file}: {}", row["input"]), result);
    }
    tally.finish();
}

/// The expectation, `expected label value` for example, must be the field's.
fn same_cause(error: &Error, want: &str) -> Result<(), String> {
    let want = want.split(", got").next().unwrap_or(want);
    let got = error.to_string();
    if !want.starts_with("expected") || want.starts_with("expected text") || got.contains(want) {
        Ok(())
    } else {
        Err(format!("{got}, wanted {want}"))
    }
}

#[test]
fn errors_of_the_text_format() {
    table("exposition-text-errors.jsonl", Format::Text);
}

#[test]
fn errors_of_openmetrics() {
    table("exposition-openmetrics-errors.jsonl", Format::OpenMetrics);
}

#[test]
fn a_page_with_a_byte_changed_is_read_or_refused_but_never_panics() {
    let Some(corpora) = corpora() else { return };
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for path in files(&corpora.join("prometheus/exposition")) {
        let mut page = fs::read(&path).expect("a page");
        page.truncate(4_000);
        for _ in 0..400 {
            let mut changed = page.clone();
            for _ in 0..random.usize(1..4) {
                if changed.is_empty() {
                    break;
                }
                let at = random.usize(..changed.len());
                match random.u8(0..3) {
                    0 => changed[at] = random.u8(..),
                    1 => changed[at] = *random.choice(b"{}\",=#\\ \n\t\0").expect("some"),
                    _ => changed.truncate(at),
                }
            }
            let _ = protobuf_samples(&changed);
            for format in [Format::Text, Format::OpenMetrics] {
                let _ = samples(&changed, format);
                let _ = check_page(&changed, format == Format::OpenMetrics);
            }
        }
    }
}
