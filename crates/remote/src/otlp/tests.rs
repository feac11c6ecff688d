use std::sync::Mutex as StdMutex;

use model::{Appended, is_stale};

use super::*;

#[derive(Default)]
struct Memory {
    series: StdMutex<Vec<Labels>>,
    lines: StdMutex<Vec<String>>,
}

impl Appender for Memory {
    fn target(&self, _: &Labels) -> TargetId {
        TargetId(1)
    }

    fn series(&self, labels: &Labels) -> Result<SeriesId, StoreError> {
        let mut series = self.series.lock().unwrap();
        let at = series.iter().position(|l| l == labels).unwrap_or_else(|| {
            series.push(labels.clone());
            series.len() - 1
        });
        Ok(SeriesId(at as u64))
    }

    fn append(&self, _: TargetId, _: Millis, batch: &Batch) -> Result<Appended, StoreError> {
        let (series, mut lines) = (self.series.lock().unwrap(), self.lines.lock().unwrap());
        let name = |id: &SeriesId| model::labels::SeriesText(&series[usize::try_from(id.0).unwrap()]).to_string();
        for (id, time, value) in &batch.timed {
            let value = if is_stale(*value) {
                "stale".into()
            } else {
                value.to_string()
            };
            lines.push(format!("{} {value} @{time}", name(id)));
        }
        for (id, time, h) in &batch.histograms {
            lines.push(format!(
                "{} native {} schema {} {:?} {:?} @{time:?}",
                name(id),
                h.count,
                h.schema,
                h.positive_spans,
                h.positive_buckets
            ));
        }
        for (id, e) in &batch.exemplars {
            lines.push(format!("{} like {} {} @{}", name(id), e.labels, e.value, e.time));
        }
        for (id, created) in &batch.created {
            lines.push(format!("{} since {created}", name(id)));
        }
        Ok(Appended::default())
    }
}

const NOW: Millis = 1_000_000;

/// What a request of these metrics, as JSON, comes to: what is stored, then the answer.
#[track_caller]
fn check(resource: &str, metrics: &str, options: Options, want: &[&str]) {
    let store = Arc::new(Memory::default());
    let receiver = Receiver::new(store.clone(), Arc::default(), Limits::default());
    receiver.set_options(options);
    let body = format!(
        r#"{{"resourceMetrics": [{{"resource": {{"attributes": [{resource}]}}, "scopeMetrics": [{{"metrics": [{metrics}]}}]}}]}}"#
    );
    let answer = receiver.receive(body.as_bytes(), Encoding::Json, false, NOW);
    let mut got = std::mem::take(&mut *store.lines.lock().unwrap());
    match answer {
        Ok(answer) if answer == b"{}" => {}
        Ok(answer) => got.push(String::from_utf8(answer).unwrap()),
        Err(error) => got.push(format!("error: {error}")),
    }
    assert_eq!(got, want);
}

const RESOURCE: &str = r#"{"key": "service.name", "value": {"stringValue": "api"}},
    {"key": "service.namespace", "value": {"stringValue": "shop"}},
    {"key": "service.instance.id", "value": {"stringValue": "i1"}},
    {"key": "host.name", "value": {"stringValue": "h"}}"#;

#[test]
fn a_sum_becomes_a_counter_with_its_resource_beside_it() {
    check(
        RESOURCE,
        r#"{"name": "http.requests", "unit": "{request}", "sum": {"aggregationTemporality": 2, "isMonotonic": true,
            "dataPoints": [{"attributes": [{"key": "http.method", "value": {"stringValue": "GET"}}],
            "startTimeUnixNano": "500000000000", "timeUnixNano": "900000000000", "asInt": "7",
            "exemplars": [{"timeUnixNano": "800000000000", "asDouble": 1.5, "traceId": "ab", "spanId": "cd"}]}]}}"#,
        Options::default(),
        &[
            r#"http_requests_total{http_method="GET", instance="i1", job="shop/api"} 7 @900000"#,
            r#"target_info{host_name="h", instance="i1", job="shop/api"} 1 @900000"#,
            r#"http_requests_total{http_method="GET", instance="i1", job="shop/api"} like {span_id="cd", trace_id="ab"} 1.5 @800000"#,
            r#"http_requests_total{http_method="GET", instance="i1", job="shop/api"} since 500000"#,
        ],
    );
}

#[test]
fn gauges_keep_their_names_where_that_is_asked_and_attributes_may_become_labels() {
    let gauge = r#"{"name": "cpu.load", "unit": "1", "gauge": {"dataPoints": [
        {"timeUnixNano": "1000000000", "asDouble": 0.5}, {"timeUnixNano": "2000000000", "flags": 1}]}}"#;
    let options = Options {
        translation: Translation::AsTheyAre,
        attributes: vec!["host.name".into()],
        ..Options::default()
    };
    check(
        RESOURCE,
        gauge,
        options,
        &[
            r#"{__name__="cpu.load", "host.name"="h", instance="i1", job="shop/api"} 0.5 @1000"#,
            r#"{__name__="cpu.load", "host.name"="h", instance="i1", job="shop/api"} stale @2000"#,
            r#"target_info{"host.name"="h", instance="i1", job="shop/api"} 1 @2000"#,
        ],
    );
    check(
        "",
        gauge,
        Options::default(),
        &["cpu_load_ratio 0.5 @1000", "cpu_load_ratio stale @2000"],
    );
}

#[test]
fn histograms_become_buckets_or_native() {
    check(
        "",
        r#"{"name": "d", "unit": "s", "histogram": {"aggregationTemporality": 2, "dataPoints": [{
            "timeUnixNano": "1000000000", "count": "3", "sum": 2.5, "bucketCounts": ["1", "2", "0"],
            "explicitBounds": [0.5, 1]}]}}"#,
        Options::default(),
        &[
            "d_seconds_sum 2.5 @1000",
            "d_seconds_count 3 @1000",
            r#"d_seconds_bucket{le="0.5"} 1 @1000"#,
            r#"d_seconds_bucket{le="1"} 3 @1000"#,
            r#"d_seconds_bucket{le="+Inf"} 3 @1000"#,
        ],
    );
    check(
        "",
        r#"{"name": "e", "exponentialHistogram": {"aggregationTemporality": 2, "dataPoints": [{
            "timeUnixNano": "1000000000", "count": "6", "scale": 9, "positive": {"offset": 0, "bucketCounts": ["1","2","3"]}}]}}"#,
        Options::default(),
        &["e native 6 schema 8 [BucketSpan { offset: 1, length: 2 }] [3.0, 3.0] @Some(1000)"],
    );
    check(
        "",
        r#"{"name": "s", "summary": {"dataPoints": [{"timeUnixNano": "1000000000", "count": 2, "sum": 3,
            "quantileValues": [{"quantile": 0.5, "value": 1}]}]}}"#,
        Options::default(),
        &["s_sum 3 @1000", "s_count 2 @1000", r#"s{quantile="0.5"} 1 @1000"#],
    );
}

#[test]
fn a_delta_is_refused_alone_and_says_why() {
    let delta =
        r#"{"name": "n", "sum": {"aggregationTemporality": 1, "dataPoints": [{"asInt": "1"}, {"asInt": "2"}]}}"#;
    let gauge = r#"{"name": "g", "gauge": {"dataPoints": [{"timeUnixNano": "1000000", "asInt": 4}]}}"#;
    let reason = "metric \\\"n\\\" has delta temporality: only cumulative values are taken; set the exporter's temporality \
                  preference to cumulative, or put a delta-to-cumulative processor before it";
    let answer = format!(r#"{{"partialSuccess":{{"rejectedDataPoints":"2","errorMessage":"{reason}"}}}}"#);
    check(
        "",
        &format!("{delta}, {gauge}"),
        Options::default(),
        &["g 4 @1", &answer],
    );
    let error = format!("error: {}", reason.replace('\\', ""));
    check("", delta, Options::default(), &[&error]);
}

#[test]
fn protobuf_says_the_same() {
    fn m(fields: &[(u32, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (number, bytes) in fields {
            put_bytes(&mut out, *number, bytes);
        }
        out
    }
    let text = |t: &str| m(&[(1, t.as_bytes())]);
    let pair = |k: &str, v: &str| m(&[(1, k.as_bytes()), (2, &text(v))]);
    let mut point = m(&[(7, &pair("a", "b"))]);
    // time_unix_nano and as_int are fixed.
    point.extend([3 << 3 | 1]);
    point.extend(2_000_000_000_u64.to_le_bytes());
    point.extend([6 << 3 | 1]);
    point.extend(9_i64.to_le_bytes());
    let mut sum = m(&[(1, &point)]);
    put_varint(&mut sum, 2, 2);
    put_varint(&mut sum, 3, 1);
    let metric = m(&[(1, b"n"), (3, b"By"), (7, &sum)]);
    let resource = m(&[(1, &m(&[(1, &pair("service.name", "x"))])), (2, &m(&[(2, &metric)]))]);
    let body = m(&[(1, &resource)]);
    let store = Arc::new(Memory::default());
    let receiver = Receiver::new(store.clone(), Arc::default(), Limits::default());
    let answer = receiver.receive(&body, Encoding::Protobuf, false, NOW).unwrap();
    assert!(answer.is_empty());
    let lines = store.lines.lock().unwrap();
    assert_eq!(*lines, [r#"n_bytes_total{a="b", job="x"} 9 @2000"#]);
    let mut random = fastrand::Rng::with_seed(5);
    drop(lines);
    for _ in 0..20_000 {
        let mut odd = body.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..odd.len());
            odd[at] = random.u8(..);
        }
        let _ = receiver.receive(&odd, Encoding::Protobuf, false, NOW);
    }
}
