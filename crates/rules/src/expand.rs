//! Templates in alert labels and annotations, with what a rule may ask of the world.

use model::{Deadline, Labels, Millis, QueryEngine, Value};
use template::{RuleData, RuleTemplate};

use crate::load::{LoadedRule, RuleKind};

/// Expands the templates of one evaluation.
pub struct Expander<'a> {
    /// Answers `query` in templates.
    pub engine: &'a dyn QueryEngine,
    /// The evaluation's moment.
    pub now: Millis,
    /// Until when the rule's queries may run, those of its templates included.
    pub deadline: &'a Deadline,
    /// The labels this server adds to everything that leaves it.
    pub external_labels: &'a Labels,
    /// The address people reach this server at; empty when not told.
    pub external_url: &'a str,
}

/// The templates of an alerting rule, parsed.
#[derive(Debug, Default)]
pub struct AlertTexts {
    /// Its labels.
    pub labels: Vec<(String, RuleTemplate)>,
    /// Its annotations.
    pub annotations: Vec<(String, RuleTemplate)>,
}

impl AlertTexts {
    /// Parses the templates of a rule; a recording rule has none.
    ///
    /// # Errors
    ///
    /// Each text that is no template: what it belongs to, and why.
    pub fn parse(rule: &LoadedRule) -> Result<Self, Vec<String>> {
        let RuleKind::Alerting { annotations, .. } = &rule.kind else {
            return Ok(Self::default());
        };
        let mut errors = Vec::new();
        let mut parse = |what: &str, pairs: &[(String, String)]| {
            let mut out = Vec::with_capacity(pairs.len());
            for (name, text) in pairs {
                match RuleTemplate::parse(&rule.name, text) {
                    Ok(template) => out.push((name.clone(), template)),
                    Err(error) => errors.push(format!("{what} {name:?}: {error}")),
                }
            }
            out
        };
        let texts = Self {
            labels: parse("label", &rule.labels),
            annotations: parse("annotation", annotations),
        };
        if errors.is_empty() { Ok(texts) } else { Err(errors) }
    }
}

impl Expander<'_> {
    /// The text of a template; a failing one gives its error as text, so that the alert still goes out.
    #[must_use]
    pub fn expand(&self, template: &RuleTemplate, labels: &Labels, value: f64) -> String {
        let data = RuleData {
            labels,
            external_labels: self.external_labels,
            external_url: self.external_url,
            value,
            time: self.now,
            query: self,
        };
        template
            .expand(&data)
            .unwrap_or_else(|e| format!("<error expanding template: {e}>"))
    }
}

impl template::Query for Expander<'_> {
    fn query(&self, expr: &str) -> Result<Vec<(Labels, f64)>, String> {
        let outcome = self
            .engine
            .instant(expr, self.now, self.deadline)
            .map_err(|e| e.to_string())?;
        match outcome.value {
            Value::Vector(samples) => Ok(samples
                .into_iter()
                .map(|(labels, sample)| (labels, sample.value))
                .collect()),
            Value::Scalar(sample) => Ok(vec![(Labels::empty(), sample.value)]),
            other => Err(format!(
                "query result is a {}, not a vector or scalar",
                other.type_name()
            )),
        }
    }
}
