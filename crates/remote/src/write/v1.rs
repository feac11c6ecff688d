//! Version 1.0: labels as texts in every series, metadata beside the series.

use exposition::wire::{Field, Wire};
use model::{Batch, Kind, Labels, SeriesId};
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::dialect::{Dialect, Found, Place, judged, pair, put_exemplar, put_histogram, sample};
use crate::body::Limits;
use crate::error::Error;
use crate::memory::Sayings;

/// Keeps the hashes of the two versions apart.
const SEED: u64 = 1;

/// The key byte of a label.
const LABEL: u8 = 1 << 3 | 2;

pub(super) struct Request<'a> {
    plain: &'a [u8],
    sayings: &'a Sayings,
}

impl<'a> Request<'a> {
    pub const fn new(plain: &'a [u8], sayings: &'a Sayings) -> Self {
        Self { plain, sayings }
    }

    fn say(&self, message: &[u8]) -> Result<(), Error> {
        let (mut kind, mut name, mut help, mut unit) = (0, "", "", "");
        let mut wire = Wire::new(message);
        while let Some((number, field)) = wire.field()? {
            match number {
                1 => kind = field.unsigned(),
                2 => name = field.text().unwrap_or(""),
                4 => help = field.text().unwrap_or(""),
                5 => unit = field.text().unwrap_or(""),
                _ => {}
            }
        }
        self.sayings.say(name, kind_of(kind), help, unit);
        Ok(())
    }
}

/// The types of both versions.
pub(super) const fn kind_of(number: u64) -> Kind {
    match number {
        1 => Kind::Counter,
        2 => Kind::Gauge,
        3 => Kind::Histogram,
        4 => Kind::GaugeHistogram,
        5 => Kind::Summary,
        6 => Kind::Info,
        7 => Kind::StateSet,
        _ => Kind::Unknown,
    }
}

impl<'a> Dialect<'a> for Request<'a> {
    type Series = Wire<'a>;
    type Ids = ();

    fn ids() {}

    fn series(&self) -> Wire<'a> {
        Wire::new(self.plain)
    }

    fn next(&self, series: &mut Wire<'a>) -> Result<Option<&'a [u8]>, Error> {
        while let Some((number, field)) = series.field()? {
            match (number, field) {
                (1, Field::Bytes(message)) => return Ok(Some(message)),
                (3, Field::Bytes(message)) => self.say(message)?,
                _ => {}
            }
        }
        Ok(None)
    }

    #[inline]
    fn place(&self, message: &'a [u8], (): &mut ()) -> Result<Place, Error> {
        let mut labels_end = 0;
        while message.get(labels_end) == Some(&LABEL) {
            let mut wire = Wire::new(&message[labels_end + 1..]);
            wire.delimited()?;
            labels_end += 1 + wire.at();
        }
        let mut wire = Wire::new(&message[labels_end..]);
        let mut is_whole = true;
        // Nearly always a sample and the end; a label behind it makes the hash worthless.
        while is_whole && !wire.is_done() {
            is_whole = wire.field()?.is_none_or(|(number, _)| number != 1);
        }
        Ok(Place {
            hash: xxh3_128_with_seed(&message[..labels_end], SEED),
            labels_end,
            is_whole,
        })
    }

    fn labels(&self, message: &'a [u8], limits: &Limits) -> Result<Labels, String> {
        let mut pairs = Vec::new();
        let mut wire = Wire::new(message);
        while let Some((number, field)) = wire.field().map_err(|e| e.to_string())? {
            if number == 1 && pairs.len() <= limits.labels {
                pairs.push(pair(field.bytes())?);
            }
        }
        judged(&pairs, limits)
    }

    #[inline]
    fn values(&self, message: &'a [u8], place: &Place, id: SeriesId, batch: &mut Batch) -> Result<Found, Error> {
        let mut found = Found::default();
        let mut wire = Wire::new(&message[place.labels_end..]);
        while let Some((number, field)) = wire.field()? {
            match number {
                2 => {
                    let (time, value, _) = sample(field.bytes())?;
                    batch.timed.push((id, time, value));
                }
                3 => exemplar(field.bytes(), id, batch, &mut found)?,
                4 => put_histogram(batch, id, field.bytes(), &mut found)?,
                _ => {}
            }
        }
        Ok(found)
    }
}

fn exemplar(message: &[u8], id: SeriesId, batch: &mut Batch, found: &mut Found) -> Result<(), Error> {
    let (mut pairs, mut value, mut time) = (Vec::new(), 0.0, 0);
    let mut wire = Wire::new(message);
    while let Some((number, field)) = wire.field()? {
        match number {
            1 => pairs.push(pair(field.bytes()).map_err(Error::Broken)?),
            2 => value = field.double(),
            3 => time = field.signed(),
            _ => {}
        }
    }
    put_exemplar(batch, id, &pairs, value, time, found);
    Ok(())
}
