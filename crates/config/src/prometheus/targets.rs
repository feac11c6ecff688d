//! Targets written in the file: `static_configs`.

use model::labels::Labels;

use crate::error::Error;
use crate::relabel::NameScheme;
use crate::yaml::{Fault, Fields, Node, Result, parse};

/// A group of targets with labels in common.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StaticConfig {
    /// `host:port` each.
    pub targets: Vec<String>,
    /// Labels of every one.
    pub labels: Labels,
}

impl StaticConfig {
    /// Takes `static_configs`.
    pub(super) fn list(fields: &mut Fields<'_>) -> Result<Vec<Self>> {
        fields.list_of("static_configs")?.iter().map(Self::read).collect()
    }

    /// Reads one group.
    ///
    /// # Errors
    ///
    /// A fault at what is wrong.
    pub fn read(node: &Node) -> Result<Self> {
        if node.map()?.is_empty() {
            return Err(node.fault("empty or null section in static_configs"));
        }
        let mut fields = node.fields()?;
        let group = Self {
            targets: fields.or_empty("targets")?,
            labels: labels(&mut fields)?,
        };
        fields.finish()?;
        Ok(group)
    }
}

/// Reads what a file of targets, or a server that is asked for them, holds: a list of groups, as YAML or JSON.
///
/// # Errors
///
/// What is wrong, with line and caret; `path` stands in the message.
pub fn target_groups(path: &str, text: &str) -> std::result::Result<Vec<StaticConfig>, Error> {
    let groups = |node: &Node| -> Result<Vec<StaticConfig>> {
        if node.is_null() {
            return Ok(Vec::new());
        }
        node.list()?.iter().map(StaticConfig::read).collect()
    };
    parse(text)
        .and_then(|node| groups(&node))
        .map_err(|fault| Error::at(path, text, &fault))
}

fn labels(fields: &mut Fields<'_>) -> Result<Labels> {
    let pairs = fields.node_of("labels").map_or(Ok(&[][..]), Node::map)?;
    let mut out = Vec::new();
    for (name, value) in pairs {
        if name.binary || !NameScheme::Utf8.label_name(&name.text) {
            return Err(Fault::new(
                name.at,
                format!("\"{}\" is not a valid label name", name.text),
            ));
        }
        out.push((name.text.as_str(), value.read::<String>()?));
    }
    Ok(Labels::from_pairs(out.iter().map(|(n, v)| (*n, v.as_str()))))
}

/// Refuses targets that are not `host:port`: without relabelling nothing could mend them.
pub(super) fn check_hosts(fields: &Fields<'_>, groups: &[StaticConfig]) -> Result<()> {
    for target in groups.iter().flat_map(|g| &g.targets) {
        if target.contains('/') {
            return Err(fields.fault_at("static_configs", format!("{target:?} is not a valid hostname")));
        }
    }
    Ok(())
}
