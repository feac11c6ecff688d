use std::sync::Mutex;

use exposition::wire::{put_bytes, put_double, put_doubles, put_varint, put_zigzag};
use model::{Labels, is_stale, stale_nan};

use super::*;

/// Keeps a line for all that is appended.
#[derive(Default)]
struct Memory {
    series: Mutex<Vec<Labels>>,
    lines: Mutex<Vec<String>>,
    asked: Mutex<usize>,
    /// Ids below are not known any more.
    forgotten: Mutex<u64>,
    series_max: Option<usize>,
    too_old: Millis,
}

impl Appender for Memory {
    fn target(&self, _: &Labels) -> TargetId {
        TargetId(1)
    }

    fn series(&self, labels: &Labels) -> Result<SeriesId, StoreError> {
        *self.asked.lock().unwrap() += 1;
        let mut series = self.series.lock().unwrap();
        if self.series_max.is_some_and(|max| series.len() >= max) {
            return Err(StoreError::Limit("too many series, most of label \"pod\"".into()));
        }
        series.push(labels.clone());
        Ok(SeriesId(series.len() as u64 - 1))
    }

    fn append(&self, _: TargetId, _: Millis, batch: &Batch) -> Result<Appended, StoreError> {
        let (series, mut lines) = (self.series.lock().unwrap(), self.lines.lock().unwrap());
        let mut done = Appended::default();
        let forgotten = *self.forgotten.lock().unwrap();
        let name = |id: &SeriesId| model::labels::SeriesText(&series[usize::try_from(id.0).unwrap()]).to_string();
        for (id, time, value) in &batch.timed {
            if id.0 < forgotten {
                done.unknown.push(*id);
            } else if *time < self.too_old {
                done.too_old += 1;
            } else {
                let value = if is_stale(*value) {
                    "stale".into()
                } else {
                    value.to_string()
                };
                lines.push(format!("{} {value} @{time}", name(id)));
            }
        }
        for (id, time, h) in &batch.histograms {
            lines.push(format!(
                "{} native {} {:?} @{time:?}",
                name(id),
                h.count,
                h.positive_buckets
            ));
        }
        for (id, e) in &batch.exemplars {
            lines.push(format!("{} like {} {} @{}", name(id), e.labels, e.value, e.time));
        }
        for (id, created) in &batch.created {
            lines.push(format!("{} since {created}", name(id)));
        }
        Ok(done)
    }
}

fn message(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

fn label(name: &str, value: &str) -> Vec<u8> {
    message(|out| {
        put_bytes(out, 1, name.as_bytes());
        put_bytes(out, 2, value.as_bytes());
    })
}

fn sample_of(time: Millis, value: f64) -> Vec<u8> {
    message(|out| {
        put_double(out, 1, value);
        put_varint(out, 2, time.cast_unsigned());
    })
}

fn histogram_of(time: Millis, deltas: &[i64]) -> Vec<u8> {
    message(|out| {
        put_varint(out, 1, 6);
        put_double(out, 3, 2.5);
        let span = message(|out| put_varint(out, 2, deltas.len() as u64));
        put_bytes(out, 11, &span);
        let packed: Vec<u8> = deltas
            .iter()
            .map(|d| u8::try_from((d << 1) ^ (d >> 63)).unwrap())
            .collect();
        put_bytes(out, 12, &packed);
        put_varint(out, 15, time.cast_unsigned());
    })
}

/// A series of version 1: `name a=b …`, then values.
fn series_v1(text: &str, rest: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    message(|out| {
        for (i, word) in text.split(' ').enumerate() {
            let (name, value) = word.split_once('=').unwrap_or(("__name__", word));
            assert!(i > 0 || name == "__name__" || text.contains('='));
            put_bytes(out, 1, &label(name, value));
        }
        rest(out);
    })
}

fn v1(series: &[Vec<u8>]) -> Vec<u8> {
    message(|out| {
        for one in series {
            put_bytes(out, 1, one);
        }
    })
}

struct Test {
    store: Arc<Memory>,
    receiver: Receiver,
    sayings: Arc<Sayings>,
}

fn test_with(store: Memory) -> Test {
    let (store, sayings) = (Arc::new(store), Arc::new(Sayings::default()));
    let receiver = Receiver::new(store.clone(), sayings.clone(), Limits::default());
    Test {
        store,
        receiver,
        sayings,
    }
}

fn test() -> Test {
    test_with(Memory::default())
}

impl Test {
    #[track_caller]
    fn check(&self, version: Version, plain: &[u8], want: &[&str]) -> Written {
        let body = snap::raw::Encoder::new().compress_vec(plain).unwrap();
        let (written, result) = self.receiver.receive(&body, version, 1_000_000);
        let mut got = std::mem::take(&mut *self.store.lines.lock().unwrap());
        if let Err(error) = result {
            got.push(format!("error: {error}"));
        }
        assert_eq!(got, want);
        written
    }
}

#[test]
fn a_known_series_costs_no_question_to_the_store() {
    let test = test();
    let push = |time: Millis, value: f64| {
        v1(&[
            series_v1("up job=a", |out| put_bytes(out, 2, &sample_of(time, value))),
            series_v1("up job=b", |out| put_bytes(out, 2, &sample_of(time, stale_nan()))),
        ])
    };
    let written = test.check(
        Version::V1,
        &push(1, 1.0),
        &[r#"up{job="a"} 1 @1"#, r#"up{job="b"} stale @1"#],
    );
    assert_eq!(written.samples, 2);
    test.check(
        Version::V1,
        &push(2, 3.0),
        &[r#"up{job="a"} 3 @2"#, r#"up{job="b"} stale @2"#],
    );
    assert_eq!(*test.store.asked.lock().unwrap(), 2);
}

#[test]
fn a_series_that_the_store_forgot_is_named_once_more() {
    let test = test();
    let push = |time| {
        v1(&[
            series_v1("up job=a", |out| put_bytes(out, 2, &sample_of(time, 1.0))),
            series_v1("up job=b", |out| put_bytes(out, 2, &sample_of(time, 2.0))),
        ])
    };
    test.check(Version::V1, &push(1), &[r#"up{job="a"} 1 @1"#, r#"up{job="b"} 2 @1"#]);
    *test.store.forgotten.lock().unwrap() = 1;
    let written = test.check(Version::V1, &push(2), &[r#"up{job="b"} 2 @2"#, r#"up{job="a"} 1 @2"#]);
    assert_eq!(written.samples, 2);
    test.check(Version::V1, &push(3), &[r#"up{job="a"} 1 @3"#, r#"up{job="b"} 2 @3"#]);
}

#[test]
fn what_is_wrong_is_refused_alone() {
    let test = test_with(Memory {
        too_old: 5,
        ..Memory::default()
    });
    let good = series_v1("up job=a", |out| {
        put_bytes(out, 2, &sample_of(9, 1.0));
        put_bytes(out, 2, &sample_of(1, 1.0));
    });
    let written = test.check(
        Version::V1,
        &v1(&[good]),
        &[
            r#"up{job="a"} 1 @9"#,
            "error: out of order: 1 samples lie before the window that late samples may fall into",
        ],
    );
    assert_eq!(written.samples, 1);
    let one = |text: &str| series_v1(text, |out| put_bytes(out, 2, &sample_of(9, 1.0)));
    test.check(
        Version::V1,
        &v1(&[one("job=a"), one("up a=1 a=2"), one("x")]),
        &[
            "x 1 @9",
            r#"error: series {job="a"} has no metric name (2 refused in all)"#,
        ],
    );
    let ahead = series_v1("y", |out| put_bytes(out, 2, &sample_of(1_000_000 + AHEAD_MAX + 1, 1.0)));
    test.check(
        Version::V1,
        &v1(&[ahead]),
        &["error: out of bounds: a timestamp lies more than 10 minutes after the present, 1000000"],
    );
    let full = test_with(Memory {
        series_max: Some(1),
        ..Memory::default()
    });
    full.check(
        Version::V1,
        &v1(&[one("a"), one("b")]),
        &[
            "a 1 @9",
            "error: {__name__=\"b\"}: limit: too many series, most of label \"pod\"",
        ],
    );
}

#[test]
fn histograms_examples_and_metadata_come_along() {
    let test = test();
    let series = series_v1("h job=a", |out| {
        put_bytes(out, 4, &histogram_of(7, &[2, 2]));
        let example = message(|out| {
            put_bytes(out, 1, &label("trace_id", "x"));
            put_double(out, 2, 0.5);
            put_varint(out, 3, 6);
        });
        put_bytes(out, 3, &example);
    });
    let mut body = v1(&[series]);
    let metadata = message(|out| {
        put_varint(out, 1, 3);
        put_bytes(out, 2, b"h");
        put_bytes(out, 4, b"Help.");
    });
    put_bytes(&mut body, 3, &metadata);
    let written = test.check(
        Version::V1,
        &body,
        &[
            r#"h{job="a"} native 6 [2.0, 4.0] @Some(7)"#,
            r#"h{job="a"} like {trace_id="x"} 0.5 @6"#,
        ],
    );
    assert_eq!((written.histograms, written.exemplars), (1, 1));
    let said = test.sayings.all();
    assert_eq!(
        (said[0].0.as_str(), said[0].1.kind, said[0].1.help.as_str()),
        ("h", model::Kind::Histogram, "Help.")
    );
    let bad = series_v1("h job=a", |out| put_bytes(out, 4, &histogram_of(7, &[2, -9])));
    test.check(
        Version::V1,
        &v1(&[bad]),
        &["error: a positive bucket of a native histogram holds -7"],
    );
}

/// A request of version 2 with these symbols.
fn v2(symbols: &[&str], series: &[Vec<u8>]) -> Vec<u8> {
    message(|out| {
        for symbol in symbols {
            put_bytes(out, 4, symbol.as_bytes());
        }
        for one in series {
            put_bytes(out, 5, one);
        }
    })
}

#[test]
fn version_two_names_texts_by_number() {
    let test = test();
    let series = |labels: &[u8], time: Millis, began: Millis| {
        message(|out| {
            put_bytes(out, 1, labels);
            let sample = message(|out| {
                put_double(out, 1, 4.0);
                put_varint(out, 2, time.cast_unsigned());
                put_varint(out, 3, began.cast_unsigned());
            });
            put_bytes(out, 2, &sample);
            let metadata = message(|out| {
                put_varint(out, 1, 1);
                put_varint(out, 3, 5);
            });
            put_bytes(out, 5, &metadata);
        })
    };
    let names = ["", "__name__", "n_total", "job", "a", "Things."];
    test.check(
        Version::V2,
        &v2(&names, &[series(&[1, 2, 3, 4], 10, 3)]),
        &[r#"n_total{job="a"} 4 @10"#, r#"n_total{job="a"} since 3"#],
    );
    // The same texts under other numbers are the same series.
    let other = ["", "a", "job", "n_total", "__name__", "Things."];
    test.check(
        Version::V2,
        &v2(&other, &[series(&[4, 3, 2, 1], 11, 3)]),
        &[r#"n_total{job="a"} 4 @11"#],
    );
    test.check(
        Version::V2,
        &v2(&other, &[series(&[4, 3, 2, 1], 21, 20)]),
        &[r#"n_total{job="a"} 4 @21"#, r#"n_total{job="a"} since 20"#],
    );
    assert_eq!(*test.store.asked.lock().unwrap(), 1);
    assert_eq!(test.sayings.all()[0].1.help, "Things.");
    test.check(
        Version::V2,
        &v2(&names, &[series(&[1, 2, 3, 44], 10, 0)]),
        &["error: symbol 44 of 6"],
    );
    test.check(
        Version::V2,
        &v2(&names, &[series(&[1, 2, 3], 10, 0)]),
        &["error: an odd count of label references"],
    );
    test.check(
        Version::V2,
        &v2(&["x"], &[]),
        &["error: cannot read the body: the first symbol is not the empty one"],
    );
}

#[test]
fn bodies_are_bounded_and_broken_ones_named() {
    let test = test();
    let refused = |body: &[u8]| {
        let (_, result) = test.receiver.receive(body, Version::V1, 0);
        result.expect_err("refused").to_string()
    };
    assert!(refused(b"\xff\xff\xff\xff\x0f").contains("the body has 4294967295 bytes decompressed"));
    assert!(refused(b"\xff\xff\x7f").contains("a length that no block of this size can have"));
    assert!(refused(b"\x05\x10abc").contains("snappy"));
    let body = snap::raw::Encoder::new().compress_vec(b"\x0a\x05abc").unwrap();
    assert_eq!(
        refused(&body),
        "cannot read the body: byte 2: a length beyond the message's end"
    );
    let (written, result) = test.receiver.receive(b"", Version::V1, 0);
    assert!(result.is_ok() && written == Written::default());
}

#[test]
fn content_types_tell_the_version() {
    for (header, want) in [
        ("application/x-protobuf", Some(Version::V1)),
        (
            "application/x-protobuf;proto=prometheus.WriteRequest",
            Some(Version::V1),
        ),
        (
            "application/x-protobuf; proto=io.prometheus.write.v2.Request",
            Some(Version::V2),
        ),
        ("application/x-protobuf;proto=other", None),
        ("application/json", None),
        ("", None),
    ] {
        assert_eq!(Version::from_content_type(header), want, "{header}");
    }
}

#[test]
fn no_body_makes_it_panic() {
    let mut random = fastrand::Rng::with_seed(11);
    let good = v1(&[series_v1("h job=a", |out| {
        put_bytes(out, 2, &sample_of(9, 1.5));
        put_bytes(out, 4, &histogram_of(7, &[2, 2]));
    })]);
    let mut doubles = Vec::new();
    put_doubles(&mut doubles, 1, &[1.0]);
    put_zigzag(&mut doubles, 2, -4);
    let test = test();
    for _ in 0..20_000 {
        let mut body = good.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..body.len());
            match random.u8(0..3) {
                0 => body[at] = random.u8(..),
                1 => body.truncate(at + 1),
                _ => body.splice(at..at, doubles.iter().copied()).for_each(drop),
            }
        }
        let _ = test.receiver.receive_plain(&body, Version::V1, 1_000_000);
        let _ = test.receiver.receive_plain(&body, Version::V2, 1_000_000);
    }
}

/// What the fuzzer once found: `examples/fuzz_remote_write.rs` writes it to `fuzz/`.
#[test]
fn no_finding_makes_it_panic() {
    let test = test();
    let mut count = 0;
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz")).unwrap() {
        let body = std::fs::read(entry.unwrap().path()).unwrap();
        for version in [Version::V1, Version::V2] {
            let _ = test.receiver.receive_plain(&body, version, 1_000_000);
            let _ = test.receiver.receive(&body, version, 1_000_000);
        }
        count += 1;
    }
    assert!(count > 0, "at least the seed is there");
}
