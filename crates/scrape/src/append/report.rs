//! What a target's scrape says of itself: `up` and its fellows.

use std::collections::{HashMap, HashSet};

use model::{Appender, Batch, Labels, SeriesId, stale_nan};

use super::{Outcome, report_labels};
use crate::job::Job;

const NAMES: [&str; 8] = [
    "up",
    "scrape_duration_seconds",
    "scrape_samples_scraped",
    "scrape_samples_post_metric_relabeling",
    "scrape_series_added",
    "scrape_timeout_seconds",
    "scrape_sample_limit",
    "scrape_body_size_bytes",
];

/// Those of them that are always there.
const ALWAYS: usize = 5;

/// The report series of one target.
pub(super) struct Report {
    target: Labels,
    ids: [Option<SeriesId>; NAMES.len()],
    count: usize,
}

impl Report {
    pub(super) fn new(target: &Labels, extra: bool) -> Self {
        Self {
            target: target.clone(),
            ids: [None; NAMES.len()],
            count: if extra { NAMES.len() } else { ALWAYS },
        }
    }

    /// A page was stored.
    pub(super) fn good(
        &mut self,
        appender: &dyn Appender,
        batch: &mut Batch,
        job: &Job,
        seconds: f64,
        bytes: usize,
        outcome: &Outcome,
    ) {
        // Duplicates and what met a limit count as left over, as in the field.
        let left = outcome.scraped - outcome.dropped;
        let (scraped, added) = (outcome.scraped, outcome.series_added);
        let values = [1.0, seconds, float(scraped), float(left), float(added)];
        self.write(appender, batch, job, &values, float(bytes as u64));
    }

    /// There was no page, or a bad one.
    pub(super) fn bad(&mut self, appender: &dyn Appender, batch: &mut Batch, job: &Job, seconds: f64, scraped: u64) {
        let values = [0.0, seconds, float(scraped), 0.0, 0.0];
        self.write(appender, batch, job, &values, 0.0);
    }

    fn write(&mut self, appender: &dyn Appender, batch: &mut Batch, job: &Job, always: &[f64; ALWAYS], bytes: f64) {
        #[expect(clippy::cast_precision_loss, reason = "a configured span of time")]
        let timeout = job.timeout as f64 / 1000.0;
        let extra = [timeout, float(job.limits.samples), bytes];
        for (at, value) in always.iter().chain(&extra).enumerate().take(self.count) {
            if self.ids[at].is_none() {
                // A store that takes no new series has said so for the page's own already.
                self.ids[at] = appender.series(&report_labels(NAMES[at], &self.target)).ok();
            }
            if let Some(id) = self.ids[at] {
                batch.samples.push((id, *value));
            }
        }
    }

    /// The target is scraped no more.
    pub(super) fn end(&mut self, batch: &mut Batch) {
        batch
            .samples
            .extend(self.ids.iter().flatten().map(|id| (*id, stale_nan())));
        self.ids = [None; NAMES.len()];
    }

    /// The store has forgotten these.
    pub(super) fn forget(&mut self, unknown: &[SeriesId]) {
        for id in &mut self.ids {
            if id.is_some_and(|id| unknown.contains(&id)) {
                *id = None;
            }
        }
    }

    /// Writes those that the store had forgotten once more.
    pub(super) fn again(
        &mut self,
        appender: &dyn Appender,
        unknown: &HashSet<SeriesId>,
        values: &HashMap<SeriesId, f64>,
        batch: &mut Batch,
    ) {
        for (at, slot) in self.ids.iter_mut().enumerate() {
            let Some(old) = slot.filter(|id| unknown.contains(id)) else {
                continue;
            };
            *slot = appender.series(&report_labels(NAMES[at], &self.target)).ok();
            if let (Some(id), Some(value)) = (*slot, values.get(&old)) {
                batch.samples.push((id, *value));
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of one page")]
fn float(count: u64) -> f64 {
    count as f64
}
