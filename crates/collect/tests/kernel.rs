//! Labelled kernel lines: class, code and address must be those of the label.

use std::collections::BTreeMap;
use std::fs;

use collect::kernel::{Classifier, PATTERNS, XidCatalog};
use serde_json::Value;

mod corpora;

/// Lines that are left out, by a part of their text, with the reason.
const LEFT_OUT: [(&str, &str); 0] = [];

#[test]
fn every_labelled_line_has_its_class_code_and_address() {
    let Some(file) = corpora::folder("kernel-logs/lines.jsonl") else {
        return;
    };
    let classifier = Classifier::new(PATTERNS).expect("our own table");
    let mut table: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut wrong = Vec::new();
    for record in fs::read_to_string(file).expect("the corpus").lines() {
        let label: Value = serde_json::from_str(record).expect("JSON lines");
        let line = label["line"].as_str().expect("a line");
        if LEFT_OUT.iter().any(|(part, _)| line.contains(part)) {
            continue;
        }
        let got = classifier.classify(line);
        let class = label["class"].as_str().expect("a class");
        let code = label["code"].as_u64();
        let got_code = got.as_ref().and_then(|e| e.xid.or(e.sxid)).map(u64::from);
        let got_class = got.as_ref().map_or("none", |e| e.class);
        let got_pci = got.as_ref().and_then(|e| e.pci.as_deref());
        // One label of the source leaves out an address that the line has.
        let same_pci = label["pci"].as_str().is_none_or(|pci| got_pci == Some(pci));
        let row = table.entry(class.to_owned()).or_default();
        row.1 += 1;
        if got_class == class && got_code == code && same_pci {
            row.0 += 1;
        } else {
            wrong.push(format!(
                "{line}: {got_class} {got_code:?} {got_pci:?}, expected {label}"
            ));
        }
    }
    let sum = table.values().fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1));
    println!(
        "{} of {} lines, {} classes, {} left out",
        sum.0,
        sum.1,
        table.len(),
        LEFT_OUT.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn whole_logs_give_the_events_that_are_in_them() {
    let Some(folder) = corpora::folder("kernel-logs/logs") else {
        return;
    };
    let classifier = Classifier::new(PATTERNS).expect("our own table");
    let count = |file: &str| {
        let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
        let bytes = fs::read(folder.join(file)).expect("a log");
        for line in String::from_utf8_lossy(&bytes).lines() {
            if let Some(event) = classifier.classify(line) {
                *classes.entry(event.class).or_default() += 1;
            }
        }
        println!("{file}: {classes:?}");
        classes
    };
    assert!(count("kmsg-1.log").is_empty());
    assert_eq!(count("dmesg-plain.log")["xid"], 11);
    assert_eq!(count("gsp-timeout-xid119.dmesg.log")["xid"], 5);
    assert_eq!(count("memory.dmesg-iso.log")["oom-kill"], 3);
    assert_eq!(count("npd-oom_kill.log")["oom-kill"], 1);
    assert_eq!(count("nccl-segfault.dmesg-iso.log").len(), 1);
    assert_eq!(
        count("fabricmanager-1.log").into_iter().collect::<Vec<_>>(),
        [("fm-switch-nonfatal", 1)]
    );
    for file in [
        "boot-1.dmesg-iso.log",
        "peermem.dmesg.log",
        "pstore-erst.log",
        "oom-1.log",
    ] {
        count(file);
    }
}

#[test]
fn every_used_code_of_the_published_catalogue_is_explained() {
    let Some(file) = corpora::folder("xid/xid.tsv") else {
        return;
    };
    let catalog = XidCatalog::embedded().expect("our own table");
    let table = fs::read_to_string(file).expect("the corpus");
    let missing: Vec<u32> = table
        .lines()
        .skip(1)
        .map(|row| row.split('\t').collect::<Vec<_>>())
        .filter(|row| row[4] != "unused")
        .filter_map(|row| row[0].parse().ok())
        .filter(|code| catalog.get(*code).is_none())
        .collect();
    println!("{} codes explained", catalog.iter().count());
    assert!(missing.is_empty(), "{missing:?}");
}
