//! Two vectors meeting: series by series within each match group, step by step where series take turns.

use hashbrown::HashMap;
use model::{Labels, QueryError};

use super::binary::{Applied, apply};
use super::matching::{Meeting, result_labels, signature};
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
    pub(super) fn meet(&self, meeting: &Meeting, out: &mut Vec<Series>) -> Result<(), QueryError> {
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
            for (step, value) in series.values.iter().enumerate() {
                if !is_present(*value) {
                    continue;
                }
                let other = match (partner.at(step), fill_one) {
                    (Some(place), _) => Some((Some(place), self.one[place].values[step])),
                    (None, Some(fill)) => Some((None, fill)),
                    (None, None) => None,
                };
                if let Some((place, other)) = other {
                    let name = || self.name(&series.labels, place);
                    results.put(step, (*many, place), self.apply(*value, other), name)?;
                }
            }
        }
        if let Some(fill) = fill_many {
            for place in &meeting.right {
                let series = &self.one[*place];
                for (step, value) in series.values.iter().enumerate() {
                    if is_present(*value) && !results.matched(step) {
                        let own = signature(matching, &series.labels);
                        let name = || result_labels(&own, &series.labels, matching, self.drop_name);
                        results.put(step, (usize::MAX, Some(*place)), self.apply(fill, *value), name)?;
                    }
                }
            }
        }
        out.extend(
            results
                .series
                .into_iter()
                .map(|(labels, values)| Series::new(labels, values)),
        );
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

    /// The result of one step; [`ABSENT`] where a comparison does not hold.
    fn apply(&self, many: f64, one: f64) -> f64 {
        let (a, b) = if self.swapped { (one, many) } else { (many, one) };
        match apply(self.binary.op, a, b) {
            Applied::Number(number) => number,
            Applied::Holds(holds) if self.binary.return_bool => f64::from(u8::from(holds)),
            Applied::Holds(true) => a,
            Applied::Holds(false) => ABSENT,
        }
    }

    /// Which series of the one side stands at each step.
    fn partners(&self, meeting: &Meeting) -> Result<Partners, QueryError> {
        if let [only] = meeting.right.as_slice() {
            let present = self.one[*only].values.iter().map(|v| is_present(*v)).collect();
            return Ok(Partners::Only(*only, present));
        }
        let mut at: Vec<Option<usize>> = vec![None; self.steps];
        for place in &meeting.right {
            for (step, value) in self.one[*place].values.iter().enumerate() {
                if !is_present(*value) {
                    continue;
                }
                // Where the other side is empty nothing is matched, so nothing is wrong.
                let matters = || self.fills() || self.many.iter().any(|s| is_present(s.values[step]));
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
    series: Vec<(Labels, Vec<f64>)>,
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
        value: f64,
        name: impl Fn() -> Labels,
    ) -> Result<(), QueryError> {
        let place = match self.last {
            Some((last, place)) if last == pair => place,
            _ => {
                let labels = name();
                let place = match self.place_of.get(&labels) {
                    Some(place) => *place,
                    None => {
                        self.series.push((labels.clone(), vec![ABSENT; self.steps]));
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
        self.series[place].1[step] = value;
        Ok(())
    }
}
