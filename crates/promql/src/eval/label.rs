//! `label_replace` and `label_join`: new labels out of old ones.

use model::matcher::anchored;
use model::{METRIC_NAME, QueryError};

use super::Evaluator;
use super::grid::Grid;
use super::series::{Operand, Series, merge_same_labels};
use crate::plan::Node;

/// Whether a label may be called so: anything but nothing. Text that was no UTF-8 holds the replacement
/// character.
pub(super) fn is_valid_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('\u{fffd}')
}

impl Evaluator<'_> {
    /// `label_replace(v, dst, replacement, src, regex)`
    pub(super) fn label_replace(&self, args: &[Node], grid: Grid) -> Result<Operand, QueryError> {
        let [vector, dst, replacement, src, pattern] = args else {
            return Err(super::mistyped("five arguments"));
        };
        let (dst, replacement) = (self.text(dst)?, self.text(replacement)?);
        let (src, pattern) = (self.text(src)?, self.text(pattern)?);
        let error = |text: String| QueryError::Execution(text);
        let regex = anchored(pattern)
            .map_err(|_| error(format!("invalid regular expression in label_replace(): {pattern}")))?;
        if !is_valid_name(dst) {
            return Err(error(format!(
                "invalid destination label name in label_replace(): {dst}"
            )));
        }
        let mut series = self.vector(vector, grid)?;
        let mut value = String::new();
        for one in &mut series {
            let Some(captures) = regex.captures(one.labels.get(src).unwrap_or("")) else {
                continue;
            };
            value.clear();
            captures.expand(replacement, &mut value);
            set(one, dst, &value);
        }
        Ok(Operand::Vector(merge_same_labels(series)?))
    }

    /// `label_join(v, dst, separator, src…)`
    pub(super) fn label_join(&self, args: &[Node], grid: Grid) -> Result<Operand, QueryError> {
        let [vector, dst, separator, sources @ ..] = args else {
            return Err(super::mistyped("three arguments or more"));
        };
        let (dst, separator) = (self.text(dst)?, self.text(separator)?);
        let sources = sources.iter().map(|s| self.text(s)).collect::<Result<Vec<_>, _>>()?;
        let error = |what: &str, name: &str| {
            Err(QueryError::Execution(format!(
                "invalid {what} label name in label_join(): {name}"
            )))
        };
        if let Some(bad) = sources.iter().find(|s| !is_valid_name(s)) {
            return error("source", bad);
        }
        if !is_valid_name(dst) {
            return error("destination", dst);
        }
        let mut series = self.vector(vector, grid)?;
        for one in &mut series {
            let values: Vec<&str> = sources.iter().map(|s| one.labels.get(s).unwrap_or("")).collect();
            let joined = values.join(separator);
            set(one, dst, &joined);
        }
        Ok(Operand::Vector(merge_same_labels(series)?))
    }
}

/// Sets a label; a metric name given anew is there to stay.
fn set(series: &mut Series, name: &str, value: &str) {
    series.labels = series.labels.with(name, value);
    if name == METRIC_NAME {
        series.drop_name = false;
    }
}
