//! What `nvidia-smi` said on real machines, against what an exporter made of it, and its complaints against the states.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use collect::Runner;
use collect::gpu::{self, CaptureOptions, FIELDS, FieldTable, HostLabel, Names, Selection};
use collect::page::Page;
use model::{Family, Metric, SystemClock};

mod corpora;

/// The page of a capture.
fn page(capture: &[u8], moment: Option<&str>) -> Vec<Family> {
    let table = FieldTable::new(FIELDS).expect("our own table");
    let mut selection = Selection::usual(&table, Names::Dcgm48);
    let asked = "DCGM_FI_DEV_BAR1_USED, gauge, x\nDCGM_FI_DEV_VIDEO_CLOCK, gauge, x\nDCGM_FI_DEV_ECC_PENDING, gauge, x\n\
                 DCGM_FI_DEV_POWER_USAGE_INSTANT, gauge, x\nDCGM_FI_DEV_PERSISTENCE_MODE, gauge, x\n\
                 DCGM_FI_DEV_COMPUTE_MODE, gauge, x\nDCGM_FI_DEV_MIG_MODE, gauge, x\nDCGM_FI_DEV_NVML_INDEX, gauge, x\n\
                 DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS, counter, x\n\
                 DCGM_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_NS, counter, x\n\
                 DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS, counter, x\n\
                 DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS, counter, x\n\
                 DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS, counter, x\nDCGM_FI_DEV_COUNT, gauge, x\n";
    let asked = Selection::of_counters(&table, "asked", asked.as_bytes()).expect("a list");
    selection.columns.extend(asked.columns);
    let options = CaptureOptions {
        capture,
        moment,
        hostname: "node-a".to_owned(),
        selection,
        host_label: HostLabel::default(),
    };
    let workers = gpu::capture_workers(options).expect("our own tables");
    Runner::start(workers, Arc::new(SystemClock))
        .expect("a thread")
        .collect(Page::Gpu)
}

fn label<'a>(metric: &'a Metric, name: &str) -> &'a str {
    metric.labels.iter().find(|(n, _)| *n == name).map_or("", |(_, v)| v)
}

fn lines<'a>(page: &'a [Family], name: &str) -> &'a [Metric] {
    page.iter()
        .find(|f| f.name == name)
        .map_or(&[], |f| f.metrics.as_slice())
}

/// The value of the whole GPU with this index.
fn of_gpu(page: &[Family], name: &str, gpu: &str) -> Option<f64> {
    let whole = |m: &&Metric| label(m, "gpu") == gpu && label(m, "GPU_I_ID").is_empty();
    lines(page, name).iter().find(whole).map(|m| m.value)
}

/// What nvidia_gpu_exporter calls a fact, what we call it, and what ours is multiplied with to give its number.
const FACTS: [(&str, &str, f64); 46] = [
    ("clocks_current_sm_clock_hz", "DCGM_FI_DEV_SM_CLOCK", 1e6),
    ("clocks_current_memory_clock_hz", "DCGM_FI_DEV_MEM_CLOCK", 1e6),
    ("clocks_current_video_clock_hz", "DCGM_FI_DEV_VIDEO_CLOCK", 1e6),
    ("clocks_max_sm_clock_hz", "DCGM_FI_DEV_MAX_SM_CLOCK", 1e6),
    ("clocks_max_memory_clock_hz", "DCGM_FI_DEV_MAX_MEM_CLOCK", 1e6),
    ("clocks_event_reasons_active", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 1.0),
    (
        "clocks_event_reasons_counters_sw_power_cap_seconds",
        "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS",
        1e-9,
    ),
    (
        "clocks_event_reasons_counters_sync_boost_seconds",
        "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_NS",
        1e-9,
    ),
    (
        "clocks_event_reasons_counters_sw_thermal_slowdown_seconds",
        "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS",
        1e-9,
    ),
    (
        "clocks_event_reasons_counters_hw_thermal_slowdown_seconds",
        "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS",
        1e-9,
    ),
    (
        "clocks_event_reasons_counters_hw_power_brake_slowdown_seconds",
        "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS",
        1e-9,
    ),
    ("pstate", "DCGM_FI_DEV_PSTATE", 1.0),
    ("temperature_gpu", "DCGM_FI_DEV_GPU_TEMP", 1.0),
    ("temperature_memory", "DCGM_FI_DEV_MEMORY_TEMP", 1.0),
    ("temperature_gpu_tlimit", "DCGM_FI_DEV_GPU_TEMP_LIMIT", 1.0),
    ("fan_speed_ratio", "DCGM_FI_DEV_FAN_SPEED", 0.01),
    ("power_draw_watts", "DCGM_FI_DEV_POWER_USAGE", 1.0),
    ("power_draw_instant_watts", "DCGM_FI_DEV_POWER_USAGE_INSTANT", 1.0),
    ("enforced_power_limit_watts", "DCGM_FI_DEV_ENFORCED_POWER_LIMIT", 1.0),
    ("power_limit_watts", "DCGM_FI_DEV_POWER_MGMT_LIMIT", 1.0),
    ("power_default_limit_watts", "DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", 1.0),
    ("power_min_limit_watts", "DCGM_FI_DEV_POWER_MGMT_LIMIT_MIN", 1.0),
    ("power_max_limit_watts", "DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX", 1.0),
    ("pcie_link_gen_current", "DCGM_FI_DEV_PCIE_LINK_GEN", 1.0),
    ("pcie_link_gen_max", "DCGM_FI_DEV_PCIE_MAX_LINK_GEN", 1.0),
    ("pcie_link_width_current", "DCGM_FI_DEV_PCIE_LINK_WIDTH", 1.0),
    ("pcie_link_width_max", "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", 1.0),
    ("utilization_gpu_ratio", "DCGM_FI_DEV_GPU_UTIL", 0.01),
    ("utilization_memory_ratio", "DCGM_FI_DEV_MEM_COPY_UTIL", 0.01),
    ("utilization_encoder_ratio", "DCGM_FI_DEV_ENC_UTIL", 0.01),
    ("utilization_decoder_ratio", "DCGM_FI_DEV_DEC_UTIL", 0.01),
    ("memory_total_bytes", "DCGM_FI_DEV_FB_TOTAL", 1_048_576.0),
    ("memory_used_bytes", "DCGM_FI_DEV_FB_USED", 1_048_576.0),
    ("memory_free_bytes", "DCGM_FI_DEV_FB_FREE", 1_048_576.0),
    ("memory_reserved_bytes", "DCGM_FI_DEV_FB_RESERVED", 1_048_576.0),
    ("ecc_mode_current", "DCGM_FI_DEV_ECC_CURRENT", 1.0),
    ("ecc_mode_pending", "DCGM_FI_DEV_ECC_PENDING", 1.0),
    (
        "ecc_errors_corrected_volatile_total",
        "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
        1.0,
    ),
    (
        "ecc_errors_uncorrected_volatile_total",
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        1.0,
    ),
    (
        "ecc_errors_corrected_aggregate_total",
        "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL",
        1.0,
    ),
    (
        "ecc_errors_uncorrected_aggregate_total",
        "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",
        1.0,
    ),
    (
        "remapped_rows_correctable",
        "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
        1.0,
    ),
    (
        "remapped_rows_uncorrectable",
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        1.0,
    ),
    ("remapped_rows_pending", "DCGM_FI_DEV_ROW_REMAP_PENDING", 1.0),
    ("remapped_rows_failure", "DCGM_FI_DEV_ROW_REMAP_FAILURE", 1.0),
    ("persistence_mode", "DCGM_FI_DEV_PERSISTENCE_MODE", 1.0),
];

/// Further facts that only some captures have.
const MORE_FACTS: [(&str, &str, f64); 4] = [
    ("compute_mode", "DCGM_FI_DEV_COMPUTE_MODE", 1.0),
    ("mig_mode_current", "DCGM_FI_DEV_MIG_MODE", 1.0),
    ("index", "DCGM_FI_DEV_NVML_INDEX", 1.0),
    ("count", "DCGM_FI_DEV_COUNT", 1.0),
];

/// The numbers of an exporter's page that have one line for its one GPU.
fn exporter_facts(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let facts = lines.filter_map(|line| {
        let (name, rest) = line.strip_prefix("nvidia_smi_")?.split_once('{')?;
        let (labels, value) = rest.rsplit_once("} ")?;
        (!labels.contains(',')).then(|| Some((name.to_owned(), value.parse().ok()?)))?
    });
    facts.collect()
}

#[test]
fn pages_of_captures_agree_with_the_exporters_where_both_have_the_fact() {
    let Some(folder) = corpora::folder("nvidia-smi") else {
        return;
    };
    let mut table = Vec::new();
    let mut wrong = Vec::new();
    for entry in files(&folder.join("exporter-pages")) {
        let name = entry.file_stem().expect("a name").to_string_lossy().into_owned();
        let (machine, moment) = name.rsplit_once("__").expect("a moment");
        let capture = fs::read(folder.join(format!("captures/{machine}.txt"))).expect("its capture");
        let page = page(&capture, Some(moment));
        let theirs = exporter_facts(&fs::read_to_string(&entry).expect("a page"));
        let (mut agree, mut both) = (0, 0);
        for (their_name, our_name, times) in FACTS.iter().chain(&MORE_FACTS) {
            let (Some(their), ours) = (theirs.get(*their_name), of_gpu(&page, our_name, "0")) else {
                continue;
            };
            let Some(ours) = ours else {
                wrong.push(format!("{name}: {our_name} is missing, theirs is {their}"));
                continue;
            };
            both += 1;
            let ours = ours * times;
            if (ours - their).abs() <= 1e-9 * their.abs().max(1.0) {
                agree += 1;
            } else {
                wrong.push(format!("{name}: {our_name} gives {ours}, theirs is {their}"));
            }
        }
        table.push(format!("{agree:3} of {both:3}  {name}"));
    }
    println!("{}", table.join("\n"));
    assert!(table.len() >= 14, "all pages");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .flatten()
        .map(|e| e.path())
        .collect();
    files.sort();
    files
}

#[test]
fn every_capture_parses_and_no_page_has_a_sentinel() {
    let Some(folder) = corpora::folder("nvidia-smi") else {
        return;
    };
    let mut read = 0;
    for part in ["captures", "xml", "query-text", "table", "list"] {
        for file in files(&folder.join(part)) {
            let page = page(&fs::read(&file).expect("a file"), None);
            let text = exposition::write_page(&page, exposition::Format::Text);
            exposition::check_page(text.as_bytes(), false)
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let up: Vec<f64> = lines(&page, "watchfire_gpu_up").iter().map(|m| m.value).collect();
            assert!(
                !up.is_empty() && up.iter().all(|v| *v == 1.0),
                "{}: {up:?}",
                file.display()
            );
            let named = |m: &Metric| !label(m, "UUID").is_empty() || !label(m, "pci_bus_id").is_empty();
            assert!(lines(&page, "watchfire_gpu_up").iter().all(named), "{}", file.display());
            // A machine of one GPU a row: every GPU that the text has is on the page.
            let blank = page
                .iter()
                .flat_map(|f| &f.metrics)
                .any(|m| m.value > 9.2e18 || !m.value.is_finite());
            assert!(!blank, "{}", file.display());
            if part != "list" && !file.ends_with("gpud-535.183.01-0.invalid.txt") {
                let measured = lines(&page, "DCGM_FI_DEV_GPU_TEMP").len();
                let is_partial = file.ends_with("ceems-a100-pcie-mig-1.xml");
                assert!(
                    is_partial || measured == up.len(),
                    "{}: {measured} of {}",
                    file.display(),
                    up.len()
                );
            }
            read += 1;
        }
    }
    println!("{read} outputs of nvidia-smi read");
    assert!(read >= 30);
}

#[test]
fn each_error_output_is_a_state_with_a_name_and_a_reason() {
    let Some(folder) = corpora::folder("nvidia-smi/errors") else {
        return;
    };
    let cases = fs::read_to_string(folder.join("cases.tsv")).expect("the table");
    let mut passed = 0;
    for line in cases.lines().skip(1) {
        let mut columns = line.split('\t');
        let case = columns.next().expect("a name");
        let mut output = Vec::new();
        for file in columns.take(2).filter(|name| !name.is_empty()) {
            output.extend(fs::read(folder.join(file)).expect("a file"));
        }
        let page = page(&output, None);
        let (state, up) = match case {
            "no-devices" => ("no_devices", 0.0),
            "driver-not-loaded" => ("driver_not_loaded", 0.0),
            "version-mismatch" => ("version_mismatch", 0.0),
            "device-handle-unknown" => ("device_handle_unknown", 0.0),
            "gpu-lost" => ("gpu_lost", 0.0),
            "command-not-found" => ("command_not_found", 0.0),
            "invalid-field" => ("invalid_field", 0.0),
            "infoROM-warning-after-xml" => ("inforom_corrupted", 1.0),
            other => panic!("a case without expectation: {other}"),
        };
        let driver = &lines(&page, "watchfire_gpu_driver_state")[0];
        assert_eq!(label(driver, "state"), state, "{case}");
        assert!(!label(driver, "reason").is_empty(), "{case}");
        assert_eq!(lines(&page, "watchfire_collector_up")[0].value, up, "{case}");
        let is_gpu = |f: &&Family| f.name.starts_with("DCGM_");
        assert!(
            up == 1.0 || page.iter().filter(is_gpu).all(|f| f.metrics.is_empty()),
            "{case}: no zero"
        );
        passed += 1;
    }
    println!("{passed} error outputs are states");
    assert_eq!(passed, 8);
}

#[test]
fn a_gpu_that_is_lost_is_down_and_leaves_the_others() {
    let Some(folder) = corpora::folder("nvidia-smi/errors") else {
        return;
    };
    let up = |file: &str| {
        let page = page(&fs::read(folder.join(file)).expect("a file"), None);
        let state = |m: &Metric| (label(m, "gpu").to_owned(), label(m, "state").to_owned());
        let states: Vec<_> = lines(&page, "watchfire_gpu_up").iter().map(state).collect();
        (states, page)
    };
    let pair = |gpu: &str, state: &str| (gpu.to_owned(), state.to_owned());
    let (states, page) = up("table-with-err.txt");
    assert_eq!(states, [pair("0", "ok"), pair("1", "lost")]);
    assert_eq!(of_gpu(&page, "DCGM_FI_DEV_GPU_TEMP", "0"), Some(31.0));
    assert_eq!(of_gpu(&page, "DCGM_FI_DEV_GPU_TEMP", "1"), None);

    let (states, page) = up("query-with-unknown-error.csv");
    assert_eq!(states[2], pair("2", "lost"));
    assert_eq!(states[1], pair("1", "failed"));
    assert_eq!(states.iter().filter(|(_, state)| state == "ok").count(), 3);
    assert_eq!(of_gpu(&page, "DCGM_FI_DEV_GPU_TEMP", "0"), Some(34.0));
    assert_eq!(of_gpu(&page, "DCGM_FI_DEV_FB_USED", "3"), Some(40_537.0));
    let absent = |gpu: &str, field: &str| {
        let is = |m: &&Metric| label(m, "gpu") == gpu && label(m, "field") == field;
        let line = lines(&page, "watchfire_gpu_field_absent").iter().find(is);
        line.map(|m| label(m, "reason").to_owned()).unwrap_or_default()
    };
    assert_eq!(absent("1", "DCGM_FI_DEV_GPU_TEMP"), "failed");
    assert_eq!(absent("3", "DCGM_FI_DEV_POWER_USAGE"), "unsupported");
    assert_eq!(absent("4", "DCGM_FI_DEV_POWER_USAGE"), "denied");
}

#[test]
fn instances_of_a_cut_gpu_have_their_profiles_and_memory() {
    let Some(folder) = corpora::folder("nvidia-smi") else {
        return;
    };
    let capture = "captures/linux-x86_64__nvidia-h100-mig__590.48.01.txt";
    let page = page(&fs::read(folder.join(capture)).expect("a file"), Some("load"));
    let used: Vec<_> = lines(&page, "DCGM_FI_DEV_FB_USED")
        .iter()
        .map(|m| (label(m, "GPU_I_PROFILE"), label(m, "GPU_I_ID"), m.value))
        .collect();
    let want = [
        ("", "", 11_125.0),
        ("3g.40gb", "2", 11_091.0),
        ("2g.20gb", "3", 17.0),
        ("1g.10gb", "9", 9.0),
        ("1g.10gb", "10", 9.0),
    ];
    assert_eq!(used, want);
    let names: Vec<&str> = lines(&page, "DCGM_FI_DEV_FB_USED")[1]
        .labels
        .iter()
        .map(|(n, _)| *n)
        .collect();
    let order = [
        "gpu",
        "UUID",
        "pci_bus_id",
        "device",
        "modelName",
        "GPU_I_PROFILE",
        "GPU_I_ID",
        "Hostname",
    ];
    assert_eq!(names[..8], order);
    let process = lines(&page, "watchfire_gpu_process_memory_bytes");
    assert_eq!(
        (label(&process[0], "pid"), label(&process[0], "GPU_I_ID")),
        ("21198", "2")
    );
    assert_eq!(process[0].value, 7484.0 * 1_048_576.0);

    // Without the list of devices the profile follows from the board.
    let xml = fs::read(folder.join("xml/netdata-a100-sxm4-mig.xml")).expect("a file");
    let page = self::page(&xml, None);
    let profiles: Vec<_> = lines(&page, "watchfire_gpu_instance_info")
        .iter()
        .map(|m| label(m, "GPU_I_PROFILE"))
        .collect();
    assert_eq!(profiles, ["3g.20gb", "3g.20gb"]);
}

#[test]
fn xml_text_and_table_of_one_machine_tell_the_same() {
    let Some(folder) = corpora::folder("nvidia-smi") else {
        return;
    };
    let text = fs::read_to_string(folder.join("captures/linux-x86_64__nvidia-h200__590.48.01.txt")).expect("a file");
    let part = |title: &str| {
        let (_, rest) = text.split_once(&format!("# load :: {title}")).expect("a section");
        rest.split("\n####").nth(1).expect("its body").to_owned()
    };
    let (table, query) = (
        page(part("nvidia-smi (default").as_bytes(), None),
        page(part("query (-q)").as_bytes(), None),
    );
    for name in [
        "DCGM_FI_DEV_FB_TOTAL",
        "DCGM_FI_DEV_PSTATE",
        "DCGM_FI_DEV_ENFORCED_POWER_LIMIT",
    ] {
        assert!(of_gpu(&table, name, "0").is_some(), "{name}");
        assert_eq!(of_gpu(&table, name, "0"), of_gpu(&query, name, "0"), "{name}");
    }
    assert_eq!(lines(&table, "watchfire_gpu_process_memory_bytes").len(), 3);
}

#[test]
fn damaged_outputs_are_pages_too() {
    let Some(folder) = corpora::folder("nvidia-smi") else {
        return;
    };
    let xml = fs::read(folder.join("xml/telegraf-a100-sxm4-v12.xml")).expect("a file");
    let text = fs::read(folder.join("query-text/gpud-560.35.03-0.valid.txt")).expect("a file");
    let mut tried = 0;
    for whole in [xml, text] {
        for cut in (0..whole.len()).step_by(whole.len() / 60) {
            let _ = page(&whole[..cut], None);
            let mut bent = whole.clone();
            bent[cut] = 0xff;
            let page = page(&bent, None);
            assert!(!lines(&page, "watchfire_gpu_driver_state").is_empty());
            tried += 1;
        }
    }
    println!("{tried} damaged outputs");
}

#[test]
fn outputs_of_windows_and_of_a_loop_are_read_too() {
    let log = |degrees: u32| {
        format!(
            "<nvidia_smi_log><gpu id=\"00000000:3B:00.0\"><temperature><gpu_temp>{degrees} C</gpu_temp></temperature></gpu></nvidia_smi_log>\r\n"
        )
    };
    let text = format!("{}{}", log(40), log(41));
    assert_eq!(
        of_gpu(&page(text.as_bytes(), None), "DCGM_FI_DEV_GPU_TEMP", "0"),
        Some(41.0),
        "the last"
    );
    let cut = format!("{}<nvidia_smi_log><gpu id=", log(40));
    assert_eq!(
        of_gpu(&page(cut.as_bytes(), None), "DCGM_FI_DEV_GPU_TEMP", "0"),
        Some(40.0),
        "the last that is whole"
    );
    let wide: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain(text.encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    assert_eq!(of_gpu(&page(&wide, None), "DCGM_FI_DEV_GPU_TEMP", "0"), Some(41.0));
}

#[test]
fn labels_stand_in_the_order_of_the_exporters_mig_page() {
    let (Some(theirs), Some(capture)) = (
        corpora::folder("dcgm/pages/mig-h100.prom"),
        corpora::folder("nvidia-smi/captures/linux-x86_64__nvidia-h100-mig__590.48.01.txt"),
    ) else {
        return;
    };
    let theirs = fs::read_to_string(theirs).expect("a page");
    let line = theirs
        .lines()
        .find(|line| line.starts_with("DCGM_FI_DEV_FB_FREE{"))
        .expect("a line");
    let (_, labels) = line.split_once('{').expect("labels");
    let names: Vec<&str> = labels
        .split("\",")
        .filter_map(|part| part.split_once("=\""))
        .map(|(name, _)| name)
        .collect();
    let table = FieldTable::new(FIELDS).expect("our own table");
    let options = CaptureOptions {
        capture: &fs::read(capture).expect("a file"),
        moment: None,
        hostname: "node-a".to_owned(),
        selection: Selection::usual(&table, Names::Dcgm48),
        host_label: HostLabel::Lower,
    };
    let workers = gpu::capture_workers(options).expect("our own tables");
    let page = Runner::start(workers, Arc::new(SystemClock))
        .expect("a thread")
        .collect(Page::Gpu);
    let ours: Vec<&str> = lines(&page, "DCGM_FI_DEV_FB_FREE")[1]
        .labels
        .iter()
        .map(|(n, _)| *n)
        .collect();
    assert_eq!(ours, names);
}
