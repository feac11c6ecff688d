//! Who met a limit: the label to look at, by name.

use std::collections::{BTreeMap, HashSet};

use config::prometheus::Limits;
use model::{Labels, METRIC_NAME};

use super::{Outcome, cut};

/// Bytes of a name that are shown: a page may hold names of any length.
const NAME_BYTES_MAX: usize = 128;

/// A limit, and who met it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Culprit {
    /// The setting with its value.
    pub limit: String,
    /// A sentence with numbers.
    pub text: String,
    /// Only who, without numbers.
    pub name: String,
}

impl Culprit {
    pub(super) fn tell(self, outcome: &mut Outcome) {
        outcome.limit = self.limit;
        outcome.culprit = self.text;
        outcome.culprit_name = self.name;
    }
}

/// Why a series has too many labels, or too long ones; `None` when it is within the limits.
pub(crate) fn over_label_limits(labels: &Labels, limits: &Limits) -> Option<Culprit> {
    let over = |limit: u64, size: usize| limit != 0 && size as u64 > limit;
    let metric = cut(labels.name(), NAME_BYTES_MAX);
    if over(limits.labels, labels.len()) {
        let limit = limits.labels;
        return Some(Culprit {
            limit: format!("label_limit of {limit}"),
            text: format!(
                "metric {metric:?} has {} labels, at most {limit} are allowed",
                labels.len()
            ),
            name: format!("metric {metric}"),
        });
    }
    for (name, value) in labels {
        if over(limits.label_name_bytes, name.len()) {
            let limit = limits.label_name_bytes;
            return Some(Culprit {
                limit: format!("label_name_length_limit of {limit}"),
                text: format!(
                    "metric {metric:?} has a label name of {} bytes, at most {limit} are allowed",
                    name.len()
                ),
                name: format!("metric {metric}"),
            });
        }
        if over(limits.label_value_bytes, value.len()) {
            let limit = limits.label_value_bytes;
            let name = cut(name, NAME_BYTES_MAX);
            return Some(Culprit {
                limit: format!("label_value_length_limit of {limit}"),
                text: format!(
                    "label {name:?} of metric {metric:?} has a value of {} bytes, at most {limit} are allowed",
                    value.len()
                ),
                name: format!("label {name}"),
            });
        }
    }
    None
}

/// The label with the most values among series that were left out by a `sample_limit`.
pub(super) fn most_varied(refused: &[Labels], limit: usize) -> Culprit {
    let mut values: BTreeMap<&str, HashSet<&str>> = BTreeMap::new();
    for (name, value) in refused.iter().flatten() {
        values.entry(name).or_default().insert(value);
    }
    let most = values
        .iter()
        .max_by_key(|(name, values)| (values.len(), **name != METRIC_NAME));
    let limit = format!("sample_limit of {limit}");
    match most {
        Some((name, values)) if values.len() > 1 => {
            let name = cut(name, NAME_BYTES_MAX);
            Culprit {
                limit,
                text: format!("label {name:?} ({} values)", values.len()),
                name: format!("label {name}"),
            }
        }
        _ => {
            let metric = cut(refused.first().map_or("", Labels::name), NAME_BYTES_MAX);
            Culprit {
                limit,
                text: format!("metric {metric:?}"),
                name: format!("metric {metric}"),
            }
        }
    }
}
