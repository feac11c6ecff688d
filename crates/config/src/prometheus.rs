//! `prometheus.yml`: everything Prometheus 3.14 accepts, judged as it would judge it.
//!
//! [`Config`] holds what we act on as types; parts that concern programs we do not run (discovery kinds
//! without an implementation, tracing, the Go runtime) are judged and remembered as far as a message
//! needs them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::error::{Error, read};
use crate::yaml::{Fault, Node, Result, parse};

mod global;
mod scrape;
mod targets;

pub use crate::http::HttpClientConfig;
pub use crate::relabel::{NameScheme, RelabelConfig};
pub use global::{EscapingScheme, GlobalConfig, ScrapeProtocol};
pub use scrape::{Limits, ScrapeConfig};
pub use targets::StaticConfig;

/// A whole configuration, defaults resolved.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config {
    /// Intervals, limits and external labels.
    pub global: GlobalConfig,
    /// Patterns of rule files, relative to the configuration's folder.
    pub rule_files: Vec<String>,
    /// Jobs; names are distinct. Those of `scrape_config_files` are not among them until
    /// [`Config::with_scrape_files`] has read them.
    pub scrape_configs: Vec<ScrapeConfig>,
    /// Patterns of files with more jobs.
    pub scrape_config_files: Vec<String>,
}

impl Config {
    /// Reads a file and the scrape configurations it names.
    ///
    /// # Errors
    ///
    /// What is wrong, with line and caret.
    pub fn load(path: &Path) -> std::result::Result<Self, Error> {
        let text = read(path)?;
        let config = Self::parse(&path.display().to_string(), &text)?;
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
        let mut fields = node.fields()?;
        let global = GlobalConfig::read(fields.node_of("global"))?;
        let config = Self {
            rule_files: patterns(fields.list_of("rule_files")?, "rule")?,
            scrape_config_files: patterns(fields.list_of("scrape_config_files")?, "scrape config")?,
            scrape_configs: jobs(fields.list_of("scrape_configs")?, &global)?,
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
        let _: PathBuf = folder.into();
        self.scrape_configs.shrink_to_fit();
        Ok(self)
    }
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

/// Reads patterns of files; a `*` may stand in the last part of the path only.
fn patterns(nodes: &[Node], what: &str) -> Result<Vec<String>> {
    let mut patterns = Vec::new();
    for node in nodes {
        let pattern: String = node.read()?;
        if pattern.contains('[') && !pattern.contains(']') {
            return Err(Fault::new(node.at, format!("invalid {what} file path {pattern:?}")));
        }
        patterns.push(pattern);
    }
    Ok(patterns)
}
