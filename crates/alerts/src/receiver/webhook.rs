//! The webhook: a POST of Alertmanager's JSON.
//!
//! An answer 2xx is success, 5xx and a failed connection are tried again, anything else is final.

use std::time::Duration;

use config::alertmanager::WebhookConfig;
use reqwest::{Client, Response};

use super::client;
use crate::delivery::Outcome;
use crate::engine::Notification;
use crate::error::Error;
use crate::payload;

/// The most bytes of an answer that are kept as an error's text.
const ANSWER_BYTES_MAX: usize = 300;

/// A webhook, ready to use.
#[derive(Debug)]
pub struct Webhook {
    config: WebhookConfig,
    external_url: String,
    /// The client, or why there is none: a missing certificate is told at each try and may be mended.
    client: Option<Client>,
}

impl Webhook {
    /// Makes a webhook ready.
    ///
    /// # Errors
    ///
    /// [`Error::Feature`] when it uses something that is not built.
    pub fn new(receiver: &str, config: &WebhookConfig, external_url: &str) -> Result<Self, Error> {
        let unbuilt = if config.custom_payload {
            Some("a payload of one's own in webhook_configs")
        } else if config.url.expose().contains("{{") {
            Some("a template in the url of webhook_configs")
        } else {
            client::unbuilt(&config.http)
        };
        if let Some(what) = unbuilt {
            return Err(Error::Feature {
                receiver: receiver.to_owned(),
                what,
            });
        }
        Ok(Self {
            client: build(config).ok(),
            config: config.clone(),
            external_url: external_url.to_owned(),
        })
    }

    /// Tells.
    pub async fn send(&self, notification: &Notification) -> Outcome {
        match self.post(notification).await {
            Ok(response) => judge(response).await,
            Err(error) => Outcome::Retry(error),
        }
    }

    /// Scheme, host and port; the rest may be secret and is `…`.
    pub async fn address(&self) -> String {
        match client::secret(self.config.url.expose(), &self.config.url_file).await {
            Ok(url) => masked(&url),
            Err(_) => format!("the address in {}", self.config.url_file),
        }
    }

    async fn post(&self, notification: &Notification) -> Result<Response, String> {
        let client = match &self.client {
            Some(client) => client.clone(),
            None => build(&self.config)?,
        };
        let url = client::secret(self.config.url.expose(), &self.config.url_file).await?;
        let body = payload::webhook(notification, &self.external_url, self.config.max_alerts).to_string();
        let request = client.post(url).header("Content-Type", "application/json").body(body);
        let request = client::dress(request, &self.config.http).await?;
        // The address may hold a secret and is left out of messages.
        request.send().await.map_err(|e| client::chain(&e.without_url()))
    }
}

fn masked(url: &str) -> String {
    let Ok(url) = reqwest::Url::parse(url) else {
        return "an address that cannot be read".to_owned();
    };
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{host}{port}/…", url.scheme())
}

fn build(config: &WebhookConfig) -> Result<Client, String> {
    let timeout = u64::try_from(config.timeout).ok().filter(|millis| *millis > 0);
    client::build(&config.http, timeout.map(Duration::from_millis))
}

async fn judge(response: Response) -> Outcome {
    let status = response.status();
    if status.is_success() {
        return Outcome::Sent;
    }
    let text = beginning(response).await;
    let error = format!("unexpected status code {}: {text}", status.as_u16());
    if status.is_server_error() {
        Outcome::Retry(error)
    } else {
        Outcome::Failed(error)
    }
}

/// The beginning of an answer, as text in one line.
async fn beginning(mut response: Response) -> String {
    let mut bytes = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        bytes.extend_from_slice(&chunk);
        if bytes.len() >= ANSWER_BYTES_MAX {
            break;
        }
    }
    bytes.truncate(ANSWER_BYTES_MAX);
    let text = String::from_utf8_lossy(&bytes);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, want: &str) {
        assert_eq!(masked(url), want);
    }

    #[test]
    fn an_address_is_shown_without_what_may_be_secret() {
        check(
            "https://hooks.example/services/hunter2?token=hunter2",
            "https://hooks.example/…",
        );
        check("http://user:hunter2@[::1]:9000#hunter2", "http://[::1]:9000/…");
        check("hunter2", "an address that cannot be read");
    }
}
