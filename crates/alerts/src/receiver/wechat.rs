//! WeChat Work: a token for the credentials, then a message with it.

use model::Millis;
use reqwest::Method;
use serde_json::json;

use super::call::{Call, Form, cut_bytes, object};
use super::exchange::{Request, encode_form};
use super::failure::Failure;

const URL: &str = "https://qyapi.weixin.qq.com/cgi-bin/";
/// WeChat's bound for a text, in bytes.
const MESSAGE_BYTES_MAX: usize = 2048;
/// How long a token is of use, in milliseconds.
const TOKEN_LIFE: Millis = 7_000_000;
/// Codes that say that the token is not, or no longer, of use.
const TOKEN_CODES: [i64; 3] = [40_014, 41_001, 42_001];

pub async fn send(call: &Call<'_>) -> Result<(), Failure> {
    let base = call.settings.text_or("api_url", URL);
    let slash = if base.ends_with('/') { "" } else { "/" };
    let token = token(call, &format!("{base}{slash}gettoken")).await?;
    let kind = call.settings.text("message_type");
    let kind = if kind.is_empty() { "text" } else { kind };
    let to = |key: &str, default: &str| json!(call.text(key, default));
    let user = to("to_user", r#"{{ template "wechat.default.to_user" . }}"#);
    let party = to("to_party", r#"{{ template "wechat.default.to_party" . }}"#);
    let tag = to("to_tag", r#"{{ template "wechat.default.to_tag" . }}"#);
    let agent = to("agent_id", r#"{{ template "wechat.default.agent_id" . }}"#);
    let message = call.body(Form::Text, "message", r#"{{ template "wechat.default.message" . }}"#);
    let body = object([
        ("touser", user),
        ("toparty", party),
        ("totag", tag),
        ("agentid", agent),
        ("safe", json!("0")),
        ("msgtype", json!(kind)),
        (kind, json!({"content": cut_bytes(&message, MESSAGE_BYTES_MAX)})),
    ]);
    let query = encode_form(&[("access_token", &token)]);
    let url = format!("{base}{slash}message/send?{query}");
    let answer = call.line.exchange(Request::json(url, &body)).await?;
    if answer.status != 200 {
        let mut failure = answer
            .check(&[])
            .err()
            .unwrap_or_else(|| Failure::last("no answer of WeChat"));
        failure.retry = true;
        return Err(failure);
    }
    let said = answer.json();
    match said["errcode"].as_i64() {
        Some(0) => Ok(()),
        code => {
            let message = format!("WeChat: {}", said["errmsg"].as_str().unwrap_or("no answer of its API"));
            if code.is_some_and(|code| TOKEN_CODES.contains(&code)) {
                call.line.memory().token = None;
                return Err(Failure::passing(message));
            }
            Err(Failure::last(message))
        }
    }
}

async fn token(call: &Call<'_>, url: &str) -> Result<String, Failure> {
    let now = call.notification.at;
    if let Some((token, until)) = &call.line.memory().token
        && now < *until
    {
        return Ok(token.clone());
    }
    let secret = call.secret("api_secret", "api_secret_file").await?;
    let corp = call.needed("corp_id", call.settings.text("corp_id"))?;
    let query = encode_form(&[("corpid", &corp), ("corpsecret", &secret)]);
    let answer = call
        .line
        .tell(Request::new(Method::GET, format!("{url}?{query}")), &[])
        .await?;
    let said = answer.json();
    let token = said["access_token"].as_str().unwrap_or("").to_owned();
    if token.is_empty() {
        let why = said["errmsg"].as_str().unwrap_or("no token in the answer");
        return Err(Failure::last(format!("WeChat gives no token: {why}")));
    }
    call.line.memory().token = Some((token.clone(), now.saturating_add(TOKEN_LIFE)));
    Ok(token)
}
