//! Amazon SNS: a publication, signed with AWS' signature version 4.

use super::call::{Call, Form};
use super::exchange::{Request, encode_form};
use super::failure::Failure;
use super::sigv4::{Credentials, sign};
use crate::delivery::Reason;

/// SNS' bounds: of a message in bytes, of a short message and of a subject in characters.
const MESSAGE_BYTES_MAX: usize = 256 << 10;
const SMS_MAX: usize = 1600;
const SUBJECT_MAX: usize = 100;

pub async fn send(call: &Call<'_>) -> Result<(), Failure> {
    let settings = call.settings;
    let sigv4 = settings.sections("sigv4").next();
    let region = region(sigv4.map_or("", |s| s.text("region")))?;
    let credentials = Credentials::find(sigv4)
        .await
        .map_err(|e| Failure::passing(e).because(Reason::Auth))?;
    let url = call.needed("api_url", settings.text("api_url"))?;
    let url = if url.is_empty() {
        format!("https://sns.{region}.amazonaws.com/")
    } else {
        url
    };
    let form = form(call)?;
    let pairs: Vec<(&str, &str)> = form.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let body = encode_form(&pairs);
    let headers = sign(&credentials, &region, "sns", &url, &body, call.notification.at).map_err(Failure::last)?;
    let mut request = Request::form(url, &pairs);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    call.line.tell(request, &[]).await.map(drop)
}

fn region(told: &str) -> Result<String, Failure> {
    let found = if told.is_empty() {
        std::env::var("AWS_REGION")
            .or_else(|_| std::env::var("AWS_DEFAULT_REGION"))
            .unwrap_or_default()
    } else {
        told.to_owned()
    };
    if found.is_empty() {
        return Err(Failure::last(
            "no region in sns.sigv4.region, AWS_REGION or AWS_DEFAULT_REGION",
        ));
    }
    Ok(found)
}

fn form(call: &Call<'_>) -> Result<Vec<(String, String)>, Failure> {
    let settings = call.settings;
    let mut form = vec![
        ("Action".to_owned(), "Publish".to_owned()),
        ("Version".to_owned(), "2010-03-31".to_owned()),
    ];
    let mut put = |key: &str, value: String| form.push((key.to_owned(), value));
    for (key, name) in [
        ("topic_arn", "TopicArn"),
        ("phone_number", "PhoneNumber"),
        ("target_arn", "TargetArn"),
    ] {
        let value = call.needed(key, settings.text(key))?;
        if value.is_empty() {
            continue;
        }
        if value.ends_with(".fifo") {
            put("MessageGroupId", call.group_hash());
            put("MessageDeduplicationId", call.group_hash());
        }
        put(name, value);
    }
    let subject = call.text("subject", r#"{{ template "sns.default.subject" . }}"#);
    if !subject.is_empty() {
        put("Subject", subject_of(&subject));
    }
    let mut attributes: Vec<(String, String)> = settings
        .map("attributes")
        .into_iter()
        .flatten()
        .map(|(k, v)| {
            (
                call.fill(Form::Text, "attributes", k, ""),
                call.fill(Form::Text, "attributes", v, ""),
            )
        })
        .collect();
    let message = call.body(Form::Text, "message", r#"{{ template "sns.default.message" . }}"#);
    let is_sms = !settings.text("phone_number").is_empty();
    let end = if is_sms { SMS_MAX } else { MESSAGE_BYTES_MAX };
    let shown = &message[..message.floor_char_boundary(end)];
    if shown.len() < message.len() {
        attributes.push(("truncated".to_owned(), "true".to_owned()));
    }
    put("Message", shown.to_owned());
    for (at, (name, value)) in attributes.into_iter().enumerate() {
        let entry = format!("MessageAttributes.entry.{}", at + 1);
        put(&format!("{entry}.Name"), name);
        put(&format!("{entry}.Value.DataType"), "String".to_owned());
        put(&format!("{entry}.Value.StringValue"), value);
    }
    Ok(form)
}

/// SNS takes a subject of one line in ASCII.
fn subject_of(text: &str) -> String {
    let ascii = text.chars().map(|c| if c.is_ascii_graphic() { c } else { ' ' });
    let line: String = ascii
        .collect::<String>()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    line.chars().take(SUBJECT_MAX).collect()
}
