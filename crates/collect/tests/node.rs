//! The node page of the fixture tree, family by family, against the page that the tree's owner keeps beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use collect::page::Page;
use collect::{Paths, Runner, node};
use model::{Clock, Family, Kind, Millis};

mod corpora;
mod ttar;

/// Families of the expected page that are left out, by prefix, with the reason.
const LEFT_OUT: [(&str, &str); 42] = [
    ("go_", "about the exporter's own runtime"),
    ("process_", "about the exporter's own process"),
    ("promhttp_", "about the exporter's own server"),
    ("node_exporter_build_info", "about the exporter itself"),
    ("node_scrape_collector_", "the same family, but of our collectors"),
    ("node_cpu_info", "off by default (cpu.info)"),
    ("node_cpu_flag_info", "off by default (cpu.info)"),
    ("node_cpu_bug_info", "off by default (cpu.info)"),
    ("node_cpu_frequency_hertz", "off by default (cpu.info)"),
    ("node_cpu_vulnerabilities_info", "off by default"),
    ("node_softirqs_", "off by default"),
    ("node_memory_numa_", "off by default (meminfo_numa)"),
    ("node_processes_", "off by default: reads every process"),
    ("node_buddyinfo_", "off by default"),
    ("node_cgroups_", "off by default"),
    ("node_drbd_", "off by default"),
    ("node_interrupts_", "off by default"),
    ("node_ksmd_", "off by default"),
    ("node_lnstat_", "off by default"),
    ("node_mountstats_", "off by default"),
    ("node_pcidevice_", "off by default"),
    ("node_qdisc_", "off by default"),
    ("node_slabinfo_", "off by default"),
    ("node_sysctl_", "off by default"),
    ("node_wifi_", "off by default"),
    ("node_zoneinfo_", "off by default"),
    ("node_xfrm_", "off by default"),
    ("node_bcache_", "no such device in an AI server"),
    ("node_bcachefs_", "no such file system in an AI server"),
    ("node_btrfs_", "not asked for by a known rule or dashboard"),
    ("node_dmmultipath_", "not asked for by a known rule or dashboard"),
    ("node_fibrechannel_", "not asked for by a known rule or dashboard"),
    ("node_infiniband_", "comes with the network health collectors"),
    ("node_ipvs_", "not asked for by a known rule or dashboard"),
    ("node_nfs_", "not asked for by a known rule or dashboard"),
    ("node_nfsd_", "not asked for by a known rule or dashboard"),
    ("node_power_supply_", "batteries: no such device in an AI server"),
    (
        "node_rapl_",
        "needs root and is a side channel; board power comes from IPMI",
    ),
    ("node_tape_", "no such device in an AI server"),
    ("node_watchdog_", "not asked for by a known rule or dashboard"),
    ("node_xfs_", "not asked for by a known rule or dashboard"),
    ("node_zfs_", "not asked for by a known rule or dashboard"),
];

/// Families whose values come from the live machine also there, and lines that the expected page filters by flags.
const LIVE: [&str; 4] = [
    "node_network_receive_",
    "node_network_transmit_",
    "node_time_seconds",
    "node_time_zone_offset_seconds",
];

/// Devices that the expected page leaves out by flags of its own.
const FILTERED: [(&str, &str, &str); 4] = [
    ("node_arp_entries", "device", "nope"),
    ("node_network_", "device", "dmz"),
    ("node_network_", "device", "int"),
    ("node_hwmon_", "chip", "bogus"),
];

struct Frozen;

impl Clock for Frozen {
    fn now(&self) -> Millis {
        1_700_000_000_000
    }
}

/// A series as text, and its value.
type Series = BTreeMap<String, f64>;

struct Expected {
    kind: String,
    help: String,
    series: Series,
}

#[test]
fn the_page_of_the_fixture_tree_is_the_expected_page() {
    let Some(fixtures) = corpora::folder("node/fixtures") else {
        return;
    };
    let temp = tempfile::tempdir().expect("a temporary folder");
    for archive in ["sys.ttar", "udev.ttar"] {
        ttar::unpack(&fixtures.join(archive), temp.path());
    }
    let paths = Paths {
        procfs: fixtures.join("proc"),
        sysfs: temp.path().join("sys"),
        udev: temp.path().join("udev/data"),
        rootfs: fixtures.clone(),
        textfile: Some(fixtures.join("textfile/two_metric_files")),
        ..Paths::default()
    };
    let runner = Runner::start(node::workers(&paths), Arc::new(Frozen)).expect("threads");
    let mut families = runner.collect(Page::Node);
    // The expected page names the tree by its place in its own repository, and leaves the times of files out.
    families
        .iter_mut()
        .for_each(|f| f.help = f.help.replace(fixtures.to_str().expect("UTF-8"), "collector/fixtures"));
    families
        .iter_mut()
        .filter(|f| f.name == "node_textfile_mtime_seconds")
        .for_each(|f| f.metrics.clear());
    let expected = read_page(&fixtures.join("e2e-output.txt"));

    let mut report = Report::default();
    for (name, want) in &expected {
        let left_out = LEFT_OUT.iter().find(|(prefix, _)| name.starts_with(prefix));
        let live = LIVE.iter().any(|prefix| name.starts_with(prefix)) && name != "node_network_transmit_queue_length";
        if live {
            report.live += 1;
        } else if let Some((prefix, reason)) = left_out {
            report
                .left_out
                .entry(format!("{prefix}* ({reason})"))
                .or_default()
                .push(name.clone());
        } else {
            report.compare(name, want, families.iter().find(|f| f.name == *name));
        }
    }
    println!("{report}");
    assert!(report.wrong.is_empty(), "{}", report.wrong.join("\n"));
    let unexpected: Vec<_> = families
        .iter()
        .filter(|f| !expected.contains_key(&f.name))
        .map(|f| &f.name)
        .collect();
    println!("beyond the expected page: {unexpected:?}");
}

#[derive(Default)]
struct Report {
    equal: usize,
    live: usize,
    left_out: BTreeMap<String, Vec<String>>,
    wrong: Vec<String>,
}

impl Report {
    fn compare(&mut self, name: &str, want: &Expected, got: Option<&Family>) {
        let Some(got) = got else {
            self.wrong.push(format!("{name}: missing"));
            return;
        };
        let before = self.wrong.len();
        let kind = if got.kind == Kind::Unknown {
            "untyped"
        } else {
            got.kind.as_str()
        };
        if kind != want.kind {
            self.wrong.push(format!("{name}: type {kind}, expected {}", want.kind));
        }
        if got.help != want.help {
            self.wrong
                .push(format!("{name}: help {:?}, expected {:?}", got.help, want.help));
        }
        let series: Series = got
            .metrics
            .iter()
            .filter(|m| !is_filtered(name, &m.labels))
            .map(as_text)
            .collect();
        let names: BTreeSet<&String> = series.keys().chain(want.series.keys()).collect();
        for series_name in names {
            match (series.get(series_name), want.series.get(series_name)) {
                (Some(got), Some(want)) if (got - want).abs() <= want.abs() * 1e-12 => {}
                (got, want) => self
                    .wrong
                    .push(format!("{name}{series_name}: {got:?}, expected {want:?}")),
            }
        }
        self.equal += usize::from(self.wrong.len() == before);
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let left_out: usize = self.left_out.values().map(Vec::len).sum();
        writeln!(
            f,
            "{} families equal, {} wrong, {} of the live machine, {left_out} left out:",
            self.equal,
            self.wrong.len(),
            self.live
        )?;
        self.left_out
            .iter()
            .try_for_each(|(prefix, names)| writeln!(f, "  {:3} {prefix}", names.len()))
    }
}

fn is_filtered(name: &str, labels: &[(&'static str, String)]) -> bool {
    FILTERED.iter().any(|(prefix, label, part)| {
        name.starts_with(prefix) && labels.iter().any(|(n, v)| n == label && v.contains(part))
    })
}

fn as_text(metric: &model::Metric) -> (String, f64) {
    let mut labels = metric.labels.clone();
    labels.sort();
    let pairs: Vec<String> = labels.iter().map(|(n, v)| format!("{n}=\"{}\"", escape(v))).collect();
    let text = if pairs.is_empty() {
        String::new()
    } else {
        format!("{{{}}}", pairs.join(","))
    };
    (text, metric.value)
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The expected page: `# HELP`, `# TYPE`, and lines without timestamps.
fn read_page(path: &Path) -> BTreeMap<String, Expected> {
    let text = fs::read_to_string(path).expect("the expected page");
    let mut page: BTreeMap<String, Expected> = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (family, help) = rest.split_once(' ').unwrap_or((rest, ""));
            family.clone_into(&mut name);
            let (kind, help, series) = (String::new(), help.replace("\\\\", "\\"), Series::new());
            page.insert(name.clone(), Expected { kind, help, series });
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (family, kind) = rest.split_once(' ').expect("a type");
            kind.clone_into(&mut page.get_mut(family).expect("help before type").kind);
        } else if let Some(family) = page.get_mut(&name) {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let labels = series.strip_prefix(name.as_str()).unwrap_or(series);
            let value = value.parse().expect("a number");
            family.series.insert(labels.to_owned(), value);
        }
    }
    page
}

/// Empty labels are no labels.
fn without_empty(series: Series) -> Series {
    let strip = |text: String| {
        let inside = text.trim_start_matches('{').trim_end_matches('}');
        let mut kept: Vec<&str> = inside
            .split(',')
            .filter(|pair| !pair.is_empty() && !pair.ends_with("=\"\""))
            .collect();
        kept.sort_unstable();
        kept.join(",")
    };
    series.into_iter().map(|(text, value)| (strip(text), value)).collect()
}

#[test]
fn textfiles_are_merged_as_expected() {
    let Some(fixtures) = corpora::folder("node/fixtures") else {
        return;
    };
    let mut cases = 0;
    for entry in fs::read_dir(fixtures.join("textfile")).expect("the corpus").flatten() {
        let case = entry.file_name().into_string().expect("UTF-8");
        // The tree of the first is made of two others, and the second is about a folder that is not there.
        let Some(case) = case
            .strip_suffix(".out")
            .filter(|c| !["glob_extra_dimension", "nonexistent_path"].contains(c))
        else {
            continue;
        };
        let folder = fixtures.join("textfile").join(case);
        let paths = Paths {
            textfile: Some(folder.clone()),
            ..Paths::default()
        };
        let runner = Runner::start(node::workers(&paths), Arc::new(Frozen)).expect("threads");
        let families = runner.collect(Page::Node);
        for (name, want) in read_page(&entry.path()) {
            if name == "node_textfile_mtime_seconds" {
                continue;
            }
            let got = families
                .iter()
                .find(|f| f.name == name)
                .unwrap_or_else(|| panic!("{case}: {name} is missing"));
            let prefix = fixtures.to_str().expect("UTF-8");
            assert_eq!(got.help.replace(prefix, "fixtures"), want.help, "{case}: {name}");
            let series: Series = got
                .metrics
                .iter()
                .map(|m| (format!("{}{}", m.suffix, as_text(m).0), m.value))
                .collect();
            assert_eq!(without_empty(series), without_empty(want.series), "{case}: {name}");
        }
        cases += 1;
    }
    println!("{cases} cases of textfiles");
    assert!(cases >= 7);
}

#[test]
fn the_page_of_this_machine_has_what_every_dashboard_starts_with() {
    let runner = Runner::start(node::workers(&Paths::default()), Arc::new(Frozen)).expect("threads");
    let families = runner.collect(Page::Node);
    let has = |name: &str| families.iter().any(|f| f.name == name && !f.metrics.is_empty());
    for name in [
        "node_cpu_seconds_total",
        "node_memory_MemAvailable_bytes",
        "node_load1",
        "node_boot_time_seconds",
        "node_vmstat_pgfault",
        "node_filesystem_size_bytes",
        "node_network_receive_bytes_total",
        "node_uname_info",
        "node_time_seconds",
        "node_filefd_allocated",
    ] {
        assert!(has(name), "{name}");
    }
    let text = exposition::write_page(&families, exposition::Format::Text);
    let remarks = exposition::check_page(text.as_bytes(), false).expect("a page");
    println!("{remarks:?}");
    let missing: Vec<_> = runner.statuses().into_iter().filter(|s| !s.errors.is_empty()).collect();
    println!("{missing:#?}");
}

#[test]
fn a_machine_without_procfs_gives_states_and_no_zero() {
    let nowhere = PathBuf::from("/no/such/folder");
    let paths = Paths {
        procfs: nowhere.clone(),
        sysfs: nowhere.clone(),
        udev: nowhere.clone(),
        rootfs: nowhere,
        ..Paths::default()
    };
    let runner = Runner::start(node::workers(&paths), Arc::new(Frozen)).expect("threads");
    let families = runner.collect(Page::Node);
    let left: Vec<_> = families
        .iter()
        .map(|f| f.name.as_str())
        .filter(|n| n.starts_with("node_"))
        .collect();
    assert_eq!(
        left,
        [
            "node_time_seconds",
            "node_time_zone_offset_seconds",
            "node_uname_info",
            "node_scrape_collector_success",
            "node_scrape_collector_duration_seconds",
        ]
    );
    let up = families
        .iter()
        .find(|f| f.name == "watchfire_collector_up")
        .expect("always there");
    let cpu = up
        .metrics
        .iter()
        .find(|m| m.labels[0].1 == "cpu")
        .expect("one line each");
    assert!(cpu.value.abs() < f64::EPSILON);
}
