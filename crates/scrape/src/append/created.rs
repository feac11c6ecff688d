//! When counters began: what a page's `_created` lines say, told to the store once.
//!
//! A counter that is seen first with the value 5 has grown by 5 since it was made, and `increase()` shall know. So the
//! store gets a zero at the moment of creation. The moment hardly ever changes; only where it does the page is read
//! a second time, to find the series that it speaks of: those of the same family with the same labels, less the one
//! that tells buckets or quantiles apart. The `_created` series itself is stored as any other, as the field does.

use std::collections::HashMap;

use exposition::{Entry, Format, Reader, Series};
use model::{Kind, METRIC_NAME, Millis, SeriesId};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::cache::{Cache, Line};

/// The moments known of one target's counters.
#[derive(Debug, Default)]
pub(super) struct Births {
    /// By the series that said it.
    known: HashMap<SeriesId, Millis>,
    /// Series of this page that say something new.
    changed: HashMap<SeriesId, Millis>,
    said: usize,
}

impl Births {
    /// A page begins.
    pub(super) fn begin(&mut self) {
        // Series come and go; a page that says it all anew costs a second reading.
        if self.known.len() > 2 * self.said + 64 {
            self.known.clear();
        }
        self.said = 0;
        self.changed.clear();
    }

    /// A `_created` line: seconds since the epoch.
    pub(super) fn told(&mut self, id: SeriesId, seconds: f64) {
        if !(seconds > 0.0 && seconds < 1e12) {
            return;
        }
        #[expect(clippy::cast_possible_truncation, reason = "bounded above")]
        let created = (seconds * 1000.0) as Millis;
        self.said += 1;
        if self.known.get(&id) != Some(&created) {
            self.changed.insert(id, created);
        }
    }

    /// A format that says it beside the value.
    pub(super) fn of_series(&mut self, id: SeriesId, created: Millis, out: &mut Vec<(SeriesId, Millis)>) {
        self.said += 1;
        if created > 0 && self.known.insert(id, created) != Some(created) {
            out.push((id, created));
        }
    }

    /// Finds the counters that the new `_created` lines of an OpenMetrics page speak of.
    pub(super) fn of_page(&mut self, page: &[u8], cache: &Cache, out: &mut Vec<(SeriesId, Millis)>) {
        if self.changed.is_empty() {
            return;
        }
        let mut groups: HashMap<u64, Millis> = HashMap::new();
        let mut counters: Vec<(u64, SeriesId)> = Vec::new();
        let mut family = (String::new(), Kind::Unknown);
        let mut reader = Reader::new(page, Format::OpenMetrics);
        // The page was read to its end before, so there is no error to meet.
        while let Ok(Some(entry)) = reader.next_entry() {
            let series = match entry {
                Entry::Type { name, kind } => {
                    family = (name.into_owned(), kind);
                    continue;
                }
                Entry::Sample(sample) => sample.series,
                _ => continue,
            };
            if !matches!(family.1, Kind::Counter | Kind::Histogram | Kind::Summary) {
                continue;
            }
            let Some(known) = cache.find(series.text()) else {
                continue;
            };
            match cache.line(known) {
                Line::Series(id) if is_of(&series, &family.0) => counters.push((group(&series, &family.0), id)),
                Line::Created(id) => {
                    if let Some(created) = self.changed.get(&id) {
                        groups.insert(group(&series, &family.0), *created);
                    }
                }
                _ => {}
            }
        }
        let began = |(group, id): (u64, SeriesId)| groups.get(&group).map(|created| (id, *created));
        out.extend(counters.into_iter().filter_map(began));
        self.known.extend(self.changed.drain());
    }
}

/// Whether a series counts for the family: its quantiles do not, nor does another metric.
fn is_of(series: &Series<'_>, family: &str) -> bool {
    let name = series.name();
    let suffix = name.strip_prefix(family);
    suffix.is_some_and(|s| matches!(s, "_total" | "_count" | "_sum" | "_bucket"))
}

/// A hash of the family and the labels that the samples of one metric have in common.
fn group(series: &Series<'_>, family: &str) -> u64 {
    let pairs = series
        .pairs()
        .filter(|(n, _)| !matches!(n.as_ref(), METRIC_NAME | "le" | "quantile"));
    // Labels may stand in another order on another line.
    let sum = pairs.fold(0_u64, |sum, (name, value)| {
        let mut hasher = Xxh3::new();
        hasher.update(name.as_bytes());
        hasher.update(&[0xff]);
        hasher.update(value.as_bytes());
        sum.wrapping_add(hasher.digest())
    });
    xxh3_64(family.as_bytes()) ^ sum
}
