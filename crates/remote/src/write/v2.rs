//! Version 2.0: texts stand once in the request, series name them by number; metadata belongs to its series.

use exposition::wire::{Field, Wire, repeated_varint};
use model::{Batch, Kind, Labels, SeriesId};
use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

use super::dialect::{Dialect, Found, Place, judged, put_exemplar, put_histogram, sample};
use super::v1::kind_of;
use crate::body::Limits;
use crate::error::Error;
use crate::memory::Sayings;

const SEED: u64 = 2;

/// The key byte of the packed list of label numbers.
const LABELS: u8 = 1 << 3 | 2;

/// Texts of a request: far beyond any sender's, and a bound on memory.
const SYMBOLS_MAX: usize = 1_000_000;

pub(super) struct Request<'a> {
    plain: &'a [u8],
    symbols: Vec<&'a [u8]>,
    hashes: Vec<u128>,
    sayings: &'a Sayings,
}

impl<'a> Request<'a> {
    /// Gathers the request's texts.
    pub fn new(plain: &'a [u8], sayings: &'a Sayings) -> Result<Self, Error> {
        let (mut symbols, mut hashes) = (Vec::new(), Vec::new());
        let mut wire = Wire::new(plain);
        while let Some((number, field)) = wire.field()? {
            if let (4, Field::Bytes(text)) = (number, field) {
                if symbols.len() >= SYMBOLS_MAX {
                    return Err(Error::Broken(format!("more than {SYMBOLS_MAX} symbols")));
                }
                symbols.push(text);
                hashes.push(xxh3_128(text));
            }
        }
        if symbols.first().is_some_and(|first| !first.is_empty()) {
            return Err(Error::Broken("the first symbol is not the empty one".to_owned()));
        }
        Ok(Self {
            plain,
            symbols,
            hashes,
            sayings,
        })
    }

    fn symbol(&self, number: u64) -> Result<&'a str, String> {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        let text = self.symbols.get(at);
        let text = text.ok_or_else(|| format!("symbol {number} of {}", self.symbols.len()))?;
        std::str::from_utf8(text).map_err(|_| "a label is not valid UTF-8".to_owned())
    }

    fn pairs(&self, field: Field<'a>, most: usize) -> Result<Vec<(&'a str, &'a str)>, String> {
        let mut numbers = Vec::new();
        repeated_varint(field, |n| {
            if numbers.len() <= 2 * most {
                numbers.push(n);
            }
        })
        .map_err(|e| e.to_string())?;
        let (pairs, rest) = numbers.as_chunks::<2>();
        if !rest.is_empty() && pairs.len() < most {
            return Err("an odd count of label references".to_owned());
        }
        pairs
            .iter()
            .map(|[name, value]| Ok((self.symbol(*name)?, self.symbol(*value)?)))
            .collect()
    }
}

impl<'a> Dialect<'a> for Request<'a> {
    type Series = Wire<'a>;
    type Ids = Vec<u8>;

    fn ids() -> Vec<u8> {
        Vec::with_capacity(1024)
    }

    fn series(&self) -> Wire<'a> {
        Wire::new(self.plain)
    }

    fn next(&self, series: &mut Wire<'a>) -> Result<Option<&'a [u8]>, Error> {
        while let Some((number, field)) = series.field()? {
            if let (5, Field::Bytes(message)) = (number, field) {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    #[inline]
    fn place(&self, message: &'a [u8], ids: &mut Vec<u8>) -> Result<Place, Error> {
        ids.clear();
        if message.first() != Some(&LABELS) {
            return Ok(Place {
                hash: 0,
                labels_end: 0,
                is_whole: false,
            });
        }
        let mut wire = Wire::new(&message[1..]);
        let list = wire.delimited()?;
        let labels_end = 1 + wire.at();
        let mut numbers = Wire::new(list);
        let mut is_whole = true;
        while !numbers.is_done() {
            let at = usize::try_from(numbers.varint()?).unwrap_or(usize::MAX);
            match self.hashes.get(at) {
                Some(hash) => ids.extend_from_slice(&hash.to_le_bytes()),
                None => is_whole = false,
            }
        }
        Ok(Place {
            hash: xxh3_128_with_seed(ids, SEED),
            labels_end,
            is_whole,
        })
    }

    fn labels(&self, message: &'a [u8], limits: &Limits) -> Result<Labels, String> {
        let mut pairs = Vec::new();
        let mut wire = Wire::new(message);
        while let Some((number, field)) = wire.field().map_err(|e| e.to_string())? {
            if number == 1 && pairs.len() <= limits.labels {
                pairs.extend(self.pairs(field, limits.labels + 1)?);
            }
        }
        judged(&pairs, limits)
    }

    #[inline]
    fn values(&self, message: &'a [u8], place: &Place, id: SeriesId, batch: &mut Batch) -> Result<Found, Error> {
        let mut found = Found::default();
        let mut is_mixed = (false, false);
        let mut wire = Wire::new(&message[place.labels_end..]);
        while let Some((number, field)) = wire.field()? {
            match number {
                2 => {
                    let (time, value, created) = sample(field.bytes())?;
                    if created > 0 {
                        found.created = created;
                    }
                    is_mixed.0 = true;
                    batch.timed.push((id, time, value));
                }
                3 => {
                    is_mixed.1 = true;
                    put_histogram(batch, id, field.bytes(), &mut found)?;
                }
                4 => self.exemplar(field.bytes(), id, batch, &mut found)?,
                6 => found.created = field.signed(),
                _ => {}
            }
        }
        if is_mixed == (true, true) {
            found
                .refused
                .push("a series has both samples and histograms: both were taken".to_owned());
        }
        Ok(found)
    }

    fn metadata(&self, message: &'a [u8], labels: &Labels) -> Result<(), Error> {
        let mut wire = Wire::new(message);
        while let Some((number, field)) = wire.field()? {
            if number != 5 {
                continue;
            }
            let (mut kind, mut help, mut unit) = (0, 0, 0);
            let mut wire = Wire::new(field.bytes());
            while let Some((number, field)) = wire.field()? {
                match number {
                    1 => kind = field.unsigned(),
                    3 => help = field.unsigned(),
                    4 => unit = field.unsigned(),
                    _ => {}
                }
            }
            let text = |number| self.symbol(number).unwrap_or("");
            let kind = kind_of(kind);
            self.sayings
                .say(family(labels.name(), kind), kind, text(help), text(unit));
        }
        Ok(())
    }
}

/// The family of a series: its name less what tells the series of a histogram or summary apart.
fn family(name: &str, kind: Kind) -> &str {
    if !matches!(kind, Kind::Histogram | Kind::Summary | Kind::GaugeHistogram) {
        return name;
    }
    let suffixes = ["_bucket", "_count", "_sum", "_gcount", "_gsum"];
    suffixes.iter().find_map(|s| name.strip_suffix(s)).unwrap_or(name)
}

impl<'a> Request<'a> {
    fn exemplar(&self, message: &'a [u8], id: SeriesId, batch: &mut Batch, found: &mut Found) -> Result<(), Error> {
        let (mut pairs, mut value, mut time) = (Vec::new(), 0.0, 0);
        let mut wire = Wire::new(message);
        while let Some((number, field)) = wire.field()? {
            match number {
                1 => match self.pairs(field, 64) {
                    Ok(list) => pairs.extend(list),
                    Err(reason) => {
                        found.refused.push(reason);
                        return Ok(());
                    }
                },
                2 => value = field.double(),
                3 => time = field.signed(),
                _ => {}
            }
        }
        put_exemplar(batch, id, &pairs, value, time, found);
        Ok(())
    }
}
