use std::sync::Mutex;

use model::{StoreError, is_stale};

use super::*;

/// A store that keeps everything in lists.
#[derive(Default)]
struct Memory {
    series: Mutex<Vec<Labels>>,
    samples: Mutex<Vec<(Labels, Millis, f64)>>,
    asked: Mutex<usize>,
    forget_before: Mutex<u64>,
    series_max: Option<usize>,
}

impl Appender for Memory {
    fn target(&self, _labels: &Labels) -> TargetId {
        TargetId(1)
    }

    fn series(&self, labels: &Labels) -> Result<SeriesId, StoreError> {
        *self.asked.lock().unwrap() += 1;
        let mut series = self.series.lock().unwrap();
        let forgotten = usize::try_from(*self.forget_before.lock().unwrap()).unwrap();
        let found = series
            .iter()
            .skip(forgotten)
            .position(|l| l == labels)
            .map(|at| at + forgotten);
        let at = match found {
            Some(at) => at,
            None if self.series_max.is_some_and(|max| series.len() >= max) => {
                return Err(StoreError::Limit("too many series".into()));
            }
            None => {
                series.push(labels.clone());
                series.len() - 1
            }
        };
        Ok(SeriesId(at as u64))
    }

    fn append(&self, _target: TargetId, time: Millis, batch: &Batch) -> Result<Appended, StoreError> {
        let series = self.series.lock().unwrap();
        let forgotten = *self.forget_before.lock().unwrap();
        let mut appended = Appended::default();
        let shared = batch.samples.iter().map(|(id, v)| (*id, time, *v));
        for (id, time, value) in shared.chain(batch.timed.iter().copied()) {
            if id.0 < forgotten {
                appended.unknown.push(id);
                continue;
            }
            appended.accepted += 1;
            let labels = series[usize::try_from(id.0).unwrap()].clone();
            self.samples.lock().unwrap().push((labels, time, value));
        }
        Ok(appended)
    }
}

struct Test {
    store: Arc<Memory>,
    ingest: Ingest,
    /// Report series are left out of what a test sees, unless it asks for them.
    reports: bool,
}

fn job(yaml: &str) -> Job {
    let text = format!("scrape_configs:\n- job_name: j\n{yaml}");
    let config = config::prometheus::Config::parse("test", &text).expect("a configuration");
    Job::from(&config.scrape_configs[0])
}

fn test_with(yaml: &str, store: Memory) -> Test {
    let store = Arc::new(store);
    let labels = Labels::from_pairs([("job", "j"), ("instance", "i")]);
    let ingest = Ingest::new(store.clone(), Arc::new(job(yaml)), labels);
    Test {
        store,
        ingest,
        reports: false,
    }
}

fn test(yaml: &str) -> Test {
    test_with(yaml, Memory::default())
}

impl Test {
    /// What a page adds to the store, a sample a line; an error as its text.
    #[track_caller]
    fn page(&mut self, time: Millis, page: &str, want: &[&str]) -> Outcome {
        let result = self.ingest.ingest_page(time, page.as_bytes());
        let mut got = self.take();
        let outcome = result.unwrap_or_else(|e| {
            got.push(format!("error: {e}"));
            Outcome::default()
        });
        assert_eq!(got, want);
        outcome
    }

    fn take(&self) -> Vec<String> {
        let samples: Vec<_> = self.store.samples.lock().unwrap().drain(..).collect();
        samples
            .into_iter()
            .filter(|(l, ..)| self.reports || !(l.name() == "up" || l.name().starts_with("scrape_")))
            .map(|(labels, time, value)| {
                let labels = labels.only(&["__name__", "a", "b", "exported_job", "le"]);
                let value = if is_stale(value) {
                    "stale".to_owned()
                } else {
                    value.to_string()
                };
                format!("{} {value} @{time}", model::labels::SeriesText(&labels))
            })
            .collect()
    }
}

#[test]
fn a_series_that_ends_is_marked_once() {
    let mut t = test("");
    t.page(1, "x 1\ny{a=\"1\"} 2\n", &["x 1 @1", "y{a=\"1\"} 2 @1"]);
    t.page(2, "x 3\n", &["x 3 @2", "y{a=\"1\"} stale @2"]);
    t.page(3, "x 4\n", &["x 4 @3"]);
    let outcome = t.page(4, "x 4\ny{a=\"1\"} 5\n", &["x 4 @4", "y{a=\"1\"} 5 @4"]);
    assert_eq!(outcome.series_added, 1);
}

#[test]
fn a_bad_page_stores_nothing_of_itself_and_ends_the_series() {
    let mut t = test("");
    t.reports = true;
    t.page(
        1,
        "x 1\n",
        &[
            "x 1 @1",
            "up 1 @1",
            "scrape_duration_seconds 0 @1",
            "scrape_samples_scraped 1 @1",
            "scrape_samples_post_metric_relabeling 1 @1",
            "scrape_series_added 1 @1",
        ],
    );
    t.page(
        2,
        "x 2\nnew 1\n<html>\n",
        &[
            "x stale @2",
            "up 0 @2",
            "scrape_duration_seconds 0 @2",
            "scrape_samples_scraped 2 @2",
            "scrape_samples_post_metric_relabeling 0 @2",
            "scrape_series_added 0 @2",
            "error: cannot read the page: line 3, column 1: expected a valid start token, got \"<html>\"",
        ],
    );
    assert_eq!(
        t.store.series.lock().unwrap().len(),
        6,
        "the new series of a bad page is not made"
    );
    t.reports = false;
    t.ingest.failed(3, 0.1).unwrap();
    assert_eq!(t.take(), [""; 0]);
    t.page(4, "x 2\nnew 1\n", &["x 2 @4", "new 1 @4"]);
}

#[test]
fn a_removed_target_ends_with_its_reports() {
    let mut t = test("");
    t.page(1, "x 1\n", &["x 1 @1"]);
    t.reports = true;
    t.ingest.end(2).unwrap();
    assert_eq!(t.take().iter().filter(|l| l.contains("stale @2")).count(), 6);
    t.ingest.end(3).unwrap();
    assert_eq!(t.take(), [""; 0]);
}

#[test]
fn an_unchanged_page_asks_the_store_for_nothing() {
    let mut t = test("");
    let page = "# HELP x Help.\n# TYPE x gauge\nx{a=\"1\"} 1\nx{a=\"2\"} 2\n\n  x{a=\"3\"}\t3\n# end\n";
    t.page(1, page, &["x{a=\"1\"} 1 @1", "x{a=\"2\"} 2 @1", "x{a=\"3\"} 3 @1"]);
    let asked = *t.store.asked.lock().unwrap();
    for time in 2..6 {
        let outcome = t.page(
            time,
            page,
            &[
                &format!("x{{a=\"1\"}} 1 @{time}"),
                &format!("x{{a=\"2\"}} 2 @{time}"),
                &format!("x{{a=\"3\"}} 3 @{time}"),
            ],
        );
        assert_eq!((outcome.scraped, outcome.series_added), (3, 0));
    }
    assert_eq!(*t.store.asked.lock().unwrap(), asked);
    assert_eq!(t.ingest.metadata()["x"].help, "Help.");
}

#[test]
fn lines_may_move_vanish_and_come_between() {
    let mut t = test("");
    t.page(1, "a 1\nb 2\nc 3\n", &["a 1 @1", "b 2 @1", "c 3 @1"]);
    t.page(2, "c 3\na 1\nd 4\nb 2\n", &["c 3 @2", "a 1 @2", "b 2 @2", "d 4 @2"]);
    t.page(3, "b 2\nd 4\n", &["b 2 @3", "d 4 @3", "a stale @3", "c stale @3"]);
    t.page(4, "b 2\nd 4\ne 5\n", &["b 2 @4", "d 4 @4", "e 5 @4"]);
}

#[test]
fn a_series_written_in_another_way_has_not_ended() {
    let mut t = test("");
    t.page(1, "x{a=\"1\",b=\"2\"} 1\n", &["x{a=\"1\", b=\"2\"} 1 @1"]);
    let outcome = t.page(2, "x{b=\"2\",a=\"1\"} 2\n", &["x{a=\"1\", b=\"2\"} 2 @2"]);
    assert_eq!(outcome.series_ended, 0);
    t.page(3, "x{b=\"2\",a=\"1\"} 3\n", &["x{a=\"1\", b=\"2\"} 3 @3"]);
    t.page(4, "x {b=\"2\",a=\"1\"} 4\n", &["x{a=\"1\", b=\"2\"} 4 @4"]);
}

#[test]
fn the_first_of_two_equal_lines_counts() {
    let mut t = test("");
    let outcome = t.page(1, "x 1\nx 2\n", &["x 1 @1"]);
    assert_eq!((outcome.duplicates, outcome.scraped), (1, 2));
    assert_eq!(t.page(2, "x 1\nx 2\n", &["x 1 @2"]).duplicates, 1);
    t.reports = true;
    t.ingest.ingest_page(2, b"x 1\nx 2\n").unwrap();
    assert_eq!(t.take()[4], "scrape_samples_post_metric_relabeling 2 @2");
    t.reports = false;
    t.page(3, "x 1 10\nx 2 20\n", &["x 1 @10", "x 2 @20"]);
}

#[test]
fn timestamps_of_the_page_are_taken_or_not() {
    let mut t = test("");
    t.page(1, "x 1 500\n", &["x 1 @500"]);
    t.page(2, "", &[]);
    let mut t = test("  honor_timestamps: false\n");
    t.page(1, "x 1 500\n", &["x 1 @1"]);
    t.page(2, "y 1\n", &["y 1 @2", "x stale @2"]);
    let mut t = test("  track_timestamps_staleness: true\n");
    t.page(1, "x 1 500\n", &["x 1 @500"]);
    t.page(2, "y 1\n", &["y 1 @2", "x stale @2"]);
}

#[test]
fn a_timestamp_far_ahead_is_refused() {
    let mut t = test("");
    let outcome = t.page(
        1,
        "x 1 600001\nx{a=\"1\"} 1 600002\ny 1 9223372036854775807\n",
        &["x 1 @600001"],
    );
    assert_eq!((outcome.scraped, outcome.too_new), (3, 2));
}

#[test]
fn labels_of_page_and_target_meet() {
    let mut t = test("");
    t.page(
        1,
        "x{job=\"own\",a=\"1\"} 1\n",
        &["x{a=\"1\", exported_job=\"own\"} 1 @1"],
    );
    let labels = t.store.series.lock().unwrap()[0].to_string();
    assert_eq!(
        labels,
        r#"{__name__="x", a="1", exported_job="own", instance="i", job="j"}"#
    );
    let mut t = test("  honor_labels: true\n");
    t.page(1, "x{job=\"own\",instance=\"\"} 1\n", &["x 1 @1"]);
    assert_eq!(
        t.store.series.lock().unwrap()[0].to_string(),
        r#"{__name__="x", job="own"}"#
    );
    let mut t = test("");
    t.page(
        1,
        "x{job=\"own\",exported_job=\"b\"} 1\n",
        &["x{exported_job=\"b\"} 1 @1"],
    );
    let labels = t.store.series.lock().unwrap()[0].to_string();
    assert_eq!(
        labels,
        r#"{__name__="x", exported_exported_job="own", exported_job="b", instance="i", job="j"}"#
    );
}

#[test]
fn metric_relabelling_drops_and_renames() {
    let mut t = test(
        "  metric_relabel_configs:\n  - {source_labels: [__name__], regex: 'go_.*', action: drop}\n  \
         - {source_labels: [a], target_label: b}\n",
    );
    for time in 1..4 {
        let outcome = t.page(
            time,
            "go_x 1\nx{a=\"1\"} 2\n",
            &[&format!("x{{a=\"1\", b=\"1\"}} 2 @{time}")],
        );
        assert_eq!((outcome.scraped, outcome.kept, outcome.dropped), (2, 1, 1));
    }
}

#[test]
fn over_the_sample_limit_known_series_stay_and_the_culprit_is_named() {
    let mut t = test("  sample_limit: 2\n");
    t.page(
        1,
        "x{a=\"1\"} 1\nx{a=\"2\"} 2\n",
        &["x{a=\"1\"} 1 @1", "x{a=\"2\"} 2 @1"],
    );
    let page = "x{a=\"0\"} 0\nx{a=\"1\"} 1\nx{a=\"2\"} 2\nx{a=\"3\"} 3\n";
    let outcome = t.page(2, page, &["x{a=\"1\"} 1 @2", "x{a=\"2\"} 2 @2"]);
    assert_eq!(
        (outcome.refused, outcome.culprit.as_str()),
        (2, "label \"a\" (2 values)")
    );
    assert_eq!(
        (outcome.limit.as_str(), outcome.culprit_name.as_str()),
        ("sample_limit of 2", "label a")
    );
    let outcome = t.page(
        3,
        "x{a=\"2\"} 2\nx{a=\"3\"} 3\n",
        &["x{a=\"2\"} 2 @3", "x{a=\"3\"} 3 @3", "x{a=\"1\"} stale @3"],
    );
    assert_eq!(outcome.refused, 0);
}

#[test]
fn over_a_label_limit_only_that_series_is_left_out() {
    let mut t = test("  label_value_length_limit: 5\n");
    let outcome = t.page(1, "x{a=\"123456\"} 1\nx{a=\"1\"} 2\n", &["x{a=\"1\"} 2 @1"]);
    assert_eq!(outcome.refused, 1);
    assert_eq!(
        outcome.culprit,
        "label \"a\" of metric \"x\" has a value of 6 bytes, at most 5 are allowed"
    );
    assert_eq!(
        (outcome.limit.as_str(), outcome.culprit_name.as_str()),
        ("label_value_length_limit of 5", "label a")
    );
    let mut t = test("  label_limit: 3\n");
    assert_eq!(t.page(1, "x{a=\"1\"} 1\nx 2\n", &["x 2 @1"]).refused, 1);
}

#[test]
fn a_store_that_is_full_keeps_known_series() {
    let mut t = test_with(
        "",
        Memory {
            series_max: Some(7),
            ..Memory::default()
        },
    );
    t.page(1, "x{a=\"1\"} 1\n", &["x{a=\"1\"} 1 @1"]);
    let outcome = t.page(
        2,
        "x{a=\"1\"} 1\nx{a=\"2\"} 1\nx{a=\"3\"} 1\n",
        &["x{a=\"1\"} 1 @2", "x{a=\"2\"} 1 @2"],
    );
    assert_eq!(outcome.culprit, "metric \"x\"; limit: too many series");
}

#[test]
fn series_that_the_store_forgot_are_asked_for_once_more() {
    let mut t = test("");
    t.reports = true;
    t.page(
        1,
        "x 1\n",
        &[
            "x 1 @1",
            "up 1 @1",
            "scrape_duration_seconds 0 @1",
            "scrape_samples_scraped 1 @1",
            "scrape_samples_post_metric_relabeling 1 @1",
            "scrape_series_added 1 @1",
        ],
    );
    *t.store.forget_before.lock().unwrap() = 2;
    let outcome = t.ingest.ingest_page(2, b"x 2\n").unwrap();
    assert_eq!((outcome.appended.accepted, outcome.appended.unknown.len()), (6, 0));
    let got = t.take();
    assert!(
        got.contains(&"x 2 @2".to_owned()) && got.contains(&"up 1 @2".to_owned()),
        "{got:?}"
    );
    *t.store.forget_before.lock().unwrap() = 8;
    t.ingest.failed(3, 0.0).unwrap();
    assert!(t.take().contains(&"up 0 @3".to_owned()));
}

#[test]
fn a_label_written_twice_refuses_the_page() {
    let mut t = test("");
    t.page(
        1,
        "y 1\nx{a=\"1\",a=\"2\"} 1\n",
        &["error: cannot read the page: line 2, column 1: label \"a\" is there twice"],
    );
}

#[test]
fn a_cache_of_changing_series_does_not_grow() {
    let mut t = test("");
    for time in 0..200 {
        let page: String = (0..50).map(|i| format!("x{{a=\"{time}-{i}\"}} 1\n")).collect();
        t.ingest.ingest_page(time, page.as_bytes()).unwrap();
        assert!(t.ingest.cache_len() <= 200, "{}", t.ingest.cache_len());
    }
    let stale = t.take().iter().filter(|l| l.contains("stale")).count();
    assert_eq!(stale, 199 * 50);
}

/// A page of few series, so that orders, gaps, repeats and faults all come up.
fn random_page(random: &mut fastrand::Rng) -> String {
    let mut page = String::new();
    for _ in 0..random.usize(0..12) {
        let line = match random.u8(0..20) {
            0 => "# HELP m Help.\n".to_owned(),
            1 => format!("# note {}\n", random.u8(0..3)),
            2 => "\n".to_owned(),
            3 => format!("  m{{a=\"{}\"}} 1\n", random.u8(0..6)),
            4 => format!("m {{a=\"{}\",}} 2\n", random.u8(0..6)),
            5 => format!("m{{b=\"1\",a=\"{}\"}}\t3 7\n", random.u8(0..6)),
            6 if random.u8(0..6) == 0 => "m{a=} 4\n".to_owned(),
            _ => format!("m{{a=\"{}\"}} {}\n", random.u8(0..6), random.u8(..)),
        };
        page.push_str(&line);
    }
    page
}

/// What a scraper without a memory for lines would store.
fn plain(page: &str, time: Millis, live: &mut BTreeMap<String, Labels>) -> Vec<String> {
    let mut reader = Reader::new(page.as_bytes(), Format::Text);
    let (mut texts, mut samples, mut now) = (HashSet::new(), Vec::new(), BTreeMap::new());
    let good = loop {
        match reader.next_entry() {
            Ok(None) => break true,
            Err(_) => break false,
            Ok(Some(Entry::Sample(sample))) => {
                let new = texts.insert(sample.series.text().to_vec());
                let labels = sample.series.labels().expect("distinct");
                if new || sample.time.is_some() {
                    let key = model::labels::SeriesText(&labels).to_string();
                    samples.push(format!("{key} {} @{}", sample.value, sample.time.unwrap_or(time)));
                    if sample.time.is_none() {
                        now.insert(key, labels);
                    }
                }
            }
            Ok(Some(_)) => {}
        }
    };
    if !good {
        samples.clear();
        now.clear();
    }
    let before = std::mem::replace(live, now);
    samples.extend(
        before
            .keys()
            .filter(|k| !live.contains_key(*k))
            .map(|k| format!("{k} stale @{time}")),
    );
    samples.sort_unstable();
    samples
}

#[test]
fn with_and_without_a_memory_for_lines_the_same_is_stored() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..300 {
        let mut t = test("");
        let mut live = BTreeMap::new();
        let mut last = String::new();
        for time in 100..140 {
            let page = if random.u8(0..3) == 0 {
                last
            } else {
                random_page(&mut random)
            };
            let want = plain(&page, time, &mut live);
            let _ = t.ingest.ingest_page(time, page.as_bytes());
            let mut got = t.take();
            got.sort_unstable();
            assert_eq!(got, want, "seed {seed}, time {time}, page\n{page}");
            last = page;
        }
    }
}
