//! Prometheus' API: answers, error classes and codes.

use serde_json::{Value, json};

use super::stage::{NOW, Stage};

#[track_caller]
fn check_data(answer: &super::stage::Answer, want: &Value) {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json(), json!({"status": "success", "data": want}));
}

async fn check_error(stage: &Stage, path: &str, status: u16, kind: &str, message: &str) {
    let answer = stage.get(path).await;
    let body = answer.json();
    assert_eq!(
        (answer.status, body["errorType"].as_str()),
        (status, Some(kind)),
        "{path}: {body}"
    );
    assert_eq!(body["status"], "error");
    let text = body["error"].as_str().expect("a message");
    assert!(text.contains(message), "{path}: {text}");
}

#[tokio::test]
async fn queries_are_answered_by_get_and_by_form() {
    let stage = Stage::new().await;
    let up = |instance: &str, job: &str, value: &str| json!({"metric": {"__name__": "up", "instance": instance, "job": job}, "value": [1_435_781_451.781, value]});
    let want = json!({"resultType": "vector", "result": [up("localhost:9090", "prometheus", "1"), up("localhost:9091", "node", "0")]});
    check_data(
        &stage.get("/api/v1/query?query=up&time=2015-07-01T20:10:51.781Z").await,
        &want,
    );
    check_data(&stage.get("/api/v1/query?query=up&time=1435781451.781").await, &want);
    check_data(&stage.get("/api/v1/query?query=up").await, &want);
    check_data(
        &stage.post_form("/api/v1/query", "query=up&time=1435781451.781").await,
        &want,
    );
    // What stands in the address counts too; the body wins.
    check_data(
        &stage
            .post_form("/api/v1/query?query=down&time=1435781451.781", "query=up")
            .await,
        &want,
    );
    check_data(
        &stage.get("/api/v1/query?query=scalar(up%7Bjob%3D%22node%22%7D)").await,
        &json!({"resultType": "scalar", "result": [1_435_781_451.781, "0"]}),
    );
    check_data(
        &stage.get("/api/v1/query?query=%22a%22").await,
        &json!({"resultType": "string", "result": [1_435_781_451.781, "a"]}),
    );
    let range = "query=up%7Bjob%3D%22node%22%7D&start=2015-07-01T20:10:30.781Z&end=2015-07-01T20:11:00.781Z&step=15s";
    let want = json!({"resultType": "matrix", "result": [{
        "metric": {"__name__": "up", "instance": "localhost:9091", "job": "node"},
        "values": [[1_435_781_430.781, "0"], [1_435_781_445.781, "0"], [1_435_781_460.781, "0"]],
    }]});
    check_data(&stage.get(&format!("/api/v1/query_range?{range}")).await, &want);
    check_data(&stage.post_form("/api/v1/query_range", range).await, &want);
    check_data(
        &stage.get("/api/v1/format_query?query=foo/bar").await,
        &json!("foo / bar"),
    );
}

#[tokio::test]
async fn what_is_wrong_has_its_class_and_code() {
    let stage = Stage::new().await;
    for (path, status, kind, message) in [
        (
            "/api/v1/query?query=up%7B",
            400,
            "bad_data",
            "invalid parameter \"query\"",
        ),
        ("/api/v1/query", 400, "bad_data", "invalid parameter \"query\""),
        (
            "/api/v1/query?query=up&time=soon",
            400,
            "bad_data",
            "invalid parameter \"time\": cannot parse \"soon\" to a valid timestamp",
        ),
        (
            "/api/v1/query?query=up&limit=-1",
            400,
            "bad_data",
            "invalid parameter \"limit\"",
        ),
        (
            "/api/v1/query?query=up&timeout=x",
            400,
            "bad_data",
            "invalid parameter \"timeout\"",
        ),
        (
            "/api/v1/query_range?query=up&end=1&step=1",
            400,
            "bad_data",
            "invalid parameter \"start\"",
        ),
        (
            "/api/v1/query_range?query=up&start=2&end=1&step=1",
            400,
            "bad_data",
            "end timestamp must not be before start time",
        ),
        (
            "/api/v1/query_range?query=up&start=1&end=2",
            400,
            "bad_data",
            "invalid parameter \"step\"",
        ),
        (
            "/api/v1/query_range?query=up&start=1&end=2&step=0",
            400,
            "bad_data",
            "zero or negative query resolution step",
        ),
        (
            "/api/v1/query_range?query=up&start=0&end=11001&step=1",
            400,
            "bad_data",
            "exceeded maximum resolution of 11,000 points",
        ),
        (
            "/api/v1/format_query?query=(",
            400,
            "bad_data",
            "invalid parameter \"query\"",
        ),
        ("/api/v1/series", 400, "bad_data", "no match[] parameter provided"),
        (
            "/api/v1/series?match[]=%7Ba%3D%22%22%7D",
            400,
            "bad_data",
            "must contain at least one non-empty matcher",
        ),
        ("/api/v1/labels?match[]=sum(up)", 400, "bad_data", "match[]"),
        ("/api/v1/labels?start=2&end=1", 400, "bad_data", "end timestamp"),
        ("/api/v1/rules?type=x", 400, "bad_data", "not supported value"),
        (
            "/api/v1/query?query=execution",
            422,
            "execution",
            "found duplicate series",
        ),
        (
            "/api/v1/query?query=slow&timeout=10ms",
            503,
            "timeout",
            "query timed out",
        ),
        (
            "/api/v1/query?query=unavailable",
            503,
            "unavailable",
            "the far side is down",
        ),
        ("/api/v1/query?query=internal", 500, "internal", "disk on fire"),
        ("/api/v1/query?query=panic", 500, "internal", "ended early"),
        ("/api/v1/nothing", 404, "not_found", "no such API"),
        ("/api/v2/nothing/at/all", 404, "not_found", "no such API"),
    ] {
        check_error(&stage, path, status, kind, message).await;
    }
    let answer = stage.send("DELETE", "/api/v1/query", "", "").await;
    assert_eq!((answer.status, &answer.json()["status"]), (405, &json!("error")));
    assert!(answer.header("allow").is_some(), "{}", answer.head);
    assert_eq!(stage.send("PUT", "/api/v1/nothing", "", "").await.status, 404);
}

#[tokio::test]
async fn before_replay_is_done_queries_wait_and_say_so() {
    let stage = Stage::new().await;
    stage.set_ready(false);
    for path in [
        "query?query=up",
        "query_range?query=up&start=1&end=2&step=1",
        "series?match[]=up",
        "labels",
        "label/job/values",
    ] {
        check_error(&stage, &format!("/api/v1/{path}"), 503, "unavailable", "not ready").await;
    }
    assert_eq!(stage.get("/-/ready").await.status, 503);
    assert_eq!(stage.get("/-/healthy").await.status, 200);
    assert_eq!(stage.get("/api/v1/rules").await.status, 200);
    assert_eq!(
        stage.get("/api/v1/status/walreplay").await.json()["data"]["state"],
        "in progress"
    );
    stage.set_ready(true);
    assert_eq!(stage.get("/-/ready").await.status, 200);
}

#[tokio::test]
async fn series_and_labels_are_found_and_limited() {
    let stage = Stage::new().await;
    let node = json!({"__name__": "up", "instance": "localhost:9091", "job": "node"});
    let selector = "match[]=up%7Bjob%3D%22node%22%7D";
    check_data(&stage.get(&format!("/api/v1/series?{selector}")).await, &json!([node]));
    check_data(&stage.post_form("/api/v1/series", selector).await, &json!([node]));
    check_data(
        &stage.post_form("/api/v1/labels", selector).await,
        &json!(["__name__", "instance", "job"]),
    );
    check_data(
        &stage.get("/api/v1/label/http_status_code/values").await,
        &json!(["200", "504"]),
    );
    check_data(
        &stage.get("/api/v1/label/U__http__status__code/values").await,
        &json!(["200", "504"]),
    );
    check_data(&stage.get("/api/v1/label/nobody/values").await, &json!([]));
    check_data(&stage.get("/api/v1/series?match[]=up&start=1&end=2").await, &json!([]));
    let cut = json!({"status": "success", "data": ["200"], "warnings": ["results truncated due to limit"]});
    assert_eq!(
        stage.get("/api/v1/label/http_status_code/values?limit=1").await.json(),
        cut
    );
    let cut = stage.get("/api/v1/query?query=up&limit=1").await.json();
    assert_eq!(cut["data"]["result"].as_array().map(Vec::len), Some(1));
    assert_eq!(cut["warnings"], json!(["results truncated due to limit"]));
}

#[tokio::test]
async fn rules_and_alerts_are_told_with_their_state() {
    let stage = Stage::new().await;
    let body = stage.get("/api/v1/rules").await.json();
    let group = &body["data"]["groups"][0];
    assert_eq!(
        (&group["name"], &group["file"], &group["interval"]),
        (&json!("example"), &json!("rules.yml"), &json!(15.0))
    );
    let rule = &group["rules"][0];
    let alert = json!({
        "labels": {"alertname": "HighRequestLatency", "job": "myjob", "severity": "page"},
        "annotations": {"summary": "High request latency"},
        "state": "firing",
        "activeAt": "2015-07-01T20:10:51.781Z",
        "value": "1e+00",
    });
    assert_eq!(rule["alerts"], json!([alert]));
    assert_eq!(
        (&rule["state"], &rule["health"], &rule["type"]),
        (&json!("firing"), &json!("ok"), &json!("alerting"))
    );
    assert_eq!(
        (&group["rules"][2]["state"], &group["rules"][2]["duration"]),
        (&json!("inactive"), &json!(600.0))
    );
    assert_eq!(
        stage.get("/api/v1/alerts").await.json()["data"]["alerts"],
        json!([alert])
    );
    let names = |body: &Value| {
        let groups = body["data"]["groups"].as_array().expect("a list");
        let rules = groups.iter().flat_map(|g| g["rules"].as_array().expect("a list"));
        rules
            .map(|r| r["name"].as_str().expect("a name").to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    for (query, want) in [
        ("type=record", "job:http_inprogress_requests:sum"),
        ("type=alert&rule_name[]=Quiet", "Quiet"),
        ("rule_group[]=other", ""),
        ("file[]=rules.yml&type=alert", "HighRequestLatency Quiet"),
    ] {
        assert_eq!(
            names(&stage.get(&format!("/api/v1/rules?{query}")).await.json()),
            want,
            "{query}"
        );
    }
    let bare = stage.get("/api/v1/rules?exclude_alerts=true").await.json();
    assert_eq!(bare["data"]["groups"][0]["rules"][0]["alerts"], json!([]));
}

#[tokio::test]
async fn what_grafana_asks_first_is_answered() {
    let stage = Stage::new().await;
    assert_eq!(stage.get("/api/v1/status/buildinfo").await.json()["status"], "success");
    assert_eq!(
        stage
            .post_form("/api/v1/labels", "start=1435780000&end=1435790000")
            .await
            .status,
        200
    );
    let names = stage.get("/api/v1/label/__name__/values").await.json();
    assert!(
        names["data"].as_array().is_some_and(|n| n.contains(&json!("up"))),
        "{names}"
    );
    check_data(
        &stage.get("/api/v1/query_exemplars?query=a&start=1&end=2").await,
        &json!([]),
    );
    check_data(
        &stage
            .post_form("/api/v1/query_exemplars", "query=a&start=1&end=2")
            .await,
        &json!([]),
    );
    assert_eq!(stage.get("/api/v1/metadata").await.json()["status"], "success");
    assert_eq!(
        stage.get("/api/v1/metadata?limit=1&metric=x").await.json()["data"],
        json!({})
    );
    assert_eq!(stage.get("/api/v1/rules").await.json()["status"], "success");
}

#[tokio::test]
async fn targets_are_shown_by_state_and_pool() {
    let stage = Stage::new().await;
    let data = |body: Value| body["data"].clone();
    let all = data(stage.get("/api/v1/targets").await.json());
    let target = &all["activeTargets"][0];
    assert_eq!(
        (&target["scrapePool"], &target["labels"]["instance"]),
        (&json!("node"), &json!("box"))
    );
    assert_eq!(
        (&target["scrapeInterval"], &target["scrapeTimeout"]),
        (&json!("15s"), &json!("10s"))
    );
    assert_eq!(
        data(stage.get("/api/v1/targets?state=dropped").await.json())["activeTargets"],
        json!([])
    );
    assert_eq!(
        data(stage.get("/api/v1/targets?scrapePool=x").await.json())["activeTargets"],
        json!([])
    );
    assert_eq!(
        data(stage.get("/api/v1/scrape_pools").await.json()),
        json!({"scrapePools": ["node"]})
    );
}

#[tokio::test]
async fn a_query_ends_when_its_client_goes() {
    let stage = Stage::new().await;
    let mut stream = stage.connect().await;
    let request = format!(
        "GET /api/v1/query?query=slow HTTP/1.1\r\nHost: {}\r\n\r\n",
        stage.address
    );
    tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes())
        .await
        .expect("sent");
    // Until the query has its place, then until it gave it back.
    let free = || stage.hub.query_slots.available_permits();
    wait_for(|| free() == 1).await;
    drop(stream);
    wait_for(|| free() == 2).await;
    // One that was given up before its thread began has nothing to say.
    let ended = stage.ended.lock().expect("free");
    assert!(ended.iter().all(|e| *e == model::QueryError::Canceled), "{ended:?}");
    assert!(stage.hub.queries.active().is_empty());
}

#[tokio::test]
async fn queries_beyond_the_room_wait_for_their_timeout() {
    let stage = Stage::new().await;
    let all = stage.hub.query_slots.acquire_many(2).await.expect("open");
    check_error(
        &stage,
        "/api/v1/query?query=up&timeout=20ms",
        503,
        "timeout",
        "timed out",
    )
    .await;
    check_error(&stage, "/api/v1/labels?timeout=20ms", 503, "timeout", "timed out").await;
    drop(all);
    assert_eq!(stage.get("/api/v1/query?query=up&timeout=5s").await.status, 200);
}

#[test]
fn the_stage_stands_at_the_examples_moment() {
    assert_eq!(crate::api::rules::date(Some(NOW)), "2015-07-01T20:10:51.781Z");
}

/// Waits until something holds, for five seconds at most.
async fn wait_for(holds: impl Fn() -> bool) {
    for _ in 0..2500 {
        if holds() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    panic!("it did not come to hold");
}

#[tokio::test]
async fn statistics_are_told_where_asked() {
    let stage = Stage::new().await;
    let range = "/api/v1/query_range?query=up&start=1435781430.781&end=1435781460.781&step=15s";
    assert_eq!(stage.get(range).await.json()["data"]["stats"], Value::Null);
    let stats = stage.get(&format!("{range}&stats=all")).await.json()["data"]["stats"].clone();
    let samples = &stats["samples"];
    assert_eq!(samples["totalQueryableSamples"], 6, "{stats}");
    assert_eq!(
        samples["totalQueryableSamplesPerStep"],
        json!([[1_435_781_430.781, 2], [1_435_781_445.781, 2], [1_435_781_460.781, 2]])
    );
    for timing in [
        "evalTotalTime",
        "resultSortTime",
        "queryPreparationTime",
        "innerEvalTime",
        "execQueueTime",
        "execTotalTime",
    ] {
        assert!(
            stats["timings"][timing].as_f64().is_some_and(|s| s >= 0.0),
            "{timing}: {stats}"
        );
    }
    let brief = stage.get(&format!("{range}&stats=true")).await.json()["data"]["stats"].clone();
    assert_eq!(brief["samples"]["totalQueryableSamplesPerStep"], Value::Null);
}

#[tokio::test]
async fn running_queries_are_listed_and_none_is_left_behind() {
    let stage = Stage::new().await;
    stage.get("/api/v1/query?query=up").await;
    check_data(
        &stage.get("/api/watchfire/v1/queries").await,
        &json!({"active": [], "slow_total": 0}),
    );
    check_error(&stage, "/api/watchfire/v1/queries/x/cancel", 405, "bad_data", "GET").await;
    let gone = stage.send("DELETE", "/api/watchfire/v1/queries/7", "", "").await;
    assert_eq!(gone.status, 404, "{}", gone.text());
}
