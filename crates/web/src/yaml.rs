//! The configuration in force as YAML, defaults written out; secrets stand as `<secret>`.
//!
//! What is deliberately absent: sections that this program judges and does not act upon.

use std::fmt::Write as _;

use config::http::{HttpClientConfig, TlsConfig};
use config::prometheus::{Config, Discovery, Limits, ScrapeConfig, StaticConfig};
use config::relabel::RelabelConfig;
use model::Labels;
use model::time::DurationText;

/// The ecosystem's part of a configuration.
#[must_use]
pub fn config(config: &Config) -> String {
    let global = &config.global;
    let mut out = Yaml::default();
    out.line("global:");
    out.deeper(|out| {
        out.span("scrape_interval", global.scrape_interval);
        out.span("scrape_timeout", global.scrape_timeout);
        out.span("evaluation_interval", global.evaluation_interval);
        if global.rule_query_offset != 0 {
            out.span("rule_query_offset", global.rule_query_offset);
        }
        out.labels("external_labels", &global.external_labels);
        out.limits(&global.limits);
    });
    out.texts("rule_files", &config.rule_files);
    out.texts("scrape_config_files", &config.scrape_config_files);
    if !config.scrape_configs.is_empty() {
        out.line("scrape_configs:");
        for job in &config.scrape_configs {
            out.item(|out| out.job(job));
        }
    }
    out.text
}

/// One job.
#[must_use]
pub fn job(job: &ScrapeConfig) -> String {
    let mut out = Yaml::default();
    out.job(job);
    out.text
}

#[derive(Default)]
struct Yaml {
    text: String,
    depth: usize,
    /// The next line begins an item of a list.
    begins: bool,
}

impl Yaml {
    fn line(&mut self, text: &str) {
        let depth = self.depth;
        let mark = if std::mem::take(&mut self.begins) {
            let blanks = depth.saturating_sub(1);
            let _ = write!(self.text, "{:1$}- ", "", blanks * 2);
            true
        } else {
            false
        };
        if !mark {
            let _ = write!(self.text, "{:1$}", "", depth * 2);
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn deeper(&mut self, write: impl FnOnce(&mut Self)) {
        self.depth += 1;
        write(self);
        self.depth -= 1;
    }

    fn item(&mut self, write: impl FnOnce(&mut Self)) {
        self.begins = true;
        self.deeper(write);
        self.begins = false;
    }

    fn field(&mut self, name: &str, value: impl std::fmt::Display) {
        self.line(&format!("{name}: {value}"));
    }

    fn text(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.field(name, scalar(value));
        }
    }

    fn flag(&mut self, name: &str, value: bool, default: bool) {
        if value != default {
            self.field(name, value);
        }
    }

    fn number(&mut self, name: &str, value: u64) {
        if value != 0 {
            self.field(name, value);
        }
    }

    fn span(&mut self, name: &str, millis: model::Millis) {
        self.field(name, DurationText(millis));
    }

    fn secret(&mut self, name: &str, is_there: bool) {
        if is_there {
            self.field(name, "<secret>");
        }
    }

    fn texts(&mut self, name: &str, values: &[String]) {
        if values.is_empty() {
            return;
        }
        self.line(&format!("{name}:"));
        for value in values {
            self.line(&format!("- {}", scalar(value)));
        }
    }

    fn labels(&mut self, name: &str, labels: &Labels) {
        if labels.is_empty() {
            return;
        }
        self.line(&format!("{name}:"));
        self.deeper(|out| {
            for (name, value) in labels {
                out.field(&scalar(name), scalar(value));
            }
        });
    }

    fn limits(&mut self, limits: &Limits) {
        self.number("body_size_limit", limits.body_size_bytes);
        self.number("sample_limit", limits.samples);
        self.number("target_limit", limits.targets);
        self.number("label_limit", limits.labels);
        self.number("label_name_length_limit", limits.label_name_bytes);
        self.number("label_value_length_limit", limits.label_value_bytes);
    }

    fn job(&mut self, job: &ScrapeConfig) {
        self.text("job_name", &job.job_name);
        self.flag("honor_labels", job.honor_labels, false);
        self.field("honor_timestamps", job.honor_timestamps);
        self.field("track_timestamps_staleness", job.track_timestamps_staleness);
        if !job.params.is_empty() {
            self.line("params:");
            self.deeper(|out| {
                for (name, values) in &job.params {
                    out.texts(&scalar(name), values);
                }
            });
        }
        self.span("scrape_interval", job.scrape_interval);
        self.span("scrape_timeout", job.scrape_timeout);
        self.field("scrape_native_histograms", job.scrape_native_histograms);
        self.field("always_scrape_classic_histograms", job.always_scrape_classic_histograms);
        self.text("metrics_path", &job.metrics_path);
        self.text("scheme", &job.scheme);
        self.field("enable_compression", job.enable_compression);
        self.limits(&job.limits);
        self.number("keep_dropped_targets", job.keep_dropped_targets);
        self.http(&job.http);
        self.rules("relabel_configs", &job.relabel_configs);
        self.rules("metric_relabel_configs", &job.metric_relabel_configs);
        self.discovery(&job.discovery);
        self.groups(&job.static_configs);
    }

    fn http(&mut self, http: &HttpClientConfig) {
        if let Some(basic) = &http.basic_auth {
            self.line("basic_auth:");
            self.deeper(|out| {
                out.text("username", &basic.username);
                out.text("username_file", &basic.username_file);
                out.secret("password", !basic.password.inline.is_empty());
                out.text("password_file", &basic.password.file);
            });
        }
        if let Some(authorization) = &http.authorization {
            self.line("authorization:");
            self.deeper(|out| {
                out.text("type", &authorization.kind);
                out.secret("credentials", !authorization.credentials.inline.is_empty());
                out.text("credentials_file", &authorization.credentials.file);
            });
        }
        if let Some(oauth2) = &http.oauth2 {
            self.line("oauth2:");
            self.deeper(|out| {
                out.text("client_id", &oauth2.client_id);
                out.secret("client_secret", !oauth2.client_secret.inline.is_empty());
                out.text("client_secret_file", &oauth2.client_secret.file);
                out.texts("scopes", &oauth2.scopes);
                out.text("token_url", &oauth2.token_url.to_string());
            });
        }
        self.tls(&http.tls);
        self.flag("follow_redirects", http.follow_redirects, false);
        self.flag("enable_http2", http.enable_http2, false);
        if let Some(proxy) = &http.proxy.url {
            self.text("proxy_url", &proxy.to_string());
        }
        if !http.headers.is_empty() {
            self.line("http_headers:");
            self.deeper(|out| {
                for header in &http.headers {
                    out.line(&format!("{}:", scalar(&header.name)));
                    out.deeper(|out| {
                        out.texts("values", &header.values);
                        out.secret("secrets", !header.secrets.is_empty());
                        out.texts("files", &header.files);
                    });
                }
            });
        }
    }

    fn tls(&mut self, tls: &TlsConfig) {
        if *tls == TlsConfig::default() {
            return;
        }
        self.line("tls_config:");
        self.deeper(|out| {
            out.text("ca_file", &tls.ca_file);
            out.text("cert_file", &tls.cert_file);
            out.secret("key", !tls.key.is_empty());
            out.text("key_file", &tls.key_file);
            out.text("server_name", &tls.server_name);
            out.field("insecure_skip_verify", tls.insecure_skip_verify);
        });
    }

    fn rules(&mut self, name: &str, rules: &[RelabelConfig]) {
        if rules.is_empty() {
            return;
        }
        self.line(&format!("{name}:"));
        for rule in rules {
            self.item(|out| {
                if !rule.source_labels.is_empty() {
                    let list: Vec<String> = rule.source_labels.iter().map(|l| scalar(l)).collect();
                    out.field("source_labels", format!("[{}]", list.join(", ")));
                }
                out.field("separator", scalar(&rule.separator));
                out.number("modulus", rule.modulus);
                out.field("regex", scalar(&rule.regex_text));
                out.text("target_label", &rule.target_label);
                out.field("replacement", scalar(&rule.replacement));
                out.field("action", rule.action);
            });
        }
    }

    fn discovery(&mut self, all: &[Discovery]) {
        let mut last = "";
        for discovery in all {
            let key = match discovery {
                Discovery::File(_) => "file_sd_configs",
                Discovery::Http(_) => "http_sd_configs",
                // What such a section holds is not kept; that it is there is.
                Discovery::Other(key) => key,
            };
            if key != last {
                self.line(&format!("{key}:"));
            }
            last = key;
            self.item(|out| match discovery {
                Discovery::File(file) => {
                    out.texts("files", &file.files);
                    out.span("refresh_interval", file.refresh_interval);
                }
                Discovery::Http(http) => {
                    out.text("url", &http.url.to_string());
                    out.span("refresh_interval", http.refresh_interval);
                    out.http(&http.http);
                }
                Discovery::Other(_) => out.line("{}"),
            });
        }
    }

    fn groups(&mut self, groups: &[StaticConfig]) {
        if groups.is_empty() {
            return;
        }
        self.line("static_configs:");
        for group in groups {
            self.item(|out| {
                out.texts("targets", &group.targets);
                out.labels("labels", &group.labels);
            });
        }
    }
}

/// A text as a plain scalar where that is safe, else in quotes.
fn scalar(text: &str) -> String {
    let first = text
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || matches!(b, b'/' | b'_'));
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/');
    let word = matches!(
        text.to_ascii_lowercase().as_str(),
        "true" | "false" | "yes" | "no" | "on" | "off" | "null" | "y" | "n"
    );
    if first && text.bytes().all(plain) && !word {
        return text.to_owned();
    }
    // JSON's quoting is YAML's.
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_as_the_same_configuration() {
        let text = "global: {scrape_interval: 30s, external_labels: {site: 'a: b'}}\nrule_files: [a/*.yml]\n\
                    scrape_configs:\n- job_name: 'on'\n  params: {module: [http, x]}\n  sample_limit: 5\n  \
                    relabel_configs: [{source_labels: [a, b], regex: 'x(.*)', target_label: c, replacement: '${1}:9'}]\n  \
                    file_sd_configs: [{files: [x/*.json]}]\n  http_sd_configs: [{url: 'http://a/b', refresh_interval: 5s}]\n  \
                    static_configs: [{targets: ['a:1', 'b:2'], labels: {rack: r1}}]\n";
        let parsed = Config::parse("in", text).expect("valid");
        let written = config(&parsed);
        let again = Config::parse("out", &written).unwrap_or_else(|e| panic!("{e}\n{written}"));
        assert_eq!(again, parsed, "{written}");
    }

    #[test]
    fn secrets_are_not_written() {
        let text = "scrape_configs:\n- job_name: a\n  basic_auth: {username: me, password: hush}\n  \
                    http_headers: {X-Key: {secrets: [hush]}}\n- job_name: b\n  authorization: {credentials: hush}\n\
                    - job_name: c\n  oauth2: {client_id: i, client_secret: hush, token_url: 'http://u:hush@x/y'}\n";
        let written = config(&Config::parse("in", text).expect("valid"));
        assert!(
            written.contains("password: <secret>") && !written.contains("hush"),
            "{written}"
        );
    }
}
