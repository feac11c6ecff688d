//! What a hub runs with: flags over `watchfire.yml` over defaults, and the files they name.
//!
//! [`Settings`] are fixed for the life of the process; [`Loaded`] is read anew at a reload, entirely or not at all.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use config::watchfire::Config;
use rules::LoadedGroup;

use crate::cli::{HubArgs, PathArgs, RunArgs, ServeArgs, StoreArgs};
use crate::failure::Hinted;

/// Where a hub listens unless told.
const DEFAULT_LISTEN: &str = "127.0.0.1:9900";

/// Where data lies unless told.
pub const DEFAULT_DATA: &str = "watchfire-data";

/// What stays for the life of a hub.
pub struct Settings {
    /// `run` or `hub`.
    pub mode: &'static str,
    /// Whether the simulated server is watched too.
    pub demo: bool,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Whether an address off loopback is meant.
    pub insecure: bool,
    /// The folder for all data.
    pub data: PathBuf,
    /// Where this machine's facts are; absent in a hub that watches no machine.
    pub paths: Option<PathArgs>,
    /// The configuration at the start.
    pub config: Config,
    serve: ServeArgs,
    pub(super) store: StoreArgs,
}

/// What a reload reads anew.
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// What to scrape over the network.
    pub jobs: Vec<scrape::Job>,
    /// The rules: shipped ones, then those of the configuration.
    pub groups: Vec<Arc<LoadedGroup>>,
    /// How rules are evaluated.
    pub rule_options: rules::Options,
    /// Routes and receivers.
    pub alerting: config::alertmanager::Config,
}

/// The own configuration file, or what runs without one.
///
/// # Errors
///
/// What is wrong with it, with line and caret.
pub fn own_config(path: Option<&Path>) -> anyhow::Result<Config> {
    path.map_or_else(|| Ok(Config::default()), |path| Ok(Config::load(path)?))
}

/// The address to listen on: the flag, the configuration, or the default.
///
/// # Errors
///
/// A host name that cannot be found.
pub fn address(flag: Option<SocketAddr>, config: &Config, default: &str) -> anyhow::Result<SocketAddr> {
    use std::net::ToSocketAddrs as _;
    if let Some(address) = flag {
        return Ok(address);
    }
    let text = config.listen.as_deref().unwrap_or(default);
    let found = text
        .to_socket_addrs()
        .with_context(|| format!("cannot find the address to listen on, {text}"))?
        .next();
    found.with_context(|| format!("{text} names no address to listen on"))
}

impl Settings {
    /// Settings of `watchfire run`.
    ///
    /// # Errors
    ///
    /// What is wrong with the files that the flags name.
    pub fn of_run(args: RunArgs) -> anyhow::Result<Self> {
        Self::new("run", args.demo, Some(args.paths), args.serve, args.store)
    }

    /// Settings of `watchfire hub`.
    ///
    /// # Errors
    ///
    /// What is wrong with the files that the flags name.
    pub fn of_hub(args: HubArgs) -> anyhow::Result<Self> {
        Self::new("hub", false, None, args.serve, args.store)
    }

    fn new(
        mode: &'static str,
        demo: bool,
        paths: Option<PathArgs>,
        serve: ServeArgs,
        store: StoreArgs,
    ) -> anyhow::Result<Self> {
        let config = read_config(&serve, &store)?;
        let listen = address(serve.listen, &config, DEFAULT_LISTEN)?;
        let data = store
            .data
            .clone()
            .or_else(|| config.data_dir.clone())
            .unwrap_or_else(|| DEFAULT_DATA.into());
        let insecure = serve.insecure || config.insecure;
        Ok(Self {
            mode,
            demo,
            listen,
            insecure,
            data,
            paths,
            config,
            serve,
            store,
        })
    }

    /// The address people reach this hub at.
    pub fn external_url(&self) -> String {
        let told = self
            .config
            .external_url
            .as_ref()
            .map(|url| url.to_string().trim_end_matches('/').to_owned());
        told.unwrap_or_else(|| format!("http://{}", self.listen))
    }

    /// Whether samples may be deleted and snapshots taken over HTTP.
    pub fn admin_api(&self) -> bool {
        self.store.admin_api || self.config.admin_api
    }

    /// The file that was named, ours or Prometheus'.
    pub fn config_file(&self) -> Option<&Path> {
        self.serve.config.as_deref().or(self.store.prometheus.as_deref())
    }

    /// How much memory known results of range queries may take, in bytes; `None` where all are computed anew.
    pub fn result_cache(&self) -> Option<usize> {
        let bytes = usize::try_from(self.config.limits.result_cache).unwrap_or(usize::MAX);
        (!self.store.no_result_cache).then_some(bytes)
    }

    /// Whether this process is a target of its own.
    pub const fn scrapes_itself(&self) -> bool {
        !self.store.no_own_metrics
    }

    /// How long a query may take.
    pub fn query_timeout(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.config.limits.query_timeout).unwrap_or(120_000))
    }

    /// Reads everything that a reload may change.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong in any file; nothing is in force then.
    pub fn load(&self) -> anyhow::Result<Loaded> {
        let config = read_config(&self.serve, &self.store)?;
        let prometheus = &config.prometheus;
        let jobs = prometheus
            .scrape_configs
            .iter()
            .map(|job| scrape::Job::from(job).within(&config.prometheus_folder))
            .collect();
        let mut groups = self.shipped_groups()?;
        let folder = &config.prometheus_folder;
        let mut files = Vec::new();
        for pattern in &prometheus.rule_files {
            files.extend(super::files_of(folder, pattern));
        }
        groups.extend(rules::load::load_files(&files).map_err(|errors| all(&errors))?);
        let global = &prometheus.global;
        let rule_options = rules::Options {
            interval: global.evaluation_interval,
            query_offset: global.rule_query_offset,
            external_labels: global.external_labels.clone(),
            external_url: self.external_url(),
            query_timeout: self.query_timeout(),
            ..rules::Options::default()
        };
        let alerting = self.alerting(&config)?;
        Ok(Loaded {
            jobs,
            groups,
            rule_options,
            alerting,
            config,
        })
    }

    fn shipped_groups(&self) -> anyhow::Result<Vec<Arc<LoadedGroup>>> {
        if self.store.no_shipped_rules {
            return Ok(Vec::new());
        }
        super::shipped::groups(&self.data.join("rules")).map_err(|errors| all(&errors))
    }

    fn alerting(&self, config: &Config) -> anyhow::Result<config::alertmanager::Config> {
        match (&self.store.webhook, &config.alertmanager) {
            (Some(_), Some(_)) => bail!(Hinted {
                message: "both --webhook and an Alertmanager configuration say where alerts go".into(),
                hint: "leave one of them out".into(),
            }),
            (Some(url), None) => Ok(alerts::config_for_webhook(url)?),
            (None, Some(config)) => Ok(config.clone()),
            (None, None) => Ok(alerts::default_config()),
        }
    }
}

fn read_config(serve: &ServeArgs, store: &StoreArgs) -> anyhow::Result<Config> {
    let mut config = own_config(serve.config.as_deref())?;
    if let Some(path) = &store.prometheus {
        config.use_prometheus(path)?;
    }
    if let Some(path) = &store.alertmanager {
        config.use_alertmanager(path)?;
    }
    Ok(config)
}

/// Every error of several rule files, one below the other.
fn all(errors: &[rules::Error]) -> anyhow::Error {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    anyhow::anyhow!(texts.join("\n"))
}
