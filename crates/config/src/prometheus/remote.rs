//! `remote_write` and `remote_read`: other stores beside ours.

use std::collections::BTreeMap;

use model::Millis;

use crate::http::HttpClientConfig;
use crate::relabel::{NameScheme, RelabelConfig, decode_list};
use crate::url::Url;
use crate::yaml::{Duration, Fields, Node, Result};

mod azure;

/// Where samples are sent.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteWriteConfig {
    /// Where.
    pub url: Url,
    /// The queue's name; empty for one made up.
    pub name: String,
    /// How long a request may take, in milliseconds.
    pub remote_timeout: Millis,
    /// Headers to add.
    pub headers: BTreeMap<String, String>,
    /// Rules over a sample's labels.
    pub write_relabel_configs: Vec<RelabelConfig>,
    /// Whether exemplars are sent.
    pub send_exemplars: bool,
    /// Whether native histograms are sent.
    pub send_native_histograms: bool,
    /// Whether the second version of the protocol is spoken.
    pub version_2: bool,
    /// How to speak HTTP.
    pub http: HttpClientConfig,
    /// The queue before it.
    pub queue: QueueConfig,
}

/// The queue before a remote store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueConfig {
    /// Samples waiting per shard.
    pub capacity: i64,
    /// The most senders.
    pub max_shards: i64,
    /// The fewest senders.
    pub min_shards: i64,
    /// Samples in a request.
    pub max_samples_per_send: i64,
    /// How long a sample waits for company, in milliseconds.
    pub batch_send_deadline: Millis,
    /// First pause after a failure, in milliseconds.
    pub min_backoff: Millis,
    /// Longest pause after failures, in milliseconds.
    pub max_backoff: Millis,
    /// Whether an answer 429 is tried again.
    pub retry_on_rate_limit: bool,
    /// Samples older than this are dropped, in milliseconds; 0 for none.
    pub sample_age_limit: Millis,
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self {
            capacity: 10_000,
            max_shards: 50,
            min_shards: 1,
            max_samples_per_send: 2_000,
            batch_send_deadline: 5_000,
            min_backoff: 30,
            max_backoff: 5_000,
            retry_on_rate_limit: false,
            sample_age_limit: 0,
        }
    }
}

/// Where samples are read from.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteReadConfig {
    /// Where.
    pub url: Url,
    /// The name; empty for one made up.
    pub name: String,
    /// How long a request may take, in milliseconds.
    pub remote_timeout: Millis,
    /// Whether it is asked for times our own store covers.
    pub read_recent: bool,
    /// Asked only where the selector has these.
    pub required_matchers: BTreeMap<String, String>,
    /// How to speak HTTP.
    pub http: HttpClientConfig,
}

const WRITE_TIMEOUT: Millis = 30_000;
const READ_TIMEOUT: Millis = 60_000;

const MESSAGES: [(&str, bool); 2] = [
    ("prometheus.WriteRequest", false),
    ("io.prometheus.write.v2.Request", true),
];

/// Headers that the protocol itself sets.
const RESERVED: [&str; 12] = [
    "content-encoding",
    "content-length",
    "content-type",
    "user-agent",
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "www-authenticate",
    "accept-encoding",
    "x-prometheus-remote-write-version",
    "x-prometheus-remote-read-version",
];

impl RemoteWriteConfig {
    pub(super) fn read(node: &Node, scheme: NameScheme) -> Result<Self> {
        if node.is_null() {
            return Err(node.fault("empty or null remote write config section"));
        }
        let mut fields = node.fields()?;
        let others = signers(&mut fields)?;
        metadata(fields.part("metadata_config"))?;
        let _: Option<bool> = fields.get("round_robin_dns")?;
        let _: Option<bool> = fields.get("failed_request_logging")?;
        let config = Self {
            url: url(&mut fields, "remote_write")?,
            name: fields.or_empty("name")?,
            remote_timeout: fields.or("remote_timeout", Duration(WRITE_TIMEOUT))?.0,
            headers: headers(&mut fields, true)?,
            write_relabel_configs: decode_list(
                fields.list_of("write_relabel_configs")?,
                "relabeling rule in remote write config",
                scheme,
            )?,
            send_exemplars: fields.or_empty("send_exemplars")?,
            send_native_histograms: fields.or_empty("send_native_histograms")?,
            version_2: message(&mut fields)?,
            http: HttpClientConfig::take(&mut fields)?,
            queue: fields
                .part("queue_config")
                .map(QueueConfig::read)
                .transpose()?
                .unwrap_or_default(),
        };
        fields.finish()?;
        let http = &config.http;
        let own = [
            http.basic_auth.is_some(),
            http.authorization.is_some(),
            http.oauth2.is_some(),
        ];
        if own.iter().filter(|set| **set).count() + others > 1 {
            return Err(fields.fault(
                "at most one of basic_auth, authorization, oauth2, sigv4, azuread or google_iam must be configured",
            ));
        }
        Ok(config)
    }
}

fn url(fields: &mut Fields<'_>, section: &str) -> Result<Url> {
    match fields.part("url") {
        Some(node) => node.read(),
        None => Err(fields.fault(format!("url for {section} is empty"))),
    }
}

/// Takes the ways to sign a request that are no part of an HTTP client, and counts them.
fn signers(fields: &mut Fields<'_>) -> Result<usize> {
    let mut count = 0;
    if let Some(node) = fields.part("sigv4") {
        sigv4(node)?;
        count += 1;
    }
    if let Some(node) = fields.part("azuread") {
        azure::check(node)?;
        count += 1;
    }
    if let Some(node) = fields.part("google_iam") {
        let mut own = node.fields()?;
        let _: Option<String> = own.get("credentials_file")?;
        own.finish()?;
        count += 1;
    }
    Ok(count)
}

/// Judges a section that signs requests for Amazon.
pub(super) fn sigv4(node: &Node) -> Result<()> {
    let mut fields = node.fields()?;
    for key in ["region", "profile", "role_arn", "external_id", "service_name"] {
        let _: Option<String> = fields.get(key)?;
    }
    let _: Option<bool> = fields.get("use_fips_sts_endpoint")?;
    let access: String = fields.or_empty("access_key")?;
    let secret: String = fields.or_empty("secret_key")?;
    fields.finish()?;
    if access.is_empty() != secret.is_empty() {
        return Err(node.fault(
            "must provide a AWS SigV4 Access key and Secret Key if credentials are specified in the SigV4 config",
        ));
    }
    Ok(())
}

fn metadata(node: Option<&Node>) -> Result<()> {
    let Some(node) = node else { return Ok(()) };
    let mut fields = node.fields()?;
    let _: Option<bool> = fields.get("send")?;
    let _: Option<Duration> = fields.get("send_interval")?;
    let _: Option<i64> = fields.get("max_samples_per_send")?;
    fields.finish()
}

fn message(fields: &mut Fields<'_>) -> Result<bool> {
    let Some(name) = fields.get::<String>("protobuf_message")? else {
        return Ok(false);
    };
    match MESSAGES.iter().find(|(known, _)| *known == name) {
        Some((_, version_2)) => Ok(*version_2),
        None => Err(fields.fault_at(
            "protobuf_message",
            format!(
                "invalid protobuf_message value: unknown type for remote write protobuf message {name}, supported: {}, {}",
                MESSAGES[0].0, MESSAGES[1].0
            ),
        )),
    }
}

/// Takes `headers` and refuses those that are not the user's to set.
pub(super) fn headers(fields: &mut Fields<'_>, remote: bool) -> Result<BTreeMap<String, String>> {
    let headers: BTreeMap<String, String> = fields.or_empty("headers")?;
    for name in headers.keys() {
        let lower = name.to_lowercase();
        if lower == "authorization" {
            let message = if remote {
                "authorization header must be changed via the basic_auth, authorization, oauth2, sigv4, azuread or \
                 google_iam parameter"
            } else {
                "custom authorization header configuration is not yet supported"
            };
            return Err(fields.fault_at("headers", message));
        }
        if RESERVED.contains(&lower.as_str()) || lower.starts_with("x-amz-") && is_signed(&lower) {
            return Err(fields.fault_at(
                "headers",
                format!("{name} is a reserved header. It must not be changed"),
            ));
        }
    }
    Ok(headers)
}

fn is_signed(lower: &str) -> bool {
    matches!(lower, "x-amz-date" | "x-amz-security-token" | "x-amz-content-sha256")
}

impl QueueConfig {
    fn read(node: &Node) -> Result<Self> {
        let mut fields = node.fields()?;
        let base = Self::default();
        let queue = Self {
            capacity: fields.or("capacity", base.capacity)?,
            max_shards: fields.or("max_shards", base.max_shards)?,
            min_shards: fields.or("min_shards", base.min_shards)?,
            max_samples_per_send: fields.or("max_samples_per_send", base.max_samples_per_send)?,
            batch_send_deadline: fields.or("batch_send_deadline", Duration(base.batch_send_deadline))?.0,
            min_backoff: fields.or("min_backoff", Duration(base.min_backoff))?.0,
            max_backoff: fields.or("max_backoff", Duration(base.max_backoff))?.0,
            retry_on_rate_limit: fields.or_empty("retry_on_http_429")?,
            sample_age_limit: fields.or_empty::<Duration>("sample_age_limit")?.0,
        };
        fields.finish()?;
        let message = if queue.max_shards <= 0 {
            "remote write queue max_shards must be positive"
        } else if queue.min_shards <= 0 {
            "remote write queue min_shards must be positive"
        } else if queue.min_shards > queue.max_shards {
            "remote write queue min_shards must not be greater than max_shards"
        } else if queue.max_samples_per_send <= 0 {
            "remote write queue max_samples_per_send must be positive"
        } else if queue.capacity <= 0 {
            "remote write queue capacity must be positive"
        } else if queue.max_backoff < queue.min_backoff {
            "remote write queue max_backoff must not be less than min_backoff"
        } else {
            return Ok(queue);
        };
        Err(node.fault(message))
    }
}

impl RemoteReadConfig {
    pub(super) fn read(node: &Node) -> Result<Self> {
        if node.is_null() {
            return Err(node.fault("empty or null remote read config section"));
        }
        let mut fields = node.fields()?;
        let _: Option<u64> = fields.get("chunked_read_limit")?;
        let _: Option<bool> = fields.get("filter_external_labels")?;
        headers(&mut fields, true)?;
        let config = Self {
            url: url(&mut fields, "remote_read")?,
            name: fields.or_empty("name")?,
            remote_timeout: fields.or("remote_timeout", Duration(READ_TIMEOUT))?.0,
            read_recent: fields.or_empty("read_recent")?,
            required_matchers: fields.or_empty("required_matchers")?,
            http: HttpClientConfig::take(&mut fields)?,
        };
        fields.finish()?;
        Ok(config)
    }
}
