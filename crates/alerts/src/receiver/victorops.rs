//! VictorOps (Splunk On-Call): an event at its REST endpoint.

use serde_json::{Map, Value};

use super::call::{Call, Form, cut_chars};
use super::exchange::Request;
use super::failure::Failure;

const URL: &str = "https://alert.victorops.com/integrations/generic/20131114/alert/";
/// VictorOps' bound, in characters.
const STATE_MESSAGE_MAX: usize = 20_480;

pub async fn send(call: &Call<'_>) -> Result<(), Failure> {
    let key = call.secret("api_key", "api_key_file").await?;
    let route = call.needed("routing_key", call.settings.text("routing_key"))?;
    let mut fields = Map::new();
    let mut put = |name: &str, text: String| drop(fields.insert(name.to_owned(), Value::String(text)));
    put("message_type", message_type(call));
    put("entity_id", call.group_hash());
    let name = r#"{{ template "victorops.default.entity_display_name" . }}"#;
    put("entity_display_name", call.text("entity_display_name", name));
    let tool = r#"{{ template "victorops.default.monitoring_tool" . }}"#;
    put("monitoring_tool", call.text("monitoring_tool", tool));
    for (name, template) in call.settings.map("custom_fields").into_iter().flatten() {
        put(name, call.fill(Form::Text, name, template, ""));
    }
    let state = r#"{{ template "victorops.default.state_message" . }}"#;
    let state = call.body(Form::Text, "state_message", state);
    put("state_message", cut_chars(&state, STATE_MESSAGE_MAX));
    let base = call.settings.text_or("api_url", URL);
    let slash = if base.ends_with('/') { "" } else { "/" };
    let url = format!("{base}{slash}{key}/{route}");
    call.line
        .tell(Request::json(url, &Value::Object(fields)), &[])
        .await
        .map(drop)
}

fn message_type(call: &Call<'_>) -> String {
    if call.is_resolved() {
        return "RECOVERY".to_owned();
    }
    let told = call.text("message_type", "CRITICAL");
    match told.as_str() {
        "INFO" | "WARNING" | "CRITICAL" => told,
        _ => "CRITICAL".to_owned(),
    }
}
