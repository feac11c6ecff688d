//! OAuth 2.0, client credentials: a token for a name and a secret, kept as long as it is of use.

use config::http::OAuth2;
use model::Millis;
use reqwest::{Client, RequestBuilder};

use super::client;
use super::exchange::{broken, encode_form};
use super::failure::Failure;
use super::line::Line;
use crate::delivery::Reason;

/// How long before its end a token is no longer used, in milliseconds.
const MARGIN: Millis = 10_000;
/// How long a token is used that does not tell its end, in milliseconds.
const LIFE: Millis = 300_000;
/// The most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 64 << 10;

impl Line {
    /// Adds the token, where the settings ask for one.
    pub async fn authorize(&self, request: RequestBuilder, now: Millis) -> Result<RequestBuilder, Failure> {
        let Some(oauth2) = &self.http.oauth2 else {
            return Ok(request);
        };
        let known = self.memory().bearer.clone().filter(|(_, until)| now < *until);
        if let Some((token, _)) = known {
            return Ok(request.bearer_auth(token));
        }
        let fetched = fetch(oauth2).await.map_err(|failure| failure.of("oauth2"))?;
        let (token, life) = fetched;
        self.memory().bearer = Some((token.clone(), now.saturating_add(life)));
        Ok(request.bearer_auth(token))
    }
}

/// Asks for a token: with the credentials in a header, and where that is refused, in the form.
async fn fetch(oauth2: &OAuth2) -> Result<(String, Millis), Failure> {
    let http = config::http::HttpClientConfig {
        tls: oauth2.tls.clone(),
        proxy: oauth2.proxy.clone(),
        ..Default::default()
    };
    let client = client::build(&http, None).map_err(Failure::passing)?;
    let source = &oauth2.client_secret;
    let secret = client::secret(source.inline.expose(), &source.file)
        .await
        .map_err(Failure::passing)?;
    let scopes = oauth2.scopes.join(" ");
    let mut form = vec![("grant_type", "client_credentials")];
    if !scopes.is_empty() {
        form.push(("scope", &scopes));
    }
    form.extend(oauth2.endpoint_params.iter().map(|(k, v)| (k.as_str(), v.as_str())));
    let first = ask(&client, oauth2, &form, Some(&secret)).await;
    if !matches!(&first, Err(failure) if !failure.retry) {
        return first;
    }
    form.extend([
        ("client_id", oauth2.client_id.as_str()),
        ("client_secret", secret.as_str()),
    ]);
    ask(&client, oauth2, &form, None).await
}

async fn ask(
    client: &Client,
    oauth2: &OAuth2,
    form: &[(&str, &str)],
    secret: Option<&str>,
) -> Result<(String, Millis), Failure> {
    let mut request = client
        .post(oauth2.token_url.as_str())
        .header("Content-Type", "application/x-www-form-urlencoded")
        .body(encode_form(form));
    if let Some(secret) = secret {
        request = request.basic_auth(&oauth2.client_id, Some(secret));
    }
    let mut response = request.send().await.map_err(|e| broken(&e.without_url()))?;
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > ANSWER_BYTES_MAX {
            break;
        }
    }
    let said: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    match (status, said["access_token"].as_str()) {
        (200..300, Some(token)) => {
            let life = said["expires_in"]
                .as_i64()
                .map_or(LIFE, |s| s.saturating_mul(1000) - MARGIN);
            Ok((token.to_owned(), life))
        }
        (200..300, None) => Err(Failure::last("the answer holds no token").because(Reason::Auth)),
        (status, _) => {
            let message = format!("unexpected status code {status} for a token");
            let failure = if status >= 500 {
                Failure::passing(message)
            } else {
                Failure::last(message)
            };
            Err(failure.because(Reason::Auth))
        }
    }
}
