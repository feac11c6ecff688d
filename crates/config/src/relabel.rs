//! Relabelling: rules that rewrite a label set, or drop what carries it.
//!
//! [`RelabelConfig`] is one rule as written and checked; [`apply`] runs a list of them over a
//! [`LabelsBuilder`], in order, until one drops the set.

use std::fmt;

use model::labels::{LabelsBuilder, is_legacy_label_name};
use model::matcher::anchored;
use regex::Regex;

use crate::yaml::{Decode, Fields, Node, Result};

mod hash;
mod template;

use template::Template;

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Set the target label from the match.
    Replace,
    /// Drop what does not match.
    Keep,
    /// Drop what matches.
    Drop,
    /// Drop where the sources differ from the target label.
    KeepEqual,
    /// Drop where the sources equal the target label.
    DropEqual,
    /// Set the target label to the hash of the sources modulo `modulus`.
    HashMod,
    /// Copy every label whose name matches to the name made from the match.
    LabelMap,
    /// Remove the labels whose names match.
    LabelDrop,
    /// Remove the labels whose names do not match.
    LabelKeep,
    /// Set the target label to the sources in lower case.
    Lowercase,
    /// Set the target label to the sources in upper case.
    Uppercase,
}

const ACTIONS: [(&str, Action); 11] = [
    ("replace", Action::Replace),
    ("keep", Action::Keep),
    ("drop", Action::Drop),
    ("keepequal", Action::KeepEqual),
    ("dropequal", Action::DropEqual),
    ("hashmod", Action::HashMod),
    ("labelmap", Action::LabelMap),
    ("labeldrop", Action::LabelDrop),
    ("labelkeep", Action::LabelKeep),
    ("lowercase", Action::Lowercase),
    ("uppercase", Action::Uppercase),
];

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = ACTIONS.iter().find(|(_, a)| a == self).map_or("", |(n, _)| n);
        f.write_str(name)
    }
}

/// How names may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum NameScheme {
    /// Any UTF-8 text that is not empty.
    #[default]
    Utf8,
    /// `[a-zA-Z_][a-zA-Z0-9_]*`, colons too in metric names.
    Legacy,
}

impl NameScheme {
    /// Whether a label may be called this.
    #[must_use]
    pub fn label_name(self, name: &str) -> bool {
        match self {
            Self::Utf8 => !name.is_empty(),
            Self::Legacy => is_legacy_label_name(name),
        }
    }
}

/// One rule.
#[derive(Debug, Clone)]
pub struct RelabelConfig {
    /// Labels whose values are joined and matched.
    pub source_labels: Vec<String>,
    /// Stands between the joined values; `;` unless told.
    pub separator: String,
    /// The anchored pattern; `(.*)` unless told.
    pub regex: Regex,
    /// The pattern as written.
    pub regex_text: String,
    /// For `hashmod`.
    pub modulus: u64,
    /// The label to write; may hold `$1`.
    pub target_label: String,
    /// The value to write; may hold `$1`. `$1` unless told.
    pub replacement: String,
    /// What to do.
    pub action: Action,
    scheme: NameScheme,
    target: Template,
    value: Template,
}

impl PartialEq for RelabelConfig {
    fn eq(&self, other: &Self) -> bool {
        (
            &self.source_labels,
            &self.separator,
            &self.regex_text,
            self.modulus,
            &self.target_label,
            &self.replacement,
            self.action,
        ) == (
            &other.source_labels,
            &other.separator,
            &other.regex_text,
            other.modulus,
            &other.target_label,
            &other.replacement,
            other.action,
        )
    }
}

const DEFAULT_SEPARATOR: &str = ";";
const DEFAULT_REGEX: &str = "(.*)";
const DEFAULT_REPLACEMENT: &str = "$1";

/// Runs the rules in order. `false` says that the set is to be dropped; its labels are then of no meaning.
#[must_use]
pub fn apply(rules: &[RelabelConfig], labels: &mut LabelsBuilder) -> bool {
    rules.iter().all(|rule| rule.apply(labels))
}

/// Reads a list of rules; `what` names them in the fault about an empty one.
///
/// # Errors
///
/// A fault where a rule is empty or not valid.
pub fn decode_list(nodes: &[Node], what: &str, scheme: NameScheme) -> Result<Vec<RelabelConfig>> {
    let read = |node: &Node| {
        if node.is_null() {
            return Err(node.fault(format!("empty or null {what}")));
        }
        RelabelConfig::read(node, scheme)
    };
    nodes.iter().map(read).collect()
}

impl RelabelConfig {
    /// Reads and checks one rule.
    ///
    /// # Errors
    ///
    /// A fault at the key that is wrong.
    pub fn read(node: &Node, scheme: NameScheme) -> Result<Self> {
        let mut fields = node.fields()?;
        let action = fields.or("action", Action::Replace)?;
        let regex_text = fields.or("regex", DEFAULT_REGEX.to_owned())?;
        let regex = anchored(&regex_text).map_err(|e| fields.fault_at("regex", e.to_string()))?;
        let target_label = fields.or_empty::<String>("target_label")?;
        let replacement = fields.or("replacement", DEFAULT_REPLACEMENT.to_owned())?;
        let rule = Self {
            source_labels: source_labels(&mut fields)?,
            separator: fields.or("separator", DEFAULT_SEPARATOR.to_owned())?,
            modulus: fields.or_empty("modulus")?,
            target: Template::new(&target_label, &regex),
            value: Template::new(&replacement, &regex),
            regex,
            regex_text,
            target_label,
            replacement,
            action,
            scheme,
        };
        fields.finish()?;
        rule.check(&fields)?;
        Ok(rule)
    }

    fn check(&self, fields: &Fields<'_>) -> Result<()> {
        let action = self.action;
        if action == Action::HashMod && self.modulus == 0 {
            return Err(fields.fault("relabel configuration for hashmod requires non-zero modulus"));
        }
        let writes = matches!(
            action,
            Action::Replace
                | Action::HashMod
                | Action::Lowercase
                | Action::Uppercase
                | Action::KeepEqual
                | Action::DropEqual
        );
        if writes && self.target_label.is_empty() {
            return Err(fields.fault(format!(
                "relabel configuration for {action} action requires 'target_label' value"
            )));
        }
        self.check_target(fields)?;
        if action == Action::LabelMap && !self.valid_target(&self.replacement) {
            let message = format!("{:?} is invalid 'replacement' for {action} action", self.replacement);
            return Err(fields.fault_at("replacement", message));
        }
        self.check_alone(fields)
    }

    fn check_target(&self, fields: &Fields<'_>) -> Result<()> {
        let action = self.action;
        let good = match action {
            Action::Replace => self.valid_target(&self.target_label),
            Action::HashMod | Action::Lowercase | Action::Uppercase | Action::KeepEqual | Action::DropEqual => {
                self.scheme.label_name(&self.target_label)
            }
            _ => true,
        };
        if !good {
            let message = format!("{:?} is invalid 'target_label' for {action} action", self.target_label);
            return Err(fields.fault_at("target_label", message));
        }
        let unused = matches!(
            action,
            Action::Lowercase | Action::Uppercase | Action::KeepEqual | Action::DropEqual
        );
        if unused && !self.is_default("replacement", &self.replacement) {
            return Err(fields.fault_at(
                "replacement",
                format!("'replacement' can not be set for {action} action"),
            ));
        }
        Ok(())
    }

    /// Actions that read only some of the fields refuse the others.
    fn check_alone(&self, fields: &Fields<'_>) -> Result<()> {
        let plain = self.is_default("regex", &self.regex_text)
            && self.is_default("separator", &self.separator)
            && self.is_default("replacement", &self.replacement)
            && self.modulus == 0;
        let action = self.action;
        match action {
            Action::KeepEqual | Action::DropEqual if !plain => Err(fields.fault(format!(
                "{action} action requires only 'source_labels' and `target_label`, and no other fields"
            ))),
            Action::LabelDrop | Action::LabelKeep
                if !self.source_labels.is_empty()
                    || !self.target_label.is_empty()
                    || self.modulus != 0
                    || !self.is_default("separator", &self.separator)
                    || !self.is_default("replacement", &self.replacement) =>
            {
                Err(fields.fault(format!("{action} action requires only 'regex', and no other fields")))
            }
            _ => Ok(()),
        }
    }

    fn is_default(&self, key: &str, value: &str) -> bool {
        value
            == match key {
                "regex" => DEFAULT_REGEX,
                "separator" => DEFAULT_SEPARATOR,
                _ => DEFAULT_REPLACEMENT,
            }
    }

    /// Whether a text may become a label name once its `$1` are filled in.
    fn valid_target(&self, text: &str) -> bool {
        match self.scheme {
            NameScheme::Utf8 => !text.is_empty(),
            NameScheme::Legacy => template::is_legacy_target(text),
        }
    }

    /// Runs this rule; `false` drops the set.
    fn apply(&self, labels: &mut LabelsBuilder) -> bool {
        let source = || self.joined(labels);
        match self.action {
            Action::Drop => !self.regex.is_match(&source()),
            Action::Keep => self.regex.is_match(&source()),
            Action::DropEqual => labels.get(&self.target_label).unwrap_or("") != source(),
            Action::KeepEqual => labels.get(&self.target_label).unwrap_or("") == source(),
            Action::Replace => {
                self.replace(labels);
                true
            }
            Action::Lowercase => {
                let value = source().to_lowercase();
                labels.set(&self.target_label, &value);
                true
            }
            Action::Uppercase => {
                let value = source().to_uppercase();
                labels.set(&self.target_label, &value);
                true
            }
            Action::HashMod => {
                let value = (hash::of(&source()) % self.modulus).to_string();
                labels.set(&self.target_label, &value);
                true
            }
            Action::LabelMap => {
                self.map(labels);
                true
            }
            Action::LabelDrop => {
                self.prune(labels, true);
                true
            }
            Action::LabelKeep => {
                self.prune(labels, false);
                true
            }
        }
    }

    fn joined(&self, labels: &LabelsBuilder) -> String {
        let values: Vec<&str> = self
            .source_labels
            .iter()
            .map(|name| labels.get(name).unwrap_or(""))
            .collect();
        values.join(&self.separator)
    }

    fn replace(&self, labels: &mut LabelsBuilder) {
        let source = self.joined(labels);
        let Some(found) = self.regex.captures(&source) else {
            return;
        };
        let target = self.target.fill(&found);
        if !self.scheme.label_name(&target) {
            return;
        }
        let value = self.value.fill(&found);
        labels.set(&target, &value);
    }

    fn map(&self, labels: &mut LabelsBuilder) {
        let mut pairs: Vec<(String, String)> = labels.iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        pairs.sort_unstable();
        for (name, value) in &pairs {
            if let Some(found) = self.regex.captures(name) {
                let target = self.value.fill(&found);
                if !target.is_empty() {
                    labels.set(&target, value);
                }
            }
        }
    }

    fn prune(&self, labels: &mut LabelsBuilder, matching: bool) {
        let names: Vec<String> = labels
            .iter()
            .filter(|(name, _)| self.regex.is_match(name) == matching)
            .map(|(name, _)| name.to_owned())
            .collect();
        for name in &names {
            labels.remove(name);
        }
    }
}

impl Decode for Action {
    fn decode(node: &Node) -> Result<Self> {
        let text: String = node.read()?;
        if text.is_empty() {
            return Err(node.fault("relabel action cannot be empty"));
        }
        let lower = text.to_lowercase();
        ACTIONS
            .iter()
            .find(|(name, _)| *name == lower)
            .map(|(_, action)| *action)
            .ok_or_else(|| node.fault(format!("unknown relabel action {text:?}")))
    }
}

fn source_labels(fields: &mut Fields<'_>) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for node in fields.list_of("source_labels")? {
        names.push(label_name(node, NameScheme::Utf8)?);
    }
    Ok(names)
}

/// Reads a label's name.
///
/// # Errors
///
/// A fault where the scheme refuses it.
pub fn label_name(node: &Node, scheme: NameScheme) -> Result<String> {
    let bad = |text: &str| node.fault(format!("\"{text}\" is not a valid label name"));
    match node.scalar() {
        Some(scalar) if scalar.binary => Err(bad(&scalar.text)),
        _ => {
            let name: String = node.read()?;
            if scheme.label_name(&name) {
                Ok(name)
            } else {
                Err(bad(&name))
            }
        }
    }
}

#[cfg(test)]
mod tests;
