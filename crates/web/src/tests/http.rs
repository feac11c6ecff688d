//! What is under the API: methods, names, compression, the page, and the end of the server.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::stage::Stage;

#[tokio::test]
async fn a_head_request_has_no_body() {
    let stage = Stage::new().await;
    for path in ["/metrics", "/api/v1/status/buildinfo", "/-/healthy"] {
        let answer = stage.send("HEAD", path, "", "").await;
        assert_eq!((answer.status, answer.body.len()), (200, 0), "{path}");
    }
}

#[tokio::test]
async fn answers_are_compressed_for_those_who_ask() {
    let stage = Stage::new().await;
    let plain = stage.get("/metrics").await;
    assert_eq!((plain.header("content-encoding"), plain.body.len()), (None, 40 * 23));
    let packed = stage.send("GET", "/metrics", "Accept-Encoding: gzip\r\n", "").await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() < 200, "{}", packed.body.len());
}

#[tokio::test]
async fn a_connection_takes_one_request_after_another() {
    let stage = Stage::new().await;
    let mut stream = stage.connect().await;
    let request = format!("GET /-/healthy HTTP/1.1\r\nHost: {}\r\n\r\n", stage.address);
    for _ in 0..3 {
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut seen = Vec::new();
        while !seen.ends_with(b"healthy.\n") {
            let mut buffer = [0; 1024];
            let count = stream.read(&mut buffer).await.expect("an answer");
            assert!(count > 0, "closed after {}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(&buffer[..count]);
        }
    }
}

#[tokio::test]
async fn a_name_from_elsewhere_gets_nothing() {
    let stage = Stage::new().await;
    let ask = async |method: &str, path: &str, headers: &str| {
        let request = format!("{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: 0\r\n\r\n");
        stage.raw(&request).await
    };
    for host in ["localhost:9900", "127.0.0.1", "watch.example"] {
        assert_eq!(
            ask("GET", "/metrics", &format!("Host: {host}\r\n")).await.status,
            200,
            "{host}"
        );
    }
    for path in ["/metrics", "/api/v1/query?query=up", "/", "/assets/x.js"] {
        let answer = ask("GET", path, "Host: evil.example\r\n").await;
        assert_eq!(answer.status, 403, "{path}");
        assert!(answer.text().contains("evil.example"), "{}", answer.text());
    }
    let origin = "Host: localhost\r\nOrigin: https://evil.example\r\n";
    assert_eq!(ask("POST", "/-/reload", origin).await.status, 403);
}

#[tokio::test]
async fn a_refused_reload_says_why() {
    let stage = Stage::new().await;
    let answer = stage.send("POST", "/-/reload", "", "").await;
    assert_eq!(answer.status, 500);
    assert!(
        answer.text().contains("the old one stays: line 3: no such key"),
        "{}",
        answer.text()
    );
    assert_eq!(stage.get("/-/reload").await.status, 405);
}

#[tokio::test]
async fn a_form_that_is_too_large_is_refused() {
    let stage = Stage::new().await;
    let answer = stage
        .post_form("/api/v1/query", &format!("query={}", "a".repeat(11 << 20)))
        .await;
    assert_eq!(
        (answer.status, answer.json()["errorType"].as_str()),
        (400, Some("bad_data"))
    );
}

#[tokio::test]
async fn the_page_answers_for_its_addresses_and_files() {
    let stage = Stage::new().await;
    let index = stage.get("/").await;
    if index.status == 404 {
        eprintln!("skipped: ui/dist is not built");
        return;
    }
    assert_eq!(stage.send("POST", "/alerts", "", "").await.status, 405);
    for path in [
        "/",
        "/gpu/GPU-1",
        "/host/box.example",
        "/alerts",
        "/targets",
        "/runbooks/GpuLost",
    ] {
        let answer = stage.get(path).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some("text/html; charset=utf-8")),
            "{path}"
        );
        assert_eq!(answer.header("cache-control"), Some("no-cache"), "{path}");
        for name in ["content-security-policy", "x-content-type-options", "referrer-policy"] {
            assert!(answer.header(name).is_some(), "{path} {name}");
        }
    }
    // The head was read in lower case.
    let tag = index.header("etag").expect("a tag").replace("w/", "W/");
    let known = |tag: &str| format!("If-None-Match: \"x\", {tag}\r\n");
    let again = stage.send("GET", "/", &known(&tag), "").await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    assert_eq!(stage.send("GET", "/", &known("\"y\""), "").await.status, 200);
    let packed = stage.send("GET", "/", "Accept-Encoding: gzip\r\n", "").await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
}

#[tokio::test]
async fn an_unknown_address_is_not_there() {
    let stage = Stage::new().await;
    for path in [
        "/assets/missing.js",
        "/missing.js",
        "/favicon.gif",
        "/nope",
        "/graph",
        "/alerts/",
        "/alerts/x",
        "/gpu",
        "/gpu/",
        "//alerts",
        "/-/nope",
        "/metrics/x",
    ] {
        let answer = stage.get(path).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (404, Some("text/plain; charset=utf-8")),
            "{path}"
        );
        assert!(answer.header("content-security-policy").is_some(), "{path}");
        assert_eq!(stage.send("POST", path, "", "").await.status, 404, "{path}");
    }
    for path in ["/api", "/api/", "/api/v1", "/api/v1/nope", "/api/v2/alerts/groups/x"] {
        let answer = stage.get(path).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (404, Some("application/json")),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_shutdown_finishes_what_is_under_way() {
    let mut stage = Stage::new().await;
    let mut idle = stage.connect().await;
    let mut busy = stage.connect().await;
    let request = format!(
        "GET /api/v1/query?query=slow&timeout=300ms HTTP/1.1\r\nHost: {}\r\n\r\n",
        stage.address
    );
    busy.write_all(request.as_bytes()).await.expect("sent");
    while stage.hub.query_slots.available_permits() == 2 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    stage
        .stop
        .take()
        .expect("not stopped yet")
        .send(())
        .expect("the hub listens");
    let mut answer = Vec::new();
    busy.read_to_end(&mut answer).await.expect("an answer");
    assert!(
        answer.starts_with(b"HTTP/1.1 503"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
    assert_eq!(idle.read(&mut [0; 1]).await.expect("closed"), 0);
    let ended = tokio::time::timeout(Duration::from_secs(4), &mut stage.serving).await;
    ended
        .expect("before the drain's end")
        .expect("no panic")
        .expect("no error");
    assert!(
        tokio::net::TcpStream::connect(stage.address).await.is_err(),
        "nobody listens"
    );
}
