//! `count_values`: how many series of a group have which value.

use hashbrown::HashMap;
use model::number::Plain;
use model::{Labels, QueryError};

use super::Evaluator;
use super::grid::Grid;
use super::series::{ABSENT, Operand, Series, is_present};
use crate::plan::Aggregate;

impl Evaluator<'_> {
    /// Evaluates `count_values("label", x)`.
    pub(super) fn count_values(&self, aggregate: &Aggregate, grid: Grid) -> Result<Operand, QueryError> {
        let label = match &aggregate.param {
            Some(param) => self.text(param)?,
            None => return Err(super::mistyped("string")),
        };
        if !super::label::is_valid_name(label) {
            let written = aggregate.param.as_ref().map_or("", |p| self.written(p.span));
            return Err(QueryError::Execution(format!("invalid label name {written}")));
        }
        let series = self.vector(&aggregate.arg, grid)?;
        let mut grouping = aggregate.grouping.clone();
        if !grouping.without && !grouping.labels.iter().any(|l| l == label) {
            grouping.labels.push(label.to_owned());
        }
        let mut known: HashMap<Labels, usize, foldhash::fast::RandomState> = HashMap::default();
        let mut counted: Vec<Series> = Vec::new();
        for one in &series {
            self.budget.check()?;
            // A series has few values; those it had are looked up by their bits.
            let mut of_value: HashMap<u64, usize, foldhash::fast::RandomState> = HashMap::default();
            for (step, value) in one.values.iter().enumerate() {
                if !is_present(*value) {
                    continue;
                }
                let place = match of_value.get(&value.to_bits()) {
                    Some(place) => *place,
                    None => {
                        let labels = one.labels.with(label, &Plain(*value).to_string());
                        let group = grouping.of(&labels);
                        let place = match known.get(&group) {
                            Some(place) => *place,
                            None => {
                                self.budget.take(grid.len)?;
                                counted.push(Series::new(group.clone(), vec![ABSENT; grid.len]));
                                known.insert(group, counted.len() - 1);
                                counted.len() - 1
                            }
                        };
                        of_value.insert(value.to_bits(), place);
                        place
                    }
                };
                let count = &mut counted[place].values[step];
                *count = if is_present(*count) { *count + 1.0 } else { 1.0 };
            }
        }
        Ok(Operand::Vector(counted))
    }
}
