//! A page becomes a batch: labels made once a series, values every time, ends of series marked.
//!
//! [`Ingest`] belongs to one target and remembers its lines. A page is read as a whole before anything is
//! stored: samples of known series wait in the batch, new series wait with their labels, and only when the
//! last line was good is the store asked for them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use config::relabel::apply;
use exposition::{Cause, Entry, Format, PageFormat, Pair, Reader, Sample, Series};
use model::family::Metadata;
use model::histogram::Histogram;
use model::{Appended, Appender, Batch, Labels, LabelsBuilder, METRIC_NAME, Millis, SeriesId, TargetId, stale_nan};

use crate::cache::{Cache, Known, Line};
use crate::error::Error;
use crate::job::Job;

mod created;
mod culprit;
pub(crate) use culprit::over_label_limits;
mod exemplar;
mod protobuf;
mod report;

use created::Births;
use exemplar::Told;
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
    /// The moment of the page, and the one beyond which its own timestamps are refused.
    time: Millis,
    latest: Millis,
    /// Whether the page is OpenMetrics, where `_created` has a meaning.
    openmetrics: bool,
    births: Births,
    told: Told,
    builder: LabelsBuilder,
}

/// A sample whose series the store has not been asked for.
struct Pending {
    known: Known,
    labels: Labels,
    datum: Datum,
    time: Option<Millis>,
    exemplars: Vec<model::Exemplar>,
    created: Option<Millis>,
    /// Whether the value itself says when a counter began.
    is_created: bool,
}

/// What a series has at a moment.
#[derive(Debug, Clone)]
enum Datum {
    Value(f64),
    Histogram(Arc<Histogram>),
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
            time: 0,
            latest: 0,
            openmetrics: false,
            births: Births::default(),
            told: Told::default(),
            builder: LabelsBuilder::new(),
        }
    }

    /// Stores a page as scraped at `time`; `seconds` is how long the fetch took.
    ///
    /// # Errors
    ///
    /// [`Error::Page`] when a line is wrong: then nothing of the page is stored, its series have ended, and
    /// `up` is 0. [`Error::Store`] when the store takes nothing at all.
    pub fn page(
        &mut self,
        time: Millis,
        seconds: f64,
        page: &[u8],
        format: impl Into<PageFormat>,
    ) -> Result<Outcome, Error> {
        let format = format.into();
        self.cache.begin();
        self.clear();
        self.time = time;
        self.latest = time.saturating_add(AHEAD_MAX);
        self.openmetrics = format == PageFormat::Lines(Format::OpenMetrics);
        let mut outcome = Outcome::default();
        let mut pending = Vec::new();
        let read = match format {
            PageFormat::Lines(format) => self.read(page, format, &mut pending, &mut outcome),
            PageFormat::Protobuf => self.read_protobuf(page, &mut pending, &mut outcome),
        };
        if let Err(error) = read {
            self.end_all(time, seconds, Some(&outcome))?;
            return Err(error.into());
        }
        self.resolve(pending, &mut outcome);
        self.births.of_page(page, &self.cache, &mut self.batch.created);
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
        self.clear();
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

    fn clear(&mut self) {
        let Batch {
            samples,
            timed,
            histograms,
            created,
            exemplars,
        } = &mut self.batch;
        samples.clear();
        timed.clear();
        histograms.clear();
        created.clear();
        exemplars.clear();
        self.births.begin();
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
        let known = self.metadata.get(name);
        let mut metadata = known.cloned().unwrap_or_else(|| Metadata {
            kind: model::Kind::Unknown,
            help: String::new(),
            unit: String::new(),
        });
        match note {
            Entry::Help { help, .. } => metadata.help = cut(help, HELP_BYTES_MAX).to_owned(),
            Entry::Type { kind, .. } => metadata.kind = *kind,
            Entry::Unit { unit, .. } => metadata.unit = cut(unit, HELP_BYTES_MAX).to_owned(),
            Entry::Comment | Entry::Sample(_) => {}
        }
        // The map is shared with whoever shows it: only news may cost a copy.
        if known != Some(&metadata) {
            Arc::make_mut(&mut self.metadata).insert(name.to_owned(), metadata);
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
                if let Some(exemplar) = &sample.exemplar {
                    self.told.tell(id, exemplar, self.time, &mut self.batch.exemplars);
                }
                Ok(())
            }
            Line::Created(id) => {
                outcome.series_added += u64::from(shown.first && !shown.carried);
                self.put(id, Datum::Value(sample.value), time);
                self.births.told(id, sample.value);
                Ok(())
            }
            Line::Dropped => {
                outcome.dropped += 1;
                Ok(())
            }
            Line::Note | Line::Refused | Line::Pending => {
                let Some(labels) = self.unresolved(known, &sample.series, outcome)? else {
                    return Ok(());
                };
                pending.push(Pending {
                    known,
                    labels,
                    datum: Datum::Value(sample.value),
                    time,
                    exemplars: sample
                        .exemplar
                        .iter()
                        .filter_map(|e| exemplar::owned(e, self.time))
                        .collect(),
                    created: None,
                    is_created: self.openmetrics && sample.series.name().ends_with("_created"),
                });
                Ok(())
            }
        }
    }

    /// Adds what a series has to the batch.
    fn put(&mut self, id: SeriesId, datum: Datum, time: Option<Millis>) {
        match (datum, time) {
            (Datum::Value(value), None) => self.batch.samples.push((id, value)),
            (Datum::Value(value), Some(time)) => self.batch.timed.push((id, time, value)),
            (Datum::Histogram(histogram), time) => self.batch.histograms.push((id, time, histogram)),
        }
    }

    /// Samples and histograms of the batch.
    fn batch_len(&self) -> usize {
        self.batch.samples.len() + self.batch.timed.len() + self.batch.histograms.len()
    }

    /// The labels of a sample whose series the store has not been asked for, or has refused; `None` when it is left out.
    #[cold]
    fn unresolved(
        &mut self,
        known: Known,
        series: &Series<'_>,
        outcome: &mut Outcome,
    ) -> Result<Option<Labels>, Cause> {
        let Some(labels) = self.series_labels(series)? else {
            self.cache.set(known, Line::Dropped);
            outcome.dropped += 1;
            return Ok(None);
        };
        if let Some(culprit) = over_label_limits(&labels, &self.job.limits) {
            self.cache.set(known, Line::Refused);
            outcome.refused += 1;
            culprit.tell(outcome);
            return Ok(None);
        }
        self.cache.set(known, Line::Pending);
        Ok(Some(labels))
    }

    /// The labels that a series of the page has in the store; `None` when relabelling drops it.
    fn series_labels(&mut self, series: &Series<'_>) -> Result<Option<Labels>, Cause> {
        let mut pairs = series.distinct_pairs()?;
        self.even_out(&mut pairs);
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

    /// Bounds of histograms and quantiles of summaries have one form in the store, whatever the page's: `1.0`.
    fn even_out(&self, pairs: &mut [Pair<'_>]) {
        let Some(at) = pairs.iter().position(|(n, _)| n == "le" || n == "quantile") else {
            return;
        };
        let name = pairs
            .iter()
            .find(|(n, _)| n == METRIC_NAME)
            .map_or("", |(_, v)| v.as_ref());
        let (family, kind) = match pairs[at].0.as_ref() {
            "le" => (name.strip_suffix("_bucket").unwrap_or(name), model::Kind::Histogram),
            _ => (name, model::Kind::Summary),
        };
        if self.metadata.get(family).is_none_or(|m| m.kind != kind) {
            return;
        }
        if let Some(number) = exposition::parse_value(pairs[at].1.as_bytes()) {
            let mut written = String::new();
            exposition::put_openmetrics_float(number, &mut written);
            pairs[at].1 = Cow::Owned(written);
        }
    }

    /// Asks the store for the new series. Over the sample limit the known series stay and new ones are left out.
    fn resolve(&mut self, pending: Vec<Pending>, outcome: &mut Outcome) {
        let known = self.batch_len();
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
                    outcome.series_added += 1;
                    if let (true, Datum::Value(value)) = (new.is_created, &new.datum) {
                        self.cache.set(new.known, Line::Created(id));
                        self.births.told(id, *value);
                    } else {
                        self.cache.set(new.known, Line::Series(id));
                    }
                    if let Some(created) = new.created {
                        self.births.of_series(id, created, &mut self.batch.created);
                    }
                    self.batch.exemplars.extend(new.exemplars.into_iter().map(|e| (id, e)));
                    self.put(id, new.datum, new.time);
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
        outcome.kept = self.batch_len() as u64;
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
        let values = self.batch.samples.iter().map(|(id, _)| *id);
        let histograms = self.batch.histograms.iter().map(|(id, ..)| *id);
        let present: HashSet<SeriesId> = values.chain(histograms).collect();
        ended.retain(|id| !present.contains(id));
        ended.sort_unstable();
        ended.dedup();
        self.batch.samples.extend(ended.iter().map(|id| (*id, stale_nan())));
        ended.len() as u64
    }

    fn end_all(&mut self, time: Millis, seconds: f64, read: Option<&Outcome>) -> Result<(), Error> {
        self.clear();
        let ended = self.cache.fail(self.job.track_timestamps_staleness);
        self.mark_ended(ended);
        let scraped = read.map_or(0, |o| o.scraped);
        self.report
            .bad(&*self.appender, &mut self.batch, &self.job, seconds, scraped);
        let appended = self.appender.append(self.target, time, &self.batch)?;
        if !appended.unknown.is_empty() {
            self.clear();
            self.report.forget(&appended.unknown);
            self.report
                .bad(&*self.appender, &mut self.batch, &self.job, seconds, scraped);
            self.appender.append(self.target, time, &self.batch)?;
        }
        Ok(())
    }

    /// Appends once more what the store had forgotten, its labels made from the page again.
    fn again(
        &mut self,
        time: Millis,
        page: &[u8],
        format: PageFormat,
        unknown: &[SeriesId],
    ) -> Result<Appended, Error> {
        let values: HashMap<SeriesId, f64> = self.batch.samples.iter().copied().collect();
        let mut again = Again {
            unknown: unknown.iter().copied().collect(),
            batch: Batch::default(),
            renamed: HashMap::new(),
            new: HashSet::new(),
        };
        match format {
            PageFormat::Lines(format) => {
                let mut reader = Reader::new(page, format);
                while let Some(entry) = reader.next_entry()? {
                    if let Entry::Sample(sample) = entry {
                        self.once_more(&mut again, &sample.series, Datum::Value(sample.value), sample.time)?;
                    }
                }
            }
            PageFormat::Protobuf => self.protobuf_again(page, &mut again)?,
        }
        let mut batch = again.batch;
        self.report.again(&*self.appender, &again.unknown, &values, &mut batch);
        Ok(self.appender.append(self.target, time, &batch)?)
    }

    fn once_more(
        &mut self,
        again: &mut Again,
        series: &Series<'_>,
        datum: Datum,
        time: Option<Millis>,
    ) -> Result<(), Error> {
        let Some(known) = self.cache.find(series.text()) else {
            return Ok(());
        };
        let line = self.cache.line(known);
        let (Line::Series(old) | Line::Created(old)) = line else {
            return Ok(());
        };
        if !again.unknown.contains(&old) || again.new.contains(&old) {
            return Ok(());
        }
        let Ok(Some(labels)) = self.series_labels(series) else {
            return Ok(());
        };
        let id = match again.renamed.get(&old) {
            Some(id) => *id,
            None => self.appender.series(&labels)?,
        };
        again.renamed.insert(old, id);
        again.new.insert(id);
        let renamed = match line {
            Line::Created(_) => Line::Created(id),
            _ => Line::Series(id),
        };
        self.cache.set(known, renamed);
        let time = time.filter(|t| self.job.honor_timestamps && *t <= self.latest);
        match (datum, time) {
            (Datum::Value(value), None) => again.batch.samples.push((id, value)),
            (Datum::Value(value), Some(time)) => again.batch.timed.push((id, time, value)),
            (Datum::Histogram(histogram), time) => again.batch.histograms.push((id, time, histogram)),
        }
        Ok(())
    }
}

/// What is appended once more.
struct Again {
    unknown: HashSet<SeriesId>,
    batch: Batch,
    renamed: HashMap<SeriesId, SeriesId>,
    new: HashSet<SeriesId>,
}

/// Puts the page's labels and the target's together in `builder`.
///
/// Either the page wins where both have a label (an empty one too), or the target does and the page's label
/// moves to `exported_…`.
pub(crate) fn join_labels(page: &[Pair<'_>], target: &Labels, honor: bool, builder: &mut LabelsBuilder) {
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
