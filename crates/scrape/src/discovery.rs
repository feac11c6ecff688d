//! Finding targets: files and HTTP servers that list them, looked at again and again.
//!
//! A [`Finder`] looks once and tells the groups; the manager's tasks repeat it. What was found stays while a look
//! fails: a list that cannot be read is not an empty list.
//!
//! What is deliberately absent: every other kind of discovery, which the configuration accepts and we do not run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use config::glob;
use config::prometheus::{Discovery, FileDiscovery, HttpDiscovery, StaticConfig, target_groups};

use crate::error::Error;
use crate::job::Job;
use crate::scraper::Client;

/// How often files are looked at for a change, whatever their refresh interval: a look costs a `stat` each.
const GLANCE: Duration = Duration::from_secs(5);

/// The largest list of targets, in bytes, and how long a server may take to send one.
const LIST_BYTES_MAX: u64 = 32 << 20;
const LIST_TIMEOUT: model::Millis = 30_000;

/// The most files of one discovery.
const FILES_MAX: usize = 10_000;

/// One way to find targets, with what it has found.
pub(crate) enum Finder {
    File(Files),
    Http(Box<List>),
}

impl Finder {
    /// The finder of a configured discovery; `None` of a kind that is not run here.
    ///
    /// # Errors
    ///
    /// [`Error`] when the HTTP settings cannot be used.
    pub fn of(discovery: &Discovery, job: &Job) -> Result<Option<Self>, Error> {
        Ok(match discovery {
            Discovery::File(file) => Some(Self::File(Files {
                config: file.clone(),
                folder: job.folder.clone(),
                known: BTreeMap::new(),
            })),
            Discovery::Http(http) => Some(Self::Http(Box::new(List::new(http, &job.name)?))),
            Discovery::Other(_) => None,
        })
    }

    /// How long to wait between two looks.
    pub fn pause(&self) -> Duration {
        match self {
            Self::File(files) => GLANCE.min(millis(files.config.refresh_interval)),
            Self::Http(list) => millis(list.config.refresh_interval),
        }
    }

    /// Looks once. The groups found, and what could not be read.
    pub async fn look(&mut self) -> (Vec<StaticConfig>, Vec<String>) {
        match self {
            Self::File(files) => files.look(),
            Self::Http(list) => list.look().await,
        }
    }
}

fn millis(span: model::Millis) -> Duration {
    Duration::from_millis(span.max(1).unsigned_abs())
}

/// `file_sd_configs`: files of target groups, found by pattern.
pub(crate) struct Files {
    config: FileDiscovery,
    folder: PathBuf,
    known: BTreeMap<PathBuf, Known>,
}

/// What a file held when it was read last.
struct Known {
    stamp: Option<(SystemTime, u64)>,
    groups: Vec<StaticConfig>,
    error: Option<String>,
}

impl Files {
    fn look(&mut self) -> (Vec<StaticConfig>, Vec<String>) {
        let patterns = self.config.files.iter();
        let found: Vec<PathBuf> = patterns
            .flat_map(|pattern| glob::expand(&self.folder, pattern))
            .filter(|path| path.is_file())
            .take(FILES_MAX)
            .collect();
        // A file that is gone takes its targets along.
        self.known.retain(|path, _| found.contains(path));
        for path in found {
            let stamp = stamp(&path);
            match self.known.get_mut(&path) {
                Some(known) if known.stamp == stamp && stamp.is_some() => {}
                Some(known) => {
                    known.stamp = stamp;
                    match read(&path) {
                        Ok(groups) => (known.groups, known.error) = (groups, None),
                        // The last good list stays.
                        Err(error) => known.error = Some(error),
                    }
                }
                None => {
                    let (groups, error) = match read(&path) {
                        Ok(groups) => (groups, None),
                        Err(error) => (Vec::new(), Some(error)),
                    };
                    self.known.insert(path, Known { stamp, groups, error });
                }
            }
        }
        let errors = self.known.values().filter_map(|k| k.error.clone()).collect();
        (self.known.values().flat_map(|k| k.groups.clone()).collect(), errors)
    }
}

fn stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let meta = path.metadata().ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

fn read(path: &Path) -> Result<Vec<StaticConfig>, String> {
    let shown = path.display().to_string();
    let size = path.metadata().map_or(0, |m| m.len());
    if size > LIST_BYTES_MAX {
        return Err(format!("{shown} has {size} bytes, at most {LIST_BYTES_MAX} are read"));
    }
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {shown}: {e}"))?;
    let groups = target_groups(&shown, &text).map_err(|e| e.to_string())?;
    Ok(marked(groups, "__meta_filepath", &shown))
}

/// The groups with a label that tells where they come from.
fn marked(groups: Vec<StaticConfig>, name: &str, value: &str) -> Vec<StaticConfig> {
    let mark = |group: StaticConfig| StaticConfig {
        labels: group.labels.with(name, value),
        ..group
    };
    groups.into_iter().map(mark).collect()
}

/// `http_sd_configs`: a server that lists target groups.
pub(crate) struct List {
    config: HttpDiscovery,
    client: Client,
    groups: Vec<StaticConfig>,
}

impl List {
    fn new(config: &HttpDiscovery, job: &str) -> Result<Self, Error> {
        let mut asks = Job::new(job);
        asks.http = config.http.clone();
        asks.limits.body_size_bytes = LIST_BYTES_MAX;
        Ok(Self {
            client: Client::new(Arc::new(asks), &[])?,
            config: config.clone(),
            groups: Vec::new(),
        })
    }

    async fn look(&mut self) -> (Vec<StaticConfig>, Vec<String>) {
        match self.fetch().await {
            Ok(groups) => {
                self.groups = groups;
                (self.groups.clone(), Vec::new())
            }
            Err(error) => (self.groups.clone(), vec![error]),
        }
    }

    async fn fetch(&self) -> Result<Vec<StaticConfig>, String> {
        // For a message the address stands without its password.
        let shown = self.config.url.to_string();
        let failed = |e: &dyn std::fmt::Display| format!("{shown}: {e}");
        let seconds = (self.config.refresh_interval / 1000).max(1);
        let mut body = Vec::new();
        self.client
            .fetch_list(self.config.url.as_str(), LIST_TIMEOUT, seconds, &mut body)
            .await
            .map_err(|e| failed(&e))?;
        let text = String::from_utf8(body).map_err(|_| failed(&"not valid UTF-8"))?;
        let groups = target_groups(&shown, &text).map_err(|e| e.to_string())?;
        Ok(marked(groups, "__meta_url", &shown))
    }
}
