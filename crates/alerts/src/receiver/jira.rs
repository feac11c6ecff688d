//! Jira: an issue per group, found again by a label, reopened and resolved by transitions.

use reqwest::Method;
use serde_json::{Map, Value, json};

use super::call::{Call, Form, cut_chars, object};
use super::exchange::Request;
use super::failure::Failure;

/// Jira's bounds, in characters.
const SUMMARY_MAX: usize = 255;
const DESCRIPTION_MAX: usize = 32_767;

pub async fn send(call: &Call<'_>) -> Result<(), Failure> {
    let jira = Jira {
        call,
        base: call.settings.text("api_url").trim_end_matches('/'),
    };
    let label = format!("ALERT{{{}}}", call.group_hash());
    let project = call.needed("project", call.settings.text("project"))?;
    let known = jira
        .search(&project, &label)
        .await
        .map_err(|f| f.of("cannot look for the issue"))?;
    if known.is_null() {
        if call.is_resolved() {
            return Ok(());
        }
        let fields = jira.fields(&project, &label, true)?;
        jira.ask(Method::POST, "issue", Some(&json!({"fields": fields})))
            .await?;
        return Ok(());
    }
    let key = known["key"].as_str().unwrap_or("").to_owned();
    let fields = jira.fields(&project, &label, false)?;
    jira.ask(Method::PUT, &format!("issue/{key}"), Some(&json!({"fields": fields})))
        .await?;
    jira.transition(&key, &known).await
}

struct Jira<'c> {
    call: &'c Call<'c>,
    base: &'c str,
}

impl Jira<'_> {
    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
        let url = if path.contains("://") {
            path.to_owned()
        } else {
            format!("{}/{path}", self.base)
        };
        let request = match body {
            Some(body) => Request::json(url, body).method(method),
            None => Request::new(method, url),
        };
        let request = request.header("Accept-Language", "en");
        Ok(self.call.line.tell(request, &[429]).await?.json())
    }

    /// The group's issue, where there is one: open, or closed not long ago where it can be reopened.
    async fn search(&self, project: &str, label: &str) -> Result<Value, Failure> {
        let settings = self.call.settings;
        let mut query = String::new();
        let unwanted = settings.text("wont_fix_resolution");
        if !unwanted.is_empty() {
            query += &format!("(resolution is EMPTY or resolution != {unwanted:?}) and ");
        }
        let minutes = settings.number("reopen_duration").unwrap_or(0) / 60_000;
        if !self.call.is_resolved() && !settings.text("reopen_transition").is_empty() && minutes > 0 {
            query += &format!("(resolutiondate is EMPTY OR resolutiondate >= -{minutes}m) and ");
        } else {
            query += "statusCategory != Done and ";
        }
        query += &format!("project={project:?} and labels={label:?} order by status ASC,resolutiondate DESC");
        let body = json!({"jql": query, "maxResults": 2, "fields": ["status"]});
        let found = self.ask(Method::POST, &self.search_path(), Some(&body)).await?;
        Ok(found["issues"][0].clone())
    }

    /// Jira's cloud has another search than its servers.
    fn search_path(&self) -> String {
        let url = reqwest::Url::parse(self.base).ok();
        let host = url.as_ref().and_then(reqwest::Url::host_str).unwrap_or("");
        match self.call.settings.text_or("api_type", "auto") {
            "cloud" => {}
            "auto" if host.ends_with("atlassian.net") => {}
            _ => return "search".to_owned(),
        }
        format!("{}/search/jql", self.base).replacen("/rest/api/2/", "/rest/api/3/", 1)
    }

    fn fields(&self, project: &str, label: &str, is_new: bool) -> Result<Value, Failure> {
        let call = self.call;
        let kind = call.needed("issue_type", call.settings.text("issue_type"))?;
        let mut labels: Vec<String> = call
            .settings
            .list("labels")
            .iter()
            .map(|l| call.fill(Form::Text, "labels", l, ""))
            .collect();
        labels.push(label.to_owned());
        labels.sort();
        let priority = call.text("priority", r#"{{ template "jira.default.priority" . }}"#);
        let mut fields = object([
            ("project", json!({"key": project})),
            ("issuetype", json!({"name": kind})),
            ("labels", json!(labels)),
            (
                "priority",
                if priority.is_empty() {
                    Value::Null
                } else {
                    json!({"name": priority})
                },
            ),
        ]);
        for (key, most) in [("summary", SUMMARY_MAX), ("description", DESCRIPTION_MAX)] {
            let default = format!("{{{{ template \"jira.default.{key}\" . }}}}");
            let section = call.settings.sections(key).next();
            let updates = section.is_none_or(|s| s.flag("enable_update", true));
            if !is_new && !updates {
                continue;
            }
            let template = section.map_or_else(
                || call.settings.text_or(key, &default),
                |s| s.text_or("template", &default),
            );
            let text = cut_chars(&call.fill(Form::Text, key, template, &default), most);
            if !text.is_empty() {
                fields[key] = if key == "description" {
                    self.description(&text)
                } else {
                    json!(text)
                };
            }
        }
        if let Some(node) = call.settings.node("fields")
            && let (Value::Object(own), Value::Object(all)) = (call.tree("fields", node), &mut fields)
        {
            all.extend::<Map<_, _>>(own);
        }
        Ok(fields)
    }

    /// Version 3 of the API wants a document; a text is made one.
    fn description(&self, text: &str) -> Value {
        if !self.base.ends_with("/3") {
            return json!(text);
        }
        match serde_json::from_str::<Value>(text) {
            Ok(document) if document.is_object() => document,
            _ => json!({
                "type": "doc",
                "version": 1,
                "content": [{"type": "paragraph", "content": [{"type": "text", "text": text}]}],
            }),
        }
    }

    async fn transition(&self, key: &str, issue: &Value) -> Result<(), Failure> {
        let is_done = issue["fields"]["status"]["statusCategory"]["key"] == "done";
        let wanted = match (self.call.is_resolved(), is_done) {
            (true, false) => self.call.settings.text("resolve_transition"),
            (false, true) => self.call.settings.text("reopen_transition"),
            _ => "",
        };
        if wanted.is_empty() {
            return Ok(());
        }
        let path = format!("issue/{key}/transitions");
        let found = self.ask(Method::GET, &path, None).await?;
        let all = found["transitions"].as_array();
        let Some(one) = all.into_iter().flatten().find(|t| t["name"] == wanted) else {
            return Err(Failure::last(format!("issue {key} has no transition {wanted:?}")));
        };
        let body = json!({"transition": {"id": one["id"]}});
        self.ask(Method::POST, &path, Some(&body)).await.map(drop)
    }
}
