//! Targets that are found: in files, on a server, behind a token.

mod server;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use model::{Appended, Appender, Batch, Labels, Millis, SeriesId, StoreError, SystemClock, TargetId};
use scrape::{Client, Job, Manager};
use server::{Reply, Server};

struct Nowhere;

impl Appender for Nowhere {
    fn target(&self, _: &Labels) -> TargetId {
        TargetId(1)
    }

    fn series(&self, _: &Labels) -> Result<SeriesId, StoreError> {
        Ok(SeriesId(0))
    }

    fn append(&self, _: TargetId, _: Millis, _: &Batch) -> Result<Appended, StoreError> {
        Ok(Appended::default())
    }
}

fn job(rest: &str) -> Job {
    let text = format!("scrape_configs:\n- job_name: j\n{rest}");
    let config = config::prometheus::Config::parse("test", &text).expect("a configuration");
    Job::from(&config.scrape_configs[0])
}

fn shown(manager: &Manager) -> Vec<String> {
    let targets = manager.targets().active;
    targets
        .iter()
        .map(|t| format!("{} {}", t.target.url, t.target.labels.without(&["instance", "job"])))
        .collect()
}

async fn until(manager: &Manager, want: &[&str]) {
    for _ in 0..500 {
        if shown(manager) == want {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never {want:?}, but {:?}", shown(manager));
}

fn write(folder: &Path, file: &str, text: &str) {
    std::fs::write(folder.join(file), text).expect("a file");
}

#[tokio::test]
async fn targets_in_files_are_there_at_once_and_change_with_the_files() {
    let folder = tempfile::tempdir().expect("a folder");
    write(
        folder.path(),
        "a.json",
        r#"[{"targets": ["a:1"], "labels": {"rack": "r1"}}]"#,
    );
    write(folder.path(), "b.yml", "- targets: ['b:1', 'b:2']\n");
    let yaml = "  file_sd_configs: [{files: ['*.json', '*.yml'], refresh_interval: 30ms}]\n  \
                static_configs: [{targets: ['s:1']}]\n  \
                relabel_configs: [{source_labels: [__meta_filepath], regex: '.*/(.*)', target_label: file}]\n";
    let manager = Manager::new(Arc::new(Nowhere), Arc::new(SystemClock));
    manager
        .apply(vec![job(yaml).within(folder.path())], vec![])
        .await
        .expect("valid");
    let all = [
        "http://s:1/metrics {}",
        r#"http://a:1/metrics {file="a.json", rack="r1"}"#,
        r#"http://b:1/metrics {file="b.yml"}"#,
        r#"http://b:2/metrics {file="b.yml"}"#,
    ];
    assert_eq!(shown(&manager), all);
    write(folder.path(), "a.json", "[{\"targets\": [");
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(shown(&manager), all, "a broken file is no empty one");
    write(folder.path(), "a.json", r#"[{"targets": ["a:1", "a:3"]}]"#);
    let changed = [
        all[0],
        r#"http://a:1/metrics {file="a.json"}"#,
        r#"http://a:3/metrics {file="a.json"}"#,
        all[2],
        all[3],
    ];
    until(&manager, &changed).await;
    std::fs::remove_file(folder.path().join("b.yml")).expect("it was there");
    until(&manager, &changed[..3]).await;
    manager.stop().await;
}

#[tokio::test]
async fn a_server_lists_targets_and_its_failure_changes_nothing() {
    let json = "Content-Type: application/json; charset=utf-8\r\n";
    let list = |text: &str| Reply::ok(json, text.as_bytes());
    let server = Server::start(vec![list(r#"[{"targets": ["a:1"], "labels": {"x": "y"}}]"#)]).await;
    let url = server.url("/targets");
    let yaml =
        format!("  http_sd_configs: [{{url: '{url}', refresh_interval: 50ms, authorization: {{credentials: t}}}}]\n");
    let manager = Manager::new(Arc::new(Nowhere), Arc::new(SystemClock));
    manager.apply(vec![job(&yaml)], vec![]).await.expect("valid");
    let found = [r#"http://a:1/metrics {x="y"}"#];
    until(&manager, &found).await;
    let asked = server.requests().remove(0).to_lowercase();
    assert!(asked.contains("authorization: bearer t\r\n"), "{asked}");
    assert!(
        asked.contains("x-prometheus-refresh-interval-seconds: 1\r\n"),
        "{asked}"
    );
    server.reply(Reply::raw("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"));
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(shown(&manager), found);
    // A reload keeps what was found.
    manager.apply(vec![job(&yaml)], vec![]).await.expect("valid");
    assert_eq!(shown(&manager), found);
    server.reply(list("[]"));
    until(&manager, &[]).await;
    manager.stop().await;
}

#[tokio::test]
async fn a_token_is_fetched_once_and_anew_when_it_is_refused() {
    let token = Reply::ok(
        "Content-Type: application/json\r\n",
        br#"{"access_token": "abc", "token_type": "bearer", "expires_in": 3600}"#,
    );
    let tokens = Server::start(vec![token]).await;
    let target = Server::start(vec![Reply::page("x 1\n")]).await;
    let url = tokens.url("/token");
    let yaml = format!("  oauth2: {{client_id: me, client_secret: hush, token_url: '{url}', scopes: [a, b]}}\n");
    let client = Client::new(Arc::new(job(&yaml)), &[]).expect("a client");
    for _ in 0..2 {
        let fetched = client.fetch(&target.url("/"), 10_000, &mut Vec::new()).await;
        fetched.expect("a page");
    }
    assert!(
        target.requests()[1]
            .to_lowercase()
            .contains("authorization: bearer abc\r\n")
    );
    assert_eq!(tokens.requests().len(), 1);
    let asked = tokens.requests().remove(0);
    // `me:hush` in base 64.
    assert!(
        asked.to_lowercase().contains("authorization: basic bwu6ahvzaa==\r\n"),
        "{asked}"
    );
    target.reply(Reply::raw("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"));
    for _ in 0..2 {
        let refused = client.fetch(&target.url("/"), 10_000, &mut Vec::new()).await;
        assert!(refused.expect_err("refused").to_string().contains("401"));
    }
    assert_eq!(tokens.requests().len(), 2);
}
