//! Configurations for those who write none.

use std::collections::BTreeMap;

use config::alertmanager::{Config, GroupBy, Integration, Receiver, Route, WebhookConfig};
use config::http::HttpClientConfig;
use model::Millis;

const RESOLVE_TIMEOUT: Millis = 300_000;

/// Everything to our own log, each alert of each instance by itself.
#[must_use]
pub fn default_config() -> Config {
    one_receiver("log", Integration::Log { send_resolved: true })
}

/// Everything to one webhook, `--webhook URL`.
#[must_use]
pub fn config_for_webhook(url: &str) -> Config {
    one_receiver("webhook", Integration::Webhook(Box::new(WebhookConfig::to(url))))
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
    }
}
