//! The `global` section: defaults of every job.

use model::Millis;
use model::labels::Labels;

use super::scrape::Limits;
use crate::relabel::NameScheme;
use crate::size::Bytes;
use crate::yaml::{Decode, Duration, Fault, Fields, Node, Result};

/// Defaults of every job and of rule groups.
#[derive(Debug, Clone, PartialEq)]
pub struct GlobalConfig {
    /// How often targets are scraped, in milliseconds.
    pub scrape_interval: Millis,
    /// How long a scrape may take, in milliseconds.
    pub scrape_timeout: Millis,
    /// Formats to ask for, best first; empty for the usual ones.
    pub scrape_protocols: Vec<ScrapeProtocol>,
    /// How often rules are evaluated, in milliseconds.
    pub evaluation_interval: Millis,
    /// How far back rule queries look, in milliseconds.
    pub rule_query_offset: Millis,
    /// Labels added to what leaves this server.
    pub external_labels: Labels,
    /// A file that gets every query; empty for none.
    pub query_log_file: String,
    /// A file that gets every failed scrape; empty for none.
    pub scrape_failure_log_file: String,
    /// Limits of every job.
    pub limits: Limits,
    /// How many dropped targets are remembered; 0 for all.
    pub keep_dropped_targets: u64,
    /// How metric and label names may be written.
    pub name_scheme: NameScheme,
    /// How names of the new alphabet are asked for.
    pub escaping: Option<EscapingScheme>,
    /// Whether native histograms are scraped.
    pub scrape_native_histograms: bool,
    /// Whether classic histograms become native ones with custom buckets.
    pub convert_classic_histograms_to_nhcb: bool,
    /// Whether a histogram that is also native is scraped in its classic form too.
    pub always_scrape_classic_histograms: bool,
    /// Whether further `scrape_*` series are kept.
    pub extra_scrape_metrics: bool,
}

/// Prometheus' own defaults.
pub(super) const SCRAPE_INTERVAL: Millis = 60_000;
const SCRAPE_TIMEOUT: Millis = 10_000;
const EVALUATION_INTERVAL: Millis = 60_000;

impl Default for GlobalConfig {
    fn default() -> Self {
        Self {
            scrape_interval: SCRAPE_INTERVAL,
            scrape_timeout: SCRAPE_TIMEOUT,
            scrape_protocols: Vec::new(),
            evaluation_interval: EVALUATION_INTERVAL,
            rule_query_offset: 0,
            external_labels: Labels::empty(),
            query_log_file: String::new(),
            scrape_failure_log_file: String::new(),
            limits: Limits::default(),
            keep_dropped_targets: 0,
            name_scheme: NameScheme::Utf8,
            escaping: None,
            scrape_native_histograms: false,
            convert_classic_histograms_to_nhcb: false,
            always_scrape_classic_histograms: false,
            extra_scrape_metrics: false,
        }
    }
}

impl GlobalConfig {
    /// Reads the section over a base: where it is silent, the base's intervals hold.
    pub(crate) fn read_over(node: Option<&Node>, base: &Self) -> Result<Self> {
        let Some(node) = node.filter(|n| !n.is_null()) else {
            return Ok(base.clone());
        };
        let mut fields = node.fields()?;
        let name_scheme = fields.or("metric_name_validation_scheme", NameScheme::Utf8)?;
        let (scrape_interval, scrape_timeout) = times(&mut fields, base)?;
        let global = Self {
            scrape_interval,
            scrape_timeout,
            scrape_protocols: protocols(&mut fields, "for global config")?.unwrap_or_default(),
            evaluation_interval: nonzero(fields.or_empty("evaluation_interval")?).unwrap_or(base.evaluation_interval),
            rule_query_offset: fields.or_empty::<Duration>("rule_query_offset")?.0,
            external_labels: external_labels(&mut fields, name_scheme)?,
            query_log_file: fields.or_empty("query_log_file")?,
            scrape_failure_log_file: fields.or_empty("scrape_failure_log_file")?,
            limits: Limits::take(&mut fields)?,
            keep_dropped_targets: fields.or_empty("keep_dropped_targets")?,
            name_scheme,
            escaping: EscapingScheme::take(&mut fields)?,
            scrape_native_histograms: fields.or_empty("scrape_native_histograms")?,
            convert_classic_histograms_to_nhcb: fields.or_empty("convert_classic_histograms_to_nhcb")?,
            always_scrape_classic_histograms: fields.or_empty("always_scrape_classic_histograms")?,
            extra_scrape_metrics: fields.or_empty("extra_scrape_metrics")?,
        };
        fields.finish()?;
        Ok(global)
    }
}

fn times(fields: &mut Fields<'_>, base: &GlobalConfig) -> Result<(Millis, Millis)> {
    let interval = nonzero(fields.or_empty("scrape_interval")?).unwrap_or(base.scrape_interval);
    let timeout = nonzero(fields.or_empty("scrape_timeout")?);
    if timeout.is_some_and(|timeout| timeout > interval) {
        return Err(fields.fault_at("scrape_timeout", "global scrape timeout greater than scrape interval"));
    }
    Ok((interval, timeout.unwrap_or(SCRAPE_TIMEOUT.min(interval))))
}

/// A duration of zero stands for the default.
pub(super) fn nonzero(duration: Duration) -> Option<Millis> {
    Some(duration.0).filter(|millis| *millis != 0)
}

fn external_labels(fields: &mut Fields<'_>, scheme: NameScheme) -> Result<Labels> {
    let pairs = fields.node_of("external_labels").map_or(Ok(&[][..]), Node::map)?;
    let mut out = Vec::new();
    for (name, value) in pairs {
        if name.binary || !scheme.label_name(&name.text) {
            return Err(Fault::new(
                name.at,
                format!("\"{}\" is not a valid label name", name.text),
            ));
        }
        if let Some(scalar) = value.scalar().filter(|s| s.binary) {
            return Err(value.fault(format!("\"{}\" is not a valid label value", scalar.text)));
        }
        out.push((name.text.as_str(), value.read::<String>()?));
    }
    Ok(Labels::from_pairs(out.iter().map(|(n, v)| (*n, v.as_str()))))
}

/// A format of the exposition page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScrapeProtocol {
    /// The protobuf form.
    PrometheusProto,
    /// The text format.
    PrometheusText0_0_4,
    /// The text format with quoted names.
    PrometheusText1_0_0,
    /// OpenMetrics, an early version.
    OpenMetricsText0_0_1,
    /// OpenMetrics.
    OpenMetricsText1_0_0,
}

const PROTOCOLS: [(&str, ScrapeProtocol); 5] = [
    ("OpenMetricsText0.0.1", ScrapeProtocol::OpenMetricsText0_0_1),
    ("OpenMetricsText1.0.0", ScrapeProtocol::OpenMetricsText1_0_0),
    ("PrometheusProto", ScrapeProtocol::PrometheusProto),
    ("PrometheusText0.0.4", ScrapeProtocol::PrometheusText0_0_4),
    ("PrometheusText1.0.0", ScrapeProtocol::PrometheusText1_0_0),
];

impl ScrapeProtocol {
    /// Finds a protocol by its name, which must be written exactly.
    pub(super) fn find(name: &str) -> std::result::Result<Self, String> {
        let found = PROTOCOLS.iter().find(|(n, _)| *n == name);
        found.map(|(_, p)| *p).ok_or_else(|| {
            let names: Vec<&str> = PROTOCOLS.iter().map(|(n, _)| *n).collect();
            format!("unknown scrape protocol {name}, supported: [{}]", names.join(" "))
        })
    }
}

/// Takes `scrape_protocols`; `None` when not written. `context` ends the message.
pub(super) fn protocols(fields: &mut Fields<'_>, context: &str) -> Result<Option<Vec<ScrapeProtocol>>> {
    let Some(node) = fields.part("scrape_protocols") else {
        return Ok(None);
    };
    let names: Vec<String> = node.read()?;
    if names.is_empty() {
        return Err(node.fault(format!("scrape_protocols cannot be empty {context}")));
    }
    let mut out = Vec::new();
    for (name, place) in names.iter().zip(node.list()?) {
        let protocol =
            ScrapeProtocol::find(name).map_err(|e| place.fault(format!("scrape_protocols: {e} {context}")))?;
        if out.contains(&protocol) {
            let all = names.join(" ");
            return Err(place.fault(format!(
                "duplicated protocol in scrape_protocols, got [{all}] {context}"
            )));
        }
        out.push(protocol);
    }
    Ok(Some(out))
}

/// How names outside the old alphabet are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EscapingScheme {
    /// As they are.
    AllowUtf8,
    /// Other characters become `_`.
    Underscores,
    /// Dots become `_dot_`.
    Dots,
    /// `U__` with code points.
    Values,
}

impl EscapingScheme {
    /// The word in the configuration and in an `Accept` header.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AllowUtf8 => "allow-utf-8",
            Self::Underscores => "underscores",
            Self::Dots => "dots",
            Self::Values => "values",
        }
    }

    /// Takes `metric_name_escaping_scheme`; `None` when not written.
    pub(super) fn take(fields: &mut Fields<'_>) -> Result<Option<Self>> {
        let key = "metric_name_escaping_scheme";
        let name: String = fields.or_empty(key)?;
        match name.as_str() {
            "" => Ok(None),
            "allow-utf-8" => Ok(Some(Self::AllowUtf8)),
            "underscores" => Ok(Some(Self::Underscores)),
            "dots" => Ok(Some(Self::Dots)),
            "values" => Ok(Some(Self::Values)),
            _ => Err(fields.fault_at(
                key,
                format!("unknown metric name escaping scheme {name:?}, must be one of allow-utf-8, underscores, dots or values"),
            )),
        }
    }
}

impl Decode for NameScheme {
    fn decode(node: &Node) -> Result<Self> {
        let text: String = node.read()?;
        match text.as_str() {
            "" | "utf8" => Ok(Self::Utf8),
            "legacy" => Ok(Self::Legacy),
            _ => Err(node.fault(format!(
                "unrecognized ValidationScheme: {text:?}, must be utf8 or legacy"
            ))),
        }
    }
}

impl Limits {
    /// Takes the limits out of a mapping that holds other keys too.
    pub(super) fn take(fields: &mut Fields<'_>) -> Result<Self> {
        Ok(Self {
            body_size_bytes: u64::try_from(fields.or_empty::<Bytes>("body_size_limit")?.0).unwrap_or(0),
            samples: fields.or_empty("sample_limit")?,
            targets: fields.or_empty("target_limit")?,
            labels: fields.or_empty("label_limit")?,
            label_name_bytes: fields.or_empty("label_name_length_limit")?,
            label_value_bytes: fields.or_empty("label_value_length_limit")?,
        })
    }
}
