//! PagerDuty: an event of API version 2, or of version 1 where a service key is told.

use serde_json::{Map, Value, json};

use super::call::{Call, Form, cut_chars, object};
use super::exchange::Request;
use super::failure::Failure;

const URL_V2: &str = "https://events.pagerduty.com/v2/enqueue";
const URL_V1: &str = "https://events.pagerduty.com/generic/2010-04-15/create_event.json";
/// PagerDuty's bounds: of the summary in characters, of an event in bytes.
const SUMMARY_MAX: usize = 1024;
const EVENT_BYTES_MAX: usize = 512_000;
/// What is told of a group unless the settings tell it otherwise.
const DETAILS: [(&str, &str); 4] = [
    (
        "firing",
        r#"{{ template "pagerduty.default.instances" .Alerts.Firing }}"#,
    ),
    (
        "resolved",
        r#"{{ template "pagerduty.default.instances" .Alerts.Resolved }}"#,
    ),
    ("num_firing", "{{ .Alerts.Firing | len }}"),
    ("num_resolved", "{{ .Alerts.Resolved | len }}"),
];
const CLIENT: &str = r#"{{ template "pagerduty.default.client" . }}"#;

pub async fn send(call: &Call<'_>) -> Result<(), Failure> {
    if call.settings.any(&["service_key", "service_key_file"]) {
        let key = call.secret("service_key", "service_key_file").await?;
        // `url` names the newer API, unless it plainly is the older one's.
        let url = call.settings.text("url");
        let url = if url.ends_with("create_event.json") {
            url
        } else {
            URL_V1
        };
        return post(call, url, event_v1(call, &key), &["details"], &[403]).await;
    }
    let key = call.secret("routing_key", "routing_key_file").await?;
    let url = call.settings.text_or("url", URL_V2);
    post(call, url, event_v2(call, &key), &["payload", "custom_details"], &[429]).await
}

async fn post(call: &Call<'_>, url: &str, mut event: Value, details: &[&str], passing: &[u16]) -> Result<(), Failure> {
    if event.to_string().len() > EVENT_BYTES_MAX {
        let place = details.iter().fold(&mut event, |value, key| &mut value[*key]);
        *place = json!({"error": format!("the details made the event larger than {EVENT_BYTES_MAX} bytes and are left out")});
    }
    call.line.tell(Request::json(url, &event), passing).await.map(drop)
}

fn action(call: &Call<'_>) -> &'static str {
    if call.is_resolved() { "resolve" } else { "trigger" }
}

fn event_v1(call: &Call<'_>, key: &str) -> Value {
    let (client, link) = client(call);
    let details = details(call);
    object([
        ("service_key", json!(key)),
        ("incident_key", json!(call.group_hash())),
        ("event_type", json!(action(call))),
        ("description", json!(summary(call))),
        ("details", details),
        ("client", if call.is_resolved() { Value::Null } else { json!(client) }),
        ("client_url", if call.is_resolved() { Value::Null } else { json!(link) }),
    ])
}

fn event_v2(call: &Call<'_>, key: &str) -> Value {
    let (client, link) = client(call);
    let text = |key: &str, default: &str| json!(call.text(key, default));
    let severity = call.text("severity", "error");
    let payload = object([
        ("source", text("source", call.settings.text_or("client", CLIENT))),
        ("severity", json!(if severity.is_empty() { "error" } else { &severity })),
        ("class", text("class", "")),
        ("component", text("component", "")),
        ("group", text("group", "")),
        ("custom_details", details(call)),
        ("summary", json!(summary(call))),
    ]);
    object([
        ("routing_key", json!(key)),
        ("event_action", json!(action(call))),
        ("dedup_key", json!(call.group_hash())),
        ("client", json!(client)),
        ("client_url", json!(link)),
        ("images", sections(call, "images", "src", &["src", "alt", "href"])),
        ("links", sections(call, "links", "href", &["href", "text"])),
        ("payload", payload),
    ])
}

fn client(call: &Call<'_>) -> (String, String) {
    let link = r#"{{ template "pagerduty.default.clientURL" . }}"#;
    (call.text("client", CLIENT), call.text("client_url", link))
}

fn summary(call: &Call<'_>) -> String {
    let text = call.text("description", r#"{{ template "pagerduty.default.description" . }}"#);
    cut_chars(&text, SUMMARY_MAX)
}

/// The settings' details over the usual ones.
fn details(call: &Call<'_>) -> Value {
    let mut details: Map<String, Value> = DETAILS
        .iter()
        .map(|(name, template)| ((*name).to_owned(), call.fill(Form::Text, name, template, "").into()))
        .collect();
    if let Some(node) = call.settings.node("details")
        && let Value::Object(told) = call.tree("details", node)
    {
        details.extend(told);
    }
    let remarks = call.remarks();
    if !remarks.is_empty() {
        details.insert("watchfire".to_owned(), remarks.into());
    }
    Value::Object(details)
}

/// Images or links; those without what they need say nothing.
fn sections(call: &Call<'_>, key: &str, needed: &str, keys: &[&str]) -> Value {
    let one = |section: &config::alertmanager::Found| -> Map<String, Value> {
        let text = |k: &&str| ((*k).to_owned(), call.fill(Form::Text, key, section.text(k), "").into());
        keys.iter().map(text).collect()
    };
    let all = call.settings.sections(key).map(one);
    all.filter(|section| section[needed] != "").map(Value::Object).collect()
}
