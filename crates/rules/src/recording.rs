//! A recording rule: the result of a query under a name of its own.

use model::{Labels, LabelsBuilder, METRIC_NAME, Value};

use crate::error::Error;
use crate::load::LoadedRule;

/// The series a recording rule adds for this query result.
///
/// # Errors
///
/// [`Error::Result`] when the value is not a number per series, or two series become one under the rule's labels.
pub fn series(rule: &LoadedRule, value: Value) -> Result<Vec<(Labels, f64)>, Error> {
    let samples = match value {
        Value::Vector(samples) => samples
            .into_iter()
            .map(|(labels, sample)| (labels, sample.value))
            .collect(),
        Value::Scalar(sample) => vec![(Labels::empty(), sample.value)],
        other => {
            return Err(Error::Result(format!(
                "rule result is a {}, not a vector or scalar",
                other.type_name()
            )));
        }
    };
    let mut out: Vec<(Labels, f64)> = samples
        .into_iter()
        .map(|(labels, v)| (recorded(rule, &labels), v))
        .collect();
    out.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    if out.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(Error::Result(
            "vector contains metrics with the same labelset after applying rule labels".into(),
        ));
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
