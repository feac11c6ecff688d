//! Templates: ours fill in for any group, files are read, and one that fails keeps nothing from people.

use super::*;
use crate::templates::Templates;

fn call_with<R>(notification: &Notification, templates: Templates, ask: impl FnOnce(&Call<'_>) -> R) -> R {
    let line = Line::new(
        HttpClientConfig::default(),
        0,
        Arc::new(templates),
        "http://hub.example",
    );
    ask(&Call::new(&line, &Found::default(), notification))
}

#[test]
fn every_text_of_ours_fills_in() {
    let bare = Told {
        fingerprint: 1,
        alert: Arc::new(Alert::new(Labels::from_pairs([("x", "<&>")]), 1)),
        resolved: false,
    };
    let mut nothing = notification(vec![bare]);
    nothing.group_labels = Labels::empty();
    let names: Vec<String> = Templates::default().own.text_set().names().map(str::to_owned).collect();
    let of_parts = [
        "__text_alert_list",
        "__text_alert_list_markdown",
        "pagerduty.default.instances",
    ];
    let of_one = ["__alert_words", "__email_alert"];
    let mut seen = 0;
    for name in names.iter().filter(|name| !name.is_empty() && !name.ends_with(".tmpl")) {
        let dot = match name.as_str() {
            name if of_parts.contains(&name) => ".Alerts",
            name if of_one.contains(&name) => "(index .Alerts 0)",
            _ => ".",
        };
        let template = format!("{{{{ template {name:?} {dot} }}}}");
        for notification in [&firing(), &resolved(), &nothing] {
            call_with(notification, Templates::default(), |call| {
                for form in [call::Form::Text, call::Form::Html] {
                    call.fill(form, name, &template, &template);
                    assert_eq!(call.remarks(), "", "{name}");
                }
            });
            seen += 1;
        }
    }
    assert!(seen > 150, "{seen}");
}

#[test]
fn a_subject_tells_what_and_how_many() {
    let subject = |notification: &Notification| {
        call_with(notification, Templates::default(), |call| {
            call.text("x", r#"{{ template "__subject" . }}"#)
        })
    };
    assert_eq!(subject(&firing()), "[FIRING:2] GpuHot (critical)");
    assert_eq!(subject(&resolved()), "[RESOLVED] GpuHot (critical)");
    let mut drill = firing();
    for told in &mut drill.alerts {
        let labels = told.alert.labels.iter().chain([("drill", "d-1")]);
        told.alert = Arc::new(Alert::new(Labels::from_pairs(labels), NOW));
    }
    drill.group_labels = Labels::from_pairs([("alertname", "GpuHot"), ("drill", "d-1")]);
    assert_eq!(subject(&drill), "[DRILL] [FIRING:2] GpuHot (critical)");
    let mut ungrouped = firing();
    ungrouped.group_labels = Labels::empty();
    assert_eq!(subject(&ungrouped), "[FIRING:2] GpuHot (critical)");
}

#[test]
fn a_plain_text_tells_what_to_do() {
    let text = call_with(&firing(), Templates::default(), |call| {
        call.text("x", r#"{{ template "__text" . }}"#)
    });
    for line in [
        "Firing:",
        "GPU <b>is</b> hot",
        "It is at 91 °C.",
        "To do: Look at the fans.",
        "Runbook: https://run.example/GpuHot",
        "Labels: alertname=GpuHot, gpu=0, instance=node-1, severity=critical",
        "Since: 2023-11-14 22:12:20 UTC",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} in {text}");
    }
}

#[tokio::test]
async fn a_template_that_fails_sends_another_text_and_is_told() {
    let told = "slack_configs: [{api_url: URL, channel: c, title: '{{ .Nonsense }}', text: '{{ template \"none\" . }}', fields: [{title: a, value: '{{ bad'}]}]";
    let (asked, receipt) = tell(told, &[], &firing()).await;
    assert_eq!(receipt.outcome, Outcome::Sent);
    for part in [
        "the template of title failed",
        "can't evaluate field Nonsense",
        "the template of text failed",
    ] {
        assert!(receipt.remark.contains(part), "{part} in {}", receipt.remark);
    }
    let attachment = asked[0].json()["attachments"][0].clone();
    assert_eq!(attachment["title"], "[FIRING:2] GpuHot (critical)");
    let text = attachment["text"].as_str().expect("a text");
    assert!(
        text.contains("Look at the fans.") && text.contains("(Watchfire: the template of title failed"),
        "{text}"
    );
}

#[tokio::test]
async fn files_define_templates_anew_and_a_broken_definition_gives_way_to_ours() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(
        folder.path().join("a.tmpl"),
        r#"{{ define "slack.default.title" }}Mine: {{ .Status }}{{ end }}{{ define "slack.default.text" }}{{ .Nope }}{{ end }}"#,
    )
    .expect("written");
    let fake = Fake::start(&[]).await;
    let text = format!(
        "templates: ['*.tmpl']\nroute: {{receiver: r}}\nreceivers: [{{name: r, slack_configs: [{{api_url: '{}'}}]}}]",
        fake.url
    );
    let config = Config::parse("test", &text)
        .expect("a configuration")
        .within(folder.path());
    let receipt = build(&config, "").expect("built")["r"][0].send(&firing()).await;
    assert_eq!(receipt.outcome, Outcome::Sent);
    assert!(
        receipt.remark.contains("can't evaluate field Nope"),
        "{}",
        receipt.remark
    );
    let attachment = fake.asked()[0].json()["attachments"][0].clone();
    assert_eq!(attachment["title"], "Mine: firing");
    assert!(
        attachment["text"]
            .as_str()
            .is_some_and(|t| t.contains("Look at the fans."))
    );

    std::fs::write(folder.path().join("b.tmpl"), "{{ define }").expect("written");
    let error = build(&config, "").expect_err("refused").to_string();
    assert!(
        error.starts_with("template file ") && error.ends_with("b.tmpl"),
        "{error}"
    );
}

#[tokio::test]
async fn an_address_whose_template_fails_is_told_nothing() {
    let (asked, receipt) = tell("webhook_configs: [{url: 'URL/{{ .Nope }}'}]", &[], &firing()).await;
    assert!(asked.is_empty());
    assert!(matches!(receipt.outcome, Outcome::Failed(p) if p.message.starts_with("the template of url failed")));
}
