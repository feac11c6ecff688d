//! A recording rule: the result of a query under a name of its own.

use model::{Labels, LabelsBuilder, METRIC_NAME, Sample};

use crate::error::Error;
use crate::load::LoadedRule;
use crate::output::Point;

/// The series a recording rule adds for this query result.
///
/// # Errors
///
/// [`Error::Result`] when two series become one under the rule's labels, or there are more than `limit` (0 is none).
pub fn series(rule: &LoadedRule, samples: Vec<(Labels, Sample)>, limit: usize) -> Result<Vec<(Labels, Point)>, Error> {
    let mut out: Vec<(Labels, Point)> = samples
        .into_iter()
        .map(|(labels, sample)| (recorded(rule, &labels), Point::of(sample)))
        .collect();
    out.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    if out.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(Error::Result(
            "vector contains metrics with the same labelset after applying rule labels".into(),
        ));
    }
    if limit > 0 && out.len() > limit {
        return Err(Error::Result(format!(
            "exceeded limit of {limit} with {} series",
            out.len()
        )));
    }
    Ok(out)
}

fn recorded(rule: &LoadedRule, labels: &Labels) -> Labels {
    let mut builder = LabelsBuilder::from(labels);
    builder.set(METRIC_NAME, &rule.name);
    for (name, value) in &rule.labels {
        builder.set(name, value);
    }
    builder.build()
}
