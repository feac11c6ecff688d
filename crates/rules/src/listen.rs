//! Which rules need not wait for the grid: those that select a series whose counter changes with an event.
//!
//! Only alerts without a `for` are evaluated when an event arrives, and the recordings before them that they read: a
//! wait is counted on the grid, and so is everything else.

use model::{Labels, METRIC_NAME, MatchOp, Matcher};

use crate::load::{LoadedRule, RuleKind};

/// The most selectors of a rule that are looked at.
const SELECTORS_MAX: usize = 64;

/// What the rules of a group select, by number.
#[derive(Debug, Default)]
pub struct Ears {
    selectors: Vec<Vec<Vec<Matcher>>>,
    is_alert: Vec<bool>,
    names: Vec<Option<String>>,
}

impl Ears {
    /// The ears of a group's rules, in order.
    pub fn of<'a>(rules: impl Iterator<Item = &'a LoadedRule>) -> Self {
        let mut ears = Self::default();
        for rule in rules {
            let mut found = Vec::new();
            if let Ok(tree) = promql::parse(&rule.expr) {
                tree.each_selector(&mut |selector| {
                    if found.len() < SELECTORS_MAX {
                        found.push(selector.matchers.clone());
                    }
                });
            }
            ears.selectors.push(found);
            ears.is_alert
                .push(matches!(rule.kind, RuleKind::Alerting { hold: 0, .. }));
            let records = matches!(rule.kind, RuleKind::Recording);
            ears.names.push(records.then(|| rule.name.clone()));
        }
        ears
    }

    /// The numbers of the rules to evaluate when these series changed, in order.
    #[must_use]
    pub fn hear(&self, series: &[Labels]) -> Vec<usize> {
        let count = self.selectors.len();
        // What changes with the event: recordings may read each other in the order written.
        let mut changes = vec![false; count];
        for at in 0..count {
            changes[at] = self.selectors[at].iter().any(|matchers| {
                series.iter().any(|labels| matches(matchers, labels)) || self.reads(matchers, &changes)
            });
        }
        // What an alert that changes needs, backwards.
        let mut needed: Vec<bool> = (0..count).map(|at| changes[at] && self.is_alert[at]).collect();
        for at in (0..count).rev().filter(|at| self.names[*at].is_some()) {
            let name = self.names[at].as_deref().unwrap_or("");
            let mut later = (at + 1..count).filter(|later| needed[*later]);
            needed[at] = changes[at] && later.any(|later| self.selectors[later].iter().any(|m| may_name(m, name)));
        }
        (0..count).filter(|at| needed[*at]).collect()
    }

    fn reads(&self, matchers: &[Matcher], changes: &[bool]) -> bool {
        let recorded = self.names.iter().zip(changes).filter(|(_, changes)| **changes);
        recorded
            .filter_map(|(name, _)| name.as_deref())
            .any(|name| may_name(matchers, name))
    }
}

fn matches(matchers: &[Matcher], labels: &Labels) -> bool {
    let named = matchers.iter().any(|m| m.name == METRIC_NAME);
    named && matchers.iter().all(|m| m.matches(labels.get(&m.name).unwrap_or("")))
}

fn may_name(matchers: &[Matcher], name: &str) -> bool {
    let mut of_name = matchers.iter().filter(|m| m.name == METRIC_NAME).peekable();
    of_name.peek().is_some_and(|m| m.op == MatchOp::Equal) && of_name.all(|m| m.matches(name))
}

#[cfg(test)]
mod tests {
    use promql::testscript::notation::parse_metric;

    use super::*;
    use crate::load::check_text;

    #[track_caller]
    fn check(rules: &str, series: &str, want: &[usize]) {
        let groups = check_text("t", &format!("groups: [{{name: g, rules: [{rules}]}}]")).expect("rules");
        let ears = Ears::of(groups[0].rules.iter());
        assert_eq!(ears.hear(&[parse_metric(series).expect("a series")]), want);
    }

    #[test]
    fn an_alert_hears_what_it_selects() {
        let rule = r#"{alert: A, expr: 'increase(xid{code=~"79|48"}[10m]) > 0'}"#;
        check(rule, r#"xid{code="79"}"#, &[0]);
        check(rule, r#"xid{code="13"}"#, &[]);
        check(rule, r#"other{code="79"}"#, &[]);
        check("{alert: A, expr: 'x > 0', for: 1m}", "x", &[]);
        check("{record: r, expr: 'x > 0'}", "x", &[]);
        check(r#"{alert: A, expr: '{job="a"} > 0'}"#, r#"x{job="a"}"#, &[]);
    }

    #[test]
    fn a_recording_that_an_alert_reads_comes_first() {
        let rules =
            "{record: 'a:x', expr: 'rate(x[5m])'}, {record: 'b:y', expr: 'rate(x[5m])'}, {alert: A, expr: 'a:x > 0'}";
        check(rules, "x", &[0, 2]);
        check(rules, "y", &[]);
    }
}
