//! Whatever a target does, it costs one failed scrape with its reason.

mod server;

use std::io::Write as _;
use std::sync::Arc;

use exposition::Format;
use scrape::{Client, Job};
use server::{Reply, Server};

fn job(yaml: &str) -> Job {
    let text = format!("scrape_configs:\n- job_name: j\n{yaml}");
    let config = config::prometheus::Config::parse("test", &text).expect("a configuration");
    Job::from(&config.scrape_configs[0])
}

/// What a fetch gives: the format with the page's size, or the reason.
async fn fetch(yaml: &str, path: &str, timeout: i64, replies: Vec<Reply>) -> String {
    let server = Server::start(replies).await;
    let client = Client::new(Arc::new(job(yaml)), &[]).expect("a client");
    let mut page = Vec::new();
    match client.fetch(&server.url(path), timeout, &mut page).await {
        Ok(format) => format!("{format:?}, {} bytes", page.len()),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn check(yaml: &str, timeout: i64, reply: Reply, want: &str) {
    check_all(yaml, timeout, vec![reply], want);
}

#[track_caller]
fn check_all(yaml: &str, timeout: i64, replies: Vec<Reply>, want: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let got = runtime.block_on(fetch(yaml, "/metrics", timeout, replies));
    assert!(got.contains(want), "{got:?}, wanted {want:?}");
}

/// Long enough for a busy machine.
const PATIENT: i64 = 30_000;

const TEXT: &str = "Content-Type: text/plain; version=0.0.4\r\n";

#[test]
fn a_page_is_fetched() {
    check("", PATIENT, Reply::page("x 1\n"), "Lines(Text), 4 bytes");
    let open = Reply::ok(
        "Content-Type: application/openmetrics-text; version=1.0.0\r\n",
        b"# EOF\n",
    );
    check("", PATIENT, open, "Lines(OpenMetrics), 6 bytes");
}

#[test]
fn a_status_that_is_not_200_is_the_reason() {
    check(
        "",
        PATIENT,
        Reply::raw("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"),
        "server returned HTTP status 500",
    );
    check(
        "",
        PATIENT,
        Reply::raw("HTTP/1.1 204 No Content\r\n\r\n"),
        "HTTP status 204",
    );
}

#[test]
fn a_redirect_is_followed_when_allowed() {
    let redirect = || Reply::raw("HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n");
    check_all(
        "",
        PATIENT,
        vec![redirect(), Reply::page("x 1\n")],
        "Lines(Text), 4 bytes",
    );
    check("  follow_redirects: false\n", PATIENT, redirect(), "HTTP status 302");
    let round = (0..20).map(|_| redirect()).collect();
    check_all("", PATIENT, round, "too many redirects");
}

#[test]
fn nothing_is_no_page() {
    check("", PATIENT, Reply::ok(TEXT, b""), "empty answer");
    check("", PATIENT, Reply::raw(""), "no answer");
    check("", PATIENT, Reply::raw("\0\x01garbage that is no HTTP\n"), "no answer");
}

#[test]
fn a_target_that_hangs_or_drips_meets_the_timeout() {
    check("", 150, Reply::Hang, "no complete answer within 150ms");
    check("", 150, Reply::Drip, "no complete answer within 150ms");
}

#[test]
fn a_page_may_be_so_large_and_no_larger() {
    check(
        "  body_size_limit: 4B\n",
        PATIENT,
        Reply::page("x 1\n"),
        "Lines(Text), 4 bytes",
    );
    check(
        "  body_size_limit: 3B\n",
        PATIENT,
        Reply::page("x 1\n"),
        "body size limit of 3 bytes",
    );
    check("", PATIENT, Reply::Endless, "body size limit of 104857600 bytes");
}

#[test]
fn a_gzip_page_is_unpacked_and_a_bomb_is_not() {
    let gzip = |bytes: &[u8]| {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        out.write_all(bytes).expect("memory");
        out.finish().expect("memory")
    };
    let headers = format!("{TEXT}Content-Encoding: gzip\r\n");
    check(
        "",
        PATIENT,
        Reply::ok(&headers, &gzip(b"x 1\n")),
        "Lines(Text), 4 bytes",
    );
    let bomb = gzip(&vec![b'#'; 20 << 20]);
    assert!(bomb.len() < 100_000);
    check(
        "  body_size_limit: 1MB\n",
        PATIENT,
        Reply::ok(&headers, &bomb),
        "body size limit of 1048576 bytes",
    );
    let mut broken = gzip(b"x 1\n");
    broken.truncate(12);
    check("", PATIENT, Reply::ok(&headers, &broken), "no answer");
}

#[test]
fn a_zstd_page_is_unpacked_and_a_bomb_is_not() {
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 3).expect("memory");
    let headers = format!("{TEXT}Content-Encoding: zstd\r\n");
    check(
        "",
        PATIENT,
        Reply::ok(&headers, &zstd(b"x 1\n")),
        "Lines(Text), 4 bytes",
    );
    let bomb = zstd(&vec![b'#'; 20 << 20]);
    assert!(bomb.len() < 100_000);
    check(
        "  body_size_limit: 1MB\n",
        PATIENT,
        Reply::ok(&headers, &bomb),
        "body size limit of 1048576 bytes",
    );
}

#[test]
fn the_content_type_decides_or_the_fallback() {
    check(
        "",
        PATIENT,
        Reply::ok("Content-Type: text/html\r\n", b"<html>"),
        "unsupported content type \"text/html\"",
    );
    check("", PATIENT, Reply::ok("", b"x 1\n"), "unsupported content type \"\"");
    let yaml = "  fallback_scrape_protocol: PrometheusText0.0.4\n";
    check(yaml, PATIENT, Reply::ok("", b"x 1\n"), "Lines(Text), 4 bytes");
    check(
        yaml,
        PATIENT,
        Reply::ok("Content-Type: a/b\r\n", b"x 1\n"),
        "Lines(Text), 4 bytes",
    );
}

#[test]
fn nobody_listening_is_the_reason() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/metrics", listener.local_addr().expect("bound"));
        drop(listener);
        let client = Client::new(Arc::new(job("")), &[]).expect("a client");
        let error = client.fetch(&url, PATIENT, &mut Vec::new()).await.expect_err("nobody");
        assert!(error.to_string().contains("refused"), "{error}");
    });
}

/// The request that a job sends, in lower case.
fn request(yaml: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let server = Server::start(vec![Reply::page("x 1\n")]).await;
        let client = Client::new(Arc::new(job(yaml)), &[]).expect("a client");
        let fetched = client.fetch(&server.url("/m?a=b"), 10_000, &mut Vec::new()).await;
        assert_eq!(fetched.expect("a page"), Format::Text.into());
        server.requests().remove(0).to_lowercase()
    })
}

#[test]
fn a_request_says_what_it_wants_and_who_asks() {
    let sent = request("");
    assert!(sent.starts_with("get /m?a=b http/1.1\r\n"), "{sent}");
    for header in [
        "accept: application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,",
        "accept-encoding: zstd,gzip\r\n",
        "x-prometheus-scrape-timeout-seconds: 10\r\n",
        "user-agent: watchfire/",
    ] {
        assert!(sent.contains(header), "{header} in {sent}");
    }
    assert!(request("  enable_compression: false\n").contains("accept-encoding: identity\r\n"));
}

#[test]
fn credentials_come_from_the_configuration_or_a_file() {
    assert!(request("  basic_auth: {username: u, password: p}\n").contains("authorization: basic dtpw\r\n"));
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "token\n").expect("written");
    let yaml = format!("  authorization: {{credentials_file: {}}}\n", file.path().display());
    assert!(request(&yaml).contains("authorization: bearer token\r\n"));
    assert!(request("  http_headers: {X-Own: {values: [v]}}\n").contains("x-own: v\r\n"));
}
