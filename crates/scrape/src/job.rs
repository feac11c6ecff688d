//! What to scrape and how: a job's settings, resolved; made from the configuration here and nowhere else.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::http::HttpClientConfig;
use config::prometheus::{Discovery, Limits, ScrapeConfig, ScrapeProtocol, StaticConfig};
use config::relabel::RelabelConfig;
use exposition::{Histograms, PageFormat, Protocol};
use model::Millis;

/// The settings of a job, every default resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The job's name, the `job` label of its targets.
    pub name: String,
    /// How often, in milliseconds.
    pub interval: Millis,
    /// How long a scrape may take, in milliseconds.
    pub timeout: Millis,
    /// `http` or `https`.
    pub scheme: String,
    /// The path of the page.
    pub metrics_path: String,
    /// Query parameters, in order.
    pub params: Vec<(String, Vec<String>)>,
    /// Whether the page's labels win over the target's.
    pub honor_labels: bool,
    /// Whether the page's timestamps are taken.
    pub honor_timestamps: bool,
    /// Whether series with timestamps of their own get staleness markers too.
    pub track_timestamps_staleness: bool,
    /// The formats to ask for, dearest first.
    pub protocols: Vec<Protocol>,
    /// What a page without a usable content type is taken for; absent: such a page is refused.
    pub fallback: Option<PageFormat>,
    /// How names outside the old alphabet are asked for, in the words of the `Accept` header.
    pub escaping: &'static str,
    /// Which forms of histograms are stored.
    pub histograms: Histograms,
    /// The most buckets of a native histogram, finer ones are made coarser; 0 for no bound.
    pub native_buckets_max: usize,
    /// The least factor between the bounds of neighbouring buckets of a native histogram; 0 for no bound.
    pub native_factor_min: f64,
    /// Whether compressed pages are asked for.
    pub compression: bool,
    /// Bounds on what a target may send; 0 is none.
    pub limits: Limits,
    /// Whether `scrape_timeout_seconds` and fellows are stored too.
    pub extra_metrics: bool,
    /// How many dropped targets are remembered; 0 for [`DROPPED_MAX`].
    pub dropped_max: usize,
    /// How HTTP is spoken.
    pub http: HttpClientConfig,
    /// Targets, as a file or discovery gave them.
    pub groups: Vec<StaticConfig>,
    /// Rules over a target's labels.
    pub relabel: Vec<RelabelConfig>,
    /// Rules over a sample's labels.
    pub metric_relabel: Vec<RelabelConfig>,
    /// Other ways to find targets.
    pub discovery: Vec<Discovery>,
    /// The folder that paths of discovered files count from.
    pub folder: PathBuf,
    /// The configuration it was made from; absent for what this process scrapes of itself.
    pub config: Option<Arc<ScrapeConfig>>,
}

/// The most dropped targets remembered of one job.
pub const DROPPED_MAX: usize = 10_000;

/// The largest page when the configuration does not say, in bytes; decompressed.
pub const BODY_BYTES_MAX: u64 = 100 * 1024 * 1024;

impl Job {
    /// A job with the field's defaults: every 15 s, `http`, `/metrics`.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            interval: 15_000,
            timeout: 10_000,
            scheme: "http".to_owned(),
            metrics_path: "/metrics".to_owned(),
            params: Vec::new(),
            honor_labels: false,
            honor_timestamps: true,
            track_timestamps_staleness: false,
            protocols: Protocol::DEFAULT.to_vec(),
            fallback: None,
            escaping: "allow-utf-8",
            histograms: Histograms::default(),
            native_buckets_max: 0,
            native_factor_min: 0.0,
            compression: true,
            limits: Limits::default(),
            extra_metrics: false,
            dropped_max: 0,
            http: HttpClientConfig::default(),
            groups: Vec::new(),
            relabel: Vec::new(),
            metric_relabel: Vec::new(),
            discovery: Vec::new(),
            folder: PathBuf::from("."),
            config: None,
        }
    }

    /// The same, with paths that count from `folder`.
    #[must_use]
    pub fn within(self, folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            ..self
        }
    }

    /// The largest page, in bytes.
    #[must_use]
    pub const fn body_bytes_max(&self) -> u64 {
        match self.limits.body_size_bytes {
            0 => BODY_BYTES_MAX,
            configured => configured,
        }
    }

    /// Whether a running target may go on under `other`: all that touches a scrape is equal, whatever became
    /// of the list of targets.
    #[must_use]
    pub fn scrapes_like(&self, other: &Self) -> bool {
        let bare = |job: &Self| Self {
            groups: Vec::new(),
            relabel: Vec::new(),
            discovery: Vec::new(),
            folder: PathBuf::new(),
            config: None,
            ..job.clone()
        };
        bare(self) == bare(other)
    }
}

impl From<&ScrapeConfig> for Job {
    fn from(config: &ScrapeConfig) -> Self {
        let native = config.scrape_native_histograms;
        let protocols: Vec<Protocol> = config.scrape_protocols.iter().map(|p| protocol(*p)).collect();
        Self {
            name: config.job_name.clone(),
            interval: config.scrape_interval,
            timeout: config.scrape_timeout,
            scheme: config.scheme.clone(),
            metrics_path: config.metrics_path.clone(),
            params: config.params.clone(),
            honor_labels: config.honor_labels,
            honor_timestamps: config.honor_timestamps,
            track_timestamps_staleness: config.track_timestamps_staleness,
            protocols: match (protocols.is_empty(), native) {
                (false, _) => protocols,
                (true, true) => Protocol::PROTOBUF_FIRST.to_vec(),
                (true, false) => Protocol::DEFAULT.to_vec(),
            },
            fallback: config.fallback_scrape_protocol.map(|p| protocol(p).format()),
            escaping: config.escaping.as_str(),
            histograms: Histograms {
                native,
                always_classic: config.always_scrape_classic_histograms,
            },
            native_buckets_max: usize::try_from(config.native_histogram_bucket_limit).unwrap_or(usize::MAX),
            native_factor_min: config.native_histogram_min_bucket_factor,
            compression: config.enable_compression,
            limits: config.limits,
            extra_metrics: config.extra_scrape_metrics,
            dropped_max: usize::try_from(config.keep_dropped_targets).unwrap_or(0),
            http: config.http.clone(),
            groups: config.static_configs.clone(),
            relabel: config.relabel_configs.clone(),
            metric_relabel: config.metric_relabel_configs.clone(),
            discovery: config.discovery.clone(),
            folder: PathBuf::from("."),
            config: Some(Arc::new(config.clone())),
        }
    }
}

const fn protocol(protocol: ScrapeProtocol) -> Protocol {
    match protocol {
        ScrapeProtocol::PrometheusProto => Protocol::Protobuf,
        ScrapeProtocol::PrometheusText0_0_4 => Protocol::Text0,
        ScrapeProtocol::PrometheusText1_0_0 => Protocol::Text1,
        ScrapeProtocol::OpenMetricsText0_0_1 => Protocol::OpenMetrics0,
        ScrapeProtocol::OpenMetricsText1_0_0 => Protocol::OpenMetrics1,
    }
}
