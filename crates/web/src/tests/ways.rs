//! The ways in and out: what is pushed is stored, what is asked for is given, and what is refused says why.

use exposition::wire::{put_bytes, put_double, put_varint};
use model::{Appender as _, Batch, Labels, Matcher, Queryable as _};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::stage::{NOW, Stage};

fn message(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

/// A request of version 1: one sample of a series.
fn pushed(name: &str, time: i64, value: f64) -> Vec<u8> {
    let label = message(|out| {
        put_bytes(out, 1, b"__name__");
        put_bytes(out, 2, name.as_bytes());
    });
    let sample = message(|out| {
        put_double(out, 1, value);
        put_varint(out, 2, time.cast_unsigned());
    });
    let series = message(|out| {
        put_bytes(out, 1, &label);
        put_bytes(out, 2, &sample);
    });
    message(|out| put_bytes(out, 1, &series))
}

async fn post(stage: &Stage, path: &str, headers: &str, body: &[u8]) -> (u16, String) {
    let mut stream = stage.connect().await;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
        stage.address,
        body.len()
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.write_all(body).await.expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("an answer");
    let text = String::from_utf8_lossy(&answer).into_owned();
    let status = text.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status");
    (status, text.to_ascii_lowercase())
}

const SNAPPY: &str = "Content-Encoding: snappy\r\nContent-Type: application/x-protobuf\r\n";
const SNAPPY2: &str =
    "Content-Encoding: snappy\r\nContent-Type: application/x-protobuf;proto=io.prometheus.write.v2.Request\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_pushed_is_stored_and_what_is_wrong_is_said() {
    let stage = Stage::new().await;
    let packed = |plain: &[u8]| snap::raw::Encoder::new().compress_vec(plain).expect("packed");
    let (status, _) = post(&stage, "/api/v1/write", SNAPPY, &packed(&pushed("pushed", NOW, 5.0))).await;
    assert_eq!(status, 204);
    let found = stage
        .db
        .select(&[Matcher::equal("__name__", "pushed")], NOW, NOW)
        .expect("a store");
    assert_eq!(found.series.len(), 1);
    let (status, text) = post(&stage, "/api/v1/write", SNAPPY, &packed(&pushed("", NOW, 5.0))).await;
    assert!(status == 400 && text.contains("has no metric name"), "{text}");
    let (status, text) = post(&stage, "/api/v1/write", SNAPPY, b"nonsense").await;
    assert!(status == 400 && text.contains("snappy"), "{text}");
    let (status, _) = post(&stage, "/api/v1/write", "Content-Type: text/plain\r\n", b"").await;
    assert_eq!(status, 415);
    let (status, _) = post(&stage, "/api/v1/write", "Content-Type: application/x-protobuf\r\n", b"").await;
    assert_eq!(status, 415);
    let (status, text) = post(&stage, "/api/v1/write", SNAPPY2, b"").await;
    assert!(
        status == 204 && text.contains("x-prometheus-remote-write-samples-written: 0"),
        "{text}"
    );
    // The size that is told is judged before the body comes.
    let told = format!(
        "POST /api/v1/write HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: 99999999\r\n{SNAPPY}\r\n",
        stage.address
    );
    assert_eq!(stage.raw(&told).await.status, 413);
    stage.set_ready(false);
    let (status, _) = post(&stage, "/api/v1/write", SNAPPY, &packed(&pushed("pushed", NOW, 5.0))).await;
    assert_eq!(status, 503);
}

#[tokio::test(flavor = "multi_thread")]
async fn otlp_is_taken_as_json() {
    let stage = Stage::new().await;
    let point = json!({"timeUnixNano": (NOW * 1_000_000).to_string(), "asInt": "4"});
    let gauge = json!({"name": "load", "gauge": {"dataPoints": [point]}});
    let body = json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": [gauge]}]}]}).to_string();
    let path = "/api/v1/otlp/v1/metrics";
    let (status, text) = post(&stage, path, "Content-Type: application/json\r\n", body.as_bytes()).await;
    assert!(status == 200 && text.ends_with("{}"), "{text}");
    let found = stage
        .db
        .select(&[Matcher::equal("__name__", "load")], NOW, NOW)
        .expect("a store");
    assert_eq!(found.series.len(), 1);
    let (status, _) = post(&stage, path, "Content-Type: text/plain\r\n", b"{}").await;
    assert_eq!(status, 415);
}

#[tokio::test]
async fn federation_shows_the_latest_samples_with_the_external_labels() {
    let stage = Stage::new().await;
    let answer = stage
        .get("/federate?match[]=up&match[]=http_requests_total%7Bhttp_status_code%3D%22200%22%7D")
        .await;
    let want = format!(
        "# TYPE http_requests_total untyped\n\
         http_requests_total{{http_status_code=\"200\",instance=\"\",site=\"here\"}} 3 {NOW}\n\
         # TYPE up untyped\n\
         up{{instance=\"localhost:9090\",job=\"prometheus\",site=\"here\"}} 1 {NOW}\n\
         up{{instance=\"localhost:9091\",job=\"node\",site=\"here\"}} 0 {NOW}\n"
    );
    assert_eq!(answer.text(), want);
    assert_eq!(stage.get("/federate").await.text(), "");
    assert_eq!(stage.get("/federate?match[]=%7B").await.status, 400);
}

#[tokio::test]
async fn examples_are_found_by_the_selectors_of_an_expression() {
    let stage = Stage::new().await;
    let labels = Labels::from_pairs([("__name__", "n_total"), ("a", "b")]);
    let id = stage.db.series(&labels).expect("room");
    let exemplar = model::Exemplar {
        labels: Labels::from_pairs([("trace_id", "x")]),
        value: 0.5,
        time: NOW,
    };
    let batch = Batch {
        samples: vec![(id, 1.0)],
        exemplars: vec![(id, exemplar)],
        ..Batch::default()
    };
    let target = stage.db.target(&labels);
    stage.db.append(target, NOW, &batch).expect("appended");
    let answer = stage
        .get("/api/v1/query_exemplars?query=rate(n_total%5B5m%5D)%20%2F%20other")
        .await;
    let want = json!([{
        "seriesLabels": {"__name__": "n_total", "a": "b"},
        "exemplars": [{"labels": {"trace_id": "x"}, "value": "0.5", "timestamp": 1_435_781_451.781}],
    }]);
    assert_eq!(answer.json()["data"], want);
    assert_eq!(stage.get("/api/v1/query_exemplars?query=(").await.status, 400);
}

#[tokio::test]
async fn administration_needs_leave() {
    let mut stage = Stage::new().await;
    let path = "/api/v1/admin/tsdb/delete_series?match[]=up";
    assert_eq!(stage.send("POST", path, "", "").await.status, 204);
    assert_eq!(stage.send("PUT", path, "", "").await.status, 204);
    assert_eq!(stage.get(path).await.status, 405);
    assert_eq!(
        stage
            .send("POST", "/api/v1/admin/tsdb/delete_series", "", "")
            .await
            .status,
        400
    );
    assert_eq!(
        stage
            .send("POST", "/api/v1/admin/tsdb/clean_tombstones", "", "")
            .await
            .status,
        204
    );
    let taken = stage.send("POST", "/api/v1/admin/tsdb/snapshot", "", "").await.json();
    let name = taken["data"]["name"].as_str().expect("a name").to_owned();
    assert!(name.starts_with("20150701T201051Z-"), "{name}");
    stage = Stage::without_admin().await;
    let refused = stage.send("POST", path, "", "").await;
    assert_eq!(refused.status, 403);
    assert!(refused.text().contains("admin_api: true"), "{}", refused.text());
}
