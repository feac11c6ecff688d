//! Who met a limit: the label to look at, by name.

use std::collections::{BTreeMap, HashSet};

use config::prometheus::Limits;
use model::{Labels, METRIC_NAME};

/// Why a series has too many labels, or too long ones; `None` when it is within the limits.
pub(super) fn over_label_limits(labels: &Labels, limits: &Limits) -> Option<String> {
    let over = |limit: u64, size: usize| limit != 0 && size as u64 > limit;
    let metric = labels.name();
    if over(limits.labels, labels.len()) {
        return Some(format!(
            "metric {metric:?} has {} labels, at most {} are allowed",
            labels.len(),
            limits.labels
        ));
    }
    for (name, value) in labels {
        if over(limits.label_name_bytes, name.len()) {
            let limit = limits.label_name_bytes;
            return Some(format!(
                "metric {metric:?} has a label name of {} bytes, at most {limit} are allowed",
                name.len()
            ));
        }
        if over(limits.label_value_bytes, value.len()) {
            let limit = limits.label_value_bytes;
            return Some(format!(
                "label {name:?} of metric {metric:?} has a value of {} bytes, at most {limit} are allowed",
                value.len()
            ));
        }
    }
    None
}

/// The label with the most values among series that were left out.
pub(super) fn most_varied(refused: &[Labels]) -> String {
    let mut values: BTreeMap<&str, HashSet<&str>> = BTreeMap::new();
    for (name, value) in refused.iter().flatten() {
        values.entry(name).or_default().insert(value);
    }
    let most = values
        .iter()
        .max_by_key(|(name, values)| (values.len(), **name != METRIC_NAME));
    match most {
        Some((name, values)) if values.len() > 1 => format!("label {name:?} ({} values)", values.len()),
        _ => refused
            .first()
            .map_or_else(String::new, |l| format!("metric {:?}", l.name())),
    }
}
