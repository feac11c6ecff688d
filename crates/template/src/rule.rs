//! Templates in rules: labels and annotations of alerts, with Prometheus' functions.
//!
//! A rule parses its templates once ([`RuleTemplate::parse`]) and expands them for each alert. `$labels`,
//! `$externalLabels`, `$externalURL` and `$value` are there from the start; so are `.Labels` and the like.

mod functions;
mod sample;

use std::fmt;
use std::sync::{Arc, LazyLock};

use model::{Labels, Millis};

use crate::error::Error;
use crate::function::{Env, Query};
use crate::set::{Mode, Parsed, Set};
use crate::value::{Object, Value};

pub use functions::FUNCTIONS;

/// What an alert's template is expanded with.
#[derive(Clone, Copy)]
pub struct RuleData<'a> {
    /// The labels of the series that alerts.
    pub labels: &'a Labels,
    /// The labels that this program adds to whatever it sends.
    pub external_labels: &'a Labels,
    /// Where the page of this program is found, without a slash at the end.
    pub external_url: &'a str,
    /// The value of the expression.
    pub value: f64,
    /// The time of the evaluation.
    pub time: Millis,
    /// Who answers `query`.
    pub query: &'a dyn Query,
}

/// The template of a label or an annotation.
#[derive(Debug, Clone)]
pub struct RuleTemplate(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// Nothing to expand.
    Constant(Arc<str>),
    Template(Parsed),
}

static SET: LazyLock<Set> = LazyLock::new(|| Set::new(Mode::Text, FUNCTIONS));

const VARIABLES: [&str; 4] = ["$labels", "$externalLabels", "$externalURL", "$value"];

impl RuleTemplate {
    /// Parses the text of a label or an annotation of the rule `name`.
    ///
    /// # Errors
    ///
    /// [`Error::Parse`]; the field's programs name the template `__alert_` and the rule's name.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        if !text.contains("{{") {
            return Ok(Self(Kind::Constant(text.into())));
        }
        let parsed = SET.parse(&format!("__alert_{name}"), text, &VARIABLES)?;
        Ok(Self(Kind::Template(parsed)))
    }

    /// Expands the template for one alert.
    ///
    /// # Errors
    ///
    /// [`Error::Execute`]; an alert is sent all the same, with `<error expanding template: …>` in its place.
    pub fn expand(&self, data: &RuleData<'_>) -> Result<String, Error> {
        let parsed = match &self.0 {
            Kind::Constant(text) => return Ok(text.to_string()),
            Kind::Template(parsed) => parsed,
        };
        let dot = AlertData {
            labels: Value::text_map(data.labels),
            external_labels: Value::text_map(data.external_labels),
            external_url: Value::text(data.external_url),
            value: data.value,
        };
        let values = [
            dot.labels.clone(),
            dot.external_labels.clone(),
            dot.external_url.clone(),
            Value::Float(dot.value),
        ];
        let variables: Vec<(&str, Value)> = VARIABLES.into_iter().zip(values).collect();
        let env = Env {
            now: data.time,
            external_url: data.external_url,
            query: Some(data.query),
            route_label: None,
        };
        SET.execute(parsed, &Value::Object(Arc::new(dot)), &variables, &env)
    }
}

/// Parses and expands a text in one go.
///
/// # Errors
///
/// [`Error::Parse`] or [`Error::Execute`].
pub fn expand(name: &str, text: &str, data: &RuleData<'_>) -> Result<String, Error> {
    RuleTemplate::parse(name, text)?.expand(data)
}

/// The dot of a rule's template.
struct AlertData {
    labels: Value,
    external_labels: Value,
    external_url: Value,
    value: f64,
}

impl fmt::Debug for AlertData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlertData")
            .field("value", &self.value)
            .finish_non_exhaustive()
    }
}

impl Object for AlertData {
    fn type_name(&self) -> &str {
        "struct { Labels map[string]string; ExternalLabels map[string]string; ExternalURL string; Value interface {} }"
    }

    fn fields(&self) -> Vec<(&'static str, &'static str, Value)> {
        vec![
            ("Labels", "Labels", self.labels.clone()),
            ("ExternalLabels", "ExternalLabels", self.external_labels.clone()),
            ("ExternalURL", "ExternalURL", self.external_url.clone()),
            ("Value", "Value", Value::Float(self.value)),
        ]
    }
}

#[cfg(test)]
mod tests;
