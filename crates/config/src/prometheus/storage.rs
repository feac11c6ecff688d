//! The sections about the server itself: `storage`, `tracing`, `otlp`, `runtime`.

use model::Millis;

use super::remote::headers;
use crate::http::TlsConfig;
use crate::relabel::NameScheme;
use crate::size::Bytes;
use crate::yaml::{Duration, Float, Node, Result};

/// What the file says of the store; ours is told by `watchfire.yml`, and takes these where that is silent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StorageConfig {
    /// How late a sample may come, in milliseconds.
    pub out_of_order_time_window: Millis,
    /// How long samples are kept, in milliseconds; 0 for not told.
    pub retention_time: Millis,
    /// How many bytes are kept; 0 for not told.
    pub retention_bytes: i64,
}

impl StorageConfig {
    pub(super) fn read(node: &Node) -> Result<Self> {
        let mut fields = node.fields()?;
        let config = fields.part("tsdb").map(tsdb).transpose()?.unwrap_or_default();
        if let Some(exemplars) = fields.part("exemplars") {
            let mut own = exemplars.fields()?;
            let _: Option<i64> = own.get("max_exemplars")?;
            own.finish()?;
        }
        fields.finish()?;
        Ok(config)
    }
}

fn tsdb(node: &Node) -> Result<StorageConfig> {
    let mut fields = node.fields()?;
    let _: Option<Float> = fields.get("stale_series_compaction_threshold")?;
    let out_of_order_time_window = fields.or_empty::<Duration>("out_of_order_time_window")?.0;
    if let Some(encoding) = fields.part("chunk_encoding") {
        chunk_encoding(encoding)?;
    }
    let mut config = fields.part("retention").map(retention).transpose()?.unwrap_or_default();
    config.out_of_order_time_window = out_of_order_time_window;
    fields.finish()?;
    Ok(config)
}

fn chunk_encoding(node: &Node) -> Result<()> {
    let mut fields = node.fields()?;
    let floats: String = fields.or_empty("floats")?;
    fields.finish()?;
    match floats.as_str() {
        "" | "xor" | "xor2" => Ok(()),
        _ => Err(fields.fault_at(
            "floats",
            format!(
                "'storage.tsdb.chunk_encoding.floats' must be 'xor' or 'xor2', or the field must be omitted entirely, \
                 got {floats:?}"
            ),
        )),
    }
}

fn retention(node: &Node) -> Result<StorageConfig> {
    let mut fields = node.fields()?;
    let retention_time = fields.or_empty::<Duration>("time")?.0;
    let size = fields.or_empty::<Bytes>("size")?.0;
    let percentage = fields.or_empty::<Float>("percentage")?.0;
    fields.finish()?;
    if size < 0 {
        let message = format!("'storage.tsdb.retention.size' must be greater than or equal to 0, got {size}");
        return Err(fields.fault_at("size", message));
    }
    if !(0.0..=100.0).contains(&percentage) {
        let message = format!("'storage.tsdb.retention.percentage' must be in the range [0, 100], got {percentage}");
        return Err(fields.fault_at("percentage", message));
    }
    Ok(StorageConfig {
        out_of_order_time_window: 0,
        retention_time,
        retention_bytes: size,
    })
}

/// Judges `tracing`, which we do not do.
pub(super) fn tracing(node: &Node) -> Result<()> {
    let mut fields = node.fields()?;
    let client = fields.or("client_type", "grpc".to_owned())?;
    if !matches!(client.as_str(), "http" | "grpc") {
        let message = format!("expected tracing client type to be to be http or grpc, but got {client}");
        return Err(fields.fault_at("client_type", message));
    }
    let _: Option<Float> = fields.get("sampling_fraction")?;
    let _: Option<bool> = fields.get("insecure")?;
    let _: Option<Duration> = fields.get("timeout")?;
    fields.part("tls_config").map(TlsConfig::read).transpose()?;
    headers(&mut fields, false)?;
    let endpoint: String = fields.or_empty("endpoint")?;
    let compression: String = fields.or_empty("compression")?;
    fields.finish()?;
    if endpoint.is_empty() {
        return Err(fields.fault("tracing endpoint must be set"));
    }
    if !matches!(compression.as_str(), "" | "gzip") {
        let message = format!("invalid compression type {compression} provided, valid options: gzip");
        return Err(fields.fault_at("compression", message));
    }
    Ok(())
}

/// Judges `runtime`, which speaks to Go.
pub(super) fn runtime(node: &Node) -> Result<()> {
    let mut fields = node.fields()?;
    let _: Option<i64> = fields.get("gogc")?;
    fields.finish()
}

/// How OTLP metrics become series.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OtlpConfig {
    /// Whether every resource attribute becomes a label.
    pub promote_all_resource_attributes: bool,
    /// The resource attributes that become labels.
    pub promote_resource_attributes: Vec<String>,
    /// Those that do not, where all others do.
    pub ignore_resource_attributes: Vec<String>,
    /// How names are translated; empty for `UnderscoreEscapingWithSuffixes`.
    pub translation_strategy: String,
}

impl OtlpConfig {
    pub(super) fn read(node: &Node, scheme: NameScheme) -> Result<Self> {
        let mut fields = node.fields()?;
        for key in [
            "keep_identifying_resource_attributes",
            "convert_histograms_to_nhcb",
            "promote_scope_metadata",
            "label_name_underscore_sanitization",
            "label_name_preserve_multiple_underscores",
        ] {
            let _: Option<bool> = fields.get(key)?;
        }
        let mut config = Self {
            promote_all_resource_attributes: fields.or_empty("promote_all_resource_attributes")?,
            promote_resource_attributes: fields.or_empty("promote_resource_attributes")?,
            ignore_resource_attributes: fields.or_empty("ignore_resource_attributes")?,
            translation_strategy: fields.or_empty("translation_strategy")?,
        };
        fields.finish()?;
        match (config.promote_all_resource_attributes, &config) {
            (true, c) if !c.promote_resource_attributes.is_empty() => {
                return Err(fields.fault(
                    "'promote_all_resource_attributes' and 'promote_resource_attributes' cannot be configured \
                     simultaneously",
                ));
            }
            (false, c) if !c.ignore_resource_attributes.is_empty() => {
                return Err(fields.fault(
                    "'ignore_resource_attributes' cannot be configured unless 'promote_all_resource_attributes' is true",
                ));
            }
            _ => {}
        }
        tidy(&mut config.promote_resource_attributes, "promoted")
            .map_err(|m| fields.fault(format!("invalid 'promote_resource_attributes': {m}")))?;
        tidy(&mut config.ignore_resource_attributes, "ignored")
            .map_err(|m| fields.fault(format!("invalid 'ignore_resource_attributes': {m}")))?;
        let strategy = &config.translation_strategy;
        match strategy.as_str() {
            "" | "UnderscoreEscapingWithSuffixes" | "UnderscoreEscapingWithoutSuffixes" => Ok(config),
            "NoTranslation" | "NoUTF8EscapingWithSuffixes" if scheme == NameScheme::Utf8 => Ok(config),
            "NoTranslation" | "NoUTF8EscapingWithSuffixes" => Err(fields.fault_at(
                "translation_strategy",
                format!("OTLP translation strategy {strategy:?} is not allowed when UTF8 is disabled"),
            )),
            _ => Err(fields.fault_at(
                "translation_strategy",
                format!("unsupported OTLP translation strategy {strategy:?}"),
            )),
        }
    }
}

/// Trims names and refuses empty and doubled ones.
fn tidy(names: &mut [String], adjective: &str) -> std::result::Result<(), String> {
    for at in 0..names.len() {
        let name = names[at].trim().to_owned();
        if name.is_empty() {
            return Err(format!("empty {adjective} OTel resource attribute"));
        }
        if names[..at].contains(&name) {
            return Err(format!("duplicated {adjective} OTel resource attribute {name:?}"));
        }
        names[at] = name;
    }
    Ok(())
}
