//! One target's loop: wait for the moment, fetch, store, show how it went.

use std::sync::Arc;
use std::time::Duration;

use exposition::{Format, PageFormat};
use model::{Labels, Millis};
use tokio::sync::watch;
use tokio::time::Instant;

use super::notes::LimitNews;
use super::{Order, Shared, State, lock};
use crate::append::{Ingest, Outcome};
use crate::error::Error;
use crate::job::Job;
use crate::scraper::Client;
use crate::target::{Health, PageSource, TargetStatus};

/// Where a target's pages come from.
pub(super) enum Source {
    Http(Client),
    Local(PageSource),
    /// Nowhere, for this reason: the target is shown and not scraped.
    Never(String),
}

pub(super) struct Loop {
    pub shared: Arc<Shared>,
    pub state: Arc<State>,
    pub job: Arc<Job>,
    pub source: Source,
    pub labels: Labels,
    pub offset: u64,
}

/// A scrape this close to its moment on the grid is said to have been at it: regular timestamps cost nothing
/// to store.
const TOLERANCE: Millis = 20;

/// Buffers kept for the next pages, and the largest of them.
const BUFFERS_MAX: usize = 8;
const BUFFER_BYTES_MAX: usize = 4 << 20;

impl Loop {
    pub(super) async fn run(self, mut orders: watch::Receiver<Order>) {
        if let Source::Never(why) = &self.source {
            self.never(why);
            let _ = orders.wait_for(|o| *o != Order::Run).await;
            return;
        }
        let mut ingest = Some(self.ingest());
        let interval = lock(&self.state.status).target.interval.max(1);
        let mut moment = self.first(interval);
        loop {
            let now = self.shared.clock.now();
            if moment - now > interval {
                // The wall clock was set back: without this the loop would wait until it has caught up.
                moment = self.first(interval);
            }
            let wait = Duration::from_millis((moment - now).max(0).unsigned_abs());
            let due = Instant::now() + wait;
            tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                _ = orders.changed() => break,
            }
            let now = self.shared.clock.now();
            let time = if (now - moment).abs() <= TOLERANCE.min(interval / 100) {
                moment
            } else {
                now
            };
            let (page, seconds, format) = tokio::select! {
                fetched = self.fetch() => fetched,
                _ = orders.changed() => break,
            };
            ingest = self.store(time, seconds, page, format, ingest).await;
            moment = next(moment, interval, self.shared.clock.now());
        }
        if *orders.borrow() == Order::Remove {
            self.remove(ingest).await;
        }
    }

    fn ingest(&self) -> Ingest {
        Ingest::new(
            Arc::clone(&self.shared.appender),
            Arc::clone(&self.job),
            self.labels.clone(),
        )
    }

    /// The first moment on this target's grid; at once for a collector of our own, whose page is cheap.
    fn first(&self, interval: Millis) -> Millis {
        let now = self.shared.clock.now();
        let offset = Millis::try_from(self.offset % interval.unsigned_abs()).unwrap_or(0);
        let on_grid = now - now.rem_euclid(interval) + offset;
        let later = if on_grid < now { on_grid + interval } else { on_grid };
        match self.source {
            Source::Local(_) => later - interval,
            _ => later,
        }
    }

    /// A page with the seconds it took, and its format or the reason why there is none.
    async fn fetch(&self) -> (Vec<u8>, f64, Result<PageFormat, Error>) {
        let _permit = self.shared.fetches.acquire().await;
        let (url, timeout) = {
            let status = lock(&self.state.status);
            (status.target.url.clone(), status.target.timeout)
        };
        let began = Instant::now();
        let mut page = lock(&self.shared.buffers).pop().unwrap_or_default();
        let format = match &self.source {
            Source::Http(client) => client.fetch(&url, timeout, &mut page).await,
            Source::Local(source) => local(source, timeout, &mut page).await,
            Source::Never(why) => Err(Error::Target(why.clone())),
        };
        (page, began.elapsed().as_secs_f64(), format)
    }

    /// Reads the page on a thread that may block, and shows how it went.
    async fn store(
        &self,
        time: Millis,
        seconds: f64,
        page: Vec<u8>,
        format: Result<PageFormat, Error>,
        ingest: Option<Ingest>,
    ) -> Option<Ingest> {
        let mut ingest = ingest.unwrap_or_else(|| self.ingest());
        let _permit = self.shared.reads.acquire().await;
        let state = Arc::clone(&self.state);
        let shared = Arc::clone(&self.shared);
        let read = tokio::task::spawn_blocking(move || {
            let result = match format {
                Ok(format) => ingest.page(time, seconds, &page, format),
                Err(error) => ingest.failed(time, seconds).and(Err(error)),
            };
            show(&state, &ingest, time, seconds, page.len(), result);
            give_back(&shared, page);
            ingest
        });
        match read.await {
            Ok(ingest) => Some(ingest),
            Err(_) => {
                let mut status = lock(&self.state.status);
                status.health = Health::Down;
                status.last_error = Error::Panic.to_string();
                let mut notes = lock(&self.state.notes);
                if notes.failed(&status.last_error, time) {
                    tracing::error!(url = %status.target.url, error = %status.last_error, "scrape failed");
                }
                None
            }
        }
    }

    fn never(&self, why: &str) {
        let mut status = lock(&self.state.status);
        status.health = Health::Down;
        why.clone_into(&mut status.last_error);
    }

    async fn remove(&self, ingest: Option<Ingest>) {
        let Some(mut ingest) = ingest else { return };
        let now = self.shared.clock.now();
        let ended = tokio::task::spawn_blocking(move || ingest.end(now)).await;
        if let Ok(Err(error)) = ended {
            tracing::warn!(target = %self.labels, %error, "cannot end the series of a removed target");
        }
    }
}

/// The first moment after `now` on the grid of `moment`.
fn next(moment: Millis, interval: Millis, now: Millis) -> Millis {
    let missed = (now - moment).max(0) / interval;
    moment + (missed + 1) * interval
}

async fn local(source: &PageSource, timeout: Millis, page: &mut Vec<u8>) -> Result<PageFormat, Error> {
    let source = Arc::clone(source);
    let made = tokio::task::spawn_blocking(move || source());
    let limit = Duration::from_millis(timeout.unsigned_abs());
    match tokio::time::timeout(limit, made).await {
        Err(_) => Err(Error::Timeout(timeout)),
        Ok(Err(_)) => Err(Error::Local("it panicked".to_owned())),
        Ok(Ok(Err(why))) => Err(Error::Local(why)),
        Ok(Ok(Ok(bytes))) => {
            *page = bytes;
            if page.is_empty() {
                Err(Error::Empty)
            } else {
                Ok(Format::Text.into())
            }
        }
    }
}

fn show(state: &State, ingest: &Ingest, time: Millis, seconds: f64, bytes: usize, result: Result<Outcome, Error>) {
    *lock(&state.metadata) = ingest.metadata();
    let mut status = lock(&state.status);
    status.last_scrape = Some(time);
    status.last_duration_seconds = seconds;
    status.body_bytes = bytes;
    let mut notes = lock(&state.notes);
    match result {
        Ok(outcome) => {
            status.health = Health::Up;
            status.last_error.clear();
            status.samples = outcome.scraped;
            status.stored = outcome.kept;
            status.refused_total += outcome.refused;
            status.duplicates_total += outcome.duplicates;
            if notes.worked() {
                tracing::info!(url = %status.target.url, "scrape works again");
            }
            say_limits(&status, notes.limits(&outcome, time), &outcome);
            if outcome.refused > 0 {
                status.culprit = outcome.culprit;
            }
        }
        Err(error) => {
            status.health = Health::Down;
            status.last_error = error.to_string();
            status.samples = 0;
            status.stored = 0;
            if notes.failed(&status.last_error, time) {
                tracing::warn!(url = %status.target.url, error = %status.last_error, "scrape failed");
            }
        }
    }
}

fn say_limits(status: &TargetStatus, news: Option<LimitNews>, outcome: &Outcome) {
    let url = &status.target.url;
    match news {
        Some(LimitNews::Begin) => tracing::warn!(
            job = status.job,
            url,
            limit = outcome.limit,
            culprit = outcome.culprit,
            refused = outcome.refused,
            scraped = outcome.scraped,
            "a limit is met: samples of this target are left out"
        ),
        Some(LimitNews::End) => tracing::info!(
            job = status.job,
            url,
            refused_total = status.refused_total,
            "the target is within its limits again"
        ),
        None => {}
    }
}

fn give_back(shared: &Shared, mut page: Vec<u8>) {
    let mut buffers = lock(&shared.buffers);
    if buffers.len() < BUFFERS_MAX && page.capacity() <= BUFFER_BYTES_MAX {
        page.clear();
        buffers.push(page);
    }
}
