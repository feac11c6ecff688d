//! What comes with samples: examples, moments of creation, native histograms; and pages in protobuf.

use std::sync::{Arc, Mutex};

use exposition::{Format, PageFormat, wire};
use model::{Appended, Appender, Batch, Labels, Millis, SeriesId, StoreError, TargetId, is_stale};
use scrape::{Ingest, Job};

/// Keeps a line for all that is appended.
#[derive(Default)]
struct Memory {
    series: Mutex<Vec<Labels>>,
    lines: Mutex<Vec<String>>,
}

impl Appender for Memory {
    fn target(&self, _: &Labels) -> TargetId {
        TargetId(1)
    }

    fn series(&self, labels: &Labels) -> Result<SeriesId, StoreError> {
        let mut series = self.series.lock().expect("no panic");
        let at = series.iter().position(|l| l == labels).unwrap_or_else(|| {
            series.push(labels.clone());
            series.len() - 1
        });
        Ok(SeriesId(at as u64))
    }

    fn append(&self, _: TargetId, time: Millis, batch: &Batch) -> Result<Appended, StoreError> {
        let series = self.series.lock().expect("no panic");
        let mut lines = self.lines.lock().expect("no panic");
        let name = |id: &SeriesId| {
            let labels = &series[usize::try_from(id.0).expect("an index")];
            let labels = labels.only(&["__name__", "le", "quantile", "a"]);
            model::labels::SeriesText(&labels).to_string()
        };
        for (id, value) in &batch.samples {
            let value = if is_stale(*value) {
                "stale".to_owned()
            } else {
                value.to_string()
            };
            lines.push(format!("{} {value} @{time}", name(id)));
        }
        for (id, own, histogram) in &batch.histograms {
            let time = own.unwrap_or(time);
            lines.push(format!(
                "{} native {} {:?} @{time}",
                name(id),
                histogram.count,
                histogram.positive_buckets
            ));
        }
        for (id, created) in &batch.created {
            lines.push(format!("{} since {created}", name(id)));
        }
        for (id, e) in &batch.exemplars {
            lines.push(format!("{} like {} {} @{}", name(id), e.labels, e.value, e.time));
        }
        lines.retain(|l| !l.starts_with("up") && !l.starts_with("scrape_"));
        Ok(Appended::default())
    }
}

struct Test {
    store: Arc<Memory>,
    ingest: Ingest,
}

fn test(job: Job) -> Test {
    let store = Arc::new(Memory::default());
    let labels = Labels::from_pairs([("job", "j"), ("instance", "i")]);
    Test {
        ingest: Ingest::new(store.clone(), Arc::new(job), labels),
        store,
    }
}

impl Test {
    #[track_caller]
    fn check(&mut self, time: Millis, page: &[u8], format: impl Into<PageFormat>, want: &[&str]) {
        let result = self.ingest.page(time, 0.1, page, format);
        let mut got = std::mem::take(&mut *self.store.lines.lock().expect("no panic"));
        if let Err(error) = result {
            got.push(error.to_string());
        }
        assert_eq!(got, want);
    }
}

#[test]
fn a_counter_that_was_made_before_it_was_seen_begins_with_a_zero_there() {
    let mut test = test(Job::new("j"));
    let page = |value: u32, made: &str| {
        format!(
            "# TYPE n counter\nn_total{{a=\"1\"}} {value}\nn_created{{a=\"1\"}} {made}\n\
             # TYPE g gauge\ng_created 5\n# EOF\n"
        )
    };
    let om = Format::OpenMetrics;
    test.check(
        20_000,
        page(5, "12.5").as_bytes(),
        om,
        &[
            r#"n_total{a="1"} 5 @20000"#,
            r#"n_created{a="1"} 12.5 @20000"#,
            "g_created 5 @20000",
            r#"n_total{a="1"} since 12500"#,
        ],
    );
    let same = [
        r#"n_total{a="1"} 6 @30000"#,
        r#"n_created{a="1"} 12.5 @30000"#,
        "g_created 5 @30000",
    ];
    test.check(30_000, page(6, "12.5").as_bytes(), om, &same);
    test.check(
        40_000,
        page(1, "35").as_bytes(),
        om,
        &[
            r#"n_total{a="1"} 1 @40000"#,
            r#"n_created{a="1"} 35 @40000"#,
            "g_created 5 @40000",
            r#"n_total{a="1"} since 35000"#,
        ],
    );
}

#[test]
fn the_moment_counts_for_all_series_of_a_histogram_and_not_for_its_neighbours() {
    let mut test = test(Job::new("j"));
    let page = "# TYPE h histogram\nh_bucket{a=\"1\",le=\"1\"} 1\nh_bucket{le=\"+Inf\",a=\"1\"} 2\nh_count{a=\"1\"} 2\n\
                h_sum{a=\"1\"} 3\nh_created{a=\"1\"} 4\nh_bucket{a=\"2\",le=\"+Inf\"} 0\n# EOF\n";
    test.check(
        9_000,
        page.as_bytes(),
        Format::OpenMetrics,
        &[
            r#"h_bucket{a="1", le="1.0"} 1 @9000"#,
            r#"h_bucket{a="1", le="+Inf"} 2 @9000"#,
            r#"h_count{a="1"} 2 @9000"#,
            r#"h_sum{a="1"} 3 @9000"#,
            r#"h_created{a="1"} 4 @9000"#,
            r#"h_bucket{a="2", le="+Inf"} 0 @9000"#,
            r#"h_bucket{a="1", le="1.0"} since 4000"#,
            r#"h_bucket{a="1", le="+Inf"} since 4000"#,
            r#"h_count{a="1"} since 4000"#,
            r#"h_sum{a="1"} since 4000"#,
        ],
    );
}

#[test]
fn an_example_is_told_once() {
    let mut test = test(Job::new("j"));
    let page = |id: &str| format!("# TYPE n counter\nn_total 1 # {{trace_id=\"{id}\"}} 0.5\n# EOF\n");
    let om = Format::OpenMetrics;
    test.check(
        1_000,
        page("x").as_bytes(),
        om,
        &["n_total 1 @1000", r#"n_total like {trace_id="x"} 0.5 @1000"#],
    );
    // Whatever the series' first page told is told once more with the second, and then no more.
    let again = [r#"n_total like {trace_id="x"} 0.5 @2000"#];
    test.check(2_000, page("x").as_bytes(), om, &["n_total 1 @2000", again[0]]);
    test.check(3_000, page("x").as_bytes(), om, &["n_total 1 @3000"]);
    test.check(
        4_000,
        page("y").as_bytes(),
        om,
        &["n_total 1 @4000", r#"n_total like {trace_id="y"} 0.5 @4000"#],
    );
    let long = "x".repeat(130);
    test.check(5_000, page(&long).as_bytes(), om, &["n_total 1 @5000"]);
}

#[test]
fn bounds_and_quantiles_are_stored_in_one_form() {
    let mut test = test(Job::new("j"));
    test.check(
        1_000,
        b"# TYPE s summary\ns{quantile=\"1\"} 2\n# TYPE h histogram\nh_bucket{le=\"5e-1\"} 1\nother_bucket{le=\"5\"} 1\n",
        Format::Text,
        &[
            r#"s{quantile="1.0"} 2 @1000"#,
            r#"h_bucket{le="0.5"} 1 @1000"#,
            r#"other_bucket{le="5"} 1 @1000"#,
        ],
    );
}

fn message(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

/// A page of one native histogram with `buckets` from index 1 of schema 3 on.
fn protobuf(buckets: &[u8]) -> Vec<u8> {
    let histogram = message(|out| {
        wire::put_varint(out, 1, buckets.iter().map(|b| u64::from(*b)).sum());
        wire::put_zigzag(out, 5, 3);
        let span = message(|out| {
            wire::put_zigzag(out, 1, 1);
            wire::put_varint(out, 2, buckets.len() as u64);
        });
        wire::put_bytes(out, 12, &span);
        let counts: Vec<f64> = buckets.iter().map(|b| f64::from(*b)).collect();
        wire::put_doubles(out, 14, &counts);
        wire::put_bytes(out, 15, &message(|out| wire::put_varint(out, 1, 7)));
    });
    let family = message(|out| {
        wire::put_bytes(out, 1, b"h");
        wire::put_varint(out, 3, 4);
        wire::put_bytes(out, 4, &message(|out| wire::put_bytes(out, 7, &histogram)));
    });
    message(|out| {
        wire::put_raw_varint(out, family.len() as u64);
        out.extend_from_slice(&family);
    })
}

fn native(rest: &str) -> Job {
    let text = format!("scrape_configs:\n- job_name: j\n  scrape_native_histograms: true\n{rest}");
    let config = config::prometheus::Config::parse("test", &text).expect("a configuration");
    Job::from(&config.scrape_configs[0])
}

#[test]
fn native_histograms_are_stored_ended_and_made_coarser() {
    let mut test = test(native(""));
    let page = protobuf(&[1, 2, 3, 4]);
    let proto = PageFormat::Protobuf;
    test.check(
        9_000,
        &page,
        proto,
        &["h native 10 [1.0, 2.0, 3.0, 4.0] @9000", "h since 7000"],
    );
    test.check(10_000, &page, proto, &["h native 10 [1.0, 2.0, 3.0, 4.0] @10000"]);
    test.check(11_000, b"x 1\n", Format::Text, &["x 1 @11000", "h stale @11000"]);
    let mut coarse = self::test(native("  native_histogram_bucket_limit: 2\n"));
    coarse.check(9_000, &page, proto, &["h native 10 [3.0, 7.0] @9000", "h since 7000"]);
    let mut classic = self::test(Job::new("j"));
    classic.check(
        9_000,
        &page,
        proto,
        &[
            "h_count 10 @9000",
            "h_sum 0 @9000",
            r#"h_bucket{le="+Inf"} 10 @9000"#,
            "h_count since 7000",
            "h_sum since 7000",
            r#"h_bucket{le="+Inf"} since 7000"#,
        ],
    );
    assert_eq!(native("").protocols[0], exposition::Protocol::Protobuf);
}
