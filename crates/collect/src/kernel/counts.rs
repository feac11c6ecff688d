//! Counters whose label values are not known beforehand.

use std::collections::BTreeMap;

/// Counters by key. A key that was not known shows a zero at its first sight and its count from then on, so that
/// `increase()` sees the first event too.
#[derive(Debug)]
pub struct FirstSightZero<K> {
    counts: BTreeMap<K, Count>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    value: f64,
    is_shown: bool,
}

impl<K> Default for FirstSightZero<K> {
    fn default() -> Self {
        Self {
            counts: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Clone> FirstSightZero<K> {
    /// Adds to a counter, made at its first use.
    pub fn add(&mut self, key: K, by: f64) {
        self.counts.entry(key).or_default().value += by;
    }

    /// Makes a counter with the value zero, if there is none yet.
    pub fn expect(&mut self, key: K) {
        self.counts.entry(key).or_default();
    }

    pub fn contains(&self, key: &K) -> bool {
        self.counts.contains_key(key)
    }

    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether anything was counted.
    pub fn any(&self) -> bool {
        self.counts.values().any(|count| count.value > 0.0)
    }

    /// The counters as they are to be shown now.
    pub fn collect(&mut self) -> Vec<(K, f64)> {
        let show = |count: &mut Count| {
            let first = !std::mem::replace(&mut count.is_shown, true);
            if first { 0.0 } else { count.value }
        };
        self.counts
            .iter_mut()
            .map(|(key, count)| (key.clone(), show(count)))
            .collect()
    }

    /// The counters as they are, without the zero of a first sight; with `shown` the pages leave that zero out too.
    pub fn now(&mut self, shown: bool) -> Vec<(K, f64)> {
        let show = |(key, count): (&K, &mut Count)| {
            count.is_shown |= shown;
            (key.clone(), count.value)
        };
        self.counts.iter_mut().map(show).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_counter_shows_a_zero_first() {
        let mut counts = FirstSightZero::default();
        counts.expect("known");
        assert_eq!(counts.collect(), [("known", 0.0)]);
        counts.add("known", 1.0);
        counts.add("new", 2.0);
        assert_eq!(counts.collect(), [("known", 1.0), ("new", 0.0)]);
        assert_eq!(counts.collect(), [("known", 1.0), ("new", 2.0)]);
    }
}
