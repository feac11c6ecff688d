//! Examples of observations: the latest ones in memory, bounded in number.
//!
//! A ring: the newest takes the place of the oldest, whichever series they belong to. They are in the log, so a
//! restart brings them back; blocks have none.
//!
//! Invariant: within a series examples ascend in time; one that is repeated is kept once.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Mutex;

use model::{Exemplar, Labels, Matcher, Millis, SeriesExemplars};

use crate::sync::lock;

/// The most characters of an exemplar's labels, names and values together, as OpenMetrics limits them.
pub const LABEL_CHARS_MAX: usize = 128;

/// See the module.
#[derive(Debug)]
pub struct Exemplars {
    ring: Mutex<Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    most: usize,
    list: VecDeque<(Labels, Exemplar)>,
    /// The newest of each series in the ring, and how many it has there.
    newest: HashMap<Labels, (Exemplar, usize)>,
    refused: u64,
}

impl Exemplars {
    /// A ring of at most `most`; zero keeps none.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            ring: Mutex::new(Ring {
                most,
                ..Ring::default()
            }),
        }
    }

    /// Whether [`Exemplars::push`] would take it. A refusal other than a repetition is counted.
    pub fn takes(&self, series: &Labels, exemplar: &Exemplar) -> bool {
        let mut ring = lock(&self.ring);
        if ring.most == 0 {
            return false;
        }
        let chars = |l: &Labels| {
            l.iter()
                .map(|(n, v)| n.chars().count() + v.chars().count())
                .sum::<usize>()
        };
        let (takes, repeated) = ring.judge(series, exemplar);
        let takes = takes && chars(&exemplar.labels) <= LABEL_CHARS_MAX;
        ring.refused += u64::from(!takes && !repeated);
        takes
    }

    /// Adds an example that is newer than those of its series.
    pub fn push(&self, series: &Labels, exemplar: &Exemplar) {
        let mut ring = lock(&self.ring);
        if ring.most == 0 || !ring.judge(series, exemplar).0 {
            return;
        }
        while ring.list.len() >= ring.most {
            ring.drop_oldest();
        }
        // The labels that are there already are used again.
        let held = ring
            .newest
            .get_key_value(series)
            .map_or(series, |(labels, _)| labels)
            .clone();
        ring.list.push_back((held.clone(), exemplar.clone()));
        let newest = ring.newest.entry(held).or_insert_with(|| (exemplar.clone(), 0));
        newest.0 = exemplar.clone();
        newest.1 += 1;
    }

    /// Examples of the series that pass any of the `selectors`, sorted by labels.
    #[must_use]
    pub fn select(&self, selectors: &[Vec<Matcher>], mint: Millis, maxt: Millis) -> Vec<SeriesExemplars> {
        let passes = |labels: &Labels| {
            let all = |matchers: &Vec<Matcher>| matchers.iter().all(|m| m.matches(labels.get(&m.name).unwrap_or("")));
            selectors.iter().any(all)
        };
        let ring = lock(&self.ring);
        let mut found: HashMap<&Labels, Vec<Exemplar>> = ring
            .newest
            .keys()
            .filter(|l| passes(l))
            .map(|l| (l, Vec::new()))
            .collect();
        for (labels, exemplar) in &ring.list {
            if (mint..=maxt).contains(&exemplar.time)
                && let Some(list) = found.get_mut(labels)
            {
                list.push(exemplar.clone());
            }
        }
        let mut found: Vec<SeriesExemplars> = found
            .into_iter()
            .filter(|(_, exemplars)| !exemplars.is_empty())
            .map(|(labels, exemplars)| SeriesExemplars {
                labels: labels.clone(),
                exemplars,
            })
            .collect();
        found.sort_by(|a, b| a.labels.cmp(&b.labels));
        found
    }

    /// Forgets the examples of these series in a span of time.
    pub fn delete(&self, series: &HashSet<Labels>, mint: Millis, maxt: Millis) {
        let mut ring = lock(&self.ring);
        let all = std::mem::take(&mut ring.list);
        ring.newest.clear();
        for (labels, exemplar) in all {
            if (mint..=maxt).contains(&exemplar.time) && series.contains(&labels) {
                continue;
            }
            let newest = ring
                .newest
                .entry(labels.clone())
                .or_insert_with(|| (exemplar.clone(), 0));
            newest.0 = exemplar.clone();
            newest.1 += 1;
            ring.list.push_back((labels, exemplar));
        }
    }

    /// All there are, oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<(Labels, Exemplar)> {
        lock(&self.ring).list.iter().cloned().collect()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.ring).list.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many were refused since the start: out of order, or with labels that are too long.
    #[must_use]
    pub fn refused(&self) -> u64 {
        lock(&self.ring).refused
    }
}

impl Ring {
    /// Whether it is taken, and whether it is there already.
    fn judge(&self, series: &Labels, exemplar: &Exemplar) -> (bool, bool) {
        match self.newest.get(series) {
            None => (true, false),
            Some((last, _)) => {
                let same_value = last.value.to_bits() == exemplar.value.to_bits();
                let repeated = last.time == exemplar.time && same_value && last.labels == exemplar.labels;
                (!repeated && exemplar.time >= last.time, repeated)
            }
        }
    }

    fn drop_oldest(&mut self) {
        let Some((labels, _)) = self.list.pop_front() else {
            return;
        };
        if let Some((_, count)) = self.newest.get_mut(&labels) {
            *count -= 1;
            if *count == 0 {
                self.newest.remove(&labels);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str) -> Labels {
        Labels::from_pairs([("__name__", name)])
    }

    fn exemplar(time: Millis, trace: &str) -> Exemplar {
        Exemplar {
            labels: Labels::from_pairs([("trace_id", trace)]),
            value: 1.0,
            time,
        }
    }

    #[track_caller]
    fn check(most: usize, pushed: &[(&str, Millis, &str)], want: &[(&str, &[Millis])]) {
        let ring = Exemplars::new(most);
        for (name, time, trace) in pushed {
            if ring.takes(&series(name), &exemplar(*time, trace)) {
                ring.push(&series(name), &exemplar(*time, trace));
            }
        }
        let found = ring.select(&[vec![]], Millis::MIN, Millis::MAX);
        let times = |s: &SeriesExemplars| s.exemplars.iter().map(|e| e.time).collect::<Vec<_>>();
        let got: Vec<(String, Vec<Millis>)> = found.iter().map(|s| (s.labels.name().to_owned(), times(s))).collect();
        let want: Vec<(String, Vec<Millis>)> = want.iter().map(|(n, t)| ((*n).to_owned(), t.to_vec())).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn they_ascend_within_a_series_and_repetitions_are_kept_once() {
        check(
            9,
            &[("a", 1, "x"), ("a", 1, "x"), ("a", 1, "y"), ("a", 0, "z")],
            &[("a", &[1, 1])],
        );
        check(9, &[("b", 5, "x"), ("a", 1, "x")], &[("a", &[1]), ("b", &[5])]);
    }

    #[test]
    fn the_newest_take_the_place_of_the_oldest() {
        check(2, &[("a", 1, "x"), ("b", 1, "x"), ("b", 2, "x")], &[("b", &[1, 2])]);
        check(0, &[("a", 1, "x")], &[]);
    }

    #[test]
    fn labels_that_are_too_long_are_refused_and_counted() {
        let ring = Exemplars::new(5);
        assert!(ring.takes(&series("a"), &exemplar(1, &"x".repeat(120))));
        assert!(!ring.takes(&series("a"), &exemplar(1, &"x".repeat(121))));
        assert_eq!(ring.refused(), 1);
    }

    #[test]
    fn a_deletion_takes_those_of_its_span() {
        let ring = Exemplars::new(5);
        for (name, time) in [("a", 1), ("a", 2), ("b", 1)] {
            ring.push(&series(name), &exemplar(time, "x"));
        }
        ring.delete(&HashSet::from([series("a")]), 2, 9);
        assert_eq!(ring.all().len(), 2);
        ring.push(&series("a"), &exemplar(1, "y"));
        assert_eq!(ring.len(), 3, "what was deleted no longer refuses");
    }
}
