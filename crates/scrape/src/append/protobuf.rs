//! Pages in the protobuf format: the same cache and limits, histograms beside the samples.

use std::sync::Arc;

use exposition::{Cause, Item, NativeSample, Sample, Series, native, read_protobuf};
use model::Millis;
use model::histogram::Histogram;

use super::{Again, Datum, Ingest, Outcome, Pending, exemplar};
use crate::cache::{Known, Line};
use crate::error::Error;

impl Ingest {
    pub(super) fn read_protobuf(
        &mut self,
        page: &[u8],
        pending: &mut Vec<Pending>,
        outcome: &mut Outcome,
    ) -> Result<(), exposition::Error> {
        let forms = self.job.histograms;
        read_protobuf(page, forms, &mut |item| match item {
            Item::Note(note) => {
                self.remember(note);
                Ok(())
            }
            Item::Sample(sample, created) => self.proto_sample(sample, *created, pending, outcome),
            Item::Histogram(histogram) => self.histogram(histogram, pending, outcome),
        })
    }

    fn entry(&mut self, series: &Series<'_>) -> Option<(Known, Line)> {
        let text = series.text();
        match self.cache.find(text) {
            Some(known) => Some((known, self.cache.line(known))),
            None => Some((self.cache.add(text, Line::Refused)?, Line::Refused)),
        }
    }

    fn proto_sample(
        &mut self,
        sample: &Sample<'_>,
        created: Option<Millis>,
        pending: &mut Vec<Pending>,
        outcome: &mut Outcome,
    ) -> Result<(), Cause> {
        let Some((known, line)) = self.entry(&sample.series) else {
            return Ok(());
        };
        let before = pending.len();
        self.take(known, line, sample, pending, outcome)?;
        if let (Line::Series(id), Some(created)) = (line, created) {
            self.births.of_series(id, created, &mut self.batch.created);
        }
        if let Some(new) = pending.get_mut(before) {
            new.created = created;
        }
        Ok(())
    }

    fn histogram(
        &mut self,
        sample: &NativeSample<'_>,
        pending: &mut Vec<Pending>,
        outcome: &mut Outcome,
    ) -> Result<(), Cause> {
        outcome.scraped += 1;
        let Some((known, line)) = self.entry(&sample.series) else {
            return Ok(());
        };
        let time = if self.job.honor_timestamps { sample.time } else { None };
        let shown = self.cache.show(known, time.is_some());
        if time.is_some_and(|t| t > self.latest) {
            outcome.too_new += 1;
            return Ok(());
        }
        if !shown.first && time.is_none() && line != Line::Dropped {
            outcome.duplicates += 1;
            return Ok(());
        }
        match line {
            Line::Dropped => outcome.dropped += 1,
            Line::Series(id) | Line::Created(id) => {
                outcome.series_added += u64::from(shown.first && !shown.carried);
                self.put(id, Datum::Histogram(self.within_limits(&sample.histogram)?), time);
                if let Some(created) = sample.created {
                    self.births.of_series(id, created, &mut self.batch.created);
                }
                for exemplar in &sample.exemplars {
                    let exemplar = exemplar.borrowed();
                    self.batch
                        .exemplars
                        .extend(exemplar::owned(&exemplar, self.time).map(|e| (id, e)));
                }
            }
            Line::Note | Line::Refused | Line::Pending => {
                let histogram = self.within_limits(&sample.histogram)?;
                let Some(labels) = self.unresolved(known, &sample.series, outcome)? else {
                    return Ok(());
                };
                let exemplars = sample.exemplars.iter();
                pending.push(Pending {
                    known,
                    labels,
                    datum: Datum::Histogram(histogram),
                    time,
                    exemplars: exemplars
                        .filter_map(|e| exemplar::owned(&e.borrowed(), self.time))
                        .collect(),
                    created: sample.created,
                    is_created: false,
                });
            }
        }
        Ok(())
    }

    /// The histogram, made coarser where the job bounds its buckets.
    fn within_limits(&self, histogram: &Arc<Histogram>) -> Result<Arc<Histogram>, Cause> {
        let (most, factor) = (self.job.native_buckets_max, self.job.native_factor_min);
        if most == 0 && factor <= 1.0 {
            return Ok(Arc::clone(histogram));
        }
        let mut own = Histogram::clone(histogram);
        native::widen(&mut own, factor);
        if most > 0 && !native::fit(&mut own, most) {
            return Err(Cause::Rule(format!(
                "native_histogram_bucket_limit of {most} exceeded at the coarsest resolution"
            )));
        }
        Ok(Arc::new(own))
    }

    pub(super) fn protobuf_again(&mut self, page: &[u8], again: &mut Again) -> Result<(), Error> {
        let mut failed = None;
        let forms = self.job.histograms;
        read_protobuf(page, forms, &mut |item| {
            let done = match item {
                Item::Note(_) => Ok(()),
                Item::Sample(s, _) => self.once_more(again, &s.series, Datum::Value(s.value), s.time),
                Item::Histogram(h) => match self.within_limits(&h.histogram) {
                    Ok(histogram) => self.once_more(again, &h.series, Datum::Histogram(histogram), h.time),
                    Err(_) => Ok(()),
                },
            };
            if let Err(error) = done {
                failed.get_or_insert(error);
            }
            Ok(())
        })?;
        failed.map_or(Ok(()), Err)
    }
}
