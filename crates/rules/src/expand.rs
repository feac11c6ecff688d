//! Templates in alert labels and annotations, with what a rule may ask of the world.

use model::{Deadline, Labels, Millis, QueryEngine, Value};

/// Expands the templates of one evaluation.
pub struct Expander<'a> {
    /// Answers `query` in templates.
    pub engine: &'a dyn QueryEngine,
    /// The evaluation's moment.
    pub now: Millis,
    /// The labels this server adds to everything that leaves it.
    pub external_labels: &'a Labels,
    /// The address people reach this server at; empty when not told.
    pub external_url: &'a str,
}

impl Expander<'_> {
    /// The text of a template; a failing one gives its error as text, so that the alert still goes out.
    #[must_use]
    pub fn expand(&self, _alert: &str, text: &str, labels: &Labels, value: f64) -> String {
        if !text.contains("{{") {
            return text.to_owned();
        }
        let scope = template::rule::Scope {
            labels,
            external_labels: self.external_labels,
            external_url: self.external_url,
            value,
            now: self.now,
            query: self,
        };
        template::rule::expand(text, &scope).unwrap_or_else(|e| format!("<error expanding template: {e}>"))
    }
}

impl template::rule::Query for Expander<'_> {
    fn query(&self, expr: &str) -> Result<Vec<(Labels, f64)>, String> {
        let outcome = self
            .engine
            .instant(expr, self.now, &Deadline::never())
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

/// Whether a template's text can be parsed.
///
/// # Errors
///
/// The template's error, with its place.
pub fn check(text: &str) -> Result<(), String> {
    if !text.contains("{{") {
        return Ok(());
    }
    template::rule::check(text).map_err(|e| e.to_string())
}
