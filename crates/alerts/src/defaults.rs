//! Configurations for those who write none.

use std::collections::BTreeMap;
use std::path::PathBuf;

use config::alertmanager::{Config, GroupBy, Integration, Receiver, Route, WebhookConfig};
use config::http::HttpClientConfig;
use model::Millis;

use crate::error::Error;

const RESOLVE_TIMEOUT: Millis = 300_000;

/// Everything to our own log, each alert of each instance by itself.
#[must_use]
pub fn default_config() -> Config {
    one_receiver("log", Integration::Log { send_resolved: true })
}

/// Everything to one webhook, `--webhook URL`.
///
/// # Errors
///
/// [`Error::Webhook`] when nothing could be sent there: it is no `http` or `https` address.
pub fn config_for_webhook(url: &str) -> Result<Config, Error> {
    if !is_web_address(url) {
        return Err(Error::Webhook(url.to_owned()));
    }
    let webhook = WebhookConfig::to(url);
    Ok(one_receiver("webhook", Integration::Webhook(Box::new(webhook))))
}

fn is_web_address(text: &str) -> bool {
    let rest = ["http://", "https://"].iter().find_map(|scheme| {
        let (begin, rest) = text.split_at_checked(scheme.len())?;
        begin.eq_ignore_ascii_case(scheme).then_some(rest)
    });
    // Browsers' rules, which the client keeps to, would mend slashes too many and space around.
    let clean = !text.contains(|c: char| c.is_whitespace() || c.is_control());
    clean && rest.is_some_and(|rest| !rest.starts_with(['/', '\\'])) && reqwest::Url::parse(text).is_ok()
}

fn one_receiver(name: &str, integration: Integration) -> Config {
    Config {
        resolve_timeout: RESOLVE_TIMEOUT,
        http: HttpClientConfig::default(),
        route: Route {
            receiver: name.to_owned(),
            group_by: GroupBy::Labels(vec!["alertname".to_owned(), "instance".to_owned()]),
            group_wait: 5_000,
            group_interval: 60_000,
            repeat_interval: 4 * 3_600_000,
            ..Route::default()
        },
        receivers: vec![Receiver {
            name: name.to_owned(),
            labels: BTreeMap::from([("name".to_owned(), name.to_owned())]),
            integrations: vec![integration],
        }],
        inhibit_rules: Vec::new(),
        time_intervals: Vec::new(),
        templates: Vec::new(),
        folder: PathBuf::from("."),
        original: format!("route:\n  receiver: {name}\nreceivers:\n  - name: {name}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, taken: bool) {
        match config_for_webhook(url) {
            Ok(_) => assert!(taken, "{url:?} was taken"),
            Err(error) => {
                let want = format!("webhook {url:?} is no address: expected http://HOST/… or https://HOST/…");
                assert_eq!((error.to_string(), false), (want, taken));
            }
        }
    }

    #[test]
    fn only_an_address_is_taken_for_one() {
        check("http://127.0.0.1:9/hook", true);
        check("https://hooks.example/services/a?b=c#d", true);
        check("HTTPS://user:word@[::1]:8443", true);
        check("", false);
        check("hooks.example/services", false);
        check("localhost:9000/hook", false);
        check("/hook", false);
        check("ftp://hooks.example/", false);
        check("file:///etc/passwd", false);
        check("http:hooks.example", false);
        check("http://", false);
        check("http:///hook", false);
        check("http://a b/", false);
        check(" http://hooks.example/", false);
        check("http://hooks.example:99999/", false);
        check("true", false);
    }
}
