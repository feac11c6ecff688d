//! Events that several sources tell of, each counted once.
//!
//! Every counted event is a place that each source may claim once, within five seconds of the event's own time, whenever
//! it is delivered. An event that finds a place to claim was counted before; one that finds none is new. So over any five
//! seconds the count is the largest of the sources', never their sum.
//!
//! Places that lie close together are kept as one with a count: a storm takes no more memory than a drizzle.

use std::collections::VecDeque;

use model::Millis;

use super::XidSource;

/// Sources tell of one error within this span, in milliseconds.
const TOGETHER_MS: Millis = 5_000;

/// Places whose times differ by no more are kept as one.
const CLOSE_MS: Millis = 250;

/// Places of one counter; together they reach back twice the span above in a storm, and for as long as it takes in a calm.
const PLACES_MAX: usize = 48;

const SOURCES: usize = 3;

/// The places of one counter.
#[derive(Debug, Default)]
pub struct Join {
    places: VecDeque<Place>,
}

/// Events of about one moment.
#[derive(Debug)]
struct Place {
    time: Millis,
    count: u64,
    /// How many of them each source has claimed.
    claimed: [u64; SOURCES],
}

impl Join {
    /// Whether an event of this source at this time, by its own clock, was not counted before.
    pub fn is_new(&mut self, source: XidSource, time: Millis) -> bool {
        let source = source as usize;
        let is_free =
            |place: &&mut Place| (place.time - time).abs() <= TOGETHER_MS && place.claimed[source] < place.count;
        if let Some(place) = self.places.iter_mut().find(is_free) {
            place.claimed[source] += 1;
            return false;
        }
        let is_close = |place: &&mut Place| (place.time - time).abs() <= CLOSE_MS;
        if let Some(place) = self.places.iter_mut().rev().find(is_close) {
            place.count += 1;
            place.claimed[source] += 1;
            return true;
        }
        if self.places.len() == PLACES_MAX {
            self.places.pop_front();
        }
        let mut claimed = [0; SOURCES];
        claimed[source] = 1;
        self.places.push_back(Place {
            time,
            count: 1,
            claimed,
        });
        true
    }
}
