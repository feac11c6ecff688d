//! Inhibition: while one alert fires, others keep silent.

use model::Matcher;

use super::matchers::{self, Mode};
use crate::yaml::{Node, Result};

/// One rule.
#[derive(Debug, Clone, PartialEq)]
pub struct InhibitRule {
    /// A name for people; often empty.
    pub name: String,
    /// What the firing alert must match, sorted.
    pub source_matchers: Vec<Matcher>,
    /// What the silenced alert must match, sorted.
    pub target_matchers: Vec<Matcher>,
    /// Labels that must be the same in both; absent and empty are the same.
    pub equal: Vec<String>,
}

impl InhibitRule {
    /// Reads a rule in the default mode of matchers.
    ///
    /// # Errors
    ///
    /// A fault at what is wrong.
    pub fn read(node: &Node) -> Result<Self> {
        Self::read_in(node, Mode::default())
    }

    /// Reads a rule.
    ///
    /// # Errors
    ///
    /// A fault at what is wrong.
    pub fn read_in(node: &Node, mode: Mode) -> Result<Self> {
        let mut fields = node.fields()?;
        let rule = Self {
            name: fields.or_empty("name")?,
            source_matchers: matchers::take(
                &mut fields,
                ["source_match", "source_match_re", "source_matchers"],
                mode,
            )?,
            target_matchers: matchers::take(
                &mut fields,
                ["target_match", "target_match_re", "target_matchers"],
                mode,
            )?,
            equal: fields.or_empty("equal")?,
        };
        fields.finish()?;
        if let Some(name) = rule.equal.iter().find(|name| !mode.label_name(name)) {
            return Err(fields.fault_at("equal", format!("invalid label name {name:?} in equal list")));
        }
        Ok(rule)
    }
}
