//! One place to scrape: who it is, where it is, and how the last scrape went.

use std::fmt::Write as _;
use std::sync::Arc;

use config::relabel::apply;
use model::time::{DurationText, parse_duration};
use model::{Labels, LabelsBuilder, Millis};

use crate::error::Error;
use crate::job::Job;

/// A target after relabelling.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The labels of its series; none begins with `__`.
    pub labels: Labels,
    /// The labels as discovered, before relabelling.
    pub discovered: Labels,
    /// The address of the page.
    pub url: String,
    /// How often, in milliseconds.
    pub interval: Millis,
    /// How long a scrape may take, in milliseconds.
    pub timeout: Millis,
}

/// A target that relabelling dropped.
#[derive(Debug, Clone, PartialEq)]
pub struct DroppedTarget {
    /// The job.
    pub job: String,
    /// The labels as discovered.
    pub discovered: Labels,
}

/// How a target fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Health {
    /// Not scraped yet.
    #[default]
    Unknown,
    /// The last scrape was stored.
    Up,
    /// The last scrape failed.
    Down,
}

impl Health {
    /// The word in the targets API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// A target with its last scrape, as `/api/v1/targets` shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetStatus {
    /// The job it belongs to.
    pub job: String,
    /// Who and where it is.
    pub target: Target,
    /// How it fares.
    pub health: Health,
    /// Why the last scrape failed; empty after a good one.
    pub last_error: String,
    /// When the last scrape began; absent before the first.
    pub last_scrape: Option<Millis>,
    /// How long it took, in seconds.
    pub last_duration_seconds: f64,
    /// The page's size, in bytes, decompressed.
    pub body_bytes: usize,
    /// Samples on the page.
    pub samples: u64,
    /// Samples stored of it.
    pub stored: u64,
    /// Samples left out since the target runs, because a limit was met.
    pub refused_total: u64,
    /// The label that met the limit, with its number of values, as of the last time; empty when none did.
    pub culprit: String,
    /// Samples of a series that stood on a page more than once, since the target runs.
    pub duplicates_total: u64,
}

impl TargetStatus {
    /// A target that has not been scraped.
    #[must_use]
    pub fn new(job: &str, target: Target) -> Self {
        Self {
            job: job.to_owned(),
            target,
            health: Health::Unknown,
            last_error: String::new(),
            last_scrape: None,
            last_duration_seconds: 0.0,
            body_bytes: 0,
            samples: 0,
            stored: 0,
            refused_total: 0,
            culprit: String::new(),
            duplicates_total: 0,
        }
    }
}

/// All targets at a moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Targets {
    /// Those that are scraped, in the order of the configuration.
    pub active: Vec<TargetStatus>,
    /// Those that relabelling dropped.
    pub dropped: Vec<DroppedTarget>,
}

/// Gives the page of a collector, or says why there is none.
pub type PageSource = Arc<dyn Fn() -> Result<Vec<u8>, String> + Send + Sync>;

/// A target inside this process: same bytes, no socket.
#[derive(Clone)]
pub struct LocalTarget {
    /// The settings; addresses and discovery are not used.
    pub job: Job,
    /// The labels of its series, `job` and `instance` among them.
    pub labels: Labels,
    /// Where the same page can be had over HTTP, for the targets page.
    pub url: String,
    /// Makes the page, in the Prometheus text format; called on a thread that may block.
    pub page: PageSource,
}

impl LocalTarget {
    /// The target as it is shown.
    pub(crate) fn target(&self) -> Target {
        Target {
            labels: self.labels.clone(),
            discovered: self.labels.clone(),
            url: self.url.clone(),
            interval: self.job.interval,
            timeout: self.job.timeout,
        }
    }
}

const ADDRESS: &str = "__address__";
const SCHEME: &str = "__scheme__";
const PATH: &str = "__metrics_path__";
const INTERVAL: &str = "__scrape_interval__";
const TIMEOUT: &str = "__scrape_timeout__";
const PARAM: &str = "__param_";

/// The targets of a job's groups: those to scrape and those dropped.
///
/// # Errors
///
/// One sentence for each target that cannot be scraped, in place of the target.
#[must_use]
pub fn targets_of(job: &Job) -> (Vec<Result<Target, Error>>, Vec<DroppedTarget>) {
    let mut active = Vec::new();
    let mut dropped = Vec::new();
    for group in &job.groups {
        for address in &group.targets {
            let discovered = discovered(job, address, &group.labels);
            match relabelled(job, &discovered) {
                Some(target) => active.push(target),
                None if dropped.len() < dropped_max(job) => dropped.push(DroppedTarget {
                    job: job.name.clone(),
                    discovered,
                }),
                None => {}
            }
        }
    }
    (active, dropped)
}

fn dropped_max(job: &Job) -> usize {
    match job.dropped_max {
        0 => crate::job::DROPPED_MAX,
        some => some.min(crate::job::DROPPED_MAX),
    }
}

/// The labels before relabelling: the group's, with the job's settings where it sets none.
fn discovered(job: &Job, address: &str, group: &Labels) -> Labels {
    let mut builder = LabelsBuilder::new();
    builder
        .set("job", &job.name)
        .set(INTERVAL, &DurationText(job.interval).to_string())
        .set(TIMEOUT, &DurationText(job.timeout).to_string())
        .set(PATH, &job.metrics_path)
        .set(SCHEME, &job.scheme);
    for (name, values) in &job.params {
        if let Some(first) = values.first() {
            builder.set(&format!("{PARAM}{name}"), first);
        }
    }
    builder.set(ADDRESS, address);
    for (name, value) in group {
        builder.set(name, value);
    }
    builder.build()
}

/// The target that the rules make of `discovered`; `None` when they drop it.
fn relabelled(job: &Job, discovered: &Labels) -> Option<Result<Target, Error>> {
    let mut builder = LabelsBuilder::from(discovered);
    if !apply(&job.relabel, &mut builder) {
        return None;
    }
    Some(target(job, discovered, &builder.build()))
}

fn target(job: &Job, discovered: &Labels, labels: &Labels) -> Result<Target, Error> {
    let address = labels.get(ADDRESS).unwrap_or("");
    if address.is_empty() {
        return Err(Error::Target(format!("no address in {discovered}")));
    }
    if address.contains('/') {
        return Err(Error::Target(format!("{address:?} is not a valid hostname")));
    }
    let span = |name: &str| {
        let text = labels.get(name).unwrap_or("");
        parse_duration(text)
            .ok()
            .filter(|d| *d > 0)
            .ok_or_else(|| Error::Target(format!("{name} of {address} is no duration above zero: {text:?}")))
    };
    let (interval, timeout) = (span(INTERVAL)?, span(TIMEOUT)?);
    if timeout > interval {
        return Err(Error::Target(format!(
            "scrape timeout of {address} is greater than its interval ({} > {})",
            DurationText(timeout),
            DurationText(interval)
        )));
    }
    let mut own = labels.retain(|name| !name.starts_with("__"));
    if own.get("instance").is_none() {
        own = own.with("instance", address);
    }
    Ok(Target {
        labels: own,
        discovered: discovered.clone(),
        url: url(job, labels, address),
        interval,
        timeout,
    })
}

fn url(job: &Job, labels: &Labels, address: &str) -> String {
    let scheme = labels.get(SCHEME).unwrap_or("http");
    let path = labels.get(PATH).unwrap_or("");
    let slash = if path.is_empty() || path.starts_with('/') {
        ""
    } else {
        "/"
    };
    let mut url = format!("{scheme}://{address}{slash}{path}");
    let mut mark = if path.contains('?') { '&' } else { '?' };
    let mut add = |name: &str, value: &str| {
        let _ = write!(url, "{mark}{}={}", escaped(name), escaped(value));
        mark = '&';
    };
    let configured = |name: &str| job.params.iter().any(|(n, _)| n == name);
    for (name, values) in &job.params {
        // Relabelling may have changed the first value, as the field's blackbox recipes do.
        let first = labels.get(&format!("{PARAM}{name}"));
        for value in first.into_iter().chain(values.iter().skip(1).map(String::as_str)) {
            add(name, value);
        }
    }
    for (name, value) in labels {
        if let Some(name) = name.strip_prefix(PARAM).filter(|n| !configured(n)) {
            add(name, value);
        }
    }
    url
}

/// A text inside a query string.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(yaml: &str) -> Job {
        let text = format!("scrape_configs:\n- job_name: j\n{yaml}");
        let config = config::prometheus::Config::parse("test", &text).expect("a configuration");
        Job::from(&config.scrape_configs[0])
    }

    #[track_caller]
    fn check(yaml: &str, want: &[&str]) {
        let (active, dropped) = targets_of(&job(yaml));
        let mut got: Vec<String> = active
            .iter()
            .map(|t| match t {
                Ok(t) => format!("{} {}", t.url, t.labels),
                Err(e) => format!("error: {e}"),
            })
            .collect();
        got.extend(
            dropped
                .iter()
                .map(|d| format!("dropped {}", d.discovered.get(ADDRESS).unwrap_or(""))),
        );
        assert_eq!(got, want);
    }

    #[test]
    fn a_target_is_its_address_and_labels() {
        check(
            "  static_configs: [{targets: ['a:1', 'b:2'], labels: {rack: r1}}]",
            &[
                r#"http://a:1/metrics {instance="a:1", job="j", rack="r1"}"#,
                r#"http://b:2/metrics {instance="b:2", job="j", rack="r1"}"#,
            ],
        );
    }

    #[test]
    fn relabelling_moves_drops_and_sets_parameters() {
        check(
            "  metrics_path: /probe\n  params: {module: [http]}\n  static_configs: [{targets: ['a:1', 'b:2']}]\n  \
             relabel_configs:\n  - {source_labels: [__address__], regex: 'b.*', action: drop}\n  \
             - {source_labels: [__address__], target_label: __param_target}\n  \
             - {source_labels: [__param_target], target_label: instance}\n  \
             - {target_label: __address__, replacement: 'x:9'}",
            &[
                r#"http://x:9/probe?module=http&target=a%3A1 {instance="a:1", job="j"}"#,
                "dropped b:2",
            ],
        );
    }

    #[test]
    fn a_target_that_cannot_be_scraped_says_why() {
        check(
            "  static_configs: [{targets: ['a:1']}]\n  \
             relabel_configs: [{target_label: __address__, replacement: 'http://x/'}]",
            &["error: \"http://x/\" is not a valid hostname"],
        );
        check(
            "  static_configs: [{targets: ['a:1'], labels: {__scrape_timeout__: 2m}}]",
            &["error: scrape timeout of a:1 is greater than its interval (2m > 1m)"],
        );
    }
}
