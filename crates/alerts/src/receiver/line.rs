//! The line to a receiver: how it speaks HTTP, its templates, and the little it remembers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use config::http::HttpClientConfig;
use model::Millis;
use reqwest::Client;

use super::client;
use super::failure::Failure;
use crate::templates::Templates;

/// The line to a receiver.
#[derive(Debug)]
pub struct Line {
    /// How to speak HTTP.
    pub http: HttpClientConfig,
    /// The templates of the configuration, and ours alone.
    pub templates: Arc<Templates>,
    /// How people reach this hub.
    pub external_url: String,
    timeout: Option<Duration>,
    memory: Mutex<Memory>,
}

/// What a receiver remembers between messages; lost at the end, and then asked for anew.
#[derive(Debug, Default)]
pub struct Memory {
    /// The client, or nothing: a missing certificate is told at each try and may be mended.
    client: Option<Client>,
    /// Where the last message went, fit to be shown.
    address: String,
    /// A service's token that was given for credentials, and until when it is of use.
    pub token: Option<(String, Millis)>,
    /// The same of OAuth 2.0.
    pub bearer: Option<(String, Millis)>,
    /// The present moment, as the message being told has it.
    pub now: Millis,
    /// Messages that may be changed, by group: channel and name of the message.
    pub messages: HashMap<String, (String, String)>,
}

impl Line {
    /// A line; `timeout` in milliseconds, 0 for the usual one.
    pub fn new(http: HttpClientConfig, timeout: Millis, templates: Arc<Templates>, external_url: &str) -> Self {
        let timeout = u64::try_from(timeout).ok().filter(|millis| *millis > 0);
        let timeout = timeout.map(Duration::from_millis);
        let memory = Memory {
            client: client::build(&http, timeout).ok(),
            ..Memory::default()
        };
        Self {
            http,
            templates,
            external_url: external_url.to_owned(),
            timeout,
            memory: Mutex::new(memory),
        }
    }

    /// What is remembered.
    pub fn memory(&self) -> MutexGuard<'_, Memory> {
        // A panic elsewhere leaves it whole: every change is one assignment.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client, built anew when it could not be before.
    pub fn client(&self) -> Result<Client, Failure> {
        if let Some(client) = &self.memory().client {
            return Ok(client.clone());
        }
        let client = client::build(&self.http, self.timeout).map_err(Failure::passing)?;
        self.memory().client = Some(client.clone());
        Ok(client)
    }

    /// Remembers where a message goes, without what may be secret.
    pub fn note_address(&self, url: &str) {
        self.memory().address = masked(url);
    }

    /// Remembers where a message goes, as it is.
    pub fn memory_of_address(&self, address: &str) {
        address.clone_into(&mut self.memory().address);
    }

    /// Where the last message went, fit to be shown; empty before the first.
    pub fn address(&self) -> String {
        self.memory().address.clone()
    }
}

/// Scheme, host and port; the rest may be secret and is `…`.
pub fn masked(url: &str) -> String {
    let Ok(url) = reqwest::Url::parse(url) else {
        return "an address that cannot be read".to_owned();
    };
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{host}{port}/…", url.scheme())
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
