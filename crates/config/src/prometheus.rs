//! `prometheus.yml`: everything Prometheus 3.14 accepts, judged as it would judge it.
//!
//! [`Config`] holds what we act on as types; parts that concern programs we do not run (discovery kinds
//! without an implementation, tracing, the Go runtime) are judged and remembered as far as a message
//! needs them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::error::{Error, read};
use crate::glob;
use crate::yaml::{Fault, Fields, Node, Result, parse};

mod global;
mod scrape;
mod targets;

mod discovery;

mod alerting;
mod expand;
mod remote;
mod storage;

pub use crate::http::HttpClientConfig;
pub use crate::relabel::{NameScheme, RelabelConfig};
pub use alerting::{AlertingConfig, AlertmanagerConfig};
pub use discovery::{Discovery, FileDiscovery, HttpDiscovery};
pub use global::{EscapingScheme, GlobalConfig, ScrapeProtocol};
pub use remote::{QueueConfig, RemoteReadConfig, RemoteWriteConfig};
pub use scrape::{Limits, ScrapeConfig};
pub use storage::{OtlpConfig, StorageConfig};
pub use targets::{StaticConfig, target_groups};

/// A whole configuration, defaults resolved.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config {
    /// Intervals, limits and external labels.
    pub global: GlobalConfig,
    /// Patterns of rule files, relative to the configuration's folder; [`glob::expand`] finds them.
    pub rule_files: Vec<String>,
    /// Jobs; names are distinct. Those of `scrape_config_files` are not among them until
    /// [`Config::with_scrape_files`] has read them.
    pub scrape_configs: Vec<ScrapeConfig>,
    /// Patterns of files with more jobs.
    pub scrape_config_files: Vec<String>,
    /// Foreign Alertmanagers.
    pub alerting: AlertingConfig,
    /// Stores that get our samples.
    pub remote_write: Vec<RemoteWriteConfig>,
    /// Stores that are asked beside ours.
    pub remote_read: Vec<RemoteReadConfig>,
    /// What is said of the store.
    pub storage: StorageConfig,
    /// How OTLP metrics become series.
    pub otlp: OtlpConfig,
    /// Whether a `tracing` section stands there; it is judged and then without effect.
    pub tracing: bool,
}

impl Config {
    /// Reads a file and the scrape configurations it names.
    ///
    /// # Errors
    ///
    /// What is wrong, with line and caret.
    pub fn load(path: &Path) -> std::result::Result<Self, Error> {
        let text = read(path)?;
        let mut config = Self::parse(&path.display().to_string(), &text)?;
        config.expand();
        config.with_scrape_files(path.parent().unwrap_or(Path::new(".")))
    }

    /// Judges a text; `path` stands in messages.
    ///
    /// # Errors
    ///
    /// What is wrong, with line and caret.
    pub fn parse(path: &str, text: &str) -> std::result::Result<Self, Error> {
        parse(text)
            .and_then(|node| Self::read(&node))
            .map_err(|fault| Error::at(path, text, &fault))
    }

    /// Reads a node, so that the language can stand inside another file.
    ///
    /// # Errors
    ///
    /// A fault at what is wrong.
    pub fn read(node: &Node) -> Result<Self> {
        Self::read_with(node, &GlobalConfig::default())
    }

    /// Reads a node whose `global` section, where it is silent, leaves what `base` says.
    ///
    /// # Errors
    ///
    /// A fault at what is wrong.
    pub fn read_with(node: &Node, base: &GlobalConfig) -> Result<Self> {
        let mut fields = node.fields()?;
        let global = GlobalConfig::read_over(fields.node_of("global"), base)?;
        let scheme = global.name_scheme;
        fields.part("runtime").map(storage::runtime).transpose()?;
        let tracing = fields.part("tracing");
        tracing.map(storage::tracing).transpose()?;
        let config = Self {
            rule_files: patterns(&mut fields, "rule_files", "rule")?,
            scrape_config_files: patterns(&mut fields, "scrape_config_files", "scrape config")?,
            scrape_configs: jobs(fields.list_of("scrape_configs")?, &global)?,
            alerting: part(&mut fields, "alerting", |node| AlertingConfig::read(node, scheme))?,
            remote_write: stores(
                fields.list_of("remote_write")?,
                "write",
                |node| RemoteWriteConfig::read(node, scheme),
                |store| &store.name,
            )?,
            remote_read: stores(
                fields.list_of("remote_read")?,
                "read",
                RemoteReadConfig::read,
                |store| &store.name,
            )?,
            storage: part(&mut fields, "storage", StorageConfig::read)?,
            otlp: part(&mut fields, "otlp", |node| OtlpConfig::read(node, scheme))?,
            tracing: tracing.is_some(),
            global,
        };
        fields.finish()?;
        Ok(config)
    }

    /// Adds the jobs of the files that `scrape_config_files` names, relative to `folder`.
    ///
    /// # Errors
    ///
    /// What is wrong with one of them, or a job name that stands twice.
    pub fn with_scrape_files(mut self, folder: &Path) -> std::result::Result<Self, Error> {
        let mut names: HashMap<String, String> = self
            .scrape_configs
            .iter()
            .map(|job| (job.job_name.clone(), "main config file".to_owned()))
            .collect();
        for path in self.scrape_config_files.iter().flat_map(|p| glob::expand(folder, p)) {
            let text = read(&path)?;
            let shown = path.display().to_string();
            let more = more_jobs(&text, &self.global, &shown, &mut names);
            self.scrape_configs
                .extend(more.map_err(|fault| Error::at(&shown, &text, &fault))?);
        }
        Ok(self)
    }

    /// Fills variables of this process' environment into the external labels, as Prometheus does at a start.
    pub fn expand(&mut self) {
        self.global.external_labels = expand::external_labels(&self.global.external_labels);
    }

    /// The rule files that exist, relative to `folder`.
    #[must_use]
    pub fn rule_paths(&self, folder: &Path) -> Vec<PathBuf> {
        self.rule_files.iter().flat_map(|p| glob::expand(folder, p)).collect()
    }
}

fn part<T: Default>(fields: &mut Fields<'_>, key: &'static str, read: impl FnOnce(&Node) -> Result<T>) -> Result<T> {
    Ok(fields.part(key).map(read).transpose()?.unwrap_or_default())
}

/// Reads jobs and refuses a name that stands twice.
fn jobs(nodes: &[Node], global: &GlobalConfig) -> Result<Vec<ScrapeConfig>> {
    let mut names = HashSet::new();
    let mut jobs = Vec::new();
    for node in nodes {
        let job = ScrapeConfig::read(node, global)?;
        if !names.insert(job.job_name.clone()) {
            let message = format!("found multiple scrape configs with job name {:?}", job.job_name);
            return Err(node.fault(message));
        }
        jobs.push(job);
    }
    Ok(jobs)
}

/// Reads the jobs of a file of their own; `names` remembers where each was first seen.
fn more_jobs(
    text: &str,
    global: &GlobalConfig,
    path: &str,
    names: &mut HashMap<String, String>,
) -> Result<Vec<ScrapeConfig>> {
    let root = parse(text)?;
    let mut fields = root.fields()?;
    let mut jobs = Vec::new();
    for node in fields.list_of("scrape_configs")? {
        let job = ScrapeConfig::read(node, global)?;
        if let Some(first) = names.insert(job.job_name.clone(), format!("{path:?}")) {
            return Err(node.fault(format!(
                "found multiple scrape configs with job name {:?}, first found in {first}",
                job.job_name
            )));
        }
        jobs.push(job);
    }
    fields.finish()?;
    Ok(jobs)
}

/// Reads remote stores and refuses a name that stands twice.
fn stores<T>(
    nodes: &[Node],
    what: &str,
    read: impl Fn(&Node) -> Result<T>,
    name: impl Fn(&T) -> &String,
) -> Result<Vec<T>> {
    let mut names = HashSet::new();
    let mut stores = Vec::new();
    for node in nodes {
        let store = read(node)?;
        let own = name(&store);
        if !own.is_empty() && !names.insert(own.clone()) {
            return Err(node.fault(format!("found multiple remote {what} configs with job name {own:?}")));
        }
        stores.push(store);
    }
    Ok(stores)
}

/// Reads patterns of files.
fn patterns(fields: &mut Fields<'_>, key: &'static str, what: &str) -> Result<Vec<String>> {
    let mut patterns = Vec::new();
    for node in fields.list_of(key)? {
        let pattern: String = node.read()?;
        if !star_in_last_part(&pattern) {
            return Err(Fault::new(node.at, format!("invalid {what} file path {pattern:?}")));
        }
        patterns.push(pattern);
    }
    Ok(patterns)
}

/// Whether a `*` stands in the last part of a path only.
fn star_in_last_part(pattern: &str) -> bool {
    pattern.find('*').is_none_or(|at| !pattern[at..].contains('/'))
}

#[cfg(test)]
mod tests;
