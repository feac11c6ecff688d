//! Two vectors meeting: series by series within each match group, step by step where series take turns.

use std::sync::Arc;

use hashbrown::HashMap;
use model::{Labels, QueryError};

use super::binary::{Outcome, Side, between};
use super::matching::{Meeting, result_labels, signature};
use super::note::Notes;
use super::series::{ABSENT, Series, is_present};
use crate::ast::Cardinality;
use crate::plan::Binary;

/// The operands of a match, the one side being where labels must be unique.
pub(super) struct Sides<'a> {
    /// The operation.
    pub(super) binary: &'a Binary,
    /// The many side.
    pub(super) many: &'a [Series],
    /// The one side.
    pub(super) one: &'a [Series],
    /// Whether the many side is the right one in the text.
    pub(super) swapped: bool,
    /// Whether the metric's name goes.
    pub(super) drop_name: bool,
    /// The number of steps.
    pub(super) steps: usize,
}

impl Sides<'_> {
    /// Adds the results of one match group.
    pub(super) fn meet(&self, meeting: &Meeting, out: &mut Vec<Series>, notes: &mut Notes) -> Result<(), QueryError> {
        let matching = &self.binary.matching;
        // Under `group_right` too `fill_left` stands in for the many side: Prometheus has it so.
        let (fill_many, fill_one) = (matching.fill_left, matching.fill_right);
        // The one side must be unique even where nothing meets it.
        let partner = self.partners(meeting)?;
        if (meeting.left.is_empty() && fill_many.is_none()) || (meeting.right.is_empty() && fill_one.is_none()) {
            return Ok(());
        }
        let mut results = Results::new(self.steps, matching.card == Cardinality::OneToOne);
        for many in &meeting.left {
            let series = &self.many[*many];
            for step in 0..self.steps {
                let Some(value) = side(series, step) else { continue };
                let other = match (partner.at(step), fill_one) {
                    (Some(place), _) => side(&self.one[place], step).map(|other| (Some(place), other)),
                    (None, Some(fill)) => Some((None, Side::Number(fill))),
                    (None, None) => None,
                };
                if let Some((place, other)) = other {
                    let name = || self.name(&series.labels, place);
                    results.put(step, (*many, place), self.apply(value, other, notes), name)?;
                }
            }
        }
        if let Some(fill) = fill_many {
            for place in &meeting.right {
                let series = &self.one[*place];
                for step in 0..self.steps {
                    let Some(value) = side(series, step).filter(|_| !results.matched(step)) else {
                        continue;
                    };
                    let own = signature(matching, &series.labels);
                    let name = || result_labels(&own, &series.labels, matching, self.drop_name);
                    let applied = self.apply(Side::Number(fill), value, notes);
                    results.put(step, (usize::MAX, Some(*place)), applied, name)?;
                }
            }
        }
        out.append(&mut results.series);
        Ok(())
    }

    /// The result's labels for a series of the many side and its partner, or the filled-in one.
    fn name(&self, many: &Labels, partner: Option<usize>) -> Labels {
        let matching = &self.binary.matching;
        match partner {
            Some(place) => result_labels(many, &self.one[place].labels, matching, self.drop_name),
            None => result_labels(many, &signature(matching, many), matching, self.drop_name),
        }
    }

    /// The result of one step; nothing where a comparison does not hold.
    fn apply<'s>(&self, many: Side<'s>, one: Side<'s>, notes: &mut Notes) -> Outcome {
        let (a, b) = if self.swapped { (one, many) } else { (many, one) };
        let outcome = between(self.binary, a, b, notes);
        match (outcome, a) {
            (Outcome::Holds(holds), _) if self.binary.return_bool => Outcome::Number(f64::from(u8::from(holds))),
            (Outcome::Nothing, _) if self.binary.return_bool => Outcome::Number(0.0),
            (Outcome::Holds(true), Side::Number(a)) => Outcome::Number(a),
            (Outcome::Holds(true), Side::Native(a)) => Outcome::Native(Arc::clone(a)),
            (Outcome::Holds(false), _) => Outcome::Nothing,
            (outcome, _) => outcome,
        }
    }

    /// Which series of the one side stands at each step.
    fn partners(&self, meeting: &Meeting) -> Result<Partners, QueryError> {
        if let [only] = meeting.right.as_slice() {
            let present = (0..self.steps).map(|step| self.one[*only].has(step)).collect();
            return Ok(Partners::Only(*only, present));
        }
        let mut at: Vec<Option<usize>> = vec![None; self.steps];
        for place in &meeting.right {
            for step in (0..self.steps).filter(|step| self.one[*place].has(*step)) {
                // Where the other side is empty nothing is matched, so nothing is wrong.
                let matters = || self.fills() || self.many.iter().any(|s| s.has(step));
                if let Some(before) = at[step]
                    && matters()
                {
                    return Err(self.duplicate(before, *place));
                }
                at[step] = Some(*place);
            }
        }
        Ok(Partners::Each(at))
    }

    fn fills(&self) -> bool {
        let matching = &self.binary.matching;
        matching.fill_left.is_some() || matching.fill_right.is_some()
    }

    fn duplicate(&self, a: usize, b: usize) -> QueryError {
        let matching = &self.binary.matching;
        let group = signature(matching, &self.one[b].labels);
        let side = if self.swapped { "left" } else { "right" };
        let mut both = [self.one[a].labels.to_string(), self.one[b].labels.to_string()];
        both.sort();
        QueryError::Execution(format!(
            "found duplicate series for the match group {group} on the {side} hand-side of the operation: [{}, {}]\
             ;many-to-many matching not allowed: matching labels must be unique on one side",
            both[0], both[1]
        ))
    }
}

/// The sample of a series at a step.
#[inline]
fn side(series: &Series, step: usize) -> Option<Side<'_>> {
    let value = series.values[step];
    if is_present(value) {
        return Some(Side::Number(value));
    }
    series.native(step).map(Side::Native)
}

/// The series of the one side that a match group has at each step.
enum Partners {
    /// A single series, and the steps at which it has a sample.
    Only(usize, Vec<bool>),
    /// Several that take turns.
    Each(Vec<Option<usize>>),
}

impl Partners {
    fn at(&self, step: usize) -> Option<usize> {
        match self {
            Self::Only(place, present) => present[step].then_some(*place),
            Self::Each(at) => at[step],
        }
    }
}

/// The results of one match group.
struct Results {
    steps: usize,
    one_to_one: bool,
    series: Vec<Series>,
    /// The steps at which each of `series` was computed, kept or not.
    computed: Vec<Vec<bool>>,
    /// The steps at which anything was matched.
    any: Vec<bool>,
    place_of: HashMap<Labels, usize, foldhash::fast::RandomState>,
    /// The pair met last and its place in `series`.
    last: Option<((usize, Option<usize>), usize)>,
}

impl Results {
    fn new(steps: usize, one_to_one: bool) -> Self {
        Self {
            steps,
            one_to_one,
            series: Vec::new(),
            computed: Vec::new(),
            any: vec![false; steps],
            place_of: HashMap::default(),
            last: None,
        }
    }

    fn matched(&self, step: usize) -> bool {
        self.any[step]
    }

    fn put(
        &mut self,
        step: usize,
        pair: (usize, Option<usize>),
        value: Outcome,
        name: impl Fn() -> Labels,
    ) -> Result<(), QueryError> {
        let place = match self.last {
            Some((last, place)) if last == pair => place,
            _ => {
                let labels = name();
                let place = match self.place_of.get(&labels) {
                    Some(place) => *place,
                    None => {
                        self.series.push(Series::new(labels.clone(), vec![ABSENT; self.steps]));
                        self.computed.push(vec![false; self.steps]);
                        self.place_of.insert(labels, self.series.len() - 1);
                        self.series.len() - 1
                    }
                };
                self.last = Some((pair, place));
                place
            }
        };
        let error = |what: &str| Err(QueryError::Execution(format!("multiple matches for labels: {what}")));
        if self.one_to_one && self.any[step] {
            return error("many-to-one matching must be explicit (group_left/group_right)");
        }
        if self.computed[place][step] {
            return error("grouping labels must ensure unique matches");
        }
        self.any[step] = true;
        self.computed[place][step] = true;
        match value {
            Outcome::Number(number) => self.series[place].values[step] = number,
            Outcome::Native(histogram) => self.series[place].set_native(step, histogram),
            Outcome::Holds(_) | Outcome::Nothing => {}
        }
        Ok(())
    }
}
