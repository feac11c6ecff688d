//! What is tried again, what authenticates, and what is never shown.

use super::*;

/// How a status is taken by a kind.
async fn check(integration: &str, status: u16, retry: bool, reason: Reason) {
    let (_, receipt) = tell(integration, &[(status, "why <x>\n not")], &firing()).await;
    let (problem, retried) = match receipt.outcome {
        Outcome::Sent => panic!("{status} was taken for success"),
        Outcome::Retry(problem) => (problem, true),
        Outcome::Failed(problem) => (problem, false),
    };
    assert_eq!(
        (retried, problem.reason),
        (retry, reason),
        "{integration} {status}: {problem}"
    );
    assert!(
        problem
            .message
            .contains(&format!("unexpected status code {status}: why <x> not")),
        "{problem}"
    );
}

#[tokio::test]
async fn statuses_are_final_or_pass() {
    let webhook = "webhook_configs: [{url: URL}]";
    check(webhook, 500, true, Reason::Server).await;
    check(webhook, 404, false, Reason::Client).await;
    check(webhook, 401, false, Reason::Auth).await;
    check(webhook, 429, false, Reason::RateLimited).await;
    check(webhook, 302, false, Reason::Other).await;
    check(
        "pagerduty_configs: [{routing_key: k, url: URL}]",
        429,
        true,
        Reason::RateLimited,
    )
    .await;
    check(
        "pagerduty_configs: [{service_key: k, url: 'URL/create_event.json'}]",
        403,
        true,
        Reason::Auth,
    )
    .await;
    check(
        "opsgenie_configs: [{api_key: k, api_url: URL}]",
        429,
        true,
        Reason::RateLimited,
    )
    .await;
    check(
        "incidentio_configs: [{url: URL, alert_source_token: k}]",
        429,
        true,
        Reason::RateLimited,
    )
    .await;
    check(
        "jira_configs: [{api_url: URL, project: p, issue_type: t}]",
        429,
        true,
        Reason::RateLimited,
    )
    .await;
    check("discord_configs: [{webhook_url: URL}]", 429, false, Reason::RateLimited).await;
    check("slack_configs: [{api_url: URL}]", 503, true, Reason::Server).await;
    check(
        "telegram_configs: [{bot_token: t, chat_id: 1, api_url: URL}]",
        400,
        true,
        Reason::Client,
    )
    .await;
}

#[tokio::test]
async fn slack_tells_of_mistakes_with_status_200() {
    let told = "slack_configs: [{api_url: URL, channel: c}]";
    let (_, receipt) = tell(
        told,
        &[(200, r#"{"ok": false, "error": "no_such_channel"}"#)],
        &firing(),
    )
    .await;
    assert!(matches!(receipt.outcome, Outcome::Failed(p) if p.message == "channel \"c\": Slack: no_such_channel"));
    let (_, receipt) = tell(told, &[(200, "invalid_token")], &firing()).await;
    assert!(matches!(receipt.outcome, Outcome::Failed(p) if p.message.ends_with("invalid_token")));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_tried_again_and_its_address_not_shown() {
    let sender = sender("webhook_configs: [{url: 'http://127.0.0.1:1/hunter2?x=hunter2'}]", "");
    let receipt = sender.send(&firing()).await;
    assert!(
        matches!(&receipt.outcome, Outcome::Retry(p) if p.message.contains("refused")),
        "{receipt:?}"
    );
    assert_eq!(receipt.address, "http://127.0.0.1:1/…");
    assert!(!format!("{receipt:?} {sender:?}").contains("hunter2"));
}

#[tokio::test]
async fn no_kind_shows_its_secret() {
    for told in [
        "slack_configs: [{api_url: 'http://127.0.0.1:1/hunter2'}]",
        "victorops_configs: [{api_key: hunter2, routing_key: r, api_url: 'http://127.0.0.1:1/'}]",
        "telegram_configs: [{bot_token: hunter2, chat_id: 1, api_url: 'http://127.0.0.1:1'}]",
        "opsgenie_configs: [{api_key: hunter2, api_url: 'http://127.0.0.1:1'}]",
        "wechat_configs: [{api_secret: hunter2, corp_id: c, api_url: 'http://127.0.0.1:1/'}]",
        "email_configs: [{to: a@b, from: a@b, smarthost: '127.0.0.1:1', auth_username: u, auth_password: hunter2}]",
        "sns_configs: [{api_url: 'http://127.0.0.1:1/', topic_arn: t, sigv4: {region: r, access_key: a, secret_key: hunter2}}]",
    ] {
        let sender = sender(told, "");
        let receipt = sender.send(&firing()).await;
        assert!(matches!(receipt.outcome, Outcome::Retry(_)), "{told}: {receipt:?}");
        assert!(
            !format!("{receipt:?} {sender:?}").contains("hunter2"),
            "{receipt:?} {sender:?}"
        );
    }
}

#[tokio::test]
async fn secrets_come_from_files_read_at_each_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("url");
    let fake = Fake::start(&[]).await;
    let text = "route: {receiver: r}\nreceivers: [{name: r, discord_configs: [{webhook_url_file: url}]}]";
    let config = Config::parse("test", text)
        .expect("a configuration")
        .within(folder.path());
    let senders = build(&config, "").expect("built");
    let before = senders["r"][0].send(&firing()).await;
    assert!(
        matches!(&before.outcome, Outcome::Retry(p) if p.message.contains("cannot read")),
        "{before:?}"
    );
    std::fs::write(&file, format!("{}/from-file\n", fake.url)).expect("written");
    assert_eq!(senders["r"][0].send(&firing()).await.outcome, Outcome::Sent);
    assert_eq!(fake.asked()[0].line, "POST /from-file");
}

#[tokio::test]
async fn oauth2_fetches_a_token_and_keeps_it() {
    let fake = Fake::start(&[(200, r#"{"access_token": "t", "expires_in": 3600}"#)]).await;
    let told = "webhook_configs: [{url: 'URL/hook', http_config: {oauth2: {client_id: me, client_secret: hunter2, token_url: 'URL/token', scopes: [a, b]}}}]";
    let sender = sender(told, &fake.url);
    for _ in 0..2 {
        assert_eq!(sender.send(&firing()).await.outcome, Outcome::Sent);
    }
    let asked = fake.asked();
    let lines: Vec<&str> = asked.iter().map(|a| a.line.as_str()).collect();
    assert_eq!(lines, ["POST /token", "POST /hook", "POST /hook"]);
    assert_eq!(asked[0].header("authorization"), "Basic bWU6aHVudGVyMg==");
    assert_eq!(asked[0].body, "grant_type=client_credentials&scope=a+b");
    assert_eq!(asked[2].header("authorization"), "Bearer t");
}

#[tokio::test]
async fn oauth2_sends_credentials_in_the_form_where_the_header_is_refused() {
    let fake = Fake::start(&[(401, ""), (200, r#"{"access_token": "t"}"#)]).await;
    let told = "webhook_configs: [{url: 'URL/hook', http_config: {oauth2: {client_id: me, client_secret: s, token_url: 'URL/token'}}}]";
    assert_eq!(sender(told, &fake.url).send(&firing()).await.outcome, Outcome::Sent);
    assert!(fake.asked()[1].body.ends_with("client_id=me&client_secret=s"));
}

#[tokio::test]
async fn a_proxy_is_asked_in_place_of_the_receiver() {
    let fake = Fake::start(&[]).await;
    let told = "webhook_configs: [{url: 'http://hooks.example/x', http_config: {proxy_url: URL, basic_auth: {username: u, password: p}}}]";
    assert_eq!(sender(told, &fake.url).send(&firing()).await.outcome, Outcome::Sent);
    let asked = fake.asked();
    assert_eq!(
        (asked[0].line.as_str(), asked[0].header("host")),
        ("POST http://hooks.example/x", "hooks.example")
    );
    assert_eq!(asked[0].header("authorization"), "Basic dTpw");
}

#[test]
fn what_is_not_built_is_refused_by_name() {
    for (told, what) in [
        (
            "sns_configs: [{topic_arn: t, sigv4: {role_arn: r}}]",
            "role_arn in sns_configs",
        ),
        (
            "webhook_configs: [{url: 'http://x', http_config: {basic_auth: {username: u, password_ref: r}}}]",
            "a reference into a secret manager",
        ),
    ] {
        let text = format!("route: {{receiver: r}}\nreceivers:\n- name: r\n  {told}\n");
        let config = Config::parse("test", &text).expect("a configuration");
        let error = build(&config, "").expect_err("refused").to_string();
        assert_eq!(error, format!("receiver \"r\": {what} is not built yet"));
    }
}
