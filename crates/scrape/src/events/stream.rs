//! The stream of an agent's events: opened when its page shows that it is one, opened again where it broke off.
//!
//! The stream is text: `# event SEQ age_ms=N`, the lines of a page, `# end SEQ`, and now and then a line `# alive`. Asked
//! with the last number it saw, a client gets what it missed; what the agent no longer has, the next scrape tells.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use model::{Labels, Millis};
use tokio::task::JoinHandle;

use crate::error::Error;
use crate::job::Job;
use crate::manager::Manager;
use crate::scraper::Client;

/// Told which series an event changed, and when; on a thread that may block.
pub type OnEvents = Arc<dyn Fn(Vec<Labels>, Millis) + Send + Sync>;

/// The metric by which an agent's page is known.
const MARK: &str = "watchfire_kernel_events";
/// The same on a page of GPUs alone.
const MARK_GPU: &str = "watchfire_gpu_xid_errors";

/// How often new agents are looked for.
const LOOK: Duration = Duration::from_secs(5);
/// How long to wait before a stream that broke is opened again.
const RETRY: Duration = Duration::from_secs(2);
/// How long to wait where there is no stream at all: somebody else's page with our names on it, or an older agent.
const ABSENT: Duration = Duration::from_secs(300);
/// A stream without a line for this long is broken: an agent says every ten seconds that it is alive.
const SILENCE: Duration = Duration::from_secs(30);
/// The most bytes of one event.
const EVENT_BYTES_MAX: usize = 1 << 20;
/// Events older than this when they arrive keep their own time; younger ones happened now.
const FRESH: Millis = 2_000;
/// The most streams.
const STREAMS_MAX: usize = 1_024;

/// An agent: where it is, and how to ask it.
#[derive(Clone)]
struct Agent {
    base: String,
    job: Arc<Job>,
    targets: Vec<Labels>,
}

/// Keeps a stream open to every agent among the targets until dropped or aborted.
pub async fn follow(manager: Manager, on_events: OnEvents) {
    let mut streams = Streams::default();
    loop {
        let agents = agents(&manager);
        let bases: HashSet<&String> = agents.keys().collect();
        streams.0.retain(|base, (targets, task)| {
            let same = bases.contains(base) && agents.get(base).is_some_and(|agent| agent.targets == *targets);
            if !same {
                task.abort();
            }
            same && !task.is_finished()
        });
        for (base, agent) in agents {
            if streams.0.len() < STREAMS_MAX && !streams.0.contains_key(&base) {
                let targets = agent.targets.clone();
                let task = tokio::spawn(one(manager.clone(), agent, Arc::clone(&on_events)));
                streams.0.insert(base, (targets, task));
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The open streams by address, with the targets that each feeds; they end with it.
#[derive(Default)]
struct Streams(HashMap<String, (Vec<Labels>, JoinHandle<()>)>);

impl Drop for Streams {
    fn drop(&mut self) {
        self.0.values().for_each(|(_, task)| task.abort());
    }
}

/// The agents among the targets, by address.
fn agents(manager: &Manager) -> HashMap<String, Agent> {
    let mut out: HashMap<String, Agent> = HashMap::new();
    for (labels, url, job, metadata) in manager.pages() {
        let has = |family: &str| metadata.contains_key(family) || metadata.contains_key(&format!("{family}_total"));
        if !has(MARK) && !has(MARK_GPU) {
            continue;
        }
        let Some(base) = base(&url) else { continue };
        let agent = out.entry(base.clone()).or_insert_with(|| Agent {
            base,
            job,
            targets: Vec::new(),
        });
        agent.targets.push(labels);
    }
    out
}

/// `http://host:port` of an address.
fn base(url: &str) -> Option<String> {
    let scheme = url.find("://")? + 3;
    if !url.starts_with("http") {
        return None;
    }
    let end = url[scheme..].find('/').map_or(url.len(), |at| scheme + at);
    Some(url[..end].to_owned())
}

/// One agent's stream, for as long as it is a target.
async fn one(manager: Manager, agent: Agent, on_events: OnEvents) {
    let Ok(client) = Client::new(Arc::clone(&agent.job), &[]) else {
        return;
    };
    let mut seen = Seen::default();
    loop {
        let pause = match read(&manager, &client, &agent, &mut seen, &on_events).await {
            Err(Error::Status(_)) => ABSENT,
            Err(error) => {
                tracing::debug!(agent = agent.base, %error, "the stream of events broke off");
                RETRY
            }
            Ok(()) => RETRY,
        };
        tokio::time::sleep(pause).await;
    }
}

/// The last event that was taken in: an agent that was started anew counts from the beginning.
#[derive(Debug, Default)]
struct Seen {
    boot: String,
    number: u64,
}

async fn read(
    manager: &Manager,
    client: &Client,
    agent: &Agent,
    seen: &mut Seen,
    on_events: &OnEvents,
) -> Result<(), Error> {
    let url = format!("{}/events?boot={}&after={}", agent.base, seen.boot, seen.number);
    let mut response = client.open(&url).await?;
    let mut text = Vec::new();
    loop {
        let chunk = match tokio::time::timeout(SILENCE, response.chunk()).await {
            Err(_) => return Err(Error::Timeout(30_000)),
            Ok(chunk) => chunk.map_err(crate::scraper::request)?,
        };
        let Some(chunk) = chunk else { return Ok(()) };
        text.extend_from_slice(&chunk);
        while let Some(end) = event_end(&text) {
            let event: Vec<u8> = text.drain(..end).collect();
            take(manager, agent, &event, seen, on_events).await;
        }
        if text.len() > EVENT_BYTES_MAX {
            return Err(Error::BodySize(EVENT_BYTES_MAX as u64));
        }
    }
}

/// Where the first whole event ends: behind its `# end` line.
fn event_end(text: &[u8]) -> Option<usize> {
    let at = text.windows(6).position(|w| w == b"# end ")?;
    text[at..].iter().position(|b| *b == b'\n').map(|n| at + n + 1)
}

async fn take(manager: &Manager, agent: &Agent, event: &[u8], seen: &mut Seen, on_events: &OnEvents) {
    let mut age = 0;
    for line in String::from_utf8_lossy(event).lines() {
        if let Some(boot) = line.strip_prefix("# boot ") {
            boot.trim().clone_into(&mut seen.boot);
        }
        if let Some(head) = line.strip_prefix("# event ") {
            let mut words = head.split_ascii_whitespace();
            seen.number = words.next().and_then(|n| n.parse().ok()).unwrap_or(seen.number);
            let told = words.find_map(|word| word.strip_prefix("age_ms="));
            age = told.and_then(|n| n.parse().ok()).unwrap_or(0);
        }
    }
    let now = manager.now();
    let time = if age < FRESH { now } else { now.saturating_sub(age) };
    let (manager, on_events) = (manager.clone(), Arc::clone(on_events));
    let (targets, page) = (agent.targets.clone(), event.to_vec());
    let stored = tokio::task::spawn_blocking(move || {
        for target in &targets {
            match manager.store_events(target, &page, time) {
                Ok(changed) if changed.is_empty() => {}
                Ok(changed) => on_events(changed, manager.now()),
                Err(error) => tracing::warn!(%target, %error, "an event cannot be stored"),
            }
        }
    });
    let _ = stored.await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_cut_at_its_path() {
        assert_eq!(base("http://a:1/metrics/gpu").as_deref(), Some("http://a:1"));
        assert_eq!(base("https://a").as_deref(), Some("https://a"));
        assert_eq!(base("in this process/metrics"), None);
    }

    #[test]
    fn an_event_is_whole_with_its_end() {
        assert_eq!(event_end(b"# event 1\nx 1\n# end 1"), None);
        assert_eq!(event_end(b"# event 1\nx 1\n# end 1\n# alive\n"), Some(22));
    }
}
