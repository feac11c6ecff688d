//! Events of targets: counters stored the moment they change, between two scrapes.
//!
//! A page of events is an exposition page of a few counters. A series that stands on it twice is new: its first line is the
//! zero it began at. [`Manager::store_events`] stores a page under the labels and rules of its target, as a scrape would;
//! [`follow`] keeps a stream open to each agent that has one, so that nothing waits for the next scrape.

use config::relabel::apply;
use exposition::{Entry as Line, Format, Reader};
use model::{Batch, Labels, LabelsBuilder, Millis, SeriesId};

use crate::append::{join_labels, over_label_limits};
use crate::error::Error;
use crate::job::Job;
use crate::manager::{Entry, Manager};

mod stream;

pub use stream::{OnEvents, follow};

/// The most samples of one page of events.
const SAMPLES_MAX: usize = 10_000;

impl Manager {
    /// Stores a page of events of the target with these labels at `time`, and gives the series that changed; none when
    /// there is no such target.
    ///
    /// Only metrics of the target's own page are taken: an agent's events go to the target that shows them.
    ///
    /// # Errors
    ///
    /// [`Error::Page`] when a line is wrong, [`Error::Store`] when the store takes nothing.
    pub fn store_events(&self, target: &Labels, page: &[u8], time: Millis) -> Result<Vec<Labels>, Error> {
        let Some(found) = self.target(|entry| entry.key.labels == *target) else {
            return Ok(Vec::new());
        };
        let mut builder = LabelsBuilder::new();
        let mut samples: Vec<(Labels, f64)> = Vec::new();
        let mut reader = Reader::new(page, Format::Text);
        while let Some(line) = reader.next_entry()? {
            let Line::Sample(sample) = line else { continue };
            let pairs = sample.series.distinct_pairs().map_err(|cause| reader.error(cause))?;
            if !found.shows(&sample.series.name()) || samples.len() >= SAMPLES_MAX {
                continue;
            }
            join_labels(&pairs, target, found.job.honor_labels, &mut builder);
            if apply(&found.job.metric_relabel, &mut builder) {
                let labels = builder.build();
                if !labels.name().is_empty() && over_label_limits(&labels, &found.job.limits).is_none() {
                    samples.push((labels, sample.value));
                }
            }
        }
        self.append_events(target, samples, time)
    }

    fn append_events(&self, target: &Labels, samples: Vec<(Labels, f64)>, time: Millis) -> Result<Vec<Labels>, Error> {
        let appender = self.appender();
        let mut batch = Batch::default();
        let mut changed: Vec<Labels> = Vec::new();
        let mut ids: Vec<SeriesId> = Vec::new();
        for (labels, value) in samples {
            let id = appender.series(&labels)?;
            // The zero that a new series begins at lies just before the event.
            if let Some(first) = ids.iter().position(|known| *known == id) {
                batch.timed[first].1 = time - 1;
            }
            ids.push(id);
            batch.timed.push((id, time, value));
            if !changed.contains(&labels) {
                changed.push(labels);
            }
        }
        if !batch.timed.is_empty() {
            appender.append(appender.target(target), time, &batch)?;
        }
        Ok(changed)
    }
}

/// A running target as far as its events are concerned.
pub(crate) struct Found {
    /// Its job.
    pub job: std::sync::Arc<Job>,
    url: String,
}

impl Found {
    pub(crate) fn new(entry: &Entry) -> Self {
        Self {
            job: std::sync::Arc::clone(&entry.job),
            url: entry.key.url.clone(),
        }
    }

    /// Whether the target's page is the one that this metric stands on: an agent has pages of their own for its GPUs and
    /// for its host, and one with everything.
    fn shows(&self, name: &str) -> bool {
        let is_of_gpu = name.starts_with("watchfire_gpu_");
        if self.url.ends_with("/metrics/gpu") {
            is_of_gpu
        } else {
            !self.url.ends_with("/metrics/node") || !is_of_gpu
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, gpu: bool, node: bool) {
        let found = Found {
            job: std::sync::Arc::new(Job::new("j")),
            url: url.to_owned(),
        };
        let shown = (
            found.shows("watchfire_gpu_xid_errors_total"),
            found.shows("watchfire_oom_kills_total"),
        );
        assert_eq!(shown, (gpu, node), "{url}");
    }

    #[test]
    fn an_event_goes_to_the_target_that_shows_it() {
        check("http://a/metrics", true, true);
        check("http://a/metrics/gpu", true, false);
        check("http://a/metrics/node", false, true);
    }
}
