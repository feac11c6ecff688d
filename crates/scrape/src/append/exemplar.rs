//! Examples of observations: each told to the store once, however often the page shows it.

use std::collections::HashMap;

use exposition::Exemplar;
use model::{Millis, SeriesId};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Characters of an example's labels together: the standard's bound.
const CHARS_MAX: usize = 128;

/// Series of one target whose last example is remembered.
const REMEMBERED_MAX: usize = 100_000;

/// The last example of each series, as a hash.
#[derive(Debug, Default)]
pub(super) struct Told(HashMap<SeriesId, u64>);

impl Told {
    /// Adds an example that the last page did not have.
    #[cold]
    pub(super) fn tell(
        &mut self,
        id: SeriesId,
        exemplar: &Exemplar<'_>,
        now: Millis,
        out: &mut Vec<(SeriesId, model::Exemplar)>,
    ) {
        let seed = exemplar.value.to_bits() ^ exemplar.time.unwrap_or(0).cast_unsigned().rotate_left(17);
        let hash = xxh3_64_with_seed(exemplar.text(), seed);
        if self.0.len() >= REMEMBERED_MAX {
            self.0.clear();
        }
        if self.0.insert(id, hash) != Some(hash) {
            out.extend(owned(exemplar, now).map(|e| (id, e)));
        }
    }
}

/// The example for the store; `None` when its labels are longer than the standard allows.
pub(super) fn owned(exemplar: &Exemplar<'_>, now: Millis) -> Option<model::Exemplar> {
    let labels = exemplar.labels();
    let chars: usize = labels.iter().map(|(n, v)| n.chars().count() + v.chars().count()).sum();
    (chars <= CHARS_MAX).then(|| model::Exemplar {
        labels,
        value: exemplar.value,
        time: exemplar.time.unwrap_or(now),
    })
}
