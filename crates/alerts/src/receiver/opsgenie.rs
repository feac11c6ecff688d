//! Opsgenie: an alert per group, closed when the group is over.

use reqwest::Method;
use serde_json::{Map, Value, json};

use super::call::{Call, Form, cut_chars, object, split};
use super::exchange::Request;
use super::failure::Failure;

const URL: &str = "https://api.opsgenie.com/";
/// Opsgenie's bounds, in characters.
const MESSAGE_MAX: usize = 130;
const DESCRIPTION_MAX: usize = 15_000;

pub async fn send(call: &Call<'_>) -> Result<(), Failure> {
    let key = call.secret("api_key", "api_key_file").await?;
    let base = call.settings.text_or("api_url", URL);
    let slash = if base.ends_with('/') { "" } else { "/" };
    let alerts = format!("{base}{slash}v2/alerts");
    for (method, path, body) in requests(call) {
        let request = Request::json(format!("{alerts}{path}"), &body)
            .method(method)
            .header("Authorization", format!("GenieKey {key}"));
        call.line.tell(request, &[429]).await?;
    }
    Ok(())
}

fn requests(call: &Call<'_>) -> Vec<(Method, String, Value)> {
    let alias = call.group_hash();
    let source = call.text("source", r#"{{ template "opsgenie.default.source" . }}"#);
    if call.is_resolved() {
        let path = format!("/{alias}/close?identifierType=alias");
        return vec![(Method::POST, path, json!({"source": source}))];
    }
    let message = call.text("message", r#"{{ template "opsgenie.default.message" . }}"#);
    let message = cut_chars(&message, MESSAGE_MAX);
    let details = details(call);
    let text = |key: &str| json!(call.text(key, ""));
    let (tags, actions) = (call.text("tags", ""), call.text("actions", ""));
    let rest = [text("note"), text("priority"), text("entity")];
    let description = r#"{{ template "opsgenie.default.description" . }}"#;
    let description = cut_chars(&call.body(Form::Text, "description", description), DESCRIPTION_MAX);
    let [note, priority, entity] = rest;
    let create = object([
        ("alias", json!(alias)),
        ("message", json!(message)),
        ("description", json!(description)),
        ("details", details),
        ("source", json!(source)),
        ("responders", responders(call)),
        ("tags", json!(split(&tags))),
        ("note", note),
        ("priority", priority),
        ("entity", entity),
        ("actions", json!(split(&actions))),
    ]);
    let mut all = vec![(Method::POST, String::new(), create)];
    if call.settings.flag("update_alerts", false) {
        for (part, text) in [("message", message), ("description", description)] {
            let path = format!("/{alias}/{part}?identifierType=alias");
            all.push((Method::PUT, path, object([(part, json!(text))])));
        }
    }
    all
}

fn details(call: &Call<'_>) -> Value {
    let common = call.data.common_labels.iter();
    let mut details: Map<String, Value> = common.map(|(n, v)| (n.to_owned(), v.into())).collect();
    for (name, template) in call.settings.map("details").into_iter().flatten() {
        details.insert(name.clone(), call.fill(Form::Text, name, template, "").into());
    }
    Value::Object(details)
}

/// Those that say something after they are filled in; `teams` names several at once.
fn responders(call: &Call<'_>) -> Value {
    let mut all = Vec::new();
    for responder in call.settings.sections("responders") {
        let text = |key: &str| call.fill(Form::Text, "responders", responder.text(key), "");
        let (id, name, user, kind) = (text("id"), text("name"), text("username"), text("type"));
        if kind == "teams" {
            let teams = split(&name);
            all.extend(teams.into_iter().map(|team| json!({"name": team, "type": "team"})));
        } else if !(id.is_empty() && name.is_empty() && user.is_empty()) {
            all.push(object([
                ("id", json!(id)),
                ("name", json!(name)),
                ("username", json!(user)),
                ("type", json!(kind)),
            ]));
        }
    }
    Value::Array(all)
}
