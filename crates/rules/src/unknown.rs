//! The third value: an alert whose inputs are missing because a machine died is neither firing nor resolved.
//!
//! In Prometheus an expression that gives nothing is a resolved alert, whether the fault is gone or the exporter is.
//! Here a vanished alert is held while its inputs cannot be had: [`inputs`] finds the selections that a rule stands on,
//! [`health`] says which targets and collectors are down, [`judge`] puts the two together for one alert, and
//! [`report`] tells people which rules are blind.
//!
//! All of it is asked through the query engine (`up`, `watchfire_collector_up` and their like), so it works on any
//! Prometheus. Where there is no such series, as in unit tests of rules, everything is as in Prometheus. A target that
//! left the configuration has no `up`, and its alerts resolve. `absent()` and `up == 0` have no inputs in this sense:
//! they speak of missing data and are never unknown.

pub mod health;
pub mod inputs;
pub mod judge;
pub mod report;

use model::Millis;

use health::Origin;

/// Why it cannot be said whether an alert still holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Unknown {
    /// Since when.
    pub since: Millis,
    /// What is missing, for people.
    pub reason: String,
    /// What is down.
    pub(crate) origin: Origin,
    /// Which of the rule's inputs is missing.
    pub(crate) input: usize,
    /// Whether that input no longer names its instance, so that only its absence says anything.
    pub(crate) aggregated: bool,
    /// Since when the origin is up again, if it is: its data needs a scrape or two.
    pub(crate) well_since: Option<Millis>,
}

#[cfg(test)]
mod tests;
