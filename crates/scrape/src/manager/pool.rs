//! A job with its targets: those of the configuration and those that discovery has found.

use std::collections::HashSet;
use std::sync::Arc;

use config::prometheus::StaticConfig;
use model::Labels;
use tokio::task::JoinHandle;

use super::run::Source;
use super::{Key, Manager, Running, Wanted};
use crate::discovery::Finder;
use crate::error::Error;
use crate::job::Job;
use crate::scraper::Client;
use crate::target::{DroppedTarget, Target, targets_of};

/// A job of the configuration.
pub(super) struct Pool {
    /// As configured; its groups are those that stand in the file.
    pub job: Arc<Job>,
    client: Client,
    /// What each of its discoveries has found.
    pub found: Vec<Vec<StaticConfig>>,
    pub dropped: Vec<DroppedTarget>,
    /// What looks for more.
    pub tasks: Vec<JoinHandle<()>>,
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// A finder with the places of its job and of itself in that.
pub(super) type Finding = (usize, usize, Finder);

/// The pools of jobs, and what finds their targets.
pub(super) fn pools(jobs: Vec<Job>) -> Result<(Vec<Pool>, Vec<Finding>), Error> {
    let (mut pools, mut finders, mut clients) = (Vec::new(), Vec::new(), Vec::new());
    for job in jobs {
        for (place, discovery) in job.discovery.iter().enumerate() {
            if let Some(finder) = Finder::of(discovery, &job)? {
                finders.push((pools.len(), place, finder));
            } else if let config::prometheus::Discovery::Other(kind) = discovery {
                tracing::warn!(
                    job = job.name,
                    kind,
                    "this kind of discovery is not run here: it finds no targets"
                );
            }
        }
        let job = Arc::new(job);
        let client = Client::new(Arc::clone(&job), &clients)?;
        clients.push(client.clone());
        pools.push(Pool {
            client,
            found: vec![Vec::new(); job.discovery.len()],
            dropped: Vec::new(),
            tasks: Vec::new(),
            job,
        });
    }
    Ok((pools, finders))
}

/// Looks again and again, and tells the manager what is new.
pub(super) async fn follow(manager: Manager, job: String, place: usize, mut finder: Finder) {
    let mut said: Vec<String> = Vec::new();
    let mut is_first = matches!(finder, Finder::Http(_));
    loop {
        if !std::mem::take(&mut is_first) {
            tokio::time::sleep(finder.pause()).await;
        }
        let (groups, errors) = finder.look().await;
        for error in errors.iter().filter(|e| !said.contains(e)) {
            tracing::warn!(job, error, "discovery: the targets known before stay");
        }
        if errors.is_empty() && !said.is_empty() {
            tracing::info!(job, "discovery works again");
        }
        said = errors;
        manager.found(&job, place, groups).await;
    }
}

impl Running {
    /// Nobody looks for targets any more.
    pub(super) fn stop_finding(&mut self) {
        for pool in &mut self.pools {
            pool.tasks.drain(..).for_each(|task| task.abort());
        }
    }

    /// What an equal discovery of a job of that name had found.
    pub(super) fn found_before(&self, job: &Job, place: usize) -> Vec<StaticConfig> {
        let pool = self.pools.iter().find(|p| p.job.name == job.name);
        let same = pool.and_then(|p| {
            let at = p.job.discovery.iter().position(|d| *d == job.discovery[place])?;
            Some(p.found[at].clone())
        });
        same.unwrap_or_default()
    }
}

impl Pool {
    /// The targets that the job has now; remembers those that relabelling drops.
    pub fn wanted(&mut self) -> Vec<Wanted> {
        let mut all = Job::clone(&self.job);
        all.groups.extend(self.found.iter().flatten().cloned());
        let job = Arc::new(all);
        let (active, dropped) = targets_of(&job);
        self.dropped = dropped;
        let limit = usize::try_from(job.limits.targets).unwrap_or(usize::MAX);
        say_unusable(&job, limit, &active);
        let mut wanted = Vec::new();
        let mut seen = HashSet::new();
        for (taken, target) in active.into_iter().enumerate() {
            let (target, source) = match target {
                Ok(target) if limit == 0 || taken < limit => (target, Source::Http(self.client.clone())),
                Ok(target) => (target, Source::Never(format!("target_limit of {limit} exceeded"))),
                Err(error) => (broken(&job), Source::Never(error.to_string())),
            };
            let key = Key {
                job: job.name.clone(),
                labels: target.labels.clone(),
                url: target.url.clone(),
            };
            if seen.insert(key.clone()) {
                wanted.push(Wanted {
                    key,
                    job: Arc::clone(&job),
                    target,
                    source,
                });
            }
        }
        wanted
    }
}

/// Says which targets of a job are not scraped at all: a line a reason, not a line a target.
fn say_unusable(job: &Job, limit: usize, active: &[Result<Target, Error>]) {
    if limit != 0 && active.len() > limit {
        let targets = active.len();
        tracing::warn!(
            job = job.name,
            limit = format!("target_limit of {limit}"),
            targets,
            refused = targets - limit,
            "a limit is met: the last targets of this job are not scraped"
        );
    }
    let mut errors = active.iter().filter_map(|target| target.as_ref().err());
    if let Some(first) = errors.next() {
        let further = errors.count();
        tracing::warn!(job = job.name, error = %first, further, "a target cannot be scraped");
    }
}

/// Stands for a target that has no address.
fn broken(job: &Job) -> Target {
    let labels = Labels::from_pairs([("job", job.name.as_str())]);
    Target {
        discovered: labels.clone(),
        labels,
        url: String::new(),
        interval: job.interval,
        timeout: job.timeout,
    }
}
