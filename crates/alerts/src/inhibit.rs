//! Inhibition: an alert keeps silent while a greater one fires.

use std::collections::HashMap;
use std::sync::Arc;

use config::alertmanager::InhibitRule;
use model::Millis;
use model::labels::Labels;

use crate::alert::{Alert, DRILL, fingerprint};
use crate::store::Store;

/// The firing sources of every rule, by the values that must be equal. Built for one moment.
#[derive(Debug)]
pub struct Inhibitor<'r> {
    rules: Vec<(&'r InhibitRule, HashMap<Labels, Vec<Source>>)>,
}

#[derive(Debug)]
struct Source {
    fingerprint: u64,
    /// Whether it matches the rule's target too: such a one does not silence its like.
    also_target: bool,
}

impl<'r> Inhibitor<'r> {
    /// Finds the sources among the alerts that are active at a moment.
    #[must_use]
    pub fn new(rules: &'r [InhibitRule], store: &Store, now: Millis) -> Self {
        let mut rules: Vec<(&InhibitRule, HashMap<Labels, Vec<Source>>)> =
            rules.iter().map(|rule| (rule, HashMap::new())).collect();
        if !rules.is_empty() {
            for alert in store.active(now) {
                for (rule, sources) in &mut rules {
                    add_source(rule, sources, alert);
                }
            }
        }
        Self { rules }
    }

    /// The fingerprint of an alert that silences these labels, if one does.
    #[must_use]
    pub fn silenced_by(&self, labels: &Labels) -> Option<u64> {
        // A drill is to be heard, whatever else happens.
        if labels.get(DRILL).is_some() {
            return None;
        }
        self.rules.iter().find_map(|(rule, sources)| {
            if !rule.target_matchers.iter().all(|m| m.matches_labels(labels)) {
                return None;
            }
            let also_source = rule.source_matchers.iter().all(|m| m.matches_labels(labels));
            let found = sources.get(&labels.only(&rule.equal))?;
            found
                .iter()
                .find(|source| !(also_source && source.also_target))
                .map(|source| source.fingerprint)
        })
    }
}

fn add_source(rule: &InhibitRule, sources: &mut HashMap<Labels, Vec<Source>>, alert: &Arc<Alert>) {
    let labels = &alert.labels;
    // A drill keeps no real alert from people.
    if alert.is_drill() || !rule.source_matchers.iter().all(|m| m.matches_labels(labels)) {
        return;
    }
    let source = Source {
        fingerprint: fingerprint(labels),
        also_target: rule.target_matchers.iter().all(|m| m.matches_labels(labels)),
    };
    sources.entry(labels.only(&rule.equal)).or_default().push(source);
}

#[cfg(test)]
mod tests {
    use config::yaml::parse;

    use super::*;

    #[track_caller]
    fn check(rule: &str, sources: &[&[(&str, &str)]], target: &[(&str, &str)], want: bool) {
        let rule = InhibitRule::read(&parse(rule).expect("valid YAML")).expect("a rule");
        let mut store = Store::new(10, 1_000);
        for source in sources {
            store.put(Alert::new(Labels::from_pairs(source.iter().copied()), 1), 1);
        }
        let rules = [rule];
        let inhibitor = Inhibitor::new(&rules, &store, 2);
        let silenced = inhibitor.silenced_by(&Labels::from_pairs(target.iter().copied()));
        assert_eq!(silenced.is_some(), want, "{target:?}");
    }

    const RULE: &str = "{source_matchers: [s=1], target_matchers: [t=1], equal: [e]}";

    #[test]
    fn a_source_with_equal_labels_silences() {
        check(RULE, &[&[("s", "1"), ("e", "x")]], &[("t", "1"), ("e", "x")], true);
        check(RULE, &[&[("s", "1"), ("e", "x")]], &[("t", "1"), ("e", "y")], false);
        check(RULE, &[&[("s", "1")]], &[("t", "1")], true);
        check(RULE, &[&[("s", "2")]], &[("t", "1")], false);
        check(RULE, &[&[("s", "1")]], &[("t", "2")], false);
    }

    #[test]
    fn a_drill_neither_silences_nor_is_silenced() {
        check(RULE, &[&[("s", "1"), ("drill", "d")]], &[("t", "1")], false);
        check(RULE, &[&[("s", "1")]], &[("t", "1"), ("drill", "d")], false);
    }

    #[test]
    fn alerts_on_both_sides_do_not_silence_their_like() {
        check(RULE, &[&[("s", "1"), ("t", "1")]], &[("s", "1"), ("t", "1")], false);
        check(RULE, &[&[("s", "1"), ("t", "1")]], &[("t", "1")], true);
        check(RULE, &[&[("s", "1")]], &[("s", "1"), ("t", "1")], true);
        check("{}", &[&[("a", "1")]], &[("b", "1")], false);
    }
}
