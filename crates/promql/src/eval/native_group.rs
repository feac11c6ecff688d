//! `sum` and `avg` of native histograms, beside what the same groups make of numbers.

use std::sync::Arc;

use model::text::Span;
use model::{Histogram, ResetHint};

use super::note::{Joining, Notes};
use super::series::{ABSENT, Natives, Series, is_present};
use crate::native::{Incompatible, Mean, Met, Total};

/// What is remembered of the histograms of a group at a step.
struct Group {
    joined: Joined,
    /// Whether one began with a reset, and one followed without.
    seen: (bool, bool),
    /// Whether exponential and custom buckets met: there is no result then.
    broken: bool,
}

/// The histograms so far.
enum Joined {
    Sum(Total),
    Mean(Mean),
}

impl Joined {
    fn add(&mut self, histogram: &Histogram) -> Result<(), Incompatible> {
        match self {
            Self::Sum(total) => total.add(histogram),
            Self::Mean(mean) => mean.add(histogram),
        }
    }

    const fn met(&self) -> Met {
        match self {
            Self::Sum(total) => total.met,
            Self::Mean(mean) => mean.met(),
        }
    }

    fn finish(self) -> Histogram {
        match self {
            Self::Sum(total) => total.finish(),
            Self::Mean(mean) => mean.finish(),
        }
    }
}

/// The sums or means of histograms by group and step.
pub(super) struct NativeGroups {
    mean: bool,
    span: Span,
    groups: Vec<Vec<Option<Box<Group>>>>,
    pub(super) notes: Notes,
}

impl NativeGroups {
    /// `mean` for `avg`, else `sum`; `span` is where the argument stands.
    pub(super) fn new(mean: bool, span: Span) -> Self {
        Self {
            mean,
            span,
            groups: Vec::new(),
            notes: Notes::default(),
        }
    }

    /// Whether the group has seen a histogram.
    pub(super) fn knows(&self, group: usize) -> bool {
        self.groups.get(group).is_some_and(|g| !g.is_empty())
    }

    /// Adds the histograms of a series.
    pub(super) fn add(&mut self, group: usize, series: &Series) {
        if self.groups.len() <= group {
            self.groups.resize_with(group + 1, Vec::new);
        }
        let steps = &mut self.groups[group];
        steps.resize_with(series.values.len(), || None);
        for (at, native) in steps.iter_mut().zip(&series.natives) {
            let Some(histogram) = native else { continue };
            let Some(known) = at else {
                let joined = if self.mean {
                    Joined::Mean(Mean::of(histogram))
                } else {
                    Joined::Sum(Total::of(histogram))
                };
                *at = Some(Box::new(Group {
                    joined,
                    seen: hints((false, false), histogram),
                    broken: false,
                }));
                continue;
            };
            known.seen = hints(known.seen, histogram);
            if !known.broken && known.joined.add(histogram).is_err() {
                known.broken = true;
                self.notes.mixed_buckets(series.labels.name(), self.span);
            }
        }
    }

    /// Puts the results of a group beside those of its numbers; a step that has both has neither then.
    pub(super) fn finish(&mut self, group: usize, values: &mut [f64]) -> Natives {
        let Some(steps) = self.groups.get_mut(group).map(std::mem::take) else {
            return Vec::new();
        };
        let mut natives: Natives = vec![None; if steps.is_empty() { 0 } else { values.len() }];
        for (step, known) in steps.into_iter().enumerate() {
            let Some(known) = known else { continue };
            let met = known.joined.met();
            if known.seen == (true, true) {
                self.notes.reset_collision(Joining::Aggregation, self.span);
            }
            if met.reconciled {
                self.notes.bounds_reconciled(Joining::Aggregation, self.span);
            }
            if is_present(values[step]) {
                self.notes.mixed_in_aggregation(self.span);
                values[step] = ABSENT;
            } else if !known.broken {
                natives[step] = Some(Arc::new(known.joined.finish()));
            }
        }
        natives
    }
}

/// What is known of resets once `histogram` has come.
pub(super) fn hints((reset, not_reset): (bool, bool), histogram: &Histogram) -> (bool, bool) {
    (
        reset || histogram.reset == ResetHint::Reset,
        not_reset || histogram.reset == ResetHint::NotReset,
    )
}
