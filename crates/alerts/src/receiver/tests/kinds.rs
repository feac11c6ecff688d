//! What each kind asks, for a group that fires and for one that is over.

use super::*;

const SUBJECT: &str = "[FIRING:2] GpuHot (critical)";
const OVER: &str = "[RESOLVED] GpuHot (critical)";

/// One request is made, to this place, and its JSON holds this much.
async fn check(integration: &str, line: &str, want: Value) -> Asked {
    check_for(integration, &firing(), line, want).await
}

async fn check_for(integration: &str, notification: &Notification, line: &str, want: Value) -> Asked {
    let (asked, receipt) = tell(integration, &[], notification).await;
    assert_eq!((&receipt.outcome, receipt.remark.as_str()), (&Outcome::Sent, ""));
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].line, line);
    assert_holds(&asked[0].json(), &want);
    assert!(receipt.address.starts_with("http://127.0.0.1:") && receipt.address.ends_with("/…"));
    asked[0].clone()
}

fn contains(value: &Value, parts: &[&str]) {
    let text = value.as_str().unwrap_or_else(|| panic!("no text: {value}"));
    for part in parts {
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
}

#[tokio::test]
async fn webhook() {
    let asked = check(
        "webhook_configs: [{url: 'URL/hook', http_config: {http_headers: {X-A: {values: [b]}}}}]",
        "POST /hook",
        json!({"version": "4", "status": "firing", "receiver": "r", "alerts": [{"labels": {"gpu": "0"}}, {}]}),
    )
    .await;
    assert_eq!(
        (asked.header("x-a"), asked.header("content-type")),
        ("b", "application/json")
    );
    check(
        "webhook_configs: [{url: 'URL/{{ .GroupLabels.alertname }}', payload: {a: '{{ len .Alerts }}', b: [1, '{{ .Status }}', true], '{{ .Status }}': '{{ .CommonLabels | toJson }}'}}]",
        "POST /GpuHot",
        json!({"a": 2, "b": [1, "firing", true], "firing": {"severity": "critical"}}),
    )
    .await;
}

#[tokio::test]
async fn slack_webhook() {
    let asked = check(
        "slack_configs: [{api_url: 'URL/s', channel: '#a', send_resolved: true, fields: [{title: t, value: '{{ .Status }}'}], short_fields: true, actions: [{type: button, text: go, url: 'http://x', confirm: {text: sure}}]}]",
        "POST /s",
        json!({"channel": "#a", "username": "Watchfire", "attachments": [{
            "title": SUBJECT, "title_link": "http://hub.example/alerts", "color": "danger",
            "mrkdwn_in": ["fallback", "pretext", "text"],
            "fields": [{"title": "t", "value": "firing", "short": true}],
            "actions": [{"type": "button", "text": "go", "url": "http://x", "confirm": {"text": "sure"}}],
        }]}),
    )
    .await;
    contains(
        &asked.json()["attachments"][0]["text"],
        &["*GPU <b>is</b> hot*", "_To do:_ Look at the fans.", "`gpu=1`"],
    );
    check_for(
        "slack_configs: [{api_url: 'URL/s'}]",
        &resolved(),
        "POST /s",
        json!({"attachments": [{"title": OVER, "color": "good"}]}),
    )
    .await;
}

#[tokio::test]
async fn slack_bot_changes_its_message() {
    let said = r#"{"ok": true, "channel": "C1", "ts": "12.34"}"#;
    let fake = Fake::start(&[(200, said), (200, said), (200, said)]).await;
    let text = format!(
        "global: {{slack_app_url: '{}/api/chat.postMessage'}}\nroute: {{receiver: r}}\nreceivers:\n- name: r\n  \
         slack_configs: [{{app_token: hunter2, channel: '#a', update_message: false}}]\n",
        fake.url
    );
    let config = Config::parse("test", &text).expect("a configuration");
    let Integration::Other(settings) = &config.receivers[0].integrations[0] else {
        panic!("a table")
    };
    assert_eq!(
        settings.found.text("api_url"),
        format!("{}/api/chat.postMessage", fake.url)
    );
    let line = Line::new(settings.http.clone(), 0, Arc::default(), "");
    slack::send(&Call::new(&line, &settings.found, &firing()))
        .await
        .expect("told");
    assert_eq!(fake.asked()[0].header("authorization"), "Bearer hunter2");
    // Alertmanager wants Slack's own address for changing messages, which a test has not.
    let told = "slack_configs: [{api_url: 'https://slack.com/api/chat.postMessage', update_message: true}]";
    let text = format!("route: {{receiver: r}}\nreceivers:\n- name: r\n  {told}\n");
    let updating = Config::parse("test", &text).expect("a configuration");
    let Integration::Other(updating) = &updating.receivers[0].integrations[0] else {
        panic!("a table")
    };
    let mut found = updating.found.clone();
    found.replace_text("api_url", &format!("{}/api/chat.postMessage", fake.url));
    for notification in [firing(), resolved()] {
        slack::send(&Call::new(&line, &found, &notification))
            .await
            .expect("told");
    }
    let asked = fake.asked().split_off(1);
    assert_eq!(
        (asked[0].line.as_str(), asked[1].line.as_str()),
        ("POST /api/chat.postMessage", "POST /api/chat.update")
    );
    assert_holds(&asked[1].json(), &json!({"channel": "C1", "ts": "12.34"}));
}

#[tokio::test]
async fn pagerduty_v2() {
    let asked = check(
        "pagerduty_configs: [{routing_key: k, url: 'URL/v2/enqueue', severity: '{{ .CommonLabels.severity }}', class: c, links: [{href: 'http://l', text: t}, {text: none}], images: [{src: 'http://i'}], details: {own: '{{ len .Alerts }}', deep: {a: [x]}}}]",
        "POST /v2/enqueue",
        json!({
            "routing_key": "k", "event_action": "trigger", "client": "Watchfire", "client_url": "http://hub.example/alerts",
            "links": [{"href": "http://l", "text": "t"}], "images": [{"src": "http://i", "alt": "", "href": ""}],
            "payload": {"summary": SUBJECT, "source": "Watchfire", "severity": "critical", "class": "c",
                "custom_details": {"num_firing": "2", "num_resolved": "0", "own": 2, "deep": {"a": ["x"]}}},
        }),
    )
    .await;
    let over = check_for(
        "pagerduty_configs: [{routing_key: k, url: 'URL/v2/enqueue'}]",
        &resolved(),
        "POST /v2/enqueue",
        json!({"event_action": "resolve", "payload": {"severity": "error"}}),
    )
    .await;
    assert_eq!(asked.json()["dedup_key"], over.json()["dedup_key"]);
    assert_eq!(asked.json()["dedup_key"].as_str().map(str::len), Some(64));
}

#[tokio::test]
async fn pagerduty_v1() {
    check(
        "pagerduty_configs: [{service_key: k, url: 'URL/create_event.json'}]",
        "POST /create_event.json",
        json!({"service_key": "k", "event_type": "trigger", "description": SUBJECT, "client": "Watchfire"}),
    )
    .await;
    check_for(
        "pagerduty_configs: [{service_key: k, url: 'URL/create_event.json'}]",
        &resolved(),
        "POST /create_event.json",
        json!({"event_type": "resolve"}),
    )
    .await;
}

#[tokio::test]
async fn pagerduty_bounds() {
    let mut large = firing();
    let mut alert = Alert::clone(&large.alerts[0].alert);
    alert.annotations.insert("description".to_owned(), "x".repeat(600_000));
    large.alerts[0].alert = Arc::new(alert);
    let asked = check_for(
        "pagerduty_configs: [{routing_key: k, url: 'URL/', description: '{{ printf \"%2000s\" .Status }}'}]",
        &large,
        "POST /",
        json!({"event_action": "trigger"}),
    )
    .await;
    let event = asked.json();
    assert_eq!(
        event["payload"]["summary"].as_str().map(|s| s.chars().count()),
        Some(1024)
    );
    contains(&event["payload"]["custom_details"]["error"], &["left out"]);
}

#[tokio::test]
async fn opsgenie() {
    let told = "opsgenie_configs: [{api_key: k, api_url: 'URL/', tags: 'a, ,{{ .Status }}', priority: P1, details: {x: '{{ .Status }}'}, update_alerts: true, responders: [{name: 'a,b', type: teams}, {username: u, type: user}, {name: '{{ .CommonLabels.none }}', type: team}]}]";
    let (asked, receipt) = tell(told, &[(202, ""), (202, ""), (202, "")], &firing()).await;
    assert_eq!(receipt.outcome, Outcome::Sent);
    assert_eq!(asked[0].header("authorization"), "GenieKey k");
    let create = asked[0].json();
    assert_holds(
        &create,
        &json!({
            "message": SUBJECT, "tags": ["a", "firing"], "priority": "P1", "source": "http://hub.example/alerts",
            "details": {"alertname": "GpuHot", "x": "firing"},
            "responders": [{"name": "a", "type": "team"}, {"name": "b", "type": "team"}, {"username": "u", "type": "user"}],
        }),
    );
    let alias = create["alias"].as_str().expect("an alias");
    let lines: Vec<&str> = asked.iter().map(|a| a.line.as_str()).collect();
    assert_eq!(
        lines,
        [
            "POST /v2/alerts".to_owned(),
            format!("PUT /v2/alerts/{alias}/message?identifierType=alias"),
            format!("PUT /v2/alerts/{alias}/description?identifierType=alias"),
        ]
    );
    let line = format!("POST /v2/alerts/{alias}/close?identifierType=alias");
    let one = "opsgenie_configs: [{api_key: k, api_url: 'URL'}]";
    check_for(one, &resolved(), &line, json!({"source": "http://hub.example/alerts"})).await;
}

#[tokio::test]
async fn victorops() {
    let told = "victorops_configs: [{api_key: k, routing_key: '{{ .CommonLabels.severity }}', api_url: 'URL/a/', message_type: WARNING, custom_fields: {x: '{{ .Status }}'}}]";
    let asked = check(
        told,
        "POST /a/k/critical",
        json!({"message_type": "WARNING", "entity_display_name": SUBJECT, "monitoring_tool": "Watchfire", "x": "firing"}),
    )
    .await;
    contains(
        &asked.json()["state_message"],
        &["It is at 91 °C.", "Look at the fans."],
    );
    check_for(
        told,
        &resolved(),
        "POST /a/k/critical",
        json!({"message_type": "RECOVERY"}),
    )
    .await;
}

#[tokio::test]
async fn telegram() {
    let told = "telegram_configs: [{bot_token: k, chat_id: -42, api_url: 'URL', message_thread_id: 3}]";
    let asked = check(
        told,
        "POST /botk/sendMessage",
        json!({"chat_id": -42, "parse_mode": "HTML", "message_thread_id": 3, "disable_notification": false}),
    )
    .await;
    contains(&asked.json()["text"], &[SUBJECT, "GPU &lt;b&gt;is&lt;/b&gt; hot"]);
    let many = notification((0..200).map(|n| super::told(&n.to_string(), false)).collect());
    let asked = check_for(told, &many, "POST /botk/sendMessage", json!({"chat_id": -42})).await;
    assert_eq!(asked.json()["text"].as_str().map(|t| t.chars().count()), Some(4096));
    assert_eq!(asked.json().get("parse_mode"), None);
}

#[tokio::test]
async fn discord() {
    let asked = check(
        "discord_configs: [{webhook_url: 'URL/d', username: u, avatar_url: 'http://a'}]",
        "POST /d",
        json!({"username": "u", "avatar_url": "http://a", "embeds": [{"title": SUBJECT, "color": 0x00c6_2828}]}),
    )
    .await;
    contains(
        &asked.json()["embeds"][0]["description"],
        &["**GPU <b>is</b> hot**", "[Source](http://hub.example/g)"],
    );
}

#[tokio::test]
async fn microsoft_teams() {
    check(
        "msteams_configs: [{webhook_url: 'URL/t'}]",
        "POST /t",
        json!({"@context": "http://schema.org/extensions", "type": "MessageCard", "title": SUBJECT, "summary": SUBJECT, "themeColor": "C62828"}),
    )
    .await;
    check(
        "msteamsv2_configs: [{webhook_url: 'URL/t'}]",
        "POST /t",
        json!({"type": "message", "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "content": {"type": "AdaptiveCard", "body": [{"text": SUBJECT, "color": "Attention"}, {"wrap": true}]},
        }]}),
    )
    .await;
}

#[tokio::test]
async fn webex() {
    let told = "webex_configs: [{room_id: '{{ .Status }}', api_url: 'URL/m', http_config: {authorization: {credentials: hunter2}}}]";
    let asked = check(told, "POST /m", json!({"roomId": "firing"})).await;
    assert_eq!(asked.header("authorization"), "Bearer hunter2");
    let many = notification((0..200).map(|n| super::told(&n.to_string(), false)).collect());
    let asked = check_for(told, &many, "POST /m", json!({})).await;
    assert!(
        asked.json()["markdown"]
            .as_str()
            .is_some_and(|m| m.len() <= 7439 && m.ends_with('…'))
    );
}

#[tokio::test]
async fn wechat() {
    let told = "wechat_configs: [{api_secret: s, corp_id: c, api_url: 'URL/', to_user: u, agent_id: '7'}]";
    let fake = Fake::start(&[
        (200, r#"{"errcode": 0, "access_token": "t"}"#),
        (200, r#"{"errcode": 0}"#),
        (200, r#"{"errcode": 42001, "errmsg": "expired"}"#),
        (200, r#"{"errcode": 0, "access_token": "t2"}"#),
        (200, r#"{"errcode": 81013, "errmsg": "no such user"}"#),
    ])
    .await;
    let sender = sender(told, &fake.url);
    assert_eq!(sender.send(&firing()).await.outcome, Outcome::Sent);
    let expired = sender.send(&firing()).await.outcome;
    assert_eq!(expired, Outcome::Retry("WeChat: expired".into()));
    let refused = sender.send(&firing()).await.outcome;
    assert_eq!(refused, Outcome::Failed("WeChat: no such user".into()));
    let asked = fake.asked();
    let lines: Vec<&str> = asked.iter().map(|a| a.line.as_str()).collect();
    assert_eq!(
        lines,
        [
            "GET /gettoken?corpid=c&corpsecret=s",
            "POST /message/send?access_token=t",
            "POST /message/send?access_token=t",
            "GET /gettoken?corpid=c&corpsecret=s",
            "POST /message/send?access_token=t2",
        ]
    );
    let body = asked[1].json();
    assert_holds(
        &body,
        &json!({"touser": "u", "agentid": "7", "msgtype": "text", "safe": "0"}),
    );
    assert!(
        body["text"]["content"]
            .as_str()
            .is_some_and(|t| t.starts_with(SUBJECT) && t.len() <= 2048)
    );
}

#[tokio::test]
async fn rocket_chat() {
    let told = "rocketchat_configs: [{api_url: 'URL/', token: t, token_id: i, channel: '#a', actions: [{type: x, text: go, msg: m}]}]";
    let asked = check(
        told,
        "POST /api/v1/chat.postMessage",
        json!({"channel": "#a", "attachments": [{"title": SUBJECT, "color": "red", "actions": [{"type": "button", "text": "go", "msg": "m"}]}]}),
    )
    .await;
    assert_eq!((asked.header("x-auth-token"), asked.header("x-user-id")), ("t", "i"));
    let (_, receipt) = tell(told, &[(200, r#"{"success": false, "error": "no"}"#)], &firing()).await;
    assert!(matches!(receipt.outcome, Outcome::Failed(p) if p.message == "channel \"#a\": Rocket.Chat: no"));
}

#[tokio::test]
async fn mattermost() {
    check(
        "mattermost_configs: [{webhook_url: 'URL/h', channel: c, priority: {priority: urgent, requested_ack: true}, props: {card: x}, fields: [{title: a, value: b}]}]",
        "POST /h",
        json!({"channel": "c", "username": "Watchfire", "priority": {"priority": "urgent", "requested_ack": true}, "props": {"card": "x"},
            "attachments": [{"title": SUBJECT, "color": "danger", "fields": [{"title": "a", "value": "b"}]}]}),
    )
    .await;
    check(
        "mattermost_configs: [{webhook_url: 'URL/h', text: hello, attachments: [{title: t, fields: [{title: a, value: '{{ .Status }}'}]}]}]",
        "POST /h",
        json!({"text": "hello", "attachments": [{"title": "t", "fields": [{"value": "firing"}]}]}),
    )
    .await;
}

#[tokio::test]
async fn jira_makes_an_issue() {
    let told = "jira_configs: [{api_url: 'URL/rest/api/2', project: P, issue_type: Bug, labels: [x], fields: {customfield_1: {value: '{{ .Status }}'}}}]";
    let (asked, receipt) = tell(
        told,
        &[(200, r#"{"issues": []}"#), (201, r#"{"key": "P-1"}"#)],
        &firing(),
    )
    .await;
    assert_eq!(receipt.outcome, Outcome::Sent);
    assert_eq!(
        (asked[0].line.as_str(), asked[1].line.as_str()),
        ("POST /rest/api/2/search", "POST /rest/api/2/issue")
    );
    let query = asked[0].json();
    contains(
        &query["jql"],
        &["statusCategory != Done and project=\"P\" and labels=\"ALERT{"],
    );
    assert_holds(
        &asked[1].json(),
        &json!({"fields": {"project": {"key": "P"}, "issuetype": {"name": "Bug"}, "summary": SUBJECT, "priority": {"name": "High"},
            "customfield_1": {"value": "firing"}}}),
    );
    let labels = asked[1].json()["fields"]["labels"].clone();
    assert!(labels[0].as_str().is_some_and(|l| l.starts_with("ALERT{")) && labels[1] == "x");
    let (asked, receipt) = tell(told, &[(200, r#"{"issues": []}"#)], &resolved()).await;
    assert_eq!(
        (receipt.outcome, asked.len()),
        (Outcome::Sent, 1),
        "what is over makes no issue"
    );
}

#[tokio::test]
async fn jira_resolves_an_issue() {
    let told = "jira_configs: [{api_url: 'URL/rest/api/3', api_type: cloud, project: P, issue_type: Bug, resolve_transition: Done, summary: {template: s, enable_update: false}}]";
    let issue = r#"{"issues": [{"key": "P-1", "fields": {"status": {"statusCategory": {"key": "new"}}}}]}"#;
    let answers = [
        (200, issue),
        (204, ""),
        (200, r#"{"transitions": [{"id": "5", "name": "Done"}]}"#),
        (204, ""),
    ];
    let (asked, receipt) = tell(told, &answers, &resolved()).await;
    assert_eq!(receipt.outcome, Outcome::Sent);
    let lines: Vec<&str> = asked.iter().map(|a| a.line.as_str()).collect();
    assert_eq!(
        lines,
        [
            "POST /rest/api/3/search/jql",
            "PUT /rest/api/3/issue/P-1",
            "GET /rest/api/3/issue/P-1/transitions",
            "POST /rest/api/3/issue/P-1/transitions",
        ]
    );
    let fields = asked[1].json()["fields"].clone();
    assert_eq!(
        (fields.get("summary"), fields["description"]["type"].as_str()),
        (None, Some("doc"))
    );
    assert_eq!(asked[3].json(), json!({"transition": {"id": "5"}}));
}

#[tokio::test]
async fn incident_io() {
    let told = "incidentio_configs: [{url: 'URL/i', alert_source_token: k, max_alerts: 1}]";
    let asked = check(
        told,
        "POST /i",
        json!({"version": "1", "truncatedAlerts": 1, "alerts": [{"status": "firing"}]}),
    )
    .await;
    assert_eq!(asked.header("authorization"), "Bearer k");
}

#[tokio::test]
async fn sns() {
    let told = "sns_configs: [{api_url: 'URL/', topic_arn: 'arn:aws:sns:eu-central-1:1:t.fifo', sigv4: {region: eu-central-1, access_key: AK, secret_key: SK}, attributes: {a: '{{ .Status }}'}}]";
    let (asked, receipt) = tell(told, &[], &firing()).await;
    assert_eq!(receipt.outcome, Outcome::Sent);
    let form = asked[0].form();
    let field = |name: &str| form.iter().find(|(k, _)| k == name).map(|(_, v)| v.as_str());
    assert_eq!(field("Action"), Some("Publish"));
    assert_eq!(field("TopicArn"), Some("arn:aws:sns:eu-central-1:1:t.fifo"));
    assert_eq!(field("Subject"), Some(SUBJECT));
    assert_eq!(field("MessageAttributes.entry.1.Value.StringValue"), Some("firing"));
    assert_eq!(field("MessageGroupId").map(str::len), Some(64));
    let signed = asked[0].header("authorization");
    assert!(signed.starts_with("AWS4-HMAC-SHA256 Credential=AK/20231114/eu-central-1/sns/aws4_request, SignedHeaders=host;x-amz-date, Signature="), "{signed}");
    let sms = "sns_configs: [{api_url: 'URL/', phone_number: '+49', sigv4: {region: a, access_key: AK, secret_key: SK}, message: '{{ printf \"%3000s\" .Status }}'}]";
    let (asked, _) = tell(sms, &[], &firing()).await;
    let form = asked[0].form();
    let field = |name: &str| form.iter().find(|(k, _)| k == name).map(|(_, v)| v.as_str());
    assert_eq!(field("Message").map(str::len), Some(1600));
    assert_eq!(field("MessageAttributes.entry.1.Name"), Some("truncated"));
}

#[tokio::test]
async fn ntfy() {
    let told = "ntfy_configs: [{url: 'URL', topic: gpus, token: k, tags: 'a,b'}]";
    let asked = check(
        told,
        "POST /",
        json!({"topic": "gpus", "title": SUBJECT, "priority": 5, "tags": ["a", "b"], "click": "http://hub.example/alerts"}),
    )
    .await;
    assert_eq!(asked.header("authorization"), "Bearer k");
    contains(
        &asked.json()["message"],
        &["GPU <b>is</b> hot To do: Look at the fans."],
    );
    check_for(told, &resolved(), "POST /", json!({"priority": 2})).await;
}

#[tokio::test]
async fn gotify() {
    let told = "gotify_configs: [{url: 'URL/g/', token: k}]";
    let asked = check(told, "POST /g/message", json!({"title": SUBJECT, "priority": 8})).await;
    assert_eq!(asked.header("x-gotify-key"), "k");
}

#[tokio::test]
async fn pushover_form() {
    let fake = Fake::start(&[]).await;
    let told = "pushover_configs: [{token: k, user_key: u, html: true, ttl: 90s, sound: siren}]";
    let text = format!("route: {{receiver: r}}\nreceivers:\n- name: r\n  {told}\n");
    let config = Config::parse("test", &text).expect("a configuration");
    let Integration::Other(settings) = &config.receivers[0].integrations[0] else {
        panic!("a table")
    };
    let line = Line::new(settings.http.clone(), 0, Arc::default(), "http://hub.example");
    let notification = firing();
    let call = Call::new(&line, &settings.found, &notification);
    pushover::send_to(&call, &fake.url).await.expect("told");
    let form = fake.asked()[0].form();
    let field = |name: &str| form.iter().find(|(k, _)| k == name).map(|(_, v)| v.as_str());
    assert_eq!(
        [field("token"), field("user"), field("title"), field("priority")],
        [Some("k"), Some("u"), Some(SUBJECT), Some("2")]
    );
    assert_eq!(
        [
            field("retry"),
            field("expire"),
            field("ttl"),
            field("html"),
            field("sound"),
            field("device")
        ],
        [Some("60"), Some("3600"), Some("90"), Some("1"), Some("siren"), None]
    );
    assert!(field("message").is_some_and(|m| m.contains("GPU &lt;b&gt;is&lt;/b&gt; hot")));
}
