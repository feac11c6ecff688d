//! Rule files: groups of recording and alerting rules, as written.
//!
//! Structure is judged here; expressions and templates are texts, and the `rules` crate parses them.
//! Every rule knows its line, so that a message about its expression can point at it.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use model::Millis;
use model::labels::{METRIC_NAME, is_legacy_metric_name};
use model::text::Span;

use crate::error::{Error, read};
use crate::relabel::NameScheme;
use crate::yaml::{Duration, Fault, Fields, Node, Result, parse};

/// A rule file.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleFile {
    /// The file, or what stands for it.
    pub path: String,
    /// The whole text, for messages that point into it.
    pub text: String,
    /// Its groups, in order; names are distinct.
    pub groups: Vec<Group>,
}

/// Rules evaluated one after the other at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The name, unique in its file.
    pub name: String,
    /// How often, in milliseconds; `None` for the global interval.
    pub interval: Option<Millis>,
    /// How far back the evaluation time lies, in milliseconds; `None` for the global one.
    pub query_offset: Option<Millis>,
    /// The most alerts or series one rule may give; 0 for no bound.
    pub limit: u64,
    /// What becomes of its alerts when their data is missing; a key of ours, which Prometheus does not know.
    pub on_missing: OnMissing,
    /// Labels added to every rule of the group.
    pub labels: BTreeMap<String, String>,
    /// The rules in order.
    pub rules: Vec<Rule>,
    /// Line of the group in its file, from 1.
    pub line: usize,
}

/// What becomes of an alert when the target or collector that its data comes from is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnMissing {
    /// It is held, as unknown.
    #[default]
    Hold,
    /// It resolves, as in Prometheus.
    Resolve,
}

/// One rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// What it makes.
    pub kind: RuleKind,
    /// The expression, as written.
    pub expr: String,
    /// Labels to add; values of alerting rules are templates.
    pub labels: BTreeMap<String, String>,
    /// Line of the rule in its file, from 1.
    pub line: usize,
    /// Where the expression stands in the file's text.
    pub expr_at: Span,
}

/// What a rule makes.
#[derive(Debug, Clone, PartialEq)]
pub enum RuleKind {
    /// A series of this name.
    Record(String),
    /// An alert.
    Alert(AlertRule),
}

/// The part of a rule that only alerts have.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AlertRule {
    /// The alert's name.
    pub name: String,
    /// How long the expression must give a result before the alert fires, in milliseconds.
    pub hold: Millis,
    /// How long it goes on firing after the last result, in milliseconds.
    pub keep_firing_for: Millis,
    /// Texts for people; values are templates.
    pub annotations: BTreeMap<String, String>,
}

impl Rule {
    /// The name of the series or of the alert.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.kind {
            RuleKind::Record(name) => name,
            RuleKind::Alert(alert) => &alert.name,
        }
    }
}

impl RuleFile {
    /// Reads and judges a rule file.
    ///
    /// # Errors
    ///
    /// What is wrong with it, with line and caret.
    pub fn load(path: &Path) -> std::result::Result<Self, Error> {
        let text = read(path)?;
        Self::parse(&path.display().to_string(), &text, NameScheme::Utf8)
    }

    /// Judges a text; `path` stands in messages.
    ///
    /// # Errors
    ///
    /// What is wrong with it, with line and caret.
    pub fn parse(path: &str, text: &str, scheme: NameScheme) -> std::result::Result<Self, Error> {
        let groups = groups(text, scheme).map_err(|fault| Error::at(path, text, &fault))?;
        Ok(Self {
            path: path.to_owned(),
            text: text.to_owned(),
            groups,
        })
    }

    /// A message about an expression of this file: `span` lies within the expression of `rule`.
    #[must_use]
    pub fn error_in(&self, rule: &Rule, span: Span, message: &str) -> Error {
        let source = self.text.get(rule.expr_at.range()).unwrap_or("");
        // Only an expression written as it reads can be pointed into; a folded or quoted one is pointed at whole.
        let at = match source.find(&rule.expr) {
            Some(offset) if !rule.expr.is_empty() => {
                let start = rule.expr_at.start + offset;
                Span::new(start + span.start, start + span.end)
            }
            _ => rule.expr_at,
        };
        Error::at(&self.path, &self.text, &Fault::new(at, message))
    }
}

/// Where lines begin: a file of ten thousand rules is not counted through for each of them.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(at, _)| at + 1).collect())
    }

    /// The line of a byte, from 1.
    fn of(&self, at: usize) -> usize {
        self.0.partition_point(|start| *start <= at) + 1
    }
}

fn groups(text: &str, scheme: NameScheme) -> Result<Vec<Group>> {
    let root = parse(text)?;
    let lines = Lines::new(text);
    let mut fields = root.fields()?;
    let mut names = HashSet::new();
    let mut groups = Vec::new();
    for node in fields.list_of("groups")? {
        let group = Group::read(node, &lines, scheme)?;
        if !names.insert(group.name.clone()) {
            return Err(node.fault(format!("groupname: {:?} is repeated in the same file", group.name)));
        }
        groups.push(group);
    }
    fields.finish()?;
    Ok(groups)
}

impl Group {
    fn read(node: &Node, lines: &Lines, scheme: NameScheme) -> Result<Self> {
        let mut fields = node.fields()?;
        let name: String = fields.or_empty("name")?;
        if name.is_empty() {
            return Err(fields.fault("Groupname must not be empty"));
        }
        let limit: i64 = fields.or_empty("limit")?;
        let group = Self {
            name,
            interval: optional(&mut fields, "interval")?.filter(|interval| *interval > 0),
            query_offset: optional(&mut fields, "query_offset")?,
            limit: u64::try_from(limit).unwrap_or(0),
            on_missing: on_missing(&mut fields)?,
            labels: labels(&mut fields, scheme)?,
            rules: {
                let nodes = fields.list_of("rules")?.iter();
                nodes
                    .map(|node| Rule::read(node, lines, scheme))
                    .collect::<Result<_>>()?
            },
            line: lines.of(node.at.start),
        };
        fields.finish()?;
        Ok(group)
    }
}

impl Rule {
    fn read(node: &Node, lines: &Lines, scheme: NameScheme) -> Result<Self> {
        let mut fields = node.fields()?;
        let record: String = fields.or_empty("record")?;
        let alert: String = fields.or_empty("alert")?;
        let expr_node = fields.node_of("expr");
        let expr: String = expr_node.map(Node::read).transpose()?.unwrap_or_default();
        let hold = optional(&mut fields, "for")?.unwrap_or(0);
        let keep_firing_for = optional(&mut fields, "keep_firing_for")?.unwrap_or(0);
        let labels = labels(&mut fields, scheme)?;
        let annotations = annotations(&mut fields, scheme)?;
        fields.finish()?;
        check_kind(&fields, &record, &alert, &expr)?;
        let kind = if alert.is_empty() {
            check_record(&fields, &record, hold, keep_firing_for, &annotations)?;
            RuleKind::Record(record)
        } else {
            RuleKind::Alert(AlertRule {
                name: alert,
                hold,
                keep_firing_for,
                annotations,
            })
        };
        Ok(Self {
            kind,
            expr,
            labels,
            line: lines.of(node.at.start),
            expr_at: expr_node.map_or(node.at, |n| n.at),
        })
    }
}

fn on_missing(fields: &mut Fields<'_>) -> Result<OnMissing> {
    let text: String = fields.or_empty("on_missing")?;
    match text.as_str() {
        "" | "hold" => Ok(OnMissing::Hold),
        "resolve" => Ok(OnMissing::Resolve),
        other => Err(fields.fault_at(
            "on_missing",
            format!("on_missing is \"hold\" or \"resolve\", not {other:?}"),
        )),
    }
}

fn check_kind(fields: &Fields<'_>, record: &str, alert: &str, expr: &str) -> Result<()> {
    if !record.is_empty() && !alert.is_empty() {
        return Err(fields.fault("only one of 'record' and 'alert' must be set"));
    }
    if record.is_empty() && alert.is_empty() {
        return Err(fields.fault("one of 'record' or 'alert' must be set"));
    }
    if expr.is_empty() {
        return Err(fields.fault("field 'expr' must be set in rule"));
    }
    Ok(())
}

fn check_record(
    fields: &Fields<'_>,
    record: &str,
    hold: Millis,
    keep_firing_for: Millis,
    annotations: &BTreeMap<String, String>,
) -> Result<()> {
    if !annotations.is_empty() {
        return Err(fields.fault_at("annotations", "invalid field 'annotations' in recording rule"));
    }
    if hold != 0 {
        return Err(fields.fault_at("for", "invalid field 'for' in recording rule"));
    }
    if keep_firing_for != 0 {
        return Err(fields.fault_at("keep_firing_for", "invalid field 'keep_firing_for' in recording rule"));
    }
    if !is_legacy_metric_name(record) && record.contains(['{', '}']) {
        let message = format!("braces present in the recording rule name; should it be in expr?: {record}");
        return Err(fields.fault_at("record", message));
    }
    Ok(())
}

fn optional(fields: &mut Fields<'_>, key: &'static str) -> Result<Option<Millis>> {
    Ok(fields
        .part(key)
        .map(Node::read)
        .transpose()?
        .map(|Duration(millis)| millis))
}

fn labels(fields: &mut Fields<'_>, scheme: NameScheme) -> Result<BTreeMap<String, String>> {
    pairs(
        fields,
        "labels",
        |name| name != METRIC_NAME && scheme.label_name(name),
        "label",
    )
}

fn annotations(fields: &mut Fields<'_>, scheme: NameScheme) -> Result<BTreeMap<String, String>> {
    pairs(fields, "annotations", |name| scheme.label_name(name), "annotation")
}

fn pairs(
    fields: &mut Fields<'_>,
    key: &'static str,
    good: impl Fn(&str) -> bool,
    what: &str,
) -> Result<BTreeMap<String, String>> {
    let mut out = BTreeMap::new();
    let nodes = fields.node_of(key).map_or(Ok(&[][..]), Node::map)?;
    for (name, value) in nodes {
        if name.binary || !good(&name.text) {
            return Err(Fault::new(name.at, format!("invalid {what} name: {}", name.text)));
        }
        out.insert(name.text.clone(), value.read()?);
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
