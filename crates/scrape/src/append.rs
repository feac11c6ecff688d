//! A page becomes a batch: labels made once a series, values every time, ends of series marked.
//!
//! [`Ingest`] belongs to one target and remembers its lines. A page is read as a whole before anything is
//! stored: samples of known series wait in the batch, new series wait with their labels, and only when the
//! last line was good is the store asked for them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use config::relabel::apply;
use exposition::{Cause, Entry, Format, Pair, Reader, Sample, Series};
use model::family::Metadata;
use model::{Appended, Appender, Batch, Labels, LabelsBuilder, METRIC_NAME, Millis, SeriesId, TargetId, stale_nan};

use crate::cache::{Cache, Known, Line};
use crate::error::Error;
use crate::job::Job;

mod culprit;
mod report;

use report::Report;

/// What became of a page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Samples on the page.
    pub scraped: u64,
    /// Samples left after relabelling and limits.
    pub kept: u64,
    /// Series that the last page did not have.
    pub series_added: u64,
    /// Series that have ended since the last page.
    pub series_ended: u64,
    /// Samples that relabelling dropped.
    pub dropped: u64,
    /// Samples left out because a limit was met.
    pub refused: u64,
    /// Which limit: `sample_limit of 1000`; empty when none was met.
    pub limit: String,
    /// What met the limit: `label "pod" (812 values)`; empty when nothing did.
    pub culprit: String,
    /// The same without numbers, so that it stays the same from page to page: `label pod`, `metric x`.
    pub culprit_name: String,
    /// Samples of a series that stood on the page before, without timestamps to tell them apart.
    pub duplicates: u64,
    /// Samples whose own timestamp lies more than ten minutes after the scrape.
    pub too_new: u64,
    /// What the store says.
    pub appended: Appended,
}

/// Metadata by metric name.
pub type MetadataMap = BTreeMap<String, Metadata>;

/// Turns the pages of one target into batches.
pub struct Ingest {
    appender: Arc<dyn Appender>,
    target: TargetId,
    labels: Labels,
    job: Arc<Job>,
    cache: Cache,
    report: Report,
    metadata: Arc<MetadataMap>,
    batch: Batch,
    /// Later timestamps of the page are refused.
    latest: Millis,
    builder: LabelsBuilder,
}

/// A sample whose series the store has not been asked for.
struct Pending {
    known: Known,
    labels: Labels,
    value: f64,
    time: Option<Millis>,
}

/// How far a page's timestamps may lie ahead of the scrape, in milliseconds: a clock that is further off would
/// put samples where the store takes nothing older any more.
const AHEAD_MAX: Millis = 10 * 60 * 1000;

/// Metric names of one target whose metadata is remembered, and bytes of a help text.
const METADATA_MAX: usize = 10_000;
const HELP_BYTES_MAX: usize = 1_024;

impl Ingest {
    /// Begins for a target with these labels.
    #[must_use]
    pub fn new(appender: Arc<dyn Appender>, job: Arc<Job>, labels: Labels) -> Self {
        Self {
            target: appender.target(&labels),
            report: Report::new(&labels, job.extra_metrics),
            appender,
            labels,
            job,
            cache: Cache::default(),
            metadata: Arc::default(),
            batch: Batch::default(),
            latest: 0,
            builder: LabelsBuilder::new(),
        }
    }

    /// Stores a page as scraped at `time`; `seconds` is how long the fetch took.
    ///
    /// # Errors
    ///
    /// [`Error::Page`] when a line is wrong: then nothing of the page is stored, its series have ended, and
    /// `up` is 0. [`Error::Store`] when the store takes nothing at all.
    pub fn page(&mut self, time: Millis, seconds: f64, page: &[u8], format: Format) -> Result<Outcome, Error> {
        self.cache.begin();
        self.batch.samples.clear();
        self.batch.timed.clear();
        self.latest = time.saturating_add(AHEAD_MAX);
        let mut outcome = Outcome::default();
        let mut pending = Vec::new();
        if let Err(error) = self.read(page, format, &mut pending, &mut outcome) {
            self.end_all(time, seconds, Some(&outcome))?;
            return Err(error.into());
        }
        self.resolve(pending, &mut outcome);
        let vanished = self.cache.commit(self.job.track_timestamps_staleness);
        outcome.series_ended = self.mark_ended(vanished);
        self.report.good(
            &*self.appender,
            &mut self.batch,
            &self.job,
            seconds,
            page.len(),
            &outcome,
        );
        let mut appended = self.appender.append(self.target, time, &self.batch)?;
        if !appended.unknown.is_empty() {
            let unknown = std::mem::take(&mut appended.unknown);
            let again = self.again(time, page, format, &unknown)?;
            appended.accepted += again.accepted;
            appended.duplicates += again.duplicates;
            appended.out_of_order += again.out_of_order;
            appended.too_old += again.too_old;
            appended.unknown = again.unknown;
        }
        outcome.appended = appended;
        Ok(outcome)
    }

    /// Stores a page in the Prometheus text format as if it had been scraped at `time`: for filling in the past.
    ///
    /// # Errors
    ///
    /// As [`Ingest::page`].
    pub fn ingest_page(&mut self, time: Millis, page: &[u8]) -> Result<Outcome, Error> {
        self.page(time, 0.0, page, Format::Text)
    }

    /// Notes that there was no page at `time`: the series have ended, `up` is 0.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] when the store takes nothing.
    pub fn failed(&mut self, time: Millis, seconds: f64) -> Result<(), Error> {
        self.cache.begin();
        self.end_all(time, seconds, None)
    }

    /// Ends every series of the target, `up` too: it is scraped no more.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] when the store takes nothing.
    pub fn end(&mut self, time: Millis) -> Result<(), Error> {
        self.cache.begin();
        self.batch.samples.clear();
        self.batch.timed.clear();
        let ended = self.cache.fail(self.job.track_timestamps_staleness);
        self.mark_ended(ended);
        self.report.end(&mut self.batch);
        if !self.batch.samples.is_empty() {
            self.appender.append(self.target, time, &self.batch)?;
        }
        Ok(())
    }

    /// What the target's pages said of their metrics, by metric name.
    #[must_use]
    pub fn metadata(&self) -> Arc<MetadataMap> {
        Arc::clone(&self.metadata)
    }

    #[cfg(test)]
    fn cache_len(&self) -> usize {
        self.cache.len()
    }

    fn read(
        &mut self,
        page: &[u8],
        format: Format,
        pending: &mut Vec<Pending>,
        outcome: &mut Outcome,
    ) -> Result<(), exposition::Error> {
        let mut reader = Reader::new(page, format);
        loop {
            if let Some((known, length, note)) = self.cache.expected(reader.rest()) {
                if note {
                    if reader.pass_known(length) {
                        self.cache.show(known, false);
                        continue;
                    }
                } else if let Some(sample) = reader.known_sample(length)? {
                    let line = self.cache.line(known);
                    self.take(known, line, &sample, pending, outcome)
                        .map_err(|cause| reader.error(cause))?;
                    continue;
                }
            }
            match reader.next_entry()? {
                None => return Ok(()),
                Some(Entry::Sample(sample)) => {
                    self.sample(&sample, pending, outcome)
                        .map_err(|cause| reader.error(cause))?;
                }
                Some(note) => self.note(&note, reader.line()),
            }
        }
    }

    /// A metadata or comment line that was not expected here.
    fn note(&mut self, note: &Entry<'_>, line: &[u8]) {
        let known = self.cache.find(line).or_else(|| {
            self.remember(note);
            self.cache.add(line, Line::Note)
        });
        if let Some(known) = known {
            self.cache.show(known, false);
        }
    }

    fn remember(&mut self, note: &Entry<'_>) {
        let name = match note {
            Entry::Help { name, .. } | Entry::Type { name, .. } | Entry::Unit { name, .. } => name.as_ref(),
            Entry::Comment | Entry::Sample(_) => return,
        };
        if !self.metadata.contains_key(name) && self.metadata.len() >= METADATA_MAX {
            return;
        }
        let none = Metadata {
            kind: model::Kind::Unknown,
            help: String::new(),
            unit: String::new(),
        };
        let metadata = Arc::make_mut(&mut self.metadata).entry(name.to_owned()).or_insert(none);
        match note {
            Entry::Help { help, .. } => metadata.help = cut(help, HELP_BYTES_MAX).to_owned(),
            Entry::Type { kind, .. } => metadata.kind = *kind,
            Entry::Unit { unit, .. } => metadata.unit = cut(unit, HELP_BYTES_MAX).to_owned(),
            Entry::Comment | Entry::Sample(_) => {}
        }
    }

    /// A sample that was not expected here: known from elsewhere on the page, or new.
    fn sample(&mut self, sample: &Sample<'_>, pending: &mut Vec<Pending>, outcome: &mut Outcome) -> Result<(), Cause> {
        let text = sample.series.text();
        let (known, line) = match self.cache.find(text) {
            Some(known) => (known, self.cache.line(known)),
            None => match self.cache.add(text, Line::Refused) {
                Some(known) => (known, Line::Refused),
                None => return Ok(()),
            },
        };
        self.take(known, line, sample, pending, outcome)
    }

    #[inline]
    fn take(
        &mut self,
        known: Known,
        line: Line,
        sample: &Sample<'_>,
        pending: &mut Vec<Pending>,
        outcome: &mut Outcome,
    ) -> Result<(), Cause> {
        outcome.scraped += 1;
        let time = if self.job.honor_timestamps { sample.time } else { None };
        let shown = self.cache.show(known, time.is_some());
        if time.is_some_and(|t| t > self.latest) {
            outcome.too_new += 1;
            outcome.dropped += u64::from(line == Line::Dropped);
            return Ok(());
        }
        if !shown.first && time.is_none() && line != Line::Dropped {
            outcome.duplicates += 1;
            return Ok(());
        }
        match line {
            Line::Series(id) => {
                outcome.series_added += u64::from(shown.first && !shown.carried);
                match time {
                    None => self.batch.samples.push((id, sample.value)),
                    Some(time) => self.batch.timed.push((id, time, sample.value)),
                }
                Ok(())
            }
            Line::Dropped => {
                outcome.dropped += 1;
                Ok(())
            }
            Line::Note | Line::Refused | Line::Pending => self.unresolved(known, sample, time, pending, outcome),
        }
    }

    /// A sample whose series the store has not been asked for, or has refused.
    #[cold]
    fn unresolved(
        &mut self,
        known: Known,
        sample: &Sample<'_>,
        time: Option<Millis>,
        pending: &mut Vec<Pending>,
        outcome: &mut Outcome,
    ) -> Result<(), Cause> {
        let Some(labels) = self.series_labels(&sample.series)? else {
            self.cache.set(known, Line::Dropped);
            outcome.dropped += 1;
            return Ok(());
        };
        if let Some(culprit) = culprit::over_label_limits(&labels, &self.job.limits) {
            self.cache.set(known, Line::Refused);
            outcome.refused += 1;
            culprit.tell(outcome);
            return Ok(());
        }
        self.cache.set(known, Line::Pending);
        pending.push(Pending {
            known,
            labels,
            value: sample.value,
            time,
        });
        Ok(())
    }

    /// The labels that a series of the page has in the store; `None` when relabelling drops it.
    fn series_labels(&mut self, series: &Series<'_>) -> Result<Option<Labels>, Cause> {
        let pairs = series.distinct_pairs()?;
        join_labels(&pairs, &self.labels, self.job.honor_labels, &mut self.builder);
        if !apply(&self.job.metric_relabel, &mut self.builder) {
            return Ok(None);
        }
        let labels = self.builder.build();
        if labels.is_empty() {
            return Ok(None);
        }
        if labels.name().is_empty() {
            return Err(Cause::NameMissing);
        }
        Ok(Some(labels))
    }

    /// Asks the store for the new series. Over the sample limit the known series stay and new ones are left out.
    fn resolve(&mut self, pending: Vec<Pending>, outcome: &mut Outcome) {
        let known = self.batch.samples.len() + self.batch.timed.len();
        let limit = usize::try_from(self.job.limits.samples).unwrap_or(usize::MAX);
        let room = if limit == 0 {
            usize::MAX
        } else {
            limit.saturating_sub(known)
        };
        let mut refused = Vec::new();
        let mut store_limit = String::new();
        for (taken, new) in pending.into_iter().enumerate() {
            let id = if taken < room {
                self.appender.series(&new.labels)
            } else {
                Ok(SeriesId(u64::MAX))
            };
            match id {
                Ok(id) if taken < room => {
                    self.cache.set(new.known, Line::Series(id));
                    outcome.series_added += 1;
                    match new.time {
                        None => self.batch.samples.push((id, new.value)),
                        Some(time) => self.batch.timed.push((id, time, new.value)),
                    }
                }
                answer => {
                    if let Err(error) = answer {
                        store_limit = error.to_string();
                    }
                    self.cache.set(new.known, Line::Refused);
                    refused.push(new.labels);
                }
            }
        }
        outcome.kept = (self.batch.samples.len() + self.batch.timed.len()) as u64;
        if !refused.is_empty() {
            outcome.refused += refused.len() as u64;
            let mut culprit = culprit::most_varied(&refused, limit);
            if !store_limit.is_empty() {
                culprit.text = format!("{}; {store_limit}", culprit.text);
                culprit.limit = "the store's limit".to_owned();
            }
            culprit.tell(outcome);
        }
    }

    /// Adds staleness markers; a series that this page writes in another way has not ended.
    fn mark_ended(&mut self, mut ended: Vec<SeriesId>) -> u64 {
        if ended.is_empty() {
            return 0;
        }
        let present: HashSet<SeriesId> = self.batch.samples.iter().map(|(id, _)| *id).collect();
        ended.retain(|id| !present.contains(id));
        ended.sort_unstable();
        ended.dedup();
        self.batch.samples.extend(ended.iter().map(|id| (*id, stale_nan())));
        ended.len() as u64
    }

    fn end_all(&mut self, time: Millis, seconds: f64, read: Option<&Outcome>) -> Result<(), Error> {
        self.batch.samples.clear();
        self.batch.timed.clear();
        let ended = self.cache.fail(self.job.track_timestamps_staleness);
        self.mark_ended(ended);
        let scraped = read.map_or(0, |o| o.scraped);
        self.report
            .bad(&*self.appender, &mut self.batch, &self.job, seconds, scraped);
        let appended = self.appender.append(self.target, time, &self.batch)?;
        if !appended.unknown.is_empty() {
            self.batch.samples.clear();
            self.report.forget(&appended.unknown);
            self.report
                .bad(&*self.appender, &mut self.batch, &self.job, seconds, scraped);
            self.appender.append(self.target, time, &self.batch)?;
        }
        Ok(())
    }

    /// Appends once more what the store had forgotten, its labels made from the page again.
    fn again(&mut self, time: Millis, page: &[u8], format: Format, unknown: &[SeriesId]) -> Result<Appended, Error> {
        let values: HashMap<SeriesId, f64> = self.batch.samples.iter().copied().collect();
        let unknown: HashSet<SeriesId> = unknown.iter().copied().collect();
        let mut batch = Batch::default();
        let mut reader = Reader::new(page, format);
        let mut renamed: HashMap<SeriesId, SeriesId> = HashMap::new();
        let mut new: HashSet<SeriesId> = HashSet::new();
        while let Some(entry) = reader.next_entry()? {
            let Entry::Sample(sample) = entry else { continue };
            let Some(known) = self.cache.find(sample.series.text()) else {
                continue;
            };
            let Line::Series(old) = self.cache.line(known) else {
                continue;
            };
            if !unknown.contains(&old) || new.contains(&old) {
                continue;
            }
            let Ok(Some(labels)) = self.series_labels(&sample.series) else {
                continue;
            };
            let id = match renamed.get(&old) {
                Some(id) => *id,
                None => self.appender.series(&labels)?,
            };
            renamed.insert(old, id);
            new.insert(id);
            self.cache.set(known, Line::Series(id));
            match sample.time.filter(|t| self.job.honor_timestamps && *t <= self.latest) {
                None => batch.samples.push((id, sample.value)),
                Some(time) => batch.timed.push((id, time, sample.value)),
            }
        }
        self.report.again(&*self.appender, &unknown, &values, &mut batch);
        Ok(self.appender.append(self.target, time, &batch)?)
    }
}

/// Puts the page's labels and the target's together in `builder`.
///
/// Either the page wins where both have a label (an empty one too), or the target does and the page's label
/// moves to `exported_…`.
fn join_labels(page: &[Pair<'_>], target: &Labels, honor: bool, builder: &mut LabelsBuilder) {
    builder.reset();
    for (name, value) in page {
        builder.set(name, value);
    }
    let mut moved: Vec<(&str, &str)> = Vec::new();
    for (name, value) in target {
        let own = page.iter().find(|(n, _)| n == name);
        if honor && own.is_some() {
            continue;
        }
        if let Some((name, value)) = own.filter(|(_, v)| !v.is_empty()) {
            moved.push((name, value));
        }
        builder.set(name, value);
    }
    moved.sort_by_key(|(name, _)| name.len());
    for (name, value) in moved {
        let mut free = format!("exported_{name}");
        while builder.get(&free).is_some() {
            free.insert_str(0, "exported_");
        }
        builder.set(&free, value);
    }
}

fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The series `name` of a target's own reports.
pub(crate) fn report_labels(name: &str, target: &Labels) -> Labels {
    target.with(METRIC_NAME, name)
}

#[cfg(test)]
mod tests;
