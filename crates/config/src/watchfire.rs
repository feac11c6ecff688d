//! `watchfire.yml`: our own keys beside the ecosystem's whole syntax.
//!
//! Everything is optional; [`Config::default`] is what runs without a file. `prometheus:` and
//! `alertmanager:` hold the ecosystem's files inline, or name one, relative to this file's folder.
//! Keys whose feature is planned and not built are refused by name: silence would mean "it works".

use std::path::{Path, PathBuf};

use model::Millis;

use crate::alertmanager;
use crate::alertmanager::matchers::Mode;
use crate::error::{Error, read};
use crate::prometheus::{self, GlobalConfig};
use crate::size::Bytes;
use crate::url::Url;
use crate::yaml::{Decode, Duration, Fields, Node, Result, parse};

mod collect;

pub use collect::{Collect, Collector, GpuConfig, GpuNames, HostnameLabel, Paths};

/// The whole file, defaults resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where to listen, `host:port`; `None` for the command's own default.
    pub listen: Option<String>,
    /// Where data lies; `None` for `watchfire-data` where the command runs.
    pub data_dir: Option<PathBuf>,
    /// Whether a listener off loopback may go without authentication.
    pub insecure: bool,
    /// Whether samples may be deleted and snapshots taken over HTTP.
    pub admin_api: bool,
    /// How others reach this hub: stands in messages. `None` for the listener's address.
    pub external_url: Option<Url>,
    /// Whether the exporters' own ports are opened too.
    pub compat_ports: bool,
    /// How long metrics are kept.
    pub retention: Retention,
    /// Intervals and labels of jobs and rules that tell none.
    pub global: GlobalConfig,
    /// What is collected here.
    pub collect: Collect,
    /// How GPUs are shown.
    pub gpu: GpuConfig,
    /// Bounds.
    pub limits: Limits,
    /// Whether PromQL's experimental functions are answered.
    pub promql_experimental: bool,
    /// Jobs and rules.
    pub prometheus: prometheus::Config,
    /// The folder that paths in `prometheus` count from.
    pub prometheus_folder: PathBuf,
    /// Where alerts go; `None` for nowhere but the log.
    pub alertmanager: Option<alertmanager::Config>,
    /// The folder that paths in `alertmanager` count from.
    pub alertmanager_folder: PathBuf,
    /// Which syntax the matchers of `alertmanager` are read in.
    pub matchers: Mode,
}

/// How long something is kept: whichever bound is met first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// By age, in milliseconds.
    pub time: Millis,
    /// By size, in bytes.
    pub bytes: u64,
}

/// Bounds on what comes in and what is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Active series.
    pub series: u64,
    /// Samples a query may load.
    pub query_samples: u64,
    /// Series a query may select.
    pub query_series: u64,
    /// Bytes of memory that the values and labels of a query may take.
    pub query_memory: u64,
    /// How long a query may take, in milliseconds.
    pub query_timeout: Millis,
    /// How long a query may take before it is logged, in milliseconds.
    pub slow_query: Millis,
    /// Bytes of memory for results of refreshing range queries.
    pub result_cache: u64,
    /// Queries at one time.
    pub queries: u64,
    /// Bytes of a request's body.
    pub body_bytes: u64,
    /// Active alerts.
    pub alerts: u64,
}

const DAY: Millis = 86_400_000;
/// Our interval for scraping and for rules.
const INTERVAL: Millis = 15_000;

impl Default for Retention {
    fn default() -> Self {
        Self {
            time: 30 * DAY,
            bytes: 20 << 30,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            series: 2_000_000,
            query_samples: 50_000_000,
            query_series: 5_000_000,
            query_memory: 1 << 30,
            query_timeout: 120_000,
            slow_query: 10_000,
            result_cache: 64 << 20,
            queries: 20,
            body_bytes: 64 << 20,
            alerts: 100_000,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: None,
            data_dir: None,
            insecure: false,
            admin_api: false,
            external_url: None,
            compat_ports: false,
            retention: Retention::default(),
            global: global_default(),
            collect: Collect::default(),
            gpu: GpuConfig::default(),
            limits: Limits::default(),
            promql_experimental: false,
            prometheus: prometheus::Config {
                global: global_default(),
                ..prometheus::Config::default()
            },
            prometheus_folder: PathBuf::from("."),
            alertmanager: None,
            alertmanager_folder: PathBuf::from("."),
            matchers: Mode::default(),
        }
    }
}

fn global_default() -> GlobalConfig {
    GlobalConfig {
        scrape_interval: INTERVAL,
        evaluation_interval: INTERVAL,
        ..GlobalConfig::default()
    }
}

/// Keys of the design whose feature is not built yet, with what to do instead.
const NOT_YET: [(&str, &str); 4] = [
    (
        "auth",
        "listen on loopback behind a proxy that authenticates, or set insecure: true",
    ),
    ("tls", "listen on loopback behind a proxy that speaks TLS"),
    ("logs", "leave it out; logs are not stored yet"),
    ("drill", "leave it out"),
];

impl Config {
    /// Reads a file and those it names.
    ///
    /// # Errors
    ///
    /// What is wrong, with line and caret, in this file or in one it names.
    pub fn load(path: &Path) -> std::result::Result<Self, Error> {
        let text = read(path)?;
        let folder = path
            .parent()
            .filter(|p| !p.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        Self::parse(&path.display().to_string(), &text, folder)
    }

    /// Judges a text; `path` stands in messages, `folder` is where its paths count from.
    ///
    /// # Errors
    ///
    /// What is wrong, with line and caret, in this text or in a file it names.
    pub fn parse(path: &str, text: &str, folder: &Path) -> std::result::Result<Self, Error> {
        let placed = |fault| Error::at(path, text, &fault);
        let root = parse(text).map_err(placed)?;
        let mut config = Self::own_keys(&root).map_err(placed)?;
        if let Some(file) = &mut config.gpu.counters_file {
            *file = folder.join(&file);
        }
        folder.clone_into(&mut config.prometheus_folder);
        folder.clone_into(&mut config.alertmanager_folder);
        let mut fields = root.fields().map_err(placed)?;
        if let Some(node) = fields.part("prometheus") {
            match elsewhere(node, folder).map_err(placed)? {
                Some(file) => config.use_prometheus(&file)?,
                None => {
                    let mut inline = prometheus::Config::read_with(node, &config.global).map_err(placed)?;
                    inline.expand();
                    config.prometheus = inline.with_scrape_files(folder)?;
                }
            }
        }
        if let Some(node) = fields.part("alertmanager") {
            match elsewhere(node, folder).map_err(placed)? {
                Some(file) => config.use_alertmanager(&file)?,
                None => {
                    let inline = alertmanager::Config::read_in(node, config.matchers).map_err(placed)?;
                    config.alertmanager = Some(inline.within(folder));
                }
            }
        }
        Ok(config)
    }

    /// Takes jobs and rules from a file of Prometheus'.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn use_prometheus(&mut self, path: &Path) -> std::result::Result<(), Error> {
        self.prometheus = prometheus::Config::load(path)?;
        self.prometheus_folder = folder_of(path);
        Ok(())
    }

    /// Takes routes and receivers from a file of Alertmanager's.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn use_alertmanager(&mut self, path: &Path) -> std::result::Result<(), Error> {
        self.alertmanager = Some(alertmanager::Config::load_in(path, self.matchers)?);
        self.alertmanager_folder = folder_of(path);
        Ok(())
    }

    /// Our own keys; those of the ecosystem are only noted as known.
    fn own_keys(root: &Node) -> Result<Self> {
        let mut fields = root.fields()?;
        let base = Self::default();
        let global = GlobalConfig::read_over(fields.part("global"), &base.global)?;
        let config = Self {
            listen: fields.part("listen").map(listen).transpose()?,
            data_dir: fields.get::<String>("data_dir")?.map(PathBuf::from),
            insecure: fields.or_empty("insecure")?,
            admin_api: fields.or_empty("admin_api")?,
            external_url: external_url(&mut fields)?,
            compat_ports: fields.or_empty("compat_ports")?,
            retention: retention(fields.part("retention"))?,
            collect: Collect::read(fields.part("collect"))?,
            gpu: GpuConfig::read(fields.part("gpu"))?,
            limits: limits(fields.part("limits"))?,
            promql_experimental: promql(fields.part("promql"))?,
            matchers: alerting(fields.part("alerting"))?,
            prometheus: prometheus::Config {
                global: global.clone(),
                ..prometheus::Config::default()
            },
            global,
            ..base
        };
        storage(fields.part("storage"))?;
        for key in ["prometheus", "alertmanager"] {
            let _ = fields.node_of(key);
        }
        for (key, instead) in NOT_YET {
            if fields.part(key).is_some() {
                return Err(fields.fault_at(key, format!("{key} is not supported yet: {instead}")));
            }
        }
        fields.finish()?;
        Ok(config)
    }
}

fn folder_of(path: &Path) -> PathBuf {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_owned()
}

/// The file a node names, or `None` where it holds the thing itself.
fn elsewhere(node: &Node, folder: &Path) -> Result<Option<PathBuf>> {
    match node.scalar() {
        Some(_) => Ok(Some(folder.join(node.read::<String>()?))),
        None => Ok(None),
    }
}

/// `host:port`; a port alone listens on loopback.
fn listen(node: &Node) -> Result<String> {
    let text: String = node.read()?;
    let bad = || node.fault(format!("{text:?} is not an address to listen on: write host:port"));
    if text.parse::<u16>().is_ok() {
        return Ok(format!("127.0.0.1:{text}"));
    }
    let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
    port.parse::<u16>().map_err(|_| bad())?;
    if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
        return Err(bad());
    }
    let host = if host.is_empty() { "0.0.0.0" } else { host };
    Ok(format!("{host}:{port}"))
}

fn external_url(fields: &mut Fields<'_>) -> Result<Option<Url>> {
    let Some(node) = fields.part("external_url") else {
        return Ok(None);
    };
    let url: Url = node.read()?;
    crate::shape::check_web_url(&url).map_err(|message| node.fault(message))?;
    Ok(Some(url))
}

fn retention(node: Option<&Node>) -> Result<Retention> {
    let base = Retention::default();
    let Some(node) = node else { return Ok(base) };
    let mut fields = node.fields()?;
    if fields.part("logs").is_some() {
        return Err(fields.fault_at(
            "logs",
            "retention of logs is not supported yet: logs are not stored yet",
        ));
    }
    let metrics = fields.part("metrics");
    fields.finish()?;
    let Some(metrics) = metrics else { return Ok(base) };
    let mut fields = metrics.fields()?;
    let keep = Retention {
        time: above_zero(&mut fields, "time", Duration(base.time), |d| d.0)?,
        bytes: match fields.get::<Bytes>("size")? {
            None => base.bytes,
            Some(size) => u64::try_from(size.0)
                .ok()
                .filter(|n| *n > 0)
                .ok_or_else(|| fields.fault_at("size", "size must be above 0"))?,
        },
    };
    fields.finish()?;
    Ok(keep)
}

/// Reads a key whose value must be above zero.
fn above_zero<T: Decode>(
    fields: &mut Fields<'_>,
    key: &'static str,
    default: T,
    number: impl Fn(&T) -> i64,
) -> Result<i64> {
    let value = fields.or(key, default)?;
    match number(&value) {
        n if n > 0 => Ok(n),
        _ => Err(fields.fault_at(key, format!("{key} must be above 0"))),
    }
}

fn limits(node: Option<&Node>) -> Result<Limits> {
    let base = Limits::default();
    let Some(node) = node else { return Ok(base) };
    let mut fields = node.fields()?;
    let mut count = |key, default: u64| -> Result<u64> {
        let default = i64::try_from(default).unwrap_or(i64::MAX);
        Ok(above_zero(&mut fields, key, default, |n| *n)?.unsigned_abs())
    };
    let mut limits = Limits {
        series: count("series", base.series)?,
        query_samples: count("query_samples", base.query_samples)?,
        query_series: count("query_series", base.query_series)?,
        queries: count("queries", base.queries)?,
        alerts: count("alerts", base.alerts)?,
        ..base
    };
    limits.query_timeout = above_zero(&mut fields, "query_timeout", Duration(base.query_timeout), |d| d.0)?;
    limits.slow_query = above_zero(&mut fields, "slow_query", Duration(base.slow_query), |d| d.0)?;
    for (key, bytes) in [
        ("query_memory", &mut limits.query_memory),
        ("result_cache", &mut limits.result_cache),
    ] {
        let base = i64::try_from(*bytes).unwrap_or(i64::MAX);
        *bytes = above_zero(&mut fields, key, Bytes(base), |b| b.0)?.unsigned_abs();
    }
    let body = i64::try_from(base.body_bytes).unwrap_or(i64::MAX);
    limits.body_bytes = above_zero(&mut fields, "body_size", Bytes(body), |b| b.0)?.unsigned_abs();
    fields.finish()?;
    Ok(limits)
}

/// How `alertmanager` is read.
fn alerting(node: Option<&Node>) -> Result<Mode> {
    let Some(node) = node else { return Ok(Mode::default()) };
    let mut fields = node.fields()?;
    let mode = fields.or("matchers", Mode::default())?;
    fields.finish()?;
    Ok(mode)
}

fn promql(node: Option<&Node>) -> Result<bool> {
    let Some(node) = node else { return Ok(false) };
    let mut fields = node.fields()?;
    let experimental = fields.or_empty("experimental")?;
    fields.finish()?;
    Ok(experimental)
}

/// `local` is what there is; `remote` is planned.
fn storage(node: Option<&Node>) -> Result<()> {
    let Some(node) = node else { return Ok(()) };
    let mut fields = node.fields()?;
    for key in ["metrics", "logs"] {
        let Some(place) = fields.part(key) else { continue };
        match place.scalar().map(|s| s.text.as_str()) {
            Some("local") if key == "metrics" => {}
            _ => {
                return Err(place.fault(format!(
                    "storage.{key} other than local is not supported yet: leave it out"
                )));
            }
        }
    }
    fields.finish()
}

#[cfg(test)]
mod tests;
