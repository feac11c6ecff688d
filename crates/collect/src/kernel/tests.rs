use super::*;

fn classifier() -> Classifier {
    Classifier::new(PATTERNS).expect("our own table")
}

fn kernel() -> Kernel {
    let catalog = XidCatalog::embedded().expect("our own table");
    Kernel::new(Arc::new(classifier()), XidCounts::new(&catalog))
}

#[track_caller]
fn check(line: &str, want: &str) {
    let mut out = Vec::new();
    classify_lines(&classifier(), line.as_bytes(), &mut out).expect("memory takes all");
    let out = String::from_utf8(out).expect("JSON is UTF-8");
    let got = out.trim_end().split_once(r#","class":"#).map_or("", |(_, rest)| rest);
    assert_eq!(got, want, "{line}");
}

#[test]
fn every_example_of_the_table_gives_its_class() {
    let classifier = classifier();
    let rows = classifier::rows(PATTERNS).expect("our own table");
    for row in &rows {
        assert!(!row.examples.is_empty(), "{} has no example", row.class);
        for example in &row.examples {
            let got = classifier.classify(example).map(|event| event.class);
            assert_eq!(got, Some(row.class.as_str()), "{example}");
        }
    }
}

#[test]
fn an_xid_is_read_in_both_forms_and_behind_any_prefix() {
    let want = r#""xid","xid":79,"pci":"0000:1b:00","pid":1337,"process":"python3"}"#;
    let message = "NVRM: Xid (PCI:0000:1b:00): 79, pid=1337, name=python3, GPU has fallen off the bus.";
    for prefix in [
        "",
        "[  812.119402] ",
        "[  812.119402][ T1234] ",
        "<4>[  812.1] ",
        "4,2211,1034527558213,-;",
        "4,2211,1034527558213,-,caller=T7;",
        "kern  :warn  : 2025-01-21T04:41:44,283302+00:00 ",
        "kern  :warn  : [Tue Jan 21 04:41:44 2025] ",
        "2026-02-17T09:14:03.120441+00:00 node-a kernel: ",
        "Feb 17 09:14:03 node-a.example.org kernel: [  812.119402] ",
        "[Sun Dec  1 14:54:40 2024] node-a kernel: ",
        "kernel: ",
    ] {
        check(&format!("{prefix}{message}"), want);
    }
    check(
        "NVRM: Xid (0000:04:00): 6, PE0001",
        r#""xid","xid":6,"pci":"0000:04:00"}"#,
    );
    check(
        "NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 94, pid='<unknown>', name=<unknown>, Contained",
        r#""xid","xid":94,"pci":"0000:3b:00"}"#,
    );
}

#[test]
fn a_program_that_talks_of_an_xid_is_not_the_kernel() {
    for line in [
        "python3[77]: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=x, GPU has fallen off the bus.",
        "Feb 17 09:14:03 node-a app[9]: NVRM: Xid (PCI:0000:3b:00): 79",
        "application printed: Out of memory: Killed process 1 (x)",
        "NVRM: Xid (PCI:0000:3b:00): abc",
        "NVRM: Xid (PCI:0000:3b:00): 99999999999999",
        "",
        "\u{fffd}\u{fffd}",
    ] {
        check(line, "");
    }
}

#[test]
fn a_kill_takes_its_constraint_and_cgroup_from_the_line_before() {
    let kernel = kernel();
    let detail = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,mems_allowed=0,oom_memcg=/pods,\
                  task_memcg=/pods/one,task=py,thon,pid=7,uid=0";
    let seen = kernel.message(detail, 1_000).expect("a detail");
    assert_eq!((seen.pid, seen.process.as_deref()), (Some(7), Some("py,thon")));
    let kill = kernel.message(
        "Memory cgroup out of memory: Killed process 7 (python) total-vm:1kB",
        1_001,
    );
    let kill = kill.expect("a kill");
    assert_eq!(
        (kill.constraint.as_deref(), kill.cgroup.as_deref()),
        (Some("memcg"), Some("/pods/one"))
    );
    kernel.message("Killed process 7 (python) total-vm:1kB, anon-rss:1kB", 1_002);
    kernel.message("Out of memory: Killed process 8 (java).", 2_000);

    let _ = kernel.families(Look::Page);
    let families = kernel.families(Look::Page);
    let kills: Vec<_> = families[0]
        .metrics
        .iter()
        .map(|m| (m.labels[0].1.as_str(), m.labels[1].1.as_str(), m.value))
        .collect();
    assert_eq!(kills, [("java", "none", 1.0), ("python", "memcg", 1.0)]);
    assert_eq!(kernel.recent().len(), 4);
}

#[test]
fn names_of_victims_are_bounded() {
    let kernel = kernel();
    for n in 0..OOM_SERIES_MAX + 20 {
        kernel.message(&format!("Out of memory: Killed process {n} (p{n})."), 0);
    }
    let _ = kernel.families(Look::Page);
    let families = kernel.families(Look::Page);
    assert_eq!(families[0].metrics.len(), OOM_SERIES_MAX + 1);
    let other = families[0]
        .metrics
        .iter()
        .find(|m| m.labels[0].1 == "other")
        .expect("the rest");
    assert!((other.value - 20.0).abs() < f64::EPSILON);
    assert_eq!(kernel.recent().len(), 84);
}

#[test]
fn without_a_source_there_is_a_state_and_no_zero() {
    let kernel = Arc::new(kernel());
    let mut collector = KernelCollector(Arc::clone(&kernel));
    let before = collector.collect(0);
    assert_eq!((before.state, before.families.len()), (State::Disabled, 0));
    kernel.detached(State::Denied, "no permission to read /dev/kmsg");
    assert_eq!(collector.collect(0).state, State::Denied);
    assert_eq!(XidCollector(Arc::clone(&kernel)).collect(0).state, State::Denied);
    kernel.attached();
    let after = collector.collect(0);
    assert_eq!((after.state, after.families.len()), (State::Present, 3));
}

#[test]
fn a_broken_table_is_refused_with_its_class() {
    let table = "events:\n  - class: x\n    what: y\n    patterns: ['(']\n";
    let error = Classifier::new(table).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.starts_with("kernel_events.yml: class x: "), "{error}");
    assert!(Classifier::new("events: 3").is_err());
    assert!(XidCatalog::new("xids: [{code: 1}]").is_err());
}

#[test]
fn a_listener_hears_of_each_count_once() {
    let rung = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let kernel = kernel();
    let mut heard = Heard::default();
    let _ = kernel.changes(&mut heard, true);
    let count = Arc::clone(&rung);
    kernel.on_count(Arc::new(move |_| {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }));
    kernel.message("NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.", 1_000);
    assert!(rung.load(std::sync::atomic::Ordering::Relaxed) > 0);
    let told = |changes: &[Change]| -> Vec<String> {
        let mut out: Vec<String> = changes
            .iter()
            .map(|c| format!("{} {} {}", c.labels.name(), c.is_new, c.to))
            .collect();
        out.sort();
        out
    };
    let first = kernel.changes(&mut heard, true);
    assert_eq!(
        told(&first),
        [
            "watchfire_gpu_xid_errors_total true 1",
            "watchfire_kernel_events_total false 1"
        ]
    );
    assert!(kernel.changes(&mut heard, true).is_empty());
    // The page does not begin it at zero once more.
    let page = kernel.xids().family();
    assert!(page.metrics.iter().all(|m| m.value > 0.0), "{page:?}");
}

#[test]
fn a_storm_of_800_000_lines_is_counted_in_full_and_costs_little() {
    const LINES: u32 = 800_000;
    let kernel = kernel();
    let lines: Vec<String> = (0..29)
        .map(|n| format!("NVRM: Xid (PCI:0000:1b:00): 95, pid='<unknown>', name=<unknown>, Uncontained: slice {n}"))
        .collect();
    let begun = std::time::Instant::now();
    for (n, line) in (0..LINES).zip(lines.iter().cycle()) {
        // Four thousand a second, each told by the driver as well, and now and then a line that means nothing.
        let time = Millis::from(n / 4);
        assert!(kernel.message(line, time).is_some());
        kernel
            .xids()
            .count(XidSource::Driver, "00000000:1B:00.0", 95, time + 800);
        if n % 1_000 == 0 {
            assert!(kernel.message("usb 1-1: new high-speed USB device", time).is_none());
        }
    }
    let took = begun.elapsed();
    println!(
        "{:.2} µs a line, {took:?} in all",
        took.as_secs_f64() * 1e6 / f64::from(LINES)
    );
    let families = kernel.families(Look::Now { shown: true });
    let events = families.iter().find(|f| f.name == "watchfire_kernel_events_total");
    let counted = events.and_then(|f| f.metrics.iter().find(|m| m.labels[0].1 == "xid"));
    assert_eq!(counted.map(|m| m.value.to_bits()), Some(f64::from(LINES).to_bits()));
    let xids = kernel.xids().family_now(true);
    assert_eq!(xids.metrics.len(), 1);
    assert_eq!(xids.metrics[0].value.to_bits(), f64::from(LINES).to_bits());
    assert_eq!(kernel.recent().len(), RECENT_MAX);
    assert!(lock(&kernel.inner).seen.len() <= SEEN_MAX);
    // Hours on a slow machine would be a bug; this is some thirty times what it takes.
    assert!(took.as_secs() < 60, "{took:?}");
}

#[test]
fn a_gpu_that_falls_off_the_bus_without_a_code_counts_as_one_that_has_it() {
    let kernel = kernel();
    let count = || {
        kernel
            .xids()
            .family_now(true)
            .metrics
            .iter()
            .map(|m| m.value)
            .sum::<f64>()
    };
    kernel.message("NVRM: GPU 0000:29:00.0: GPU has fallen off the bus.", 1_000);
    assert_eq!(count().to_bits(), 1.0_f64.to_bits());
    kernel.message("NVRM: Xid (PCI:0000:29:00): 79, GPU has fallen off the bus.", 1_001);
    assert_eq!(count().to_bits(), 1.0_f64.to_bits());
    assert_eq!(kernel.xids().last("0000:29:00"), 79);
}
