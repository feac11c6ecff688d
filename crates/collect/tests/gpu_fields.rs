//! The field table against the exporter's own counter lists and pages; `docs/gpu.md` is made from it and must not be stale.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use collect::gpu::{FIELDS, FieldTable, Meaning, Names, Selection, Show};

use collect::kernel::{XidCatalog, XidSeverity};

mod corpora;

/// The exporter's counter lists, as they are called here.
const LISTS: [&str; 4] = [
    "default-counters.csv",
    "dcp-metrics-included.csv",
    "1.x-compatibility-metrics.csv",
    "integration-test-counters.csv",
];

fn table() -> FieldTable {
    FieldTable::new(FIELDS).expect("our own table")
}

/// A line of a counter list: the field, its type, and whether the line is commented out.
struct Line {
    name: String,
    kind: String,
    is_active: bool,
}

fn lines(list: &str) -> Vec<Line> {
    let lines = list.lines().filter_map(|line| {
        let is_active = !line.starts_with('#');
        let mut columns = line.trim_start_matches(['#', ' ']).split(',').map(str::trim);
        let (name, kind) = (columns.next()?, columns.next()?);
        let is_field = name.to_ascii_uppercase().starts_with("DCGM_") && !name.contains(' ');
        is_field.then(|| Line {
            name: name.to_owned(),
            kind: kind.to_owned(),
            is_active,
        })
    });
    lines.collect()
}

#[test]
fn the_exporters_lists_load_unchanged_and_every_active_field_is_shown() {
    let Some(folder) = corpora::folder("dcgm/counters") else {
        return;
    };
    for name in LISTS {
        let list = fs::read(folder.join(name)).expect("a list");
        let selection = Selection::of_counters(&table(), name, &list).expect("the exporter takes it");
        let active: Vec<Line> = lines(&String::from_utf8_lossy(&list))
            .into_iter()
            .filter(|l| l.is_active)
            .collect();
        println!(
            "{name}: {} of {} active lines",
            selection.columns.len() + selection.labels.len(),
            active.len()
        );
        let twice = selection
            .remarks
            .iter()
            .filter(|remark| remark.ends_with("is there twice"))
            .count();
        assert_eq!(selection.remarks.len(), twice, "{name}: {:?}", selection.remarks);
        assert_eq!(
            selection.columns.len() + selection.labels.len() + twice,
            active.len(),
            "{name}"
        );
    }
}

#[test]
fn every_field_of_dcgm_has_a_meaning() {
    let Some(file) = corpora::folder("dcgm/fields.tsv") else {
        return;
    };
    let table = table();
    let mut names = 0;
    for line in fs::read_to_string(file).expect("the catalogue").lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let all = std::iter::once(columns[1]).chain(columns[2].split(',').map(str::trim));
        for name in all.filter(|name| !name.is_empty()) {
            assert!(table.meaning(name).is_some(), "{name}");
            names += 1;
        }
    }
    println!("{names} names of DCGM have a meaning");
    assert!(names > 900);
}

#[test]
fn a_new_name_is_a_name_of_dcgm_or_told_by_its_public_bindings() {
    // From 4.7 on DCGM has these beside the names of 4.6 (`docs/decisions/0010-gpu-names.md`).
    let is_of_base_units = |name: &str| {
        [
            "_HERTZ",
            "_BYTES",
            "_JOULES_TOTAL",
            "_RATIO",
            "_BYTES_PER_SECOND",
            "_SECONDS_TOTAL",
        ]
        .iter()
        .any(|unit| name.ends_with(unit))
    };
    let Some(file) = corpora::folder("dcgm/fields.tsv") else {
        return;
    };
    let catalogue = fs::read_to_string(file).expect("the catalogue");
    let known: BTreeSet<&str> = catalogue.lines().filter_map(|line| line.split('\t').nth(1)).collect();
    let mut of_catalogue = 0;
    for field in table().fields.iter().filter(|field| field.new != field.name) {
        let renamed_only = field.units.0 == field.units.1;
        assert!(
            known.contains(field.new.as_str()) || is_of_base_units(&field.new),
            "{}",
            field.new
        );
        assert!(!renamed_only || known.contains(field.new.as_str()), "{}", field.new);
        of_catalogue += u32::from(renamed_only);
    }
    println!("{of_catalogue} names changed without their unit");
}

/// The table of `docs/gpu.md` for one list, and the share of its lines that are covered.
fn section(table: &FieldTable, name: &str, list: &str) -> String {
    let mut out = format!(
        "### {name}\n\n| field | in the list | shown | from 4.9 on | source, or why not |\n|---|---|---|---|---|\n"
    );
    let (mut active, mut active_shown, mut all, mut all_shown) = (0, 0, 0, 0);
    for line in lines(list) {
        let in_list = if line.is_active { "active" } else { "commented out" };
        let (shown, new, source) = match table.meaning(&line.name).expect("a name of DCGM") {
            Meaning::Metric(field, _) => {
                let shown = match field.show {
                    Show::Default | Show::Extra => "always",
                    Show::Asked => "when listed",
                };
                (shown, field.new.clone(), format!("`{}`", field.nvml))
            }
            Meaning::Label(label) if line.kind == "label" => {
                let always = label.source == "driver_version";
                let new = label.new.clone().unwrap_or_else(|| label.name.clone());
                (
                    if always { "always" } else { "when listed" },
                    new,
                    format!("label, `{}`", label.nvml),
                )
            }
            Meaning::Label(_) => ("no", String::new(), "a text is a label or nothing".to_owned()),
            Meaning::Other(reason) => ("no", String::new(), reason.to_owned()),
        };
        let is_shown = u32::from(shown != "no");
        all += 1;
        all_shown += is_shown;
        active += u32::from(line.is_active);
        active_shown += if line.is_active { is_shown } else { 0 };
        let new = if new.is_empty() || new == line.name {
            String::new()
        } else {
            format!("`{new}`")
        };
        writeln!(out, "| `{}` | {in_list} | {shown} | {new} | {source} |", line.name).expect("a string");
    }
    let share = |part: u32, of: u32| format!("{part} of {of} ({:.0} %)", 100.0 * f64::from(part) / f64::from(of));
    write!(
        out,
        "\nActive lines covered: {}. With those that are commented out: {}.\n",
        share(active_shown, active),
        share(all_shown, all)
    )
    .expect("a string");
    out
}

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gpu.md")
}

const BEGIN: &str = "<!-- made by crates/collect/tests/gpu_fields.rs: begin -->\n";
const END: &str = "<!-- end -->\n";

#[test]
fn the_document_tells_what_the_table_says() {
    let Some(folder) = corpora::folder("dcgm/counters") else {
        return;
    };
    let table = table();
    let mut made = String::new();
    for name in LISTS {
        let list = fs::read_to_string(folder.join(name)).expect("a list");
        made.push_str(&section(&table, name, &list));
        made.push('\n');
    }
    made.push_str("### Fields beyond the lists\n\nShown without being asked for, or when a list names them:\n\n");
    made.push_str("| field | shown | unit | from 4.9 on | unit there | source |\n|---|---|---|---|---|---|\n");
    let listed: BTreeSet<String> = LISTS
        .iter()
        .flat_map(|name| lines(&fs::read_to_string(folder.join(name)).expect("a list")))
        .map(|line| line.name)
        .collect();
    for field in table.fields.iter().filter(|f| !listed.contains(&f.name)) {
        let shown = if field.show == Show::Asked {
            "when listed"
        } else {
            "always"
        };
        let (new, unit) = if field.new == field.name {
            (String::new(), String::new())
        } else {
            (format!("`{}`", field.new), field.units.1.clone())
        };
        writeln!(
            made,
            "| `{}` | {shown} | {} | {new} | {unit} | `{}` |",
            field.name, field.units.0, field.nvml
        )
        .expect("a string");
    }
    made.push_str("\nFields that may have a name of their own from 4.9 on which no public text spells out; they keep the old one:\n");
    let unconfirmed: Vec<String> = table.unconfirmed.iter().map(|name| format!("`{name}`")).collect();
    writeln!(made, "{}.", unconfirmed.join(", ")).expect("a string");

    let path = document();
    let text = fs::read_to_string(&path).expect("the document");
    let (head, rest) = text.split_once(BEGIN).expect("where the made part begins");
    let (old, tail) = rest.split_once(END).expect("where it ends");
    if old != made && std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{head}{BEGIN}{made}{END}{tail}")).expect("the document");
        return;
    }
    assert!(old == made, "docs/gpu.md is stale: run this test with UPDATE_DOCS=1");
}

#[test]
fn the_page_of_the_new_generation_has_the_new_names_and_labels() {
    let selection = Selection::usual(&table(), Names::Dcgm49);
    let names: Vec<&str> = selection.columns.iter().map(|c| c.name.as_str()).collect();
    assert!(names.contains(&"DCGM_FI_DEV_SM_CLOCK_HERTZ") && names.contains(&"DCGM_FI_DEV_FB_CAPACITY_BYTES"));
    assert!(!names.contains(&"DCGM_FI_DEV_SM_CLOCK") && !names.contains(&"DCGM_FI_DEV_FB_TOTAL"));
}

#[test]
fn the_catalogue_has_every_xid_in_use_and_tells_where_views_disagree() {
    let Some(file) = corpora::folder("xid/xid.tsv") else {
        return;
    };
    let catalogue = XidCatalog::embedded().expect("our own table");
    let text = fs::read_to_string(file).expect("the corpus");
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split('\t').collect();
    let column = |name: &str| header.iter().position(|h| *h == name).expect("a column");
    let (code, severity, scope) = (column("code"), column("severity"), column("scope_by_action"));
    let (mut used, mut disagree) = (0, 0);
    for line in lines {
        let row: Vec<&str> = line.split('\t').collect();
        if row[severity] == "unused" {
            continue;
        }
        let number = row[code].parse().expect("a code");
        let entry = catalogue.get(number).unwrap_or_else(|| panic!("XID {number}"));
        used += 1;
        if (row[severity] == "fatal") != (entry.severity == XidSeverity::Critical) {
            let views = entry
                .views
                .as_ref()
                .unwrap_or_else(|| panic!("XID {number}: both views"));
            assert_eq!(views.watcher, row[severity], "XID {number}");
            assert_eq!(
                views.by_action,
                if row[scope].is_empty() { "none" } else { row[scope] },
                "XID {number}"
            );
            disagree += 1;
        }
    }
    println!("{used} XIDs in use, views disagree on {disagree}");
    assert!(used > 110 && disagree > 10);
}
