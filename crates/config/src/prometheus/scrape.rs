//! One job of `scrape_configs`.

use model::Millis;

use super::discovery::{self, Discovery};
use super::global::{EscapingScheme, GlobalConfig, ScrapeProtocol, nonzero, protocols};
use super::targets::{StaticConfig, check_hosts};
use crate::http::HttpClientConfig;
use crate::relabel::{NameScheme, RelabelConfig, decode_list};
use crate::yaml::{Fields, Float, Node, Result};

/// A job, defaults resolved against the global section.
#[derive(Debug, Clone, PartialEq)]
pub struct ScrapeConfig {
    /// The job's name, unique and not empty.
    pub job_name: String,
    /// How often, in milliseconds.
    pub scrape_interval: Millis,
    /// How long a scrape may take, in milliseconds; never more than the interval.
    pub scrape_timeout: Millis,
    /// Formats to ask for, best first; empty for the usual ones.
    pub scrape_protocols: Vec<ScrapeProtocol>,
    /// What to take a page for whose content type says nothing.
    pub fallback_scrape_protocol: Option<ScrapeProtocol>,
    /// `/metrics` unless told.
    pub metrics_path: String,
    /// `http` unless told.
    pub scheme: String,
    /// Query parameters, in order; a name may have several values.
    pub params: Vec<(String, Vec<String>)>,
    /// Whether the page's labels win over the target's.
    pub honor_labels: bool,
    /// Whether the page's timestamps are taken.
    pub honor_timestamps: bool,
    /// Whether series with timestamps of their own get staleness markers too.
    pub track_timestamps_staleness: bool,
    /// Whether compressed pages are asked for.
    pub enable_compression: bool,
    /// Bounds on what a target may send.
    pub limits: Limits,
    /// How many dropped targets are remembered; 0 for all.
    pub keep_dropped_targets: u64,
    /// How metric and label names may be written.
    pub name_scheme: NameScheme,
    /// How names outside the old alphabet are asked for.
    pub escaping: EscapingScheme,
    /// Whether native histograms are scraped.
    pub scrape_native_histograms: bool,
    /// Whether a histogram that is also native is scraped in its classic form too.
    pub always_scrape_classic_histograms: bool,
    /// Whether classic histograms become native ones with custom buckets.
    pub convert_classic_histograms_to_nhcb: bool,
    /// Whether further `scrape_*` series are kept.
    pub extra_scrape_metrics: bool,
    /// The most buckets of a native histogram; 0 for no bound.
    pub native_histogram_bucket_limit: u64,
    /// The least factor between buckets; 0 for no bound.
    pub native_histogram_min_bucket_factor: f64,
    /// A file that gets every failed scrape; empty for none.
    pub scrape_failure_log_file: String,
    /// How to speak HTTP.
    pub http: HttpClientConfig,
    /// Targets written in the file.
    pub static_configs: Vec<StaticConfig>,
    /// Other ways to find targets.
    pub discovery: Vec<Discovery>,
    /// Rules over a target's labels.
    pub relabel_configs: Vec<RelabelConfig>,
    /// Rules over a sample's labels.
    pub metric_relabel_configs: Vec<RelabelConfig>,
}

/// Bounds on what a target may send; 0 is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Bytes of a page, uncompressed.
    pub body_size_bytes: u64,
    /// Samples of a page after relabelling.
    pub samples: u64,
    /// Targets of a job after relabelling.
    pub targets: u64,
    /// Labels of a series.
    pub labels: u64,
    /// Bytes of a label's name.
    pub label_name_bytes: u64,
    /// Bytes of a label's value.
    pub label_value_bytes: u64,
}

impl Limits {
    /// These limits, and where there is none, the other's.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let pick = |a, b| if a == 0 { b } else { a };
        Self {
            body_size_bytes: pick(self.body_size_bytes, other.body_size_bytes),
            samples: pick(self.samples, other.samples),
            targets: pick(self.targets, other.targets),
            labels: pick(self.labels, other.labels),
            label_name_bytes: pick(self.label_name_bytes, other.label_name_bytes),
            label_value_bytes: pick(self.label_value_bytes, other.label_value_bytes),
        }
    }
}

impl ScrapeConfig {
    /// Reads a job against the global section.
    pub(super) fn read(node: &Node, global: &GlobalConfig) -> Result<Self> {
        if node.is_null() {
            return Err(node.fault("empty or null scrape config section"));
        }
        let mut fields = node.fields()?;
        let discovery = discovery::take(&mut fields)?;
        let job_name: String = fields.or_empty("job_name")?;
        let context = format!("for scrape config with job name {job_name:?}");
        let (scrape_interval, scrape_timeout) = times(&mut fields, global, &context)?;
        let own_scheme = fields
            .part("metric_name_validation_scheme")
            .map(Node::read)
            .transpose()?;
        let name_scheme = own_scheme.unwrap_or(global.name_scheme);
        let config = Self {
            scrape_interval,
            scrape_timeout,
            scrape_protocols: protocols(&mut fields, &context)?.unwrap_or_else(|| global.scrape_protocols.clone()),
            fallback_scrape_protocol: fallback(&mut fields, &context)?,
            metrics_path: fields.or("metrics_path", "/metrics".to_owned())?,
            scheme: fields.or("scheme", "http".to_owned())?,
            params: params(&mut fields)?,
            honor_labels: fields.or_empty("honor_labels")?,
            honor_timestamps: fields.or("honor_timestamps", true)?,
            track_timestamps_staleness: fields.or_empty("track_timestamps_staleness")?,
            enable_compression: fields.or("enable_compression", true)?,
            limits: Limits::take(&mut fields)?.or(global.limits),
            keep_dropped_targets: match fields.or_empty("keep_dropped_targets")? {
                0 => global.keep_dropped_targets,
                some => some,
            },
            name_scheme,
            escaping: escaping(&mut fields, own_scheme, global)?,
            scrape_native_histograms: fields.or("scrape_native_histograms", global.scrape_native_histograms)?,
            always_scrape_classic_histograms: fields.or(
                "always_scrape_classic_histograms",
                global.always_scrape_classic_histograms,
            )?,
            convert_classic_histograms_to_nhcb: fields.or(
                "convert_classic_histograms_to_nhcb",
                global.convert_classic_histograms_to_nhcb,
            )?,
            extra_scrape_metrics: fields.or("extra_scrape_metrics", global.extra_scrape_metrics)?,
            native_histogram_bucket_limit: fields.or_empty("native_histogram_bucket_limit")?,
            native_histogram_min_bucket_factor: fields.or_empty::<Float>("native_histogram_min_bucket_factor")?.0,
            scrape_failure_log_file: match fields.or_empty::<String>("scrape_failure_log_file")? {
                none if none.is_empty() => global.scrape_failure_log_file.clone(),
                file => file,
            },
            http: HttpClientConfig::take(&mut fields)?,
            static_configs: StaticConfig::list(&mut fields)?,
            discovery,
            relabel_configs: decode_list(
                fields.list_of("relabel_configs")?,
                "target relabeling rule in scrape config",
                name_scheme,
            )?,
            metric_relabel_configs: decode_list(
                fields.list_of("metric_relabel_configs")?,
                "metric relabeling rule in scrape config",
                name_scheme,
            )?,
            job_name,
        };
        fields.finish()?;
        if config.job_name.is_empty() {
            return Err(fields.fault("job_name is empty"));
        }
        if config.relabel_configs.is_empty() {
            check_hosts(&fields, &config.static_configs)?;
        }
        Ok(config)
    }
}

fn times(fields: &mut Fields<'_>, global: &GlobalConfig, context: &str) -> Result<(Millis, Millis)> {
    let interval = nonzero(fields.or_empty("scrape_interval")?).unwrap_or(global.scrape_interval);
    let timeout = nonzero(fields.or_empty("scrape_timeout")?);
    if timeout.is_some_and(|timeout| timeout > interval) {
        let message = format!("scrape timeout greater than scrape interval {context}");
        return Err(fields.fault_at("scrape_timeout", message));
    }
    Ok((interval, timeout.unwrap_or(global.scrape_timeout.min(interval))))
}

fn fallback(fields: &mut Fields<'_>, context: &str) -> Result<Option<ScrapeProtocol>> {
    let key = "fallback_scrape_protocol";
    let name: String = fields.or_empty(key)?;
    if name.is_empty() {
        return Ok(None);
    }
    let found = ScrapeProtocol::find(&name).map(Some);
    found.map_err(|e| fields.fault_at(key, format!("invalid {key} {context}: {e}")))
}

/// The job's own scheme, or what follows from its names, or the global one where both are silent.
fn escaping(fields: &mut Fields<'_>, own: Option<NameScheme>, global: &GlobalConfig) -> Result<EscapingScheme> {
    let usual = |scheme| match scheme {
        NameScheme::Utf8 => EscapingScheme::AllowUtf8,
        NameScheme::Legacy => EscapingScheme::Underscores,
    };
    let scheme = own.unwrap_or(global.name_scheme);
    let inherited = match own {
        Some(own) => usual(own),
        None => global.escaping.unwrap_or_else(|| usual(global.name_scheme)),
    };
    let escaping = EscapingScheme::take(fields)?.unwrap_or(inherited);
    if escaping == EscapingScheme::AllowUtf8 && scheme == NameScheme::Legacy {
        return Err(fields.fault("utf8 metric names requested but validation scheme is not set to UTF8"));
    }
    Ok(escaping)
}

fn params(fields: &mut Fields<'_>) -> Result<Vec<(String, Vec<String>)>> {
    let pairs = fields.node_of("params").map_or(Ok(&[][..]), Node::map)?;
    pairs.iter().map(|(k, v)| Ok((k.text.clone(), v.read()?))).collect()
}
