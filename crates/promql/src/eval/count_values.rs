//! `count_values`: how many series of a group have which value.

use hashbrown::HashMap;
use model::number::Plain;
use model::{Labels, QueryError};

use super::Evaluator;
use super::grid::Grid;
use super::series::{ABSENT, Operand, Series, is_present};
use crate::native::printed;
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
                if let Some(histogram) = one.native(step) {
                    let group = grouping.of(&one.labels.with(label, &printed(histogram)));
                    let place = self.counted(&group, &mut known, &mut counted, grid)?;
                    count(&mut counted[place].values[step]);
                    continue;
                }
                if !is_present(*value) {
                    continue;
                }
                let place = match of_value.get(&value.to_bits()) {
                    Some(place) => *place,
                    None => {
                        let labels = one.labels.with(label, &Plain(*value).to_string());
                        let group = grouping.of(&labels);
                        let place = self.counted(&group, &mut known, &mut counted, grid)?;
                        of_value.insert(value.to_bits(), place);
                        place
                    }
                };
                count(&mut counted[place].values[step]);
            }
        }
        Ok(Operand::Vector(counted))
    }

    /// The place of a group, a new one where there is none yet.
    fn counted(
        &self,
        group: &Labels,
        known: &mut HashMap<Labels, usize, foldhash::fast::RandomState>,
        counted: &mut Vec<Series>,
        grid: Grid,
    ) -> Result<usize, QueryError> {
        if let Some(place) = known.get(group) {
            return Ok(*place);
        }
        self.budget.take(grid.len)?;
        counted.push(Series::new(group.clone(), vec![ABSENT; grid.len]));
        known.insert(group.clone(), counted.len() - 1);
        Ok(counted.len() - 1)
    }
}

fn count(count: &mut f64) {
    *count = if is_present(*count) { *count + 1.0 } else { 1.0 };
}
