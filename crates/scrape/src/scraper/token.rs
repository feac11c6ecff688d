//! OAuth 2.0: a token is fetched with the client's credentials and used until shortly before it ends.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use config::http::{OAuth2, Token};
use reqwest::header::HeaderValue;
use rustls::crypto::ring;

use super::{built, proxy, secret, tls};
use crate::error::{Error, chain};

/// How long before its end a token is given up.
const MARGIN: Duration = Duration::from_secs(10);

/// How long a token is used whose server does not say how long it is good for.
const UNTOLD: Duration = Duration::from_secs(300);

/// The largest answer of a token's server, in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// The token in use.
#[derive(Default)]
pub(super) struct Tokens(Mutex<Option<(HeaderValue, Instant)>>);

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tokens")
    }
}

impl Tokens {
    /// The value of the `Authorization` header.
    pub async fn header(&self, config: &OAuth2) -> Result<HeaderValue, Error> {
        if let Some(header) = self.usable() {
            return Ok(header);
        }
        let asked = Instant::now();
        let token = fetch(config).await?;
        let mut header = HeaderValue::from_str(&format!("{} {}", token.kind, token.access.expose()))
            .map_err(|_| Error::Settings("oauth2: the token holds characters that a header cannot".to_owned()))?;
        header.set_sensitive(true);
        let good = token
            .expires_in
            .and_then(|s| u64::try_from(s).ok())
            .map(Duration::from_secs);
        let until = asked + good.map_or(UNTOLD, |good| good.saturating_sub(MARGIN));
        *self.lock() = Some((header.clone(), until));
        Ok(header)
    }

    /// Lets go of the token.
    pub fn forget(&self) {
        *self.lock() = None;
    }

    fn usable(&self) -> Option<HeaderValue> {
        let token = self.lock();
        token
            .as_ref()
            .filter(|(_, until)| Instant::now() < *until)
            .map(|(header, _)| header.clone())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(HeaderValue, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn fetch(config: &OAuth2) -> Result<Token, Error> {
    if !matches!(config.grant_type.as_str(), "" | "client_credentials") {
        return Err(Error::Settings(format!(
            "oauth2: grant type {} is not built",
            config.grant_type
        )));
    }
    let _ = ring::default_provider().install_default();
    let builder = tls(reqwest::Client::builder(), &config.tls)?;
    let client = built(proxy(builder, &config.proxy)?)?;
    let mut form = vec![("grant_type", "client_credentials".to_owned())];
    if !config.scopes.is_empty() {
        form.push(("scope", config.scopes.join(" ")));
    }
    form.extend(config.endpoint_params.iter().map(|(n, v)| (n.as_str(), v.clone())));
    let failed = |e: String| Error::Request(format!("oauth2: {}: {e}", config.token_url));
    let request = client
        .post(config.token_url.as_str())
        .basic_auth(&config.client_id, Some(secret(&config.client_secret)?))
        .form(&form);
    let response = request.send().await.map_err(|e| failed(chain(&e.without_url())))?;
    let status = response.status();
    if !status.is_success() {
        return Err(failed(format!("server returned HTTP status {status}")));
    }
    let body = response.bytes().await.map_err(|e| failed(chain(&e.without_url())))?;
    if body.len() > ANSWER_BYTES_MAX {
        return Err(failed("the answer is too large".to_owned()));
    }
    let text = std::str::from_utf8(&body).map_err(|_| failed("the answer is no text".to_owned()))?;
    Token::parse(text).map_err(failed)
}
