//! What the two versions of remote write have in common, and where they differ.

use model::{Batch, Exemplar, Labels, LabelsBuilder, Millis, SeriesId};

use exposition::wire::{Wire, WireError};

use super::histogram;
use crate::body::Limits;
use crate::error::Error;

/// Where a series stands in the request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// A hash of its labels.
    pub hash: u128,
    /// Where its labels end.
    pub labels_end: usize,
    /// Whether all its labels stand there: senders write them first. Others are never known by hash.
    pub is_whole: bool,
}

/// What was found beside samples.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// When its counter began; 0 where nothing is told.
    pub created: Millis,
    /// Values that were refused, each with its reason.
    pub refused: Vec<String>,
}

/// A version of the request.
pub(super) trait Dialect<'a> {
    /// Walks the series.
    type Series;
    /// Memory for [`Dialect::place`].
    type Ids;

    fn ids() -> Self::Ids;

    fn series(&self) -> Self::Series;

    /// The next series as its message.
    fn next(&self, series: &mut Self::Series) -> Result<Option<&'a [u8]>, Error>;

    /// The hash of its labels.
    fn place(&self, message: &'a [u8], ids: &mut Self::Ids) -> Result<Place, Error>;

    /// Its labels, judged.
    fn labels(&self, message: &'a [u8], limits: &Limits) -> Result<Labels, String>;

    /// Adds its samples, histograms and examples to the batch.
    fn values(&self, message: &'a [u8], place: &Place, id: SeriesId, batch: &mut Batch) -> Result<Found, Error>;

    /// Remembers what is said of a metric that is new.
    fn metadata(&self, _message: &'a [u8], _labels: &Labels) -> Result<(), Error> {
        Ok(())
    }
}

/// The least that a label's message needs: its name and value.
pub(super) fn pair(message: &[u8]) -> Result<(&str, &str), String> {
    let (mut name, mut value) = ("", "");
    let mut wire = Wire::new(message);
    while let Some((number, field)) = wire.field().map_err(|e| e.to_string())? {
        let slot = match number {
            1 => &mut name,
            2 => &mut value,
            _ => continue,
        };
        *slot = field.text().ok_or("a label is not valid UTF-8")?;
    }
    Ok((name, value))
}

/// A judged label set, of pairs in any order.
pub(super) fn judged<'p>(pairs: &[(&'p str, &'p str)], limits: &Limits) -> Result<Labels, String> {
    if pairs.len() > limits.labels {
        return Err(format!(
            "a series has {} labels, at most {} are taken",
            pairs.len(),
            limits.labels
        ));
    }
    let mut builder = LabelsBuilder::new();
    for (name, value) in pairs {
        if name.is_empty() {
            return Err("a label has no name".to_owned());
        }
        if name.len().max(value.len()) > limits.label_bytes {
            return Err(format!(
                "a label's name or value has more than {} bytes",
                limits.label_bytes
            ));
        }
        if builder.get(name).is_some() {
            return Err(format!("label {name:?} is there twice"));
        }
        builder.set(name, value);
    }
    let labels = builder.build();
    if labels.name().is_empty() {
        return Err(format!("series {labels} has no metric name"));
    }
    Ok(labels)
}

/// A sample's value, time and, where told, the moment its counter began.
#[inline]
pub(super) fn sample(message: &[u8]) -> Result<(Millis, f64, Millis), WireError> {
    let (mut value, mut time, mut created) = (0.0, 0, 0);
    let mut wire = Wire::new(message);
    while let Some((number, field)) = wire.field()? {
        match number {
            1 => value = field.double(),
            2 => time = field.signed(),
            3 => created = field.signed(),
            _ => {}
        }
    }
    Ok((time, value, created))
}

/// Characters of an example's labels together.
const EXEMPLAR_CHARS_MAX: usize = 128;

/// Adds an example, unless its labels are longer than the standard allows.
pub(super) fn put_exemplar(
    batch: &mut Batch,
    id: SeriesId,
    labels: &[(&str, &str)],
    value: f64,
    time: Millis,
    found: &mut Found,
) {
    let chars: usize = labels.iter().map(|(n, v)| n.chars().count() + v.chars().count()).sum();
    if chars > EXEMPLAR_CHARS_MAX {
        let reason = format!("an exemplar's labels have {chars} characters, at most {EXEMPLAR_CHARS_MAX} are taken");
        found.refused.push(reason);
        return;
    }
    let labels = Labels::from_pairs(labels.iter().copied());
    batch.exemplars.push((id, Exemplar { labels, value, time }));
}

/// Adds a native histogram, if it adds up.
pub(super) fn put_histogram(batch: &mut Batch, id: SeriesId, message: &[u8], found: &mut Found) -> Result<(), Error> {
    match histogram::read(message)? {
        Ok(read) => {
            if read.created > 0 {
                found.created = read.created;
            }
            batch
                .histograms
                .push((id, Some(read.time), std::sync::Arc::new(read.histogram)));
        }
        Err(reason) => found.refused.push(reason),
    }
    Ok(())
}
